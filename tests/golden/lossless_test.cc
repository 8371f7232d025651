// Incast over a lossless class with PFC and no congestion control: whatever the fan-in, nothing is lost, and only what
// lies upstream of the hot port is paused. Too little headroom is seen for what it is.
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "lab/host/roce.h"
#include "lab/topology/builders.h"
#include "tests/golden/golden_run.h"

namespace heddle::golden {
namespace {

using namespace heddle::lab;

// 100G, 1 µs a hop, RoCE and its ACKs in class 3 lossless, no congestion control.
FabricSettings lossless(uint64_t buffer) {
  FabricSettings settings = open_loop("ecmp");
  settings.switches.flow_control.buffer = buffer;
  settings.switches.flow_control.lossless = 1U << 3U;
  return settings;
}

struct Incast {
  Workload workload;
  std::set<HostId> senders;
  HostId receiver = 0;
};

// `fan_in` hosts spread over all but the last, and one message between two hosts that have nothing to do with it.
Incast incast_of(uint32_t hosts, uint32_t fan_in, uint64_t bytes, std::optional<Flow> bystander = {}) {
  Incast incast;
  incast.receiver = hosts - 1;
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < fan_in; ++i) {
    const auto source = static_cast<HostId>(uint64_t{i} * (hosts - 1) / fan_in);
    incast.senders.insert(source);
    flows.push_back({.src = source, .dst = incast.receiver, .bytes = bytes});
  }
  if (bystander) flows.push_back(*bystander);
  incast.workload = workload_of(hosts, flows);
  return incast;
}

uint64_t violations(const RunResult& result) {
  uint64_t sum = 0;
  for (const PortPauses& port : result.pauses) sum += port.violations;
  return sum;
}

// Pauses go only where the incast comes from: to hosts that send to it, and to switches over links that carried its
// data; the hot port itself is never held back.
void expect_pauses_upstream_only(const Topology& t, const Incast& incast, const RunResult& result) {
  uint64_t sent = 0;
  for (const PortPauses& port : result.pauses) {
    const NodeId peer = t.neighbor(port.node, port.port);
    const LinkId id = t.ports[port.node][port.port];
    const LinkLoad& load = result.links[id];
    const bool we_are_a = t.links[id].a == port.node;
    const uint64_t came_in = we_are_a ? load.b_to_a_bytes : load.a_to_b_bytes;
    const uint64_t went_out = we_are_a ? load.a_to_b_bytes : load.b_to_a_bytes;
    sent += port.sent;
    if (port.sent != 0) {
      EXPECT_GT(came_in, 100'000U) << t.nodes[port.node].name << " pauses a link that carried hardly anything";
      EXPECT_TRUE(peer >= t.host_count || incast.senders.count(peer) != 0) << t.nodes[peer].name << " was paused";
    }
    if (port.received != 0) {
      EXPECT_NE(peer, incast.receiver) << "the hot port is nobody's to pause";
      EXPECT_GT(went_out, 100'000U) << t.nodes[port.node].name << " was paused where it sends hardly anything";
    }
    EXPECT_EQ(port.violations, 0U);
  }
  EXPECT_GT(sent, 0U) << "nothing was paused: the test shows nothing";
}

void expect_lossless(const Topology& t, const Incast& incast, const RunResult& result, double ideal_us) {
  ASSERT_TRUE(all_done(result));
  EXPECT_EQ(support::all_drops(result), 0U);
  EXPECT_EQ(violations(result), 0U);
  EXPECT_EQ(result.retransmitted, 0U);
  expect_pauses_upstream_only(t, incast, result);
  const double last = microseconds(support::last_completion(result));
  EXPECT_GE(last, ideal_us);
  EXPECT_LE(last, ideal_us * 1.05) << "the hot link stood idle";
}

// 15 × 2 MB at 100G: 2400 µs of payload; the wire's overhead of 2 % is in the 5 %.
TEST(GoldenLossless, IncastOfFifteen) {
  const Topology t = build_fat_tree({.hosts = 432});
  const Incast incast = incast_of(432, 15, 2'000'000);
  expect_lossless(t, incast, run_fabric(t, incast.workload, lossless(9'000'000)), 2400);
}

TEST(GoldenLossless, IncastOf127) {
  const Topology t = build_fat_tree({.hosts = 128});
  const Incast incast = incast_of(128, 127, 500'000);
  expect_lossless(t, incast, run_fabric(t, incast.workload, lossless(9'000'000)), 127 * 40.0);
}

TEST(GoldenLossless, IncastOfAThousand) {
  const Topology t = build_fat_tree({.hosts = 1024});
  const Incast incast = incast_of(1024, 1000, 100'000);
  expect_lossless(t, incast, run_fabric(t, incast.workload, lossless(32'000'000)), 1000 * 8.0);
}

// What needs no port of the incast's is as fast as alone.
TEST(GoldenLossless, ABystanderInAnotherPodFeelsNothing) {
  const Topology t = build_fat_tree({.hosts = 432});
  const Flow bystander{.src = 0, .dst = 1, .bytes = 2'000'000};  // under one leaf
  Incast incast = incast_of(432, 15, 2'000'000, bystander);
  incast.workload.messages[0].src = 8;  // the incast leaves that leaf alone
  incast.senders.erase(0);
  incast.senders.insert(8);
  const FabricSettings settings = lossless(9'000'000);
  const RunResult result = run_fabric(t, incast.workload, settings);
  ASSERT_TRUE(all_done(result));
  const std::vector<double> shares = shares_of_ideal(t, incast.workload, settings, result);
  EXPECT_NEAR(shares.back(), 1.0, 0.01);
  EXPECT_LT(shares.front(), 0.2);
}

// Half of what the link needs: packets arrive that find no room, each is a violation, and the senders repeat them.
TEST(GoldenLossless, TooLittleHeadroomIsCounted) {
  const Topology t = build_single_switch({.hosts = 16});
  const Incast incast = incast_of(16, 15, 2'000'000);
  FabricSettings settings = lossless(9'000'000);
  const Link& link = t.links[0];
  const uint64_t needed =
      needed_headroom(link.rate, link.delay, settings.hosts.mtu + kDataFrameOverhead, link.overhead, 1);
  settings.switches.flow_control.headroom = needed;
  const RunResult enough = run_fabric(t, incast.workload, settings);
  EXPECT_EQ(support::all_drops(enough), 0U);
  uint64_t peak = 0;
  for (const PortPauses& port : enough.pauses) peak = std::max(peak, port.peak_headroom);
  EXPECT_GT(peak, needed / 2) << "the headroom is far more than ever arrives";

  settings.switches.flow_control.headroom = needed / 2;
  const RunResult result = run_fabric(t, incast.workload, settings);
  ASSERT_TRUE(all_done(result));
  EXPECT_GT(violations(result), 0U);
  EXPECT_EQ(result.drops[static_cast<size_t>(DropReason::kHeadroomFull)], violations(result));
  EXPECT_GT(result.retransmitted, 0U);
}

// Without PFC a small buffer drops what PFC would have held back.
TEST(GoldenLossless, ALossyFabricDropsInstead) {
  const Topology t = build_single_switch({.hosts = 16});
  const Incast incast = incast_of(16, 15, 2'000'000);
  FabricSettings settings = lossless(1'000'000);
  settings.switches.flow_control.lossless = 0;
  const RunResult result = run_fabric(t, incast.workload, settings);
  EXPECT_GT(result.drops[static_cast<size_t>(DropReason::kBufferFull)], 0U);
  EXPECT_TRUE(result.pauses.empty());
}

}  // namespace
}  // namespace heddle::golden
