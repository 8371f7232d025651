// Groups whose weights follow from probes: what choices by quality make of them.
#include <array>

#include <gtest/gtest.h>

#include "lb/path_selector.h"

namespace heddle::lb {
namespace {

constexpr unsigned kMembers = 4;

struct Ports {
  std::array<Duration, kMembers> drain{};
  std::array<bool, kMembers> down{};
  bool is_up(PortId port) const { return !down[port]; }
  Duration drain_time(PortId port) const { return drain[port]; }
};

// Shares picked in 20,000 packets, or flowlets, of a group whose member 3 has a tenth of the others' share.
struct Picks {
  NextHopGroup group;
  Ports ports;

  explicit Picks(const char* scheduler) {
    for (unsigned i = 0; i < kMembers; ++i) {
      NextHop hop;
      hop.port = static_cast<PortId>(i);
      hop.share = i == 3 ? 132 : 1321;
      hop.remote_band = i == 3 ? 3 : 0;
      group.members.push_back(hop);
    }
    group.scheduler = *scheduler_named(scheduler);
    group.measured = true;
    group.make_table();
  }

  std::array<double, kMembers> shares() const {
    constexpr unsigned kPicks = 20'000;
    PathSelector selector({.seed = 3, .ars = {.max_flows = 64'000}, .ports = kMembers});
    GroupState state;
    std::array<double, kMembers> shares{};
    for (uint32_t i = 0; i < kPicks; ++i) {
      const unsigned pick = selector.select(group, state, i * 2'654'435'761U, kMillisecond, ports);
      if (pick != PathSelector::kNone) shares[pick] += 1.0 / kPicks;
    }
    return shares;
  }
};

TEST(MeasuredGroup, AdaptiveKeepsToTheSharesWhereQueuesAreEqual) {
  const auto shares = Picks("adaptive").shares();
  for (unsigned i = 0; i < 3; ++i) EXPECT_NEAR(shares[i], 1 / 3.1, 0.02) << i;
  EXPECT_NEAR(shares[3], 0.1 / 3.1, 0.01);
}

// Its port is idle because little is sent there: that does not make the path good.
TEST(MeasuredGroup, AShortQueueHereDoesNotSpeakForAWorsePath) {
  Picks picks("adaptive");
  picks.ports.drain = {20 * kMicrosecond, 20 * kMicrosecond, 20 * kMicrosecond, 0};
  EXPECT_LE(picks.shares()[3], 0.1 / 3.1 + 0.01);
}

TEST(MeasuredGroup, AdaptiveStillLeavesALongQueue) {
  Picks picks("adaptive");
  picks.ports.drain = {50 * kMicrosecond, 0, 0, 0};
  const auto shares = picks.shares();
  EXPECT_LT(shares[0], 0.15);  // only where both draws name it, or the other is the worse path
  EXPECT_GT(shares[1], 0.35);
}

TEST(MeasuredGroup, ADeadMemberGetsNothing) {
  for (const char* scheduler : {"adaptive", "spray-wcmp", "flowlet-quality"}) {
    Picks picks(scheduler);
    picks.ports.down[1] = true;
    EXPECT_EQ(picks.shares()[1], 0) << scheduler;
    picks.ports.down = {true, true, true, true};
    EXPECT_EQ(picks.shares()[0], 0) << scheduler;
  }
}

TEST(MeasuredGroup, FlowletsByQualityCountRemoteBands) {
  Picks picks("flowlet-quality");
  EXPECT_EQ(picks.shares()[3], 0) << "three bands worse";
  // Three bands of queue here outweigh it: the choice is even.
  const Duration band3 = ArsSettings().quant_bands[2];
  picks.ports.drain = {band3, band3, band3, 0};
  for (const double share : picks.shares()) EXPECT_NEAR(share, 0.25, 0.02);
}

TEST(MeasuredGroup, WithoutProbesNothingChanges) {
  Picks picks("adaptive");
  picks.group.measured = false;
  for (NextHop& hop : picks.group.members) hop.remote_band = 0;
  picks.group.make_table();
  EXPECT_EQ(picks.group.table, nullptr);
  for (const double share : picks.shares()) EXPECT_NEAR(share, 0.25, 0.02);
}

}  // namespace
}  // namespace heddle::lb
