// Microbatches through a pipeline of stages: pipeline-parallel training's point-to-point traffic.
#pragma once

#include <cstdint>

#include "lab/workload/patterns.h"

namespace heddle::lab {

// Rank s is stage s of a pipeline and passes every microbatch on to stage s + 1; a stage works on one microbatch at a
// time for `forward`. With `backward` the stages then return a message of the same size for every microbatch, last
// stage first, `backward_work` each, after the last stage has seen all of them (GPipe's schedule: Huang et al., NeurIPS
// 2019).
struct Pipeline {
  uint64_t bytes = 2'000'000;
  uint32_t microbatches = 8;
  Duration forward = 0;
  bool backward = false;
  Duration backward_work = 0;
};

// Adds the messages to the builder's current job, with one barrier per stage and microbatch for its work.
void add_pipeline(WorkloadBuilder& builder, const Ranks& ranks, const Pipeline& pipeline);

// How many messages and barriers that makes.
uint64_t pipeline_messages(uint32_t ranks, const Pipeline& pipeline);

}  // namespace heddle::lab
