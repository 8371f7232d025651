// Training steps: compute, then a collective, again and again.
#pragma once

#include <cstdint>

#include "lab/workload/collectives.h"
#include "lab/workload/patterns.h"

namespace heddle::lab {

// `steps` times: every rank computes for `compute`, plus a random part of up to `compute_spread` of its own
// (stragglers), then takes part in the collective. A rank goes on to the next step when it has received all that is due
// to it; nothing waits for all ranks but what the collective itself makes wait. `steps` = 1 and `compute` = 0 is the
// collective alone.
struct Training {
  Collective collective;
  uint32_t steps = 1;
  Duration compute = 0;
  Duration compute_spread = 0;
  uint64_t seed = 1;
};

// Adds the messages to the builder's current job, and one barrier per rank where a step begins at no fixed time. Throws
// bad input.
void add_training(WorkloadBuilder& builder, const Ranks& ranks, const Training& training);

// Whether the job runs in steps in the sense of WorkloadBuilder::add_job: the collective does and no rank straggles.
bool training_runs_in_steps(uint32_t ranks, const Training& training);

// How many messages and barriers that makes.
uint64_t training_messages(uint32_t ranks, const Training& training);

}  // namespace heddle::lab
