// MemberLoads: a burst whose members' loads are read once is spread as if they were read anew for every packet.
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "lb/path_selector.h"

namespace heddle::lb {
namespace {

constexpr unsigned kMembers = 6;
constexpr Duration kKibibyte = 81'920;  // 1,024 bytes at 100 Gb/s

struct Ports {
  std::array<Duration, kMembers> drain{};
  std::array<bool, kMembers> down{};
  bool is_up(PortId port) const { return !down.at(port); }
  Duration drain_time(PortId port) const { return drain.at(port); }
  // Port 1 has a tenth of the others' rate.
  Duration drain_time_of_kibibyte(PortId port) const { return port == 1 ? 10 * kKibibyte : kKibibyte; }
};

NextHopGroup group_of(bool measured) {
  NextHopGroup group;
  for (unsigned i = 0; i < kMembers; ++i) {
    NextHop hop;
    hop.port = static_cast<PortId>(i);
    hop.share = static_cast<uint16_t>(100 + 50 * i);
    hop.remote_band = static_cast<uint8_t>(i % 3);
    if (!measured) hop.remote_band = 0;
    group.members.push_back(hop);
  }
  group.scheduler = *scheduler_named("adaptive");
  group.measured = measured;
  group.make_table();
  return group;
}

struct Row {
  const char* what;
  std::array<bool, kMembers> down;
  bool measured;
  ArsSettings ars;
};
const Row kRows[] = {
    {"all members are up", {}, false, {}},
    {"two are dead", {true, false, false, true}, false, {}},
    {"all but one are dead", {true, true, true, false, true, true}, false, {}},
    {"all are dead", {true, true, true, true, true, true}, false, {}},
    {"a measured group", {}, true, {}},
    {"a measured group with a dead member", {false, false, true}, true, {}},
    {"the queue has half of its weight", {}, false, {.port_load_future_weight = 8}},
};

TEST(MemberLoads, ABurstIsSpreadAsPacketByPacket) {
  for (const Row& row : kRows) {
    const NextHopGroup group = group_of(row.measured);
    PathSelector by_packet({.seed = 5, .ars = row.ars, .ports = kMembers});
    PathSelector by_burst({.seed = 5, .ars = row.ars, .ports = kMembers});
    ASSERT_TRUE(by_burst.goes_by_loads(group)) << row.what;
    GroupState state;
    Ports ports{.down = row.down};
    for (unsigned burst = 0; burst < 50; ++burst) {
      for (unsigned i = 0; i < kMembers; ++i) ports.drain.at(i) = (burst * 7 + i * 5) % 11 * kKibibyte;
      by_burst.read_loads(group, ports);
      for (unsigned i = 0; i < 32; ++i) {
        const uint32_t frame_bytes = 1024 * (1 + (burst + i) % 9);
        const unsigned expected = by_packet.select(group, state, i, kMillisecond, ports);
        ASSERT_EQ(by_burst.select_by_loads(group, frame_bytes, ports), expected)
            << row.what << ", " << burst << ":" << i;
        if (expected == PathSelector::kNone) continue;
        ports.drain.at(expected) += frame_bytes / 1024 * ports.drain_time_of_kibibyte(static_cast<PortId>(expected));
      }
    }
  }
}

// What the loads are moved for. Were they read once and left, nine of thirty-two would go where the queue was shortest
// by an instant, and none to where it was longest by one.
TEST(MemberLoads, NoBurstRunsToTheShortestQueue) {
  const NextHopGroup group = group_of(false);
  PathSelector selector({.seed = 9, .ports = kMembers});
  Ports ports;
  std::iota(ports.drain.begin(), ports.drain.end(), Duration{1});
  std::array<unsigned, kMembers> given{};
  for (unsigned burst = 0; burst < 200; ++burst) {
    selector.read_loads(group, ports);
    std::array<unsigned, kMembers> of_burst{};
    for (unsigned i = 0; i < 32; ++i) of_burst.at(selector.select_by_loads(group, 1024, ports))++;
    for (unsigned i = 0; i < kMembers; ++i) {
      ASSERT_LE(of_burst.at(i), 9U) << i;
      given.at(i) += of_burst.at(i);
    }
  }
  // The slow one apart, all get the same.
  for (const unsigned i : {0U, 2U, 3U, 4U, 5U}) EXPECT_NEAR(given.at(i) / 200.0, 6.2, 0.5) << i;
  EXPECT_LT(given[1] / 200.0, 2);
}

TEST(MemberLoads, OnlyTheLessLoadedOfTwoPerPacketGoesByThem) {
  NextHopGroup group = group_of(false);
  EXPECT_FALSE(PathSelector({.ars = {.quality_rule = QualityRule::kBands}, .ports = kMembers}).goes_by_loads(group));
  const PathSelector selector({.ports = kMembers});
  for (const SchedulerPreset& preset : kSchedulerPresets) {
    group.scheduler = preset.scheduler;
    EXPECT_EQ(selector.goes_by_loads(group), preset.name == "adaptive") << preset.name;
  }
  group.scheduler = *scheduler_named("adaptive");
  SchedulerOverrides overrides;
  overrides.of_control = scheduler_named("ecmp");
  group.overrides = std::make_shared<const SchedulerOverrides>(overrides);
  EXPECT_FALSE(selector.goes_by_loads(group)) << "not all packets are adaptive's";
}

}  // namespace
}  // namespace heddle::lb
