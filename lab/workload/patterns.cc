#include "lab/workload/patterns.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "net/error.h"
#include "net/random.h"

namespace heddle::lab {
namespace {

uint32_t count_of(const Ranks& ranks) { return static_cast<uint32_t>(ranks.hosts.size()); }

void check_flow(const Flow& flow, const Ranks& ranks) {
  if (flow.src >= ranks.hosts.size() || flow.dst >= ranks.hosts.size() || flow.src == flow.dst) {
    throw_bad_input("a flow from rank {} to rank {}: it needs two different ranks from 0 to {}", flow.src, flow.dst,
                    ranks.hosts.size() - 1);
  }
  if (flow.start > kMaxDelay) throw_bad_input("a flow starts after {} s, the latest possible", to_seconds(kMaxDelay));
}

void add_flow(WorkloadBuilder& builder, const Ranks& ranks, const Flow& flow) {
  check_flow(flow, ranks);
  builder.add_message(ranks.hosts[flow.src], ranks.hosts[flow.dst], flow.bytes, ranks.start + flow.start);
}

std::vector<Flow> victims_of(const Incast& incast, uint32_t ranks) {
  if (!incast.victims.empty()) return incast.victims;
  const uint32_t receiver = ranks - 1;
  if (incast.victim_count > receiver - 1) {
    throw_bad_input("{} victims of an incast among {} ranks; at most {} are possible", incast.victim_count, ranks,
                    receiver - 1);
  }
  std::vector<Flow> victims;
  for (uint32_t v = 0; v < incast.victim_count; ++v) {
    const uint32_t dst = receiver - 1 - v;
    const uint32_t src = v != dst ? v : (v + 1) % receiver;
    victims.push_back({src, dst, incast.victim_bytes, 0});
  }
  return victims;
}

constexpr double kMaxArrivals = static_cast<double>(kMaxMessages);

struct Arrival {
  double at;  // picoseconds since the job's start
  uint32_t rank;
  bool operator>(const Arrival& other) const { return at != other.at ? at > other.at : rank > other.rank; }
};

double mean_gap(const Poisson& poisson) {
  return poisson.sizes.mean() * 8e12 / (poisson.load * static_cast<double>(poisson.host_rate.bits_per_second()));
}

double exponential(Random& random, double mean) { return -std::log1p(-random.uniform()) * mean; }

void check_poisson(const Poisson& poisson) {
  if (!(poisson.load > 0 && poisson.load <= 1)) {
    throw_bad_input("load {}: a share of the host link's rate above 0 and up to 1 is needed", poisson.load);
  }
  if (poisson.host_rate.is_unlimited()) throw_bad_input("a load needs a host link with a rate");
  if (poisson.duration > kMaxDelay) throw_bad_input("arrivals last longer than {} s", to_seconds(kMaxDelay));
}

}  // namespace

void check_ranks(const Ranks& ranks, uint32_t host_count, uint32_t least) {
  if (ranks.start > kMaxDelay) throw_bad_input("a job starts after {} s, the latest possible", to_seconds(kMaxDelay));
  if (ranks.hosts.size() < least) throw_bad_input("{} ranks; at least {} are needed", ranks.hosts.size(), least);
  std::vector<bool> taken(host_count, false);
  for (const HostId host : ranks.hosts) {
    if (host >= host_count) throw_bad_input("a rank on host {}; the fabric has {} hosts", host, host_count);
    if (taken[host]) throw_bad_input("two ranks of one job on host {}", host);
    taken[host] = true;
  }
}

void add_flows(WorkloadBuilder& builder, const Ranks& ranks, const Flows& flows) {
  check_ranks(ranks, builder.host_count(), 2);
  for (const Flow& flow : flows.flows) add_flow(builder, ranks, flow);
}

void add_permutation(WorkloadBuilder& builder, const Ranks& ranks, const Permutation& permutation) {
  check_ranks(ranks, builder.host_count(), 2);
  builder.expect(count_of(ranks));
  const std::vector<uint32_t> to = random_derangement(count_of(ranks), permutation.seed);
  for (uint32_t rank = 0; rank < to.size(); ++rank) add_flow(builder, ranks, {rank, to[rank], permutation.bytes, 0});
}

void add_shift(WorkloadBuilder& builder, const Ranks& ranks, const Shift& shift) {
  check_ranks(ranks, builder.host_count(), 2);
  const uint32_t n = count_of(ranks);
  const uint32_t distance = shift.distance % n;
  if (distance == 0) throw_bad_input("a shift by {} among {} ranks would send every message home", shift.distance, n);
  for (uint32_t rank = 0; rank < n; ++rank) {
    const uint32_t to = rank < n - distance ? rank + distance : rank - (n - distance);
    add_flow(builder, ranks, {rank, to, shift.bytes, 0});
  }
}

void add_incast(WorkloadBuilder& builder, const std::string& job, const Ranks& ranks, const Incast& incast) {
  check_ranks(ranks, builder.host_count(), 2);
  const uint32_t receiver = count_of(ranks) - 1;
  if (incast.fan_in > receiver) {
    throw_bad_input("an incast of {} senders needs {} ranks; there are {}", incast.fan_in, incast.fan_in + uint64_t{1},
                    receiver + 1);
  }
  const uint32_t fan_in = incast.fan_in == 0 ? receiver : incast.fan_in;
  for (uint32_t sender = receiver - fan_in; sender < receiver; ++sender) {
    add_flow(builder, ranks, {sender, receiver, incast.bytes, 0});
  }
  const std::vector<Flow> victims = victims_of(incast, receiver + 1);
  if (victims.empty()) return;
  builder.add_job(job + " victims", false);
  for (const Flow& victim : victims) add_flow(builder, ranks, victim);
}

double expected_flows(const Ranks& ranks, const Poisson& poisson) {
  check_poisson(poisson);
  const double flows =
      static_cast<double>(ranks.hosts.size()) * static_cast<double>(poisson.duration) / mean_gap(poisson);
  return poisson.max_flows == 0 ? flows : std::min(flows, static_cast<double>(poisson.max_flows));
}

void add_poisson(WorkloadBuilder& builder, const Ranks& ranks, const Poisson& poisson) {
  check_ranks(ranks, builder.host_count(), 2);
  builder.expect(static_cast<uint64_t>(std::min(expected_flows(ranks, poisson), kMaxArrivals + 1)));
  const double gap = mean_gap(poisson);
  const double end = static_cast<double>(poisson.duration);
  const uint32_t n = count_of(ranks);
  std::vector<Random> streams;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> next;
  for (uint32_t rank = 0; rank < n; ++rank) {
    streams.emplace_back(poisson.seed, rank);
    next.push({exponential(streams[rank], gap), rank});
  }
  for (uint64_t flows = 0; poisson.max_flows == 0 || flows < poisson.max_flows; ++flows) {
    const Arrival arrival = next.top();
    if (arrival.at >= end) break;
    next.pop();
    Random& random = streams[arrival.rank];
    const uint64_t bytes = poisson.sizes.sample(random);
    const uint32_t other = random.below(n - 1);
    const uint32_t to = other < arrival.rank ? other : other + 1;
    add_flow(builder, ranks, {arrival.rank, to, bytes, static_cast<Duration>(arrival.at)});
    next.push({arrival.at + exponential(random, gap), arrival.rank});
  }
}

std::vector<uint32_t> random_derangement(uint32_t n, uint64_t seed) {
  if (n < 2) throw_failed("{} ranks have no derangement", n);
  std::vector<uint32_t> to(n);
  Random random(seed);
  // A shuffle is a derangement with probability 1/e (1/2 for n = 2): 200 tries fail with probability below 10^-39.
  constexpr int kTries = 200;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::iota(to.begin(), to.end(), 0U);
    bool fixed_point = false;
    for (uint32_t i = n - 1; i > 0; --i) std::swap(to[i], to[random.below(i + 1)]);
    for (uint32_t i = 0; i < n; ++i) fixed_point |= to[i] == i;
    if (!fixed_point) return to;
  }
  throw_failed("no derangement of {} ranks in {} tries", n, kTries);
}

}  // namespace heddle::lab
