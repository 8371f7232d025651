// PathSelector by weight, by flowlet and by quality: distribution, traces of a fixed seed, and the lock of the exact
// least load.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lb/path_selector.h"
#include "tests/support/statistics.h"

namespace heddle::lb {
namespace {

constexpr double kFair = 1e-4;
constexpr unsigned kNone = PathSelector::kNone;

// Ports with loads that a test sets.
struct Ports {
  std::array<bool, kMaxMembers> dead{};
  std::array<Duration, kMaxMembers> drain{};
  bool is_up(PortId port) const { return !dead.at(port); }
  Duration drain_time(PortId port) const { return drain.at(port); }
};

class Choices {
 public:
  Choices(const char* scheduler, const std::vector<uint16_t>& weights, ArsSettings ars = {}, uint64_t seed = 1)
      : selector({.seed = seed, .ars = ars, .ports = kMaxMembers}) {
    for (size_t i = 0; i < weights.size(); ++i) {
      group.members.push_back({.rewrite = {}, .port = static_cast<PortId>(i), .weight = weights[i]});
    }
    group.scheduler = *scheduler_named(scheduler);
    group.make_table();
  }
  unsigned pick(uint32_t hash = 0, Time now = 0) { return selector.select(group, state, hash, now, ports); }
  std::vector<uint64_t> counts(unsigned packets, const std::function<uint32_t(unsigned)>& hash) {
    std::vector<uint64_t> counts(group.size());
    for (unsigned i = 0; i < packets; ++i) counts.at(pick(hash(i), i))++;
    return counts;
  }

  NextHopGroup group;
  GroupState state;
  Ports ports;
  PathSelector selector;
};

uint32_t flow(unsigned i) { return static_cast<uint32_t>(mix64(i)); }

std::vector<uint16_t> equal(unsigned members) { return std::vector<uint16_t>(members, 1); }

// -- weights ----------------------------------------------------------------------------------------------------------

class ByWeight : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, ByWeight, testing::Values("wcmp", "spray-wcmp", "flowlet-wcmp"));

TEST_P(ByWeight, SharesFollowTheWeights) {
  const std::vector<uint16_t> weights{1, 2, 3, 10, 24};
  Choices choices(GetParam(), weights, {.max_flows = 1U << 18U});
  constexpr unsigned kPackets = 200'000;
  const std::vector<uint64_t> counts = choices.counts(kPackets, flow);
  for (size_t i = 0; i < weights.size(); ++i) {
    const double share = weights[i] / 40.0;
    const double sigma = std::sqrt(kPackets * share * (1 - share));
    EXPECT_NEAR(static_cast<double>(counts[i]), kPackets * share, 5 * sigma) << "weight " << weights[i];
  }
}

TEST_P(ByWeight, WhatADeadMemberHadGoesToTheOthersByWeight) {
  Choices choices(GetParam(), {10, 1, 2, 5}, {.max_flows = 1U << 18U});
  choices.ports.dead[0] = true;
  constexpr unsigned kPackets = 80'000;
  const std::vector<uint64_t> counts = choices.counts(kPackets, flow);
  EXPECT_EQ(counts[0], 0U);
  // Four further draws by weight leave (10/18)^5 = 5 % to an even choice.
  EXPECT_NEAR(static_cast<double>(counts[3]) / kPackets, 5.0 / 8, 0.04);
  EXPECT_NEAR(static_cast<double>(counts[1]) / kPackets, 1.0 / 8, 0.04);
}

TEST(Wcmp, AFlowKeepsItsMember) {
  Choices choices("wcmp", {1, 2, 3});
  for (unsigned i = 0; i < 500; ++i) EXPECT_EQ(choices.pick(flow(i), 0), choices.pick(flow(i), kSecond));
}

TEST(Wcmp, ADeadMemberMovesOnlyItsOwnFlows) {
  Choices choices("wcmp", {3, 1, 4, 1, 5, 9});
  std::vector<unsigned> before;
  for (unsigned i = 0; i < 4000; ++i) before.push_back(choices.pick(flow(i)));
  for (unsigned dead = 0; dead < 6; ++dead) {
    choices.ports.dead = {};
    choices.ports.dead[dead] = true;
    for (unsigned i = 0; i < 4000; ++i) {
      if (before[i] != dead)
        ASSERT_EQ(choices.pick(flow(i)), before[i]);
      else
        ASSERT_NE(choices.pick(flow(i)), dead);
    }
  }
}

// -- flowlets ---------------------------------------------------------------------------------------------------------

class ByFlowlet : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, ByFlowlet, testing::Values("flowlet", "flowlet-wcmp", "flowlet-quality"));

TEST_P(ByFlowlet, NoPauseNoChange) {
  Choices choices(GetParam(), equal(8), {.idle_time = 10 * kMicrosecond});
  for (unsigned i = 0; i < 300; ++i) {
    const unsigned member = choices.pick(flow(i), 0);
    for (Time now = 0; now < 200 * kMicrosecond; now += 9 * kMicrosecond) {
      choices.ports.drain[member] += 50 * kMicrosecond;  // however loaded it becomes
      ASSERT_EQ(choices.pick(flow(i), now), member);
    }
  }
  EXPECT_EQ(choices.selector.counters().flowlets.get(), 300U);
  EXPECT_EQ(choices.selector.counters().reroutes.get(), 0U);
}

TEST_P(ByFlowlet, FreshFlowsSpreadEvenly) {
  for (const unsigned members : {2U, 7U, 16U, 64U}) {
    Choices choices(GetParam(), equal(members), {.max_flows = 1U << 18U});
    const std::vector<uint64_t> counts = choices.counts(2000 * members, flow);
    EXPECT_GE(support::uniform_p_value(counts), kFair) << members << " members";
  }
}

TEST_P(ByFlowlet, ADeadMemberIsLeftAtOnce) {
  Choices choices(GetParam(), equal(4));
  const unsigned first = choices.pick(1, 0);
  choices.ports.dead.at(first) = true;
  EXPECT_NE(choices.pick(1, 1), first);
  choices.ports.dead.fill(true);
  EXPECT_EQ(choices.pick(1, 2), kNone);
  choices.ports.dead.fill(false);
  EXPECT_LT(choices.pick(1, 3), 4U);
}

TEST_P(ByFlowlet, WhoFindsNoRoomGoesByItsHash) {
  Choices choices(GetParam(), equal(8), {.max_flows = 64});
  std::vector<unsigned> members(5000);
  for (unsigned i = 0; i < 5000; ++i) members[i] = choices.pick(flow(i), 0);
  EXPECT_GE(choices.selector.counters().collisions.get(), 5000U - 128U);
  for (unsigned i = 0; i < 5000; ++i) ASSERT_EQ(choices.pick(flow(i), kMicrosecond), members[i]);
}

TEST(Flowlet, AfterAPauseAnyMember) {
  Choices choices("flowlet", equal(8), {.idle_time = 10 * kMicrosecond});
  std::vector<uint64_t> counts(8);
  for (unsigned i = 0; i < 8000; ++i) counts[choices.pick(1, i * 20 * kMicrosecond)]++;
  EXPECT_GE(support::uniform_p_value(counts), kFair);
  EXPECT_EQ(choices.selector.counters().flowlets.get(), 8000U);
  EXPECT_NEAR(static_cast<double>(choices.selector.counters().reroutes.get()), 7000, 200);
}

TEST(FlowletQuality, LeavesOnlyForABetterBand) {
  Choices choices("flowlet-quality", equal(4), {.idle_time = 10 * kMicrosecond});
  const unsigned first = choices.pick(1, 0);
  Time now = 0;
  const auto pick = [&] { return choices.pick(1, now += 20 * kMicrosecond); };
  choices.ports.drain[first] = 3 * kMicrosecond;  // band 0 like the others
  for (int i = 0; i < 50; ++i) ASSERT_EQ(pick(), first);
  choices.ports.drain[first] = 5 * kMicrosecond;  // band 1
  const unsigned second = pick();
  EXPECT_NE(second, first);
  choices.ports.drain.fill(5 * kMicrosecond);  // no better one anywhere
  for (int i = 0; i < 50; ++i) ASSERT_EQ(pick(), second);
}

// -- quality ----------------------------------------------------------------------------------------------------------

TEST(Adaptive, EquallyLoadedMembersAreTakenEvenly) {
  for (unsigned members = 2; members <= kMaxMembers; members += 3) {
    Choices choices("adaptive", equal(members));
    const std::vector<uint64_t> counts = choices.counts(1000 * members, flow);
    EXPECT_GE(support::uniform_p_value(counts), kFair) << members << " members";
  }
}

// The best of two: of n members ordered by load, the i-th best is taken with probability 2 (n − i) / n (n − 1).
TEST(Adaptive, TakesTheLessLoadedOfTwo) {
  constexpr unsigned kMembers = 6;
  Choices choices("adaptive", equal(kMembers));
  for (unsigned i = 0; i < kMembers; ++i) choices.ports.drain.at(i) = i * kNanosecond;
  constexpr unsigned kPackets = 300'000;
  const std::vector<uint64_t> counts = choices.counts(kPackets, flow);
  for (unsigned i = 0; i < kMembers; ++i) {
    EXPECT_NEAR(static_cast<double>(counts[i]) / kPackets, 2.0 * (kMembers - 1 - i) / (kMembers * (kMembers - 1)),
                0.005);
  }
}

TEST(Adaptive, BandsHideSmallDifferences) {
  Choices choices("adaptive", equal(4), {.quality_rule = QualityRule::kBands});
  choices.ports.drain = {0, 3 * kMicrosecond, 5 * kMicrosecond, 300 * kMicrosecond};  // bands 0, 0, 1, 7
  const std::vector<uint64_t> counts = choices.counts(10'000, flow);
  EXPECT_GE(support::uniform_p_value(std::vector<uint64_t>{counts[0], counts[1]}), kFair);
  EXPECT_EQ(counts[2] + counts[3], 0U);
}

TEST(Adaptive, LeastLoadedIsExact) {
  Choices choices("adaptive", equal(4), {.quality_rule = QualityRule::kLeastLoaded});
  choices.ports.drain = {3, 2, 2, 4};
  const std::vector<uint64_t> counts = choices.counts(10'000, flow);
  EXPECT_EQ(counts[0] + counts[3], 0U);
  EXPECT_GE(support::uniform_p_value(std::vector<uint64_t>{counts[1], counts[2]}), kFair);
}

TEST(Adaptive, DeadMembersAreNoCandidates) {
  for (const QualityRule rule : {QualityRule::kPowerOfTwo, QualityRule::kBands, QualityRule::kLeastLoaded}) {
    Choices choices("adaptive", equal(8), {.quality_rule = rule});
    for (const unsigned dead : {0U, 3U, 7U}) choices.ports.dead.at(dead) = true;
    const std::vector<uint64_t> counts = choices.counts(10'000, flow);
    EXPECT_EQ(counts[0] + counts[3] + counts[7], 0U);
    choices.ports.dead.fill(true);
    EXPECT_EQ(choices.pick(), kNone);
  }
}

TEST(Adaptive, AlternatesStepInWhereThePrimariesAreLoaded) {
  Choices choices("adaptive", equal(4), {.quality_rule = QualityRule::kBands, .primary_path_quality_threshold = 2});
  choices.group.members[2].alternate = choices.group.members[3].alternate = true;
  const auto takes_alternate = [&] { return choices.pick() >= 2; };
  EXPECT_FALSE(takes_alternate());
  choices.ports.drain = {5 * kMicrosecond, 5 * kMicrosecond, 0, 0};  // band 1: good enough
  EXPECT_FALSE(takes_alternate());
  choices.ports.drain = {9 * kMicrosecond, 9 * kMicrosecond, 0, 0};  // band 2 against 0 + 1
  EXPECT_TRUE(takes_alternate());
  choices.ports.drain = {9 * kMicrosecond, 9 * kMicrosecond, 5 * kMicrosecond, 5 * kMicrosecond};  // against 1 + 1
  EXPECT_FALSE(takes_alternate());
  choices.ports.dead[0] = choices.ports.dead[1] = true;
  EXPECT_TRUE(takes_alternate());
}

TEST(PathQuality, LoadIsFutureAndPastByTheirWeights) {
  PathQuality quality({.sampling_interval = 16 * kMicrosecond,
                       .port_load_exponent = 1,
                       .port_load_past_weight = 8,
                       .port_load_future_weight = 16},
                      2);
  EXPECT_TRUE(quality.is_due(16 * kMicrosecond));
  const auto rate = [](PortId) { return Rate::gbps(100); };
  uint64_t sent = 100'000;  // 8 µs at 100 Gb/s: half of the interval
  quality.sample(
      16 * kMicrosecond, [&](PortId port) { return port == 0 ? sent : 0; }, rate);
  EXPECT_FALSE(quality.is_due(20 * kMicrosecond));
  // 8 µs by a gain of 1/2 is 4 µs; by 8/16, 2 µs.
  EXPECT_NEAR(static_cast<double>(quality.load(0, 0)), 2e6, 1e3);
  EXPECT_EQ(quality.load(1, 6 * kMicrosecond), 6 * kMicrosecond);
  sent += 200'000;
  quality.sample(
      32 * kMicrosecond, [&](PortId port) { return port == 0 ? sent : 0; }, rate);
  EXPECT_NEAR(static_cast<double>(quality.load(0, 0)), 5e6, 1e3);  // (4 + 16) / 2 = 10, by 8/16
}

TEST(PathQuality, WithoutAPastNothingIsSampled) {
  EXPECT_FALSE(PathQuality({.port_load_past_weight = 0}, 1).is_due(kSecond));
}

TEST(PathQuality, BandsAreLeftClosed) {
  const PathQuality quality({}, 1);
  EXPECT_EQ(quality.band(0), 0U);
  EXPECT_EQ(quality.band(4 * kMicrosecond - 1), 0U);
  EXPECT_EQ(quality.band(4 * kMicrosecond), 1U);
  EXPECT_EQ(quality.band(256 * kMicrosecond), 7U);
}

// -- traces -----------------------------------------------------------------------------------------------------------

// What seed 1 does to 24 packets of six flows on four members, a pause of 1 ms after every eighth, the members more and
// less loaded in turn. A change of these numbers changes every result of the lab: intended, or a mistake.
struct Trace {
  const char* scheduler;
  const char* members;
};
constexpr Trace kTraces[] = {
    {"ecmp", "120332120332120332120332"},         {"wcmp", "122320122320122320122320"},
    {"rps", "123110010222313012012101"},          {"round-robin", "123021302013302102313201"},
    {"spray-wcmp", "303333313133132310223133"},   {"flowlet", "123110120102220131301231"},
    {"flowlet-wcmp", "303333303131333113231013"}, {"flowlet-quality", "032103030321030303210303"},
    {"adaptive", "032100010322112111210331"},
};

TEST(PathSelectorTrace, OfSeedOne) {
  for (const auto& [name, expected] : kTraces) {
    Choices choices(name, {1, 2, 3, 4});
    std::string trace;
    for (unsigned i = 0; i < 24; ++i) {
      const Time now = i * kMicrosecond + i / 8 * kMillisecond;
      for (unsigned m = 0; m < 4; ++m) choices.ports.drain.at(m) = (i + m) % 4 * 6 * kMicrosecond;
      trace += std::to_string(choices.pick(flow(i % 6), now));
    }
    EXPECT_EQ(trace, expected) << name;
  }
}

}  // namespace
}  // namespace heddle::lb
