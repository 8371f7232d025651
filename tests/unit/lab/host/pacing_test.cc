// Static rates and bursts of queue pairs, measured on the wire.
#include <algorithm>

#include <gtest/gtest.h>

#include "lab/host/infiniband.h"
#include "lab/topology/builders.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

using support::all_done;
using support::workload_of;

FabricSettings settings_on(LinkLayer layer) {
  FabricSettings settings = support::exact_settings();
  settings.hosts.link_layer = layer;
  return settings;
}

// Wire bytes that left a host, over the time until the last of them arrived.
double measured_gbps(const Topology& t, const RunResult& result, HostId host) {
  const LinkId link = t.ports[host][0];
  const LinkLoad& load = result.links[link];
  const uint64_t bytes = t.links[link].a == host ? load.a_to_b_bytes : load.b_to_a_bytes;
  Time end = 0;
  for (const MessageTimes& times : result.messages) end = std::max(end, times.received);
  return static_cast<double>(bytes) * 8e3 / static_cast<double>(end);
}

struct StaticRow {
  const char* description;
  LinkLayer layer;
  uint64_t rate;  // Gb/s
  uint32_t qps;
  uint32_t mtu;
  double expected;
};

TEST(StaticRate, IsWhatAQueuePairSends) {
  const Topology t = build_single_switch({.hosts = 2});
  for (const StaticRow& row : {StaticRow{"a quarter of an InfiniBand link", LinkLayer::kInfiniband, 25, 1, 4096, 25},
                               StaticRow{"short packets", LinkLayer::kInfiniband, 25, 1, 256, 25},
                               StaticRow{"just below the link's", LinkLayer::kInfiniband, 97, 1, 4096, 97},
                               StaticRow{"beyond the link's", LinkLayer::kInfiniband, 200, 1, 4096, 100},
                               StaticRow{"three queue pairs, each", LinkLayer::kInfiniband, 20, 3, 4096, 60},
                               StaticRow{"Ethernet", LinkLayer::kEthernet, 25, 1, 4096, 25}}) {
    SCOPED_TRACE(row.description);
    FabricSettings settings = settings_on(row.layer);
    settings.hosts.static_rate = Rate::gbps(row.rate);
    settings.hosts.qps_per_connection = row.qps;
    settings.hosts.mtu = row.mtu;
    const RunResult result = run_fabric(t, workload_of(2, {{.src = 0, .dst = 1, .bytes = 6'000'000}}), settings);
    EXPECT_TRUE(all_done(result));
    EXPECT_NEAR(measured_gbps(t, result, 0), row.expected, row.expected / 100);
  }
}

TEST(StaticRate, OfThePathIsThatOfItsSlowestLink) {
  LeafSpineSettings shape{.hosts = 8, .leaves = 2, .spines = 1, .links_per_pair = 1};
  shape.uplink.rate = Rate::gbps(40);
  const Topology t = build_leaf_spine(shape);
  const Workload workload =
      workload_of(8, {{.src = 0, .dst = 4, .bytes = 12'000'000}, {.src = 1, .dst = 2, .bytes = 4'000'000}});
  FabricSettings settings = settings_on(LinkLayer::kInfiniband);
  const RunResult as_fast_as_possible = run_fabric(t, workload, settings);
  settings.hosts.static_rate_of_path = true;
  const RunResult result = run_fabric(t, workload, settings);
  EXPECT_TRUE(all_done(result));
  EXPECT_GT(as_fast_as_possible.peak_queue_bytes, 100'000U) << "before the uplink";
  EXPECT_LE(result.peak_queue_bytes, 2 * infiniband_data_frame(4096));
  EXPECT_EQ(result.messages[1].sent, as_fast_as_possible.messages[1].sent) << "stays on its leaf, at the link's rate";
  const double gbps = 12e6 * 8e3 / static_cast<double>(result.messages[0].received);
  EXPECT_NEAR(gbps, 40 * 4096.0 / (infiniband_data_frame(4096) + 2), 0.4);
}

// At 1 Mb/s, the slowest link there is: the second of two bursts begins when the first one's wire bytes are over.
TEST(StaticRate, HoldsForLongBurstsAtLowRates) {
  const Topology t = build_single_switch({.hosts = 2});
  constexpr uint64_t kPacket = 4096;
  for (const uint64_t packets : {4ULL, 400ULL, 600ULL, 4000ULL}) {  // 2^64 / 2^20 / 8 us: 2.2 MB, 526 packets
    SCOPED_TRACE(packets);
    FabricSettings settings = settings_on(LinkLayer::kEthernet);
    settings.hosts.static_rate = Rate(1'000'000);
    settings.hosts.burst_bytes = packets * kPacket;
    settings.hosts.retransmit_timeout = 1000 * kSecond;
    const RunResult result =
        run_fabric(t, workload_of(2, {{.src = 0, .dst = 1, .bytes = (packets + 1) * kPacket}}), settings);
    EXPECT_TRUE(all_done(result));
    const double seconds = static_cast<double>(packets * (kPacket + kDataFrameOverhead + kEthernetOverhead)) * 8 / 1e6;
    EXPECT_NEAR(static_cast<double>(result.messages[0].received) / 1e12, seconds, 1e-4);
  }
}

struct BurstRow {
  const char* description;
  LinkLayer layer;
  uint32_t qps;
  uint64_t burst;
  uint64_t rate;     // Gb/s of each queue pair, 0: the link's
  double gbps;       // that are measured
  uint64_t at_1_us;  // pauses that long
  uint64_t at_4_us;
  uint64_t at_8_us;
};

// 64 packets of 0.334 us each, by all queue pairs together.
TEST(Bursts, AreWhatAQueuePairSendsInOneGo) {
  constexpr uint64_t kPacket = 4096;
  const Topology t = build_single_switch({.hosts = 2});
  for (const BurstRow& row : {
           BurstRow{"one queue pair never pauses", LinkLayer::kEthernet, 1, 0, 0, 100, 0, 0, 0},
           BurstRow{"packets of four in turn: each waits for four packets", LinkLayer::kEthernet, 4, 0, 0, 100, 60, 0,
                    0},
           BurstRow{"of four packets: three times each for 13 packets", LinkLayer::kEthernet, 4, 4 * kPacket, 0, 100,
                    12, 12, 0},
           BurstRow{"rounded down to packets", LinkLayer::kEthernet, 4, 5 * kPacket - 1, 0, 100, 12, 12, 0},
           BurstRow{"as long as a message: one after another", LinkLayer::kEthernet, 4, 16 * kPacket, 0, 100, 0, 0, 0},
           BurstRow{"InfiniBand", LinkLayer::kInfiniband, 4, 4 * kPacket, 0, 100, 12, 12, 0},
           // A burst of 16 every 10.7 us; the last one leaves no pause behind.
           BurstRow{"at half the link's rate", LinkLayer::kEthernet, 1, 16 * kPacket, 50, 50 * 64 / 56.0, 3, 3, 0},
           BurstRow{"at half of it, packet by packet", LinkLayer::kEthernet, 1, 0, 50, 50, 0, 0, 0},
           BurstRow{"two at a quarter, in turn", LinkLayer::kEthernet, 2, 16 * kPacket, 25, 50 * 64 / 48.0, 2, 2, 2},
       }) {
    SCOPED_TRACE(row.description);
    FabricSettings settings = settings_on(row.layer);
    settings.hosts.qps_per_connection = row.qps;
    settings.hosts.burst_bytes = row.burst;
    if (row.rate != 0) settings.hosts.static_rate = Rate::gbps(row.rate);
    const RunResult result = run_fabric(t, workload_of(2, {{.src = 0, .dst = 1, .bytes = 64 * kPacket}}), settings);
    EXPECT_TRUE(all_done(result));
    EXPECT_EQ(result.out_of_order_packets, 0U);
    EXPECT_NEAR(measured_gbps(t, result, 0), row.gbps, row.gbps / 10);
    EXPECT_EQ(result.gaps.at_least(0), row.at_1_us);
    EXPECT_EQ(result.gaps.at_least(2), row.at_4_us);
    EXPECT_EQ(result.gaps.at_least(3), row.at_8_us);
  }
}

}  // namespace
}  // namespace heddle::lab
