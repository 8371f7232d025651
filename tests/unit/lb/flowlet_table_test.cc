// FlowletTable: what it remembers, for how long, and what it does when it is full.
#include "lb/flowlet_table.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::lb {
namespace {

using State = FlowletTable::State;
constexpr Duration kIdle = 100 * kMicrosecond;
constexpr Time kStart = 3 * kSecond;

std::vector<uint32_t> hashes(uint32_t count, uint64_t seed = 1) {
  std::vector<uint32_t> all;
  Random random(seed);
  for (uint32_t i = 0; i < count; ++i) all.push_back(static_cast<uint32_t>(random.next()));
  return all;
}

TEST(FlowletTable, AFlowIsFreshThenLiveThenPaused) {
  FlowletTable table(64, kIdle, false);
  EXPECT_EQ(table.find(7, kStart).state, State::kFresh);
  table.find(7, kStart).set_member(5);
  const auto live = table.find(7, kStart + kIdle - kMicrosecond);
  EXPECT_EQ(live.state, State::kLive);
  EXPECT_EQ(live.member(), 5U);
  const auto paused = table.find(7, kStart + 2 * kIdle);
  EXPECT_EQ(paused.state, State::kPaused);
  EXPECT_EQ(paused.member(), 5U);
  EXPECT_EQ(table.find(7, kStart + 2 * kIdle + kMicrosecond).state, State::kLive);
}

TEST(FlowletTable, WorksFromTimeNoughtOn) {
  FlowletTable table(64, kIdle, true);
  EXPECT_EQ(table.find(0, 0).state, State::kFresh);
  EXPECT_EQ(table.find(0, 1).state, State::kLive);
}

TEST(FlowletTable, EveryPacketProlongsTheFlowlet) {
  FlowletTable table(64, kIdle, false);
  table.find(7, kStart).set_member(1);
  for (Time now = kStart; now < kStart + 20 * kIdle; now += kIdle * 9 / 10) {
    ASSERT_EQ(table.find(7, now).state, State::kLive);
  }
}

TEST(FlowletTable, FlowsKeepTheirMembersApart) {
  FlowletTable table(10'000, kIdle, false);
  const std::vector<uint32_t> flows = hashes(10'000);
  for (size_t i = 0; i < flows.size(); ++i) {
    const auto found = table.find(flows[i], kStart);
    if (found.state != State::kCollision) found.set_member(static_cast<unsigned>(i % 64));
  }
  unsigned right = 0;
  unsigned collisions = 0;
  for (size_t i = 0; i < flows.size(); ++i) {
    const auto found = table.find(flows[i], kStart + kMicrosecond);
    if (found.state == State::kCollision) {
      ++collisions;
    } else {
      right += found.member() == i % 64 ? 1U : 0U;
    }
  }
  EXPECT_LT(collisions, flows.size() / 33);  // as promised, at most about 2 % (a set has on average 3 flows here)
  EXPECT_GE(right + collisions + 10, flows.size());  // pairs that agree in the tag
}

TEST(FlowletTable, AFullSetRefusesUntilAFlowPauses) {
  FlowletTable table(8, kIdle, false);  // two sets of eight
  const std::vector<uint32_t> flows = hashes(200);
  unsigned refused = 0;
  for (const uint32_t flow : flows) refused += table.find(flow, kStart).state == State::kCollision ? 1U : 0U;
  EXPECT_EQ(refused, 200U - 16U);
  // After the idle time all of them give way, to as many as fit.
  refused = 0;
  for (const uint32_t flow : hashes(200, 2)) {
    refused += table.find(flow, kStart + kIdle + kMicrosecond).state == State::kCollision ? 1U : 0U;
  }
  EXPECT_EQ(refused, 200U - 16U);
}

TEST(FlowletTable, TheLongestPausedFlowGivesWay) {
  FlowletTable table(8, kIdle, false);
  std::vector<uint32_t> held;
  Time now = kStart;
  for (const uint32_t flow : hashes(300)) {
    if (table.find(flow, now).state == State::kFresh) held.push_back(flow);
    now += 10 * kNanosecond;
  }
  ASSERT_EQ(held.size(), 16U);
  // All but the first of them go on; a newcomer of each set can only take a place that has paused.
  now += kIdle;
  for (size_t i = 1; i < held.size(); ++i) table.find(held[i], now);
  unsigned admitted = 0;
  for (const uint32_t flow : hashes(100, 3)) admitted += table.find(flow, now).state == State::kFresh ? 1U : 0U;
  EXPECT_EQ(admitted, 1U);
  for (size_t i = 1; i < held.size(); ++i) EXPECT_EQ(table.find(held[i], now).state, State::kLive);
}

TEST(FlowletTable, HoldsAMillionFlows) {
  constexpr uint32_t kFlows = 1'000'000;
  FlowletTable table(kFlows, kIdle, false);
  EXPECT_LE(table.bytes(), size_t{32} << 20U);
  const std::vector<uint32_t> flows = hashes(kFlows);
  uint32_t collisions = 0;
  for (const uint32_t flow : flows) collisions += table.find(flow, kStart).state == State::kCollision ? 1U : 0U;
  uint32_t live = 0;
  for (const uint32_t flow : flows) live += table.find(flow, kStart + kMicrosecond).state == State::kLive ? 1U : 0U;
  EXPECT_LE(collisions, kFlows / 40);
  EXPECT_EQ(live + collisions, kFlows);
}

TEST(FlowletTable, TicksWrap) {
  FlowletTable table(64, kIdle, false);
  const Time wrap = Time{1} << 48U;  // where 32 bits of ticks begin anew
  table.find(9, wrap - kMicrosecond).set_member(3);
  EXPECT_EQ(table.find(9, wrap + kMicrosecond).state, State::kLive);
  EXPECT_EQ(table.find(9, wrap + 2 * kIdle).state, State::kPaused);
}

}  // namespace
}  // namespace heddle::lb
