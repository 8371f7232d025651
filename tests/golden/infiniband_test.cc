// InfiniBand links against what theory says of them: the rate of a link from its buffer and round trip, incast without
// a loss, a permutation by destination and by adaptive routing, a ring whose credits wait for each other.
//
// Rate of a link: min(C, B / T) with B the bytes of whole packets that the buffer takes in blocks of 64 bytes, and T
// from the first bit of a packet to that of the packet which its credit lets go: the packet's time on the wire, twice
// the propagation, and a flow-control packet.
#include "lab/host/infiniband.h"

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "tests/golden/golden_run.h"
#include "tests/support/sanitizer.h"

namespace heddle::golden {
namespace {

using namespace heddle::lab;

FabricSettings infiniband(const char* scheduler = "ecmp", uint64_t seed = 1) {
  FabricSettings settings = open_loop(scheduler, seed);
  settings.hosts.link_layer = LinkLayer::kInfiniband;
  return settings;
}

LinkSettings ib_link(Rate rate, Duration delay = kMicrosecond) {
  return {.rate = rate, .delay = delay, .overhead = net::kInfinibandOverhead};
}

// --- one link

constexpr uint32_t kMtu = 4096;
constexpr uint64_t kFrame = infiniband_data_frame(kMtu);
constexpr uint64_t kOnWire = kFrame + net::kInfinibandOverhead;

// Wire bytes a second that one host sends another through a switch, once the buffers are in use: from two messages of
// different length, so that what beginning and end take cancels out.
double measured_rate(Rate rate, Duration delay, const flowctl::CreditSettings& credits) {
  const Topology t = build_single_switch({.hosts = 2, .link = ib_link(rate, delay)});
  const uint64_t window = credits.buffer / 64 / ((kFrame + 63) / 64);
  std::array<Time, 2> took{};
  std::array<uint64_t, 2> packets{10 * window, 30 * window};
  for (size_t i = 0; i < 2; ++i) {
    FabricSettings settings = infiniband();
    settings.hosts.start_jitter = false;
    settings.switches.infiniband.credits = credits;
    settings.hosts.retransmit_timeout = kSecond;
    const RunResult result =
        run_fabric(t, workload_of(2, {Flow{.src = 0, .dst = 1, .bytes = packets[i] * kMtu}}), settings);
    EXPECT_TRUE(all_done(result));
    EXPECT_EQ(support::all_drops(result), 0U);
    EXPECT_LE(result.lanes[0].peak, credits.buffer);
    took[i] = result.messages[0].received;
  }
  return static_cast<double>((packets[1] - packets[0]) * kOnWire) / to_seconds(took[1] - took[0]);
}

double expected_rate(Rate rate, Duration delay, uint64_t window_blocks, uint32_t credit_packet) {
  const double capacity = static_cast<double>(rate.bits_per_second()) / 8;
  const uint64_t packets = window_blocks / ((kFrame + 63) / 64);
  const Duration round_trip =
      rate.time_for(kOnWire) + 2 * delay + rate.time_for(credit_packet + net::kInfinibandOverhead);
  return std::min(capacity, static_cast<double>(packets * kOnWire) / to_seconds(round_trip));
}

TEST(GoldenInfiniband, OneLinkCarriesItsBufferARoundTripOrItsRate) {
  for (const uint64_t gbps : {100, 200, 400}) {
    for (const uint64_t meters : {1, 10, 100, 1000, 10'000}) {
      for (const uint64_t buffer : {16, 64, 128}) {
        const Rate rate = Rate::gbps(gbps);
        const Duration delay = meters * 5 * kNanosecond;
        flowctl::CreditSettings credits;
        credits.buffer = buffer * 1024;
        const double expected = expected_rate(rate, delay, credits.buffer / 64, 6);
        EXPECT_NEAR(measured_rate(rate, delay, credits), expected, 0.01 * expected)
            << gbps << "G, " << meters << " m, " << buffer << " KiB";
      }
    }
  }
}

// 12 bits let 2048 blocks be on their way, however large the buffer: 128 KiB, which at 400G last for 2.6 µs.
TEST(GoldenInfiniband, TwelveBitsOfCreditHoldALong400GLinkBack) {
  constexpr Duration k1km = 5 * kMicrosecond;
  flowctl::CreditSettings credits;
  credits.buffer = 1 << 20;
  const double narrow = measured_rate(Rate::gbps(400), k1km, credits);
  EXPECT_NEAR(narrow, expected_rate(Rate::gbps(400), k1km, 2048, 6), 0.01 * narrow);
  EXPECT_NEAR(narrow * 8e-9, 101, 2) << "31 packets of 4124 bytes in 10.1 µs";
  credits.format.counter_bits = 20;
  EXPECT_NEAR(measured_rate(Rate::gbps(400), k1km, credits) * 8e-9, 400, 4);
}

// --- many to one

TEST(GoldenInfiniband, IncastLosesNothingAndWaitsForCredit) {
  const Topology t = build_single_switch({.hosts = 16, .link = ib_link(Rate::gbps(100))});
  const FabricSettings settings = infiniband();
  std::vector<Flow> flows;
  for (HostId host = 0; host < 15; ++host) flows.push_back({.src = host, .dst = 15, .bytes = 2'000'000});
  const RunResult result = run_fabric(t, workload_of(16, flows), settings);
  ASSERT_TRUE(all_done(result));
  EXPECT_EQ(support::all_drops(result), 0U);
  EXPECT_EQ(result.retransmitted, 0U);
  EXPECT_EQ(result.lanes[0].buffer, 128U * 1024);
  EXPECT_LE(result.lanes[0].peak, 128U * 1024);
  EXPECT_GT(result.lanes[0].peak, 120'000U) << "the switch's buffers were full";
  // The receiver's link is busy all the time: 15 × 489 packets, one after another.
  const auto ideal = static_cast<double>(15 * 489 * Rate::gbps(100).time_for(kOnWire));
  EXPECT_NEAR(static_cast<double>(support::last_completion(result)), ideal, 0.01 * ideal);
  // Each sender has 2 MB to send in 2.4 ms, of which it waits all but 160 µs; the first 128 KiB go without waiting.
  const double stalled = static_cast<double>(result.lanes[0].stalled) / 15;
  EXPECT_NEAR(stalled, ideal * 14 / 15, 0.1 * ideal);
}

// --- a fabric without over-subscription

class InfinibandPermutation : public testing::Test {
 protected:
  void SetUp() override {
    if (support::kAddressSanitizer) GTEST_SKIP() << "millions of packets";
  }
  // Mean over three permutations of 432 hosts, 2 MB each.
  double utilization_of(const char* scheduler) {
    FatTreeSettings fat_tree{.hosts = 432};
    fat_tree.host_link = fat_tree.aggregation_link = fat_tree.core_link = ib_link(Rate::gbps(100));
    const Topology t = build_fat_tree(fat_tree);
    double sum = 0;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const FabricSettings settings = infiniband(scheduler, seed);
      const Workload workload = workload_of(t.host_count, Permutation{.seed = seed});
      const RunResult result = run_fabric(t, workload, settings);
      EXPECT_TRUE(all_done(result));
      EXPECT_EQ(support::all_drops(result), 0U);
      sum += utilization(t, workload, settings, result);
    }
    return sum / 3;
  }
};

// Issue's figures: destination-modulo tables collide on the way up alone.
TEST_F(InfinibandPermutation, ByDestinationCollidesOnTheWayUp) { EXPECT_NEAR(utilization_of("ecmp"), 0.52, 0.05); }
TEST_F(InfinibandPermutation, AdaptiveRoutingUsesNearlyAll) { EXPECT_GE(utilization_of("adaptive"), 0.85); }

// --- a ring

// examples/lab/ib-ring.yaml: five switches of four hosts; every host sends to the one two switches clockwise.
struct Ring {
  Topology topology;
  Workload workload;
};
Ring ring_of_five(uint64_t bytes) {
  GraphSettings graph;
  const LinkSettings link = ib_link(Rate::gbps(100));
  for (unsigned s = 0; s < 5; ++s) {
    graph.switches.push_back({.name = "s" + std::to_string(s), .hosts = 4, .host_link = link});
    graph.links.push_back({.a = "s" + std::to_string(s), .b = "s" + std::to_string((s + 1) % 5), .link = link});
  }
  std::vector<Flow> flows;
  for (HostId host = 0; host < 20; ++host) flows.push_back({.src = host, .dst = (host + 8) % 20, .bytes = bytes});
  return {build_graph(graph), workload_of(20, flows)};
}

TEST(GoldenInfiniband, ARingOfShortestPathsDeadlocksAndNamesItsCycle) {
  const Ring ring = ring_of_five(8'000'000);
  const RunResult result = run_fabric(ring.topology, ring.workload, infiniband());
  EXPECT_EQ(result.end, RunResult::End::kDeadlock);
  EXPECT_EQ(support::all_drops(result), 0U);
  ASSERT_TRUE(result.deadlock.has_value());
  const std::vector<QueueRef>& cycle = result.deadlock->cycle;
  ASSERT_EQ(cycle.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    const NodeId next = ring.topology.neighbor(cycle[i].node, cycle[i].port);
    EXPECT_EQ(next, cycle[(i + 1) % 5].node);
    EXPECT_EQ(next - 20, (cycle[i].node - 20 + 1) % 5) << "clockwise";
    EXPECT_EQ(cycle[i].traffic_class, 0) << "VL";
  }
}

TEST(GoldenInfiniband, TheSameRingDoesNotByUpDownRouting) {
  const Ring ring = ring_of_five(8'000'000);
  FabricSettings settings = infiniband();
  settings.switches.infiniband.routing = "up-down";
  const RunResult result = run_fabric(ring.topology, ring.workload, settings);
  EXPECT_TRUE(all_done(result));
  EXPECT_FALSE(result.deadlock.has_value());
  EXPECT_EQ(support::all_drops(result), 0U);
}

}  // namespace
}  // namespace heddle::golden
