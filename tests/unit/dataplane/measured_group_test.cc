// Measured groups: what probes say becomes shares, and bad members get nothing, whichever scheduler chooses. And the
// mailbox between the prober and a worker.
#include "dataplane/measured_group.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "dataplane/probe_mailbox.h"
#include "dataplane/tables.h"
#include "lb/path_selector.h"

namespace heddle::dataplane {
namespace {

constexpr unsigned kMembers = 4;

lb::NextHopGroup group_of(const char* scheduler) {
  lb::NextHopGroup group;
  for (unsigned i = 0; i < kMembers; ++i) {
    lb::NextHop hop;
    hop.port = static_cast<PortId>(i);
    hop.weight = i == 0 ? 3 : 1;
    hop.rewrite.destination = {2, 0, 0, 0, 0, static_cast<uint8_t>(i)};
    group.members.push_back(hop);
  }
  group.scheduler = *lb::scheduler_named(scheduler);
  return group;
}

// Probes of the members named in `lost` vanish until those are bad; the others are answered.
telemetry::PathDelay paths_of(const lb::NextHopGroup& group, const std::array<bool, kMembers>& lost) {
  std::vector<uint32_t> shares;
  for (const auto& member : probe_target(group, 1, {2}).members) shares.push_back(member.share);
  telemetry::PathDelay paths({}, shares);
  Time now = kSecond;
  for (int i = 0; i < 20; ++i, now += kMillisecond) {
    for (unsigned m = 0; m < kMembers; ++m) {
      const uint32_t sequence = paths.send(m, now);
      if (!lost[m]) paths.receive(m, sequence, {.bottleneck = Rate::gbps(100), .hops = 1}, now);
    }
  }
  return paths;  // no update yet: shares are the first ones
}

// What the selector asks of ports, as the pipeline answers it.
struct Ports {
  const PortStates& states;
  bool is_up(PortId port) const { return states.is_up(port); }
  Duration drain_time(PortId port) const { return states.drain_time(port); }
};

// What the packet path would take of `group`.
std::array<unsigned, kMembers> picks_of(const lb::NextHopGroup& group, const PortStates& states) {
  lb::PathSelector selector({.seed = 3, .ars = {.max_flows = 64'000}, .ports = kMembers});
  lb::GroupState state;
  std::array<unsigned, kMembers> picks{};
  for (uint32_t i = 0; i < 4000; ++i) {
    const unsigned pick = selector.select(group, state, i * 2'654'435'761U, kMillisecond, Ports{states});
    if (pick < kMembers) picks[pick]++;
  }
  return picks;
}

TEST(MeasuredGroup, WeightsAreTheFirstShares) {
  const lb::NextHopGroup group = group_of("wcmp");
  const telemetry::ProbeTarget target = probe_target(group, 9, {1, 2});
  EXPECT_EQ(target.label, 9U);
  EXPECT_EQ(target.members[0].share, 3U);
  EXPECT_EQ(target.members[2].port, 2);
  EXPECT_EQ(target.members[2].identity, lb::identity_of(group.members[2]));
  lb::NextHopGroup measured = group;
  measure(measured, paths_of(group, {}));
  ASSERT_NE(measured.table, nullptr);
  EXPECT_EQ(measured.members[0].share, telemetry::kShareSlots / 2);
  EXPECT_EQ(measured.members[0].weight, 3) << "what was configured stays";
}

TEST(MeasuredGroup, EverySchedulerAvoidsABadMember) {
  const PortStates states(kMembers);
  for (const std::string_view scheduler : lb::kSchedulerNames) {
    lb::NextHopGroup group = group_of(std::string(scheduler).c_str());
    measure(group, paths_of(group, {false, true, false, false}));
    const lb::NextHopGroup whole = group;
    shut_bad_members(group, states.dead_port());
    const auto before = picks_of(whole, states);
    const auto picks = picks_of(group, states);
    EXPECT_GT(before[1], 0U) << scheduler;
    EXPECT_EQ(picks[1], 0U) << scheduler;
    EXPECT_EQ(picks[0] + picks[2] + picks[3], 4000U) << scheduler;
    for (const unsigned m : {0U, 2U, 3U}) EXPECT_GT(picks[m], 400U) << scheduler;
  }
}

TEST(MeasuredGroup, OnlyTheBadMembersFlowsMove) {
  const PortStates states(kMembers);
  lb::NextHopGroup group = group_of("ecmp");
  const lb::NextHopGroup whole = group;
  measure(group, paths_of(group, {false, true, false, false}));
  shut_bad_members(group, states.dead_port());
  for (uint32_t i = 0; i < 4000; ++i) {
    const uint32_t hash = i * 2'654'435'761U;
    const unsigned was = lb::PathSelector::select_by_hash(whole, hash, Ports{states});
    const unsigned is = lb::PathSelector::select_by_hash(group, hash, Ports{states});
    EXPECT_TRUE(was == 1 ? is != 1 : is == was) << hash;
  }
}

TEST(MeasuredGroup, WhereAllAreBadNoneIs) {
  const PortStates states(kMembers);
  lb::NextHopGroup group = group_of("ecmp");
  measure(group, paths_of(group, {true, true, true, true}));
  shut_bad_members(group, states.dead_port());
  for (const unsigned picks : picks_of(group, states)) EXPECT_GT(picks, 0U);
}

TEST(MeasuredGroup, WhereOnlyBadMembersAreLeftNoneIs) {
  lb::NextHopGroup group = group_of("ecmp");
  measure(group, paths_of(group, {true, true, true, false}));
  settle_members(group);
  EXPECT_TRUE(group.members[0].bad && group.members[1].bad) << "nobody has gone";
  group.members.pop_back();
  settle_members(group);
  EXPECT_TRUE(group.measured);
  for (const lb::NextHop& member : group.members) EXPECT_FALSE(member.bad);
}

TEST(MeasuredGroup, OneMemberAloneIsNotMeasured) {
  lb::NextHopGroup group = group_of("wcmp");
  measure(group, paths_of(group, {true, false, false, false}));
  group.members.resize(1);
  settle_members(group);
  EXPECT_FALSE(group.measured);
  EXPECT_FALSE(group.members[0].bad);
  EXPECT_EQ(group.members[0].share, 0U);
  EXPECT_EQ(group.members[0].weight, 3U);
}

TEST(MeasuredGroup, ADeadPortIsNeverUpAndNobodys) {
  PortStates states(3);
  EXPECT_EQ(states.dead_port(), 3);
  EXPECT_FALSE(states.is_up(states.dead_port()));
  for (PortId port = 0; port < 3; ++port) EXPECT_TRUE(states.is_up(port));
}

TEST(ProbeMailbox, KeepsOrderAndRefusesWhatFindsNoRoom) {
  ProbeMailbox mailbox;
  uint32_t taken = 0;
  ProbeOrder order;
  for (uint32_t i = 0; i < ProbeMailbox::kPlaces; ++i)
    ASSERT_TRUE(mailbox.order({.fields = {.sequence = i}, .over = {}}));
  EXPECT_FALSE(mailbox.order({}));
  for (; mailbox.next(order); ++taken) ASSERT_EQ(order.fields.sequence, taken);
  EXPECT_EQ(taken, ProbeMailbox::kPlaces);
  EXPECT_TRUE(mailbox.order({}));
}

TEST(ProbeMailbox, PassesBetweenTwoThreads) {
  ProbeMailbox mailbox;
  constexpr uint32_t kProbes = 100'000;
  std::thread worker([&] {
    ProbeOrder order;
    for (uint32_t expected = 0; expected < kProbes;) {
      if (!mailbox.next(order)) continue;
      ASSERT_EQ(order.fields.sequence, expected);
      ASSERT_EQ(order.over.counter, expected);
      ++expected;
    }
  });
  for (uint32_t i = 0; i < kProbes;) {
    lb::NextHop over;
    over.counter = i;
    if (mailbox.order({.fields = {.sequence = i}, .over = over})) ++i;
  }
  worker.join();
}

}  // namespace
}  // namespace heddle::dataplane
