// Collectives on one switch against arithmetic: nothing but the hosts' links is in the way.
#include <gtest/gtest.h>

#include "lab/host/roce.h"
#include "lab/topology/builders.h"
#include "tests/golden/golden_run.h"

namespace heddle::golden {
namespace {

using namespace heddle::lab;

constexpr uint32_t kRanks = 16;
constexpr Duration kFullPacket = Rate::gbps(100).time_for(4096 + kDataFrameOverhead + kEthernetOverhead);

// Wire time of a message's data on a host's link.
Duration wire_time(uint64_t bytes) {
  const uint64_t packets = (bytes + 4095) / 4096;
  return Rate::gbps(100).time_for(bytes + packets * (kDataFrameOverhead + kEthernetOverhead));
}

// Two links, and one packet stored and forwarded.
constexpr Duration kOneWay = 2 * kMicrosecond + kFullPacket;

Duration makespan(const Collective& collective) {
  const Topology t = build_single_switch({.hosts = kRanks});
  FabricSettings settings = open_loop("ecmp");
  settings.hosts.ack_every = 16;  // the formulas count data alone; an ACK per packet would add 2.1 %
  settings.hosts.start_jitter = false;
  const RunResult result = run_fabric(t, workload_of(kRanks, Training{.collective = collective}), settings);
  EXPECT_TRUE(all_done(result));
  Time end = 0;
  for (const MessageTimes& times : result.messages) end = std::max(end, times.received);
  return end;
}

void expect_within_two_percent(Duration measured, Duration expected) {
  EXPECT_NEAR(microseconds(measured), microseconds(expected), 0.02 * microseconds(expected));
}

// 2 (N − 1) steps, each a chunk's wire time and the way to the next rank (Patarasuk and Yuan 2009).
TEST(GoldenCollectives, RingAllReduce) {
  for (const uint64_t bytes : {1'600'000U, 16'000'000U}) {
    const Duration step = wire_time(bytes / kRanks) + kOneWay;
    expect_within_two_percent(makespan({CollectiveKind::kRingAllReduce, bytes}), 2 * (kRanks - 1) * step);
  }
}

// N − 1 messages one after another, and the way of the last: with enough of them under way that no sender waits.
TEST(GoldenCollectives, StaggeredAllToAll) {
  const uint64_t bytes = 1'000'000;
  expect_within_two_percent(makespan({CollectiveKind::kStaggeredAllToAll, bytes, 4}),
                            (kRanks - 1) * wire_time(bytes) + kOneWay);
}

}  // namespace
}  // namespace heddle::golden
