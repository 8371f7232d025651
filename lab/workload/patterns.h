// Point-to-point traffic without dependencies: who sends how much to whom, and when.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/workload/builder.h"
#include "lab/workload/size_distribution.h"
#include "net/rate.h"

namespace heddle::lab {

// Where a job runs and when it begins. Ranks are 0 … hosts.size() - 1, hosts[rank] the host of a rank; no host twice.
struct Ranks {
  std::vector<HostId> hosts;
  Time start = 0;
};

// Throws bad input unless there are at least `least` ranks, all on different hosts of the fabric.
void check_ranks(const Ranks& ranks, uint32_t host_count, uint32_t least);

// Messages written out one by one (a single flow, two opposite ones); `start` counts from the job's start.
struct Flow {
  uint32_t src = 0;  // ranks
  uint32_t dst = 0;
  uint64_t bytes = 0;
  Duration start = 0;
};
struct Flows {
  std::vector<Flow> flows;
};

// Every rank sends one message and receives one, none to itself, all at once: a random derangement, every one of them
// equally likely.
struct Permutation {
  uint64_t bytes = 2'000'000;
  uint64_t seed = 1;
};

// Every rank sends to the rank `distance` further on, around the end. distance % ranks must not be 0.
struct Shift {
  uint64_t bytes = 2'000'000;
  uint32_t distance = 1;
};

// The last rank receives; the `fan_in` ranks before it (all if 0) send to it at once. Victims are messages that have
// nothing to do with the hot port but may suffer from it; they form a second job, "… victims". If none are listed,
// `victim_count` of them are placed: from ranks 0, 1, … (senders only if no others are left) to the ranks just before
// the receiver, which in host order share its leaf.
struct Incast {
  uint64_t bytes = 2'000'000;
  uint32_t fan_in = 0;
  uint32_t victim_count = 0;
  uint64_t victim_bytes = 2'000'000;
  std::vector<Flow> victims;
};

// Every rank starts messages to random other ranks as a Poisson process of its own. `load` is the share of a host's
// link rate taken by payload, headers not counted, as in the generators of HPCC and ConWeave; ConWeave's "50 % load"
// counts leaf uplinks 2:1 over-subscribed and is 0.25 here. Arrivals end after `duration`, or with `max_flows` flows (0
// = no such limit). A rank's times and sizes follow from the seed and the rank alone.
struct Poisson {
  SizeDistribution sizes = find_size_distribution("websearch");
  double load = 0.5;  // above 0, at most 1
  Rate host_rate = Rate::gbps(100);
  Duration duration = 10 * kMillisecond;
  uint64_t max_flows = 0;
  uint64_t seed = 1;
};

// Each adds the messages of one pattern to the builder's current job (incast: and a job of its own for victims).
void add_flows(WorkloadBuilder& builder, const Ranks& ranks, const Flows& flows);
void add_permutation(WorkloadBuilder& builder, const Ranks& ranks, const Permutation& permutation);
void add_shift(WorkloadBuilder& builder, const Ranks& ranks, const Shift& shift);
void add_incast(WorkloadBuilder& builder, const std::string& job, const Ranks& ranks, const Incast& incast);
void add_poisson(WorkloadBuilder& builder, const Ranks& ranks, const Poisson& poisson);

// A random derangement of 0 … n - 1, n ≥ 2: result[i] != i.
std::vector<uint32_t> random_derangement(uint32_t n, uint64_t seed);

// How many flows a Poisson job is expected to have.
double expected_flows(const Ranks& ranks, const Poisson& poisson);

}  // namespace heddle::lab
