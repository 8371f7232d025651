// Several jobs on one fabric: what each does, and on which hosts.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "lab/workload/patterns.h"
#include "lab/workload/pipeline.h"
#include "lab/workload/training.h"

namespace heddle::lab {

using Pattern = std::variant<Flows, Permutation, Shift, Incast, Pipeline, Poisson, Training>;

struct Job {
  std::string name;
  Ranks ranks;
  Pattern pattern;
};

// The messages of all jobs, in the order of the jobs. Throws bad input; the text begins with the job's name.
Workload make_workload(uint32_t host_count, const std::vector<Job>& jobs);

// How many messages and barriers `make_workload` will make of a job, before it is made (Poisson: the expected number).
uint64_t expected_messages(const Job& job);

enum class PlacementOrder : uint8_t {
  kInOrder,  // ranks on the hosts in order: neighbours in rank are neighbours in the fabric
  kRandom,   // on hosts drawn at random, as a busy cluster's scheduler leaves them
};

struct Placement {
  PlacementOrder order = PlacementOrder::kInOrder;
  uint64_t seed = 1;            // of kRandom
  std::vector<HostId> among{};  // the hosts to use, in this order; empty = all
};

// Rank → host for jobs of the given sizes, no host in two jobs. Throws bad input if the hosts do not suffice.
std::vector<std::vector<HostId>> place_jobs(uint32_t host_count, const std::vector<uint32_t>& ranks_per_job,
                                            const Placement& placement);

}  // namespace heddle::lab
