#include "lab/workload/patterns.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "lab/workload/jobs.h"
#include "lab/workload/pipeline.h"
#include "net/error.h"
#include "tests/unit/lab/ideal/ideal_executor.h"

namespace heddle::lab {
namespace {

std::vector<HostId> hosts(uint32_t n, HostId first = 0) {
  std::vector<HostId> list(n);
  std::iota(list.begin(), list.end(), first);
  return list;
}

Workload one_job(uint32_t host_count, const Ranks& ranks, const Pattern& pattern) {
  return make_workload(host_count, {{"job", ranks, pattern}});
}

std::vector<std::pair<HostId, HostId>> pairs_of(const Workload& workload) {
  std::vector<std::pair<HostId, HostId>> pairs;
  for (const Message& m : workload.messages) pairs.emplace_back(m.src, m.dst);
  return pairs;
}

TEST(Permutation, EveryRankSendsAndReceivesOnceAndNeverToItself) {
  for (const uint32_t n : {2U, 3U, 4U, 16U, 1000U}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<uint32_t> to = random_derangement(n, seed);
      ASSERT_EQ(std::set<uint32_t>(to.begin(), to.end()).size(), n);
      for (uint32_t i = 0; i < n; ++i) EXPECT_NE(to[i], i) << n << " ranks, seed " << seed;
    }
  }
}

TEST(Permutation, EveryDerangementIsEquallyLikely) {
  // Four ranks have 9 derangements. 9,000 seeds: 1,000 each, standard deviation 29.8.
  std::map<std::vector<uint32_t>, int> seen;
  for (uint64_t seed = 0; seed < 9000; ++seed) ++seen[random_derangement(4, seed)];
  ASSERT_EQ(seen.size(), 9U);
  for (const auto& [to, count] : seen) EXPECT_NEAR(count, 1000, 5 * 29.8);
}

TEST(Permutation, RunsOnTheJobsHostsFromItsStart) {
  const Workload workload = one_job(20, {{19, 3, 7, 11}, 5 * kMicrosecond}, Permutation{1000, 4});
  ASSERT_EQ(workload.messages.size(), 4U);
  for (const Message& m : workload.messages) EXPECT_EQ(m.start, 5 * kMicrosecond);
  const auto sent = bytes_sent_by_host(workload);
  const auto received = bytes_received_by_host(workload);
  for (const HostId host : {19U, 3U, 7U, 11U}) {
    EXPECT_EQ(sent[host], 1000U);
    EXPECT_EQ(received[host], 1000U);
  }
  EXPECT_EQ(std::accumulate(sent.begin(), sent.end(), uint64_t{0}), 4000U);
}

TEST(Permutation, FollowsFromTheSeed) {
  EXPECT_EQ(random_derangement(100, 7), random_derangement(100, 7));
  EXPECT_NE(random_derangement(100, 7), random_derangement(100, 8));
}

TEST(Shift, GoesAroundTheEnd) {
  const Workload workload = one_job(5, {hosts(5), 0}, Shift{10, 2});
  EXPECT_EQ(pairs_of(workload), (std::vector<std::pair<HostId, HostId>>{{0, 2}, {1, 3}, {2, 4}, {3, 0}, {4, 1}}));
  EXPECT_EQ(pairs_of(one_job(5, {hosts(5), 0}, Shift{10, 7})), pairs_of(workload));
}

TEST(Flows, StartWhenTheySayAfterTheJob) {
  const Workload workload = one_job(9, {{4, 8}, 100}, Flows{{{0, 1, 10, 5}, {1, 0, 20, 0}}});
  EXPECT_EQ(pairs_of(workload), (std::vector<std::pair<HostId, HostId>>{{4, 8}, {8, 4}}));
  EXPECT_EQ(workload.messages[0].start, 105U);
  EXPECT_EQ(workload.messages[1].start, 100U);
}

TEST(Incast, AllSendToTheLastRank) {
  const Workload workload = one_job(16, {hosts(16), 0}, Incast{});
  ASSERT_EQ(workload.messages.size(), 15U);
  for (uint32_t i = 0; i < 15; ++i) {
    EXPECT_EQ(workload.messages[i].src, i);
    EXPECT_EQ(workload.messages[i].dst, 15U);
    EXPECT_EQ(workload.messages[i].bytes, 2'000'000U);
  }
  EXPECT_EQ(workload.jobs.size(), 1U);
}

TEST(Incast, VictimsAvoidTheHotPortAndPreferIdleSenders) {
  Incast incast;
  incast.fan_in = 126;
  incast.victim_count = 2;
  incast.victim_bytes = 77;
  const Workload workload = one_job(128, {hosts(128), 0}, incast);
  ASSERT_EQ(workload.messages.size(), 128U);
  EXPECT_EQ(workload.jobs, (std::vector<std::string>{"job", "job victims"}));
  for (uint32_t i = 0; i < 126; ++i) EXPECT_EQ(workload.messages[i].src, i + 1);
  EXPECT_EQ(workload.messages[126].src, 0U);  // the one rank that takes no part in the incast
  EXPECT_EQ(workload.messages[126].dst, 126U);
  EXPECT_EQ(workload.messages[127].src, 1U);
  EXPECT_EQ(workload.messages[127].dst, 125U);
  EXPECT_EQ(workload.messages[127].bytes, 77U);
  EXPECT_EQ(workload.messages[127].job, 1U);
}

TEST(Incast, EveryPossibleNumberOfVictimsIsValid) {
  for (uint32_t n = 3; n < 12; ++n) {
    for (uint32_t victims = 0; victims <= n - 2; ++victims) {
      Incast incast;
      incast.victim_count = victims;
      const Workload workload = one_job(n, {hosts(n), 0}, incast);
      for (const Message& m : workload.messages) EXPECT_EQ(m.dst == n - 1, m.job == 0);
    }
  }
}

TEST(Incast, ListedVictimsAreTakenAsTheyAre) {
  Incast incast;
  incast.fan_in = 2;
  incast.victims = {{0, 3, 500, 9}};
  const Workload workload = one_job(5, {hosts(5), 0}, incast);
  ASSERT_EQ(workload.messages.size(), 3U);
  EXPECT_EQ(workload.messages[2].src, 0U);
  EXPECT_EQ(workload.messages[2].dst, 3U);
  EXPECT_EQ(workload.messages[2].start, 9U);
}

TEST(Pipeline, FillsAndDrains) {
  // S stages, M microbatches, message time w, work f: the last message leaves stage S - 2 after it has worked through
  // all M one after another, behind S - 2 messages and works of the first one: (S - 1 + M - 1) f + (S - 1) w when f ≥
  // w.
  const Duration w = 1000 * 80;
  const Duration work = 2 * w;
  const uint32_t stages = 5;
  const uint32_t microbatches = 7;
  const Workload workload = one_job(5, {hosts(5), 0}, Pipeline{1000, microbatches, work, false, 0});
  const IdealRun run = run_ideally(workload, {.hosts_are_serial = true});
  EXPECT_TRUE(all_ran(run));
  EXPECT_EQ(run.makespan, (stages - 1 + microbatches - 1) * work + (stages - 1) * w);
  EXPECT_EQ(size_of(workload).bytes, uint64_t{microbatches} * (stages - 1) * 1000);
}

TEST(Pipeline, WithoutWorkTheLinkIsTheLimit) {
  const Duration w = 1000 * 80;
  const Workload workload = one_job(4, {hosts(4), 0}, Pipeline{1000, 6, 0, false, 0});
  EXPECT_EQ(run_ideally(workload, {.hosts_are_serial = true}).makespan, (6 + 4 - 2) * w);
}

TEST(Pipeline, BackwardBeginsWhenTheLastStageHasSeenAll) {
  // GPipe: forward (S - 1 + M) f with messages in between, then backward (S - 1 + M - 1) b, w each hop.
  const Duration w = 1000 * 80;
  const Duration forward = 3 * w;
  const Duration backward = 5 * w;
  const uint32_t stages = 4;
  const uint32_t microbatches = 6;
  const Workload workload = one_job(4, {hosts(4), 0}, Pipeline{1000, microbatches, forward, true, backward});
  const IdealRun run = run_ideally(workload, {.hosts_are_serial = true});
  EXPECT_TRUE(all_ran(run));
  const Duration all_seen = (stages - 1 + microbatches) * forward + (stages - 1) * w;
  EXPECT_EQ(run.makespan, all_seen + (stages - 1 + microbatches - 1) * backward + (stages - 1) * w);
  const auto sent = bytes_sent_by_host(workload);
  EXPECT_EQ(sent, (std::vector<uint64_t>{6000, 12000, 12000, 6000}));
}

struct Load {
  double bytes_per_host = 0;
  double flows = 0;
};
Load load_of(const Workload& workload) {
  const WorkloadSize size = size_of(workload);
  return {static_cast<double>(size.bytes) / workload.host_count, static_cast<double>(size.messages)};
}

TEST(Poisson, OffersItsLoadWithinStatisticalBounds) {
  for (const std::string& name : size_distribution_names()) {
    for (const double load : {0.1, 0.5, 0.8}) {
      Poisson poisson;
      poisson.sizes = find_size_distribution(name);
      poisson.load = load;
      poisson.duration = name == "websearch" ? kSecond / 2 : 20 * kMillisecond;
      const uint32_t n = 64;
      const Workload workload = one_job(n, {hosts(n), 0}, poisson);
      const double expected = expected_flows({hosts(n), 0}, poisson);
      const Load offered = load_of(workload);
      EXPECT_NEAR(offered.flows, expected, 5 * std::sqrt(expected)) << name << " at " << load;
      // A compound Poisson sum: variance = flows × E[size²], E[size²] from the segments of the distribution.
      double square = 0;
      const auto& points = poisson.sizes.points();
      for (size_t i = 1; i < points.size(); ++i) {
        const double a = points[i - 1].bytes;
        const double b = points[i].bytes;
        square += (a * a + a * b + b * b) / 3 * (points[i].probability - points[i - 1].probability);
      }
      const double bytes = load * 100e9 / 8 * to_seconds(poisson.duration);
      EXPECT_NEAR(offered.bytes_per_host, bytes, 5 * std::sqrt(expected * square) / n + 1) << name << " at " << load;
    }
  }
}

TEST(Poisson, GapsAreExponentialAndDestinationsUniform) {
  Poisson poisson;
  poisson.sizes = SizeDistribution::constant(10'000);
  poisson.duration = 100 * kMillisecond;
  const uint32_t n = 9;
  const Workload workload = one_job(n, {hosts(n), 0}, poisson);
  std::vector<Time> last(n, 0);
  std::vector<int> received(n, 0);
  int gaps = 0;
  int above_mean = 0;
  double sum = 0;
  const double mean = 10'000 * 8.0 / (0.5 * 100e9) * 1e12;
  for (const Message& m : workload.messages) {
    const double gap = static_cast<double>(m.start - last[m.src]);
    last[m.src] = m.start;
    ++gaps;
    above_mean += gap > mean ? 1 : 0;
    sum += gap;
    if (m.src == 0) ++received[m.dst];
  }
  EXPECT_NEAR(sum / gaps, mean, 5 * mean / std::sqrt(gaps));
  EXPECT_NEAR(static_cast<double>(above_mean) / gaps, std::exp(-1.0), 5 * 0.5 / std::sqrt(gaps));
  EXPECT_EQ(received[0], 0);
  const double share = std::accumulate(received.begin(), received.end(), 0) / 8.0;
  for (uint32_t dst = 1; dst < n; ++dst) EXPECT_NEAR(received[dst], share, 5 * std::sqrt(share));
}

TEST(Poisson, ArrivalsComeInOrderWithinTheirTime) {
  Poisson poisson;
  poisson.duration = 30 * kMillisecond;
  const Workload workload = one_job(16, {hosts(16), kMillisecond}, poisson);
  ASSERT_GT(workload.messages.size(), 100U);
  Time last = 0;
  for (const Message& m : workload.messages) {
    EXPECT_GE(m.start, last);
    last = m.start;
  }
  EXPECT_GE(workload.messages.front().start, kMillisecond);
  EXPECT_LT(last, 31 * kMillisecond);
}

TEST(Poisson, FollowsFromTheSeedAndStopsAtTheLimit) {
  Poisson poisson;
  poisson.duration = 50 * kMillisecond;
  const auto run = [](const Poisson& p) {
    std::vector<std::tuple<HostId, HostId, uint64_t, Time>> flows;
    for (const Message& m : one_job(8, {hosts(8), 0}, p).messages) flows.emplace_back(m.src, m.dst, m.bytes, m.start);
    return flows;
  };
  const auto all = run(poisson);
  EXPECT_EQ(run(poisson), all);
  ASSERT_GT(all.size(), 20U);
  Poisson limited = poisson;
  limited.max_flows = 20;
  EXPECT_EQ(run(limited), decltype(all)(all.begin(), all.begin() + 20));
  Poisson other = poisson;
  other.seed = 2;
  EXPECT_NE(run(other), all);
}

TEST(Patterns, RefuseWhatTheyCannotDo) {
  const auto poisson = [](auto change) {
    Poisson p;
    change(p);
    return p;
  };
  const struct {
    const char* what;
    Ranks ranks;
    Pattern pattern;
    const char* says;
  } rows[] = {
      {"a permutation of one", {{3}, 0}, Permutation{}, "at least 2"},
      {"a host beyond the fabric", {{0, 8}, 0}, Permutation{}, "host 8"},
      {"two ranks on a host", {{1, 2, 1}, 0}, Permutation{}, "two ranks"},
      {"no bytes", {{1, 2}, 0}, Permutation{0, 1}, "at least 1 byte"},
      {"a shift home", {hosts(4), 0}, Shift{10, 8}, "home"},
      {"a flow from a missing rank", {hosts(4), 0}, Flows{{{4, 0, 1, 0}}}, "rank 4"},
      {"a flow home", {hosts(4), 0}, Flows{{{2, 2, 1, 0}}}, "different ranks"},
      {"a flow after the end of time", {hosts(4), 0}, Flows{{{0, 1, 1, UINT64_MAX}}}, "latest possible"},
      {"a job after the end of time", {hosts(4), UINT64_MAX}, Permutation{}, "latest possible"},
      {"more senders than ranks", {hosts(4), 0}, Incast{1, 4, 0, 1, {}}, "needs 5 ranks"},
      {"more victims than ranks", {hosts(4), 0}, Incast{1, 3, 3, 1, {}}, "at most 2"},
      {"a pipeline without microbatches", {hosts(4), 0}, Pipeline{1, 0, 0, false, 0}, "at least 1 microbatch"},
      {"a pipeline beyond the end of time", {hosts(4), 0}, Pipeline{1, 4, kMaxDelay, false, 0}, "longer than"},
      {"a pipeline too long to hold", {hosts(4), 0}, Pipeline{1, 1U << 30U, 0, false, 0}, "a workload may hold"},
      {"no load", {hosts(4), 0}, poisson([](Poisson& p) { p.load = 0; }), "load 0"},
      {"more than all load", {hosts(4), 0}, poisson([](Poisson& p) { p.load = 1.01; }), "load 1.01"},
      {"a load that is no number", {hosts(4), 0}, poisson([](Poisson& p) { p.load = NAN; }), "load nan"},
      {"a load of nothing", {hosts(4), 0}, poisson([](Poisson& p) { p.host_rate = Rate(); }), "with a rate"},
      {"arrivals without end", {hosts(4), 0}, poisson([](Poisson& p) { p.duration = UINT64_MAX; }), "longer than"},
      {"more arrivals than fit",
       {hosts(4), 0},
       poisson([](Poisson& p) {
         p.duration = kMaxDelay;
         p.sizes = SizeDistribution::constant(1);
       }),
       "a workload may hold"},
  };
  for (const auto& row : rows) {
    try {
      one_job(8, row.ranks, row.pattern);
      ADD_FAILURE() << row.what << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kBadInput) << row.what;
      EXPECT_NE(std::string(error.what()).find(row.says), std::string::npos) << row.what << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace heddle::lab
