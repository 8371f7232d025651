#include "lab/workload/jobs.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "net/error.h"
#include "net/random.h"

namespace heddle::lab {
namespace {

// Adds one job in the shape its pattern needs.
struct AddJob {
  WorkloadBuilder& builder;
  const Job& job;

  void operator()(const Flows& flows) const { add_flows(begin(false), job.ranks, flows); }
  void operator()(const Permutation& permutation) const { add_permutation(begin(false), job.ranks, permutation); }
  void operator()(const Shift& shift) const { add_shift(begin(false), job.ranks, shift); }
  void operator()(const Incast& incast) const { add_incast(begin(false), job.name, job.ranks, incast); }
  void operator()(const Pipeline& pipeline) const { add_pipeline(begin(false), job.ranks, pipeline); }
  void operator()(const Poisson& poisson) const { add_poisson(begin(false), job.ranks, poisson); }
  void operator()(const Training& training) const {
    const auto ranks = static_cast<uint32_t>(job.ranks.hosts.size());
    add_training(begin(training_runs_in_steps(ranks, training)), job.ranks, training);
  }

  WorkloadBuilder& begin(bool runs_in_steps) const {
    builder.add_job(job.name, runs_in_steps);
    return builder;
  }
};

struct CountMessages {
  uint32_t ranks;
  const Job& job;

  uint64_t operator()(const Flows& flows) const { return flows.flows.size(); }
  uint64_t operator()(const Permutation&) const { return ranks; }
  uint64_t operator()(const Shift&) const { return ranks; }
  uint64_t operator()(const Incast& incast) const {
    return (incast.fan_in == 0 ? ranks - 1 : incast.fan_in) +
           (incast.victims.empty() ? incast.victim_count : incast.victims.size());
  }
  uint64_t operator()(const Pipeline& pipeline) const { return pipeline_messages(ranks, pipeline); }
  uint64_t operator()(const Training& training) const { return training_messages(ranks, training); }
  uint64_t operator()(const Poisson& poisson) const {
    const double flows = expected_flows(job.ranks, poisson);
    return flows < static_cast<double>(kMaxMessages) ? static_cast<uint64_t>(std::llround(flows)) : kMaxMessages + 1;
  }
};

}  // namespace

Workload make_workload(uint32_t host_count, const std::vector<Job>& jobs) {
  WorkloadBuilder builder(host_count);
  for (const Job& job : jobs) {
    try {
      std::visit(AddJob{builder, job}, job.pattern);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("job {}: {}", job.name, error.what()));
    }
  }
  return builder.finish();
}

uint64_t expected_messages(const Job& job) {
  const uint32_t ranks = static_cast<uint32_t>(job.ranks.hosts.size());
  return ranks < 2 ? 0 : std::visit(CountMessages{ranks, job}, job.pattern);
}

std::vector<std::vector<HostId>> place_jobs(uint32_t host_count, const std::vector<uint32_t>& ranks_per_job,
                                            const Placement& placement) {
  std::vector<HostId> hosts = placement.among;
  if (hosts.empty()) {
    hosts.resize(host_count);
    std::iota(hosts.begin(), hosts.end(), 0U);
  }
  check_ranks({hosts, 0}, host_count, 0);
  const uint64_t wanted = std::accumulate(ranks_per_job.begin(), ranks_per_job.end(), uint64_t{0});
  if (wanted > hosts.size()) throw_bad_input("the jobs need {} hosts; there are {}", wanted, hosts.size());
  if (placement.order == PlacementOrder::kRandom) {
    Random random(placement.seed);
    for (uint32_t i = static_cast<uint32_t>(hosts.size()); i > 1; --i) std::swap(hosts[i - 1], hosts[random.below(i)]);
  }
  std::vector<std::vector<HostId>> placed;
  auto next = hosts.cbegin();
  for (const uint32_t ranks : ranks_per_job) {
    placed.emplace_back(next, next + ranks);
    next += ranks;
  }
  return placed;
}

}  // namespace heddle::lab
