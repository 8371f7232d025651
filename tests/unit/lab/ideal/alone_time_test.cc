// Times of messages alone, against arithmetic by hand and against a row of store-and-forward hops played through packet
// by packet.
#include "lab/ideal/alone_time.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/host/roce.h"
#include "lab/ideal/fabric_capacity.h"
#include "lab/scenario/experiment.h"
#include "lab/scenario/scenario.h"

namespace heddle::lab {
namespace {

Experiment make(const std::string& yaml) { return prepare(load_scenario_text(yaml, "x.yaml")); }

AloneTimes alone(const Experiment& experiment) {
  return {experiment.topology, states_at_start(experiment.topology, experiment.settings.events),
          experiment.settings.hosts};
}

Message message(HostId src, HostId dst, uint64_t bytes) { return {.src = src, .dst = dst, .bytes = bytes}; }

// 100G is 80 ps per byte. A full packet: 4096 + 58 headers + 24 around the frame = 4178 bytes, 334.24 ns. An ACK: 62 +
// 24 = 86 bytes, 6.88 ns.
TEST(AloneTime, OneSwitchByHand) {
  const Experiment experiment = make("topology: {kind: single-switch, hosts: 2}\n");
  const AloneTimes times = alone(experiment);
  // One packet: twice its time, twice 1 µs, and the same for the ACK.
  EXPECT_EQ(times.completion(message(0, 1, 4096)), 2 * 334'240 + 2 * 6'880 + 4 * kMicrosecond);
  EXPECT_EQ(times.completion(message(0, 1, 1)), 2 * (1 + 82) * 80 + 2 * 6'880 + 4 * kMicrosecond);
  // 2 MB: 488 full packets and one of 1152 bytes (1234 with all, 98.72 ns): all on the first link, one more full
  // packet's time at the switch, and the propagation.
  EXPECT_EQ(times.packets(message(0, 1, 2'000'000)), 489U);
  EXPECT_EQ(times.completion(message(0, 1, 2'000'000)),
            488 * 334'240 + 98'720 + 334'240 + 2 * 6'880 + 4 * kMicrosecond);
}

// Every packet through every hop: starts when it has arrived whole and the one before it is out.
Duration played(const Experiment& experiment, const Message& m) {
  const BasePaths paths(experiment.topology);
  const uint64_t mtu = experiment.settings.hosts.mtu;
  std::vector<Time> free_at(16, 0);
  Time done = 0;
  for (uint64_t offset = 0; offset < m.bytes; offset += mtu) {
    const uint64_t frame = std::min(mtu, m.bytes - offset) + kDataFrameOverhead;
    Time at = 0;
    NodeId node = m.src;
    size_t hop = 0;
    for (const LinkId id : paths.path(m.src, m.dst)) {
      const Link& link = experiment.topology.links[id];
      const Time begin = std::max(at, free_at[hop]);
      free_at[hop] = begin + link.rate.time_for(frame + static_cast<uint64_t>(link.overhead));
      at = free_at[hop++] + link.delay;
      node = experiment.topology.other_end(id, node);
    }
    done = at;
  }
  return done + paths.one_way(m.dst, m.src, kAckFrame);
}

TEST(AloneTime, IsWhatAnEmptyFabricTakes) {
  const std::vector<std::string> fabrics{
      "topology: {kind: leaf-spine, hosts: 16, leaves: 4, spines: 2}\n",
      "topology: {kind: leaf-spine, hosts: 16, leaves: 4, spines: 2, host_link: {rate: 25G}, uplink: {rate: 100G}}\n",
      "topology: {kind: leaf-spine, hosts: 16, leaves: 4, spines: 2, host_link: {rate: 100G}, uplink: {rate: 25G}}\n",
      "topology: {kind: fat-tree, k: 4, core_link: {rate: 10G, delay: 5us}, host_link: {overhead: 0}}\n",
      "{topology: {kind: fat-tree, k: 4}, hosts: {mtu: 1000}}\n",
  };
  for (const std::string& yaml : fabrics) {
    SCOPED_TRACE(yaml);
    const Experiment experiment = make(yaml);
    const AloneTimes times = alone(experiment);
    for (const uint64_t bytes : {1, 999, 1000, 4096, 4097, 8192, 12'289, 1'000'000}) {
      for (const HostId dst : {1, 5, 15}) {
        EXPECT_EQ(times.completion(message(0, dst, bytes)), played(experiment, message(0, dst, bytes)))
            << bytes << " bytes to host " << dst;
      }
    }
  }
}

TEST(AloneTime, SeveralQueuePairsAddHeadersOnly) {
  const Experiment one = make("topology: {kind: single-switch, hosts: 2}\n");
  const Experiment four = make("{topology: {kind: single-switch, hosts: 2}, hosts: {qps_per_connection: 4}}\n");
  EXPECT_EQ(alone(four).packets(message(0, 1, 2'000'000)), 4 * 123U);
  EXPECT_EQ(alone(four).packets(message(0, 1, 3)), 3U);
  const Duration more =
      alone(four).completion(message(0, 1, 2'000'000)) - alone(one).completion(message(0, 1, 2'000'000));
  EXPECT_NEAR(static_cast<double>(more), 3 * 58 * 80, 3 * 24 * 80) << "3 more headers, and at most as many gaps";
}

TEST(AloneTime, CountsTheLinksThatPacketsCross) {
  const Experiment experiment = make(R"(
topology: {kind: leaf-spine, hosts: 4, leaves: 2, spines: 1}
hosts: {ack_every: 4}
workload: {kind: flows, flows: [{src: 0, dst: 1, size: 4096}, {src: 0, dst: 2, size: 40960}]}
)");
  EXPECT_EQ(alone(experiment).expected_hops(experiment.workload), 2 * (1 + 1) + 4 * (10 + 3));
}

TEST(FabricCapacity, OfALeafSpine) {
  const Experiment experiment = make("topology: {kind: leaf-spine, hosts: 16, leaves: 4, spines: 2}\n");
  const FabricCapacity capacity = capacity_of(experiment.topology, {}, {}, kMicrosecond);
  EXPECT_EQ(capacity.host_rate.at(3), Rate::gbps(100));
  EXPECT_EQ(capacity.leaf_of_host.at(3), 0U);
  EXPECT_EQ(capacity.leaf_of_host.at(4), 1U);
  EXPECT_EQ(capacity.leaf_up_bps.at(1), 200e9);
  EXPECT_EQ(capacity.leaf_down_bps.at(1), 200e9);
  EXPECT_TRUE(capacity.pod_up_bps.empty()) << "each leaf is its own pod";
  EXPECT_EQ(capacity.in_leaf.host.full, 2 * kMicrosecond + 334'240);
  EXPECT_EQ(capacity.across.host.full, 4 * kMicrosecond + 3 * 334'240);
  EXPECT_EQ(capacity.ack_one_way, 2 * (kMicrosecond + 6'880));
}

TEST(FabricCapacity, OfAFatTreeWithAFailure) {
  const Experiment experiment = make(R"(
topology: {kind: fat-tree, k: 4}
events:
  - {at: 0, link: edge0-agg0, state: down}
  - {at: 0, link: agg2-core0, rate: 25G}
  - {at: 1ms, link: edge1-agg0, state: down}
)");
  const FabricCapacity capacity = capacity_of(experiment.topology, experiment.settings.events, {}, kMicrosecond);
  EXPECT_EQ(capacity.leaf_up_bps.at(0), 100e9) << "down from the beginning";
  EXPECT_EQ(capacity.leaf_up_bps.at(1), 200e9) << "up at first";
  EXPECT_EQ(capacity.pod_up_bps.at(0), 400e9);
  EXPECT_EQ(capacity.pod_up_bps.at(1), 325e9);
  EXPECT_EQ(capacity.in_pod.host.full, 4 * kMicrosecond + 3 * 334'240);
  EXPECT_EQ(capacity.across.host.full, 6 * kMicrosecond + 5 * 334'240);
}

}  // namespace
}  // namespace heddle::lab
