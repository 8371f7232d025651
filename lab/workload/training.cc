#include "lab/workload/training.h"

#include <algorithm>
#include <vector>

#include "net/error.h"
#include "net/random.h"

namespace heddle::lab {
namespace {

Duration compute_time(const Training& training, Random& random) {
  if (training.compute_spread == 0) return training.compute;
  return training.compute + static_cast<Duration>(random.uniform() * static_cast<double>(training.compute_spread));
}

void check_training(const Ranks& ranks, const Training& training, uint32_t host_count) {
  check_ranks(ranks, host_count, 2);
  if (training.steps == 0) throw_bad_input("training needs at least 1 step");
  if (training.compute > kMaxDelay || training.compute_spread > kMaxDelay) {
    throw_bad_input("a step computes for longer than {} s", to_seconds(kMaxDelay));
  }
}

}  // namespace

void add_training(WorkloadBuilder& builder, const Ranks& ranks, const Training& training) {
  check_training(ranks, training, builder.host_count());
  const uint32_t n = static_cast<uint32_t>(ranks.hosts.size());
  builder.expect(training_messages(n, training));
  std::vector<Random> streams;
  std::vector<RankBegin> begin(n);
  for (uint32_t rank = 0; rank < n; ++rank) {
    streams.emplace_back(training.seed, rank);
    const Time at = ranks.start + compute_time(training, streams[rank]);
    if (training.compute_spread == 0) {
      begin[rank].at = at;
    } else {
      // Ranks begin at different times, and also what a rank passes on has to wait for its own begin.
      begin[rank].gate = builder.add_barrier(ranks.hosts[rank], at);
    }
  }
  for (uint32_t step = 0; step < training.steps; ++step) {
    const auto received = add_collective(builder, ranks.hosts, training.collective, begin);
    if (step + 1 == training.steps) break;
    for (uint32_t rank = 0; rank < n; ++rank) {
      begin[rank] = {builder.add_barrier(ranks.hosts[rank]), compute_time(training, streams[rank])};
      for (const MessageId m : received[rank]) builder.add_trigger({m, TriggerOn::kReceived}, *begin[rank].gate);
    }
  }
}

bool training_runs_in_steps(uint32_t ranks, const Training& training) {
  return training.compute_spread == 0 && collective_runs_in_steps(ranks, training.collective);
}

uint64_t training_messages(uint32_t ranks, const Training& training) {
  const uint64_t per_step = collective_messages(ranks, training.collective) + ranks;
  if (training.steps > kMaxMessages / per_step) return kMaxMessages + 1;  // more than can be; do not overflow
  return training.steps * per_step - (training.compute_spread == 0 ? ranks : 0);
}

}  // namespace heddle::lab
