// A run's accounts: every packet ends somewhere, bytes on links are those of the messages, and runs end as they should.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/host/roce.h"
#include "lab/ideal/alone_time.h"
#include "lab/topology/builders.h"
#include "tests/support/fabric_runs.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

using support::all_done;
using support::exact_settings;
using support::expect_books_balance;
using support::workload_of;

TEST(Books, BalanceAtEveryInstantOfARun) {
  LeafSpineSettings shape{.hosts = 16, .leaves = 4, .spines = 2};
  shape.host_link.loss = 1e-3;
  const Topology t = build_leaf_spine(shape);
  const Workload workload = workload_of(16, Permutation{.bytes = 150'000});
  FabricSettings settings = exact_settings();
  settings.switches.queue_limit = 60'000;
  settings.hosts.retransmit_timeout = 50 * kMicrosecond;
  settings.run.until = kSecond;
  const RunResult whole = run_fabric(t, workload, settings);
  ASSERT_TRUE(all_done(whole));
  EXPECT_EQ(whole.packets_in_flight, 0U);
  expect_books_balance(whole);
  bool in_flight = false;
  uint64_t sent = 0;
  for (Time until = 500 * kNanosecond; until < whole.ended_at; until += 7'300 * kNanosecond) {
    settings.run.until = until;
    const RunResult part = run_fabric(t, workload, settings);
    EXPECT_EQ(part.end, RunResult::End::kTimeLimit);
    EXPECT_EQ(part.ended_at, until);
    expect_books_balance(part);
    EXPECT_GE(part.packets_sent, sent);
    sent = part.packets_sent;
    in_flight = in_flight || part.packets_in_flight > 0;
    for (size_t m = 0; m < part.messages.size(); ++m) {
      for (const auto at : {&MessageTimes::released, &MessageTimes::received, &MessageTimes::sent}) {
        const Time expected = whole.messages[m].*at < until ? whole.messages[m].*at : kNever;
        ASSERT_EQ(part.messages[m].*at, expected) << "message " << m << " until " << until;
      }
    }
  }
  EXPECT_TRUE(in_flight);
}

// Without loss, what crosses the hosts' links is what the messages make: data, and an ACK for each packet.
TEST(Books, LinksCarryExactlyTheMessages) {
  const Topology t = build_fat_tree({.k = 4});
  const Workload workload = workload_of(16, Permutation{.bytes = 123'457});
  constexpr uint64_t kPackets = 31;  // 30 full ones and one of 577 bytes
  constexpr uint64_t kData = 123'457 + kPackets * (kDataFrameOverhead + kEthernetOverhead);
  constexpr uint64_t kAcks = kPackets * (kAckFrame + kEthernetOverhead);
  for (const lb::SchedulerPreset& preset : lb::kSchedulerPresets) {
    SCOPED_TRACE(preset.name);
    FabricSettings settings = exact_settings();
    settings.switches.scheduler = preset.scheduler;
    settings.hosts.out_of_order = OutOfOrder::kAnyOrderPlacement;
    const RunResult result = run_fabric(t, workload, settings);
    ASSERT_TRUE(all_done(result));
    expect_books_balance(result);
    EXPECT_EQ(support::all_drops(result), 0U);
    EXPECT_EQ(result.data_packets, 16 * kPackets);
    // Packets out of order share an ACK when the gap closes.
    const bool in_order = preset.name == "ecmp";
    const uint64_t acks = result.packets_sent - result.data_packets;
    if (in_order) {
      EXPECT_EQ(acks, 16 * kPackets);
    }
    EXPECT_LE(acks, 16 * kPackets);
    EXPECT_EQ(result.packets_received, result.packets_sent);
    uint64_t out = 0;
    uint64_t in = 0;
    for (HostId host = 0; host < 16; ++host) {
      const LinkId id = t.ports[host][0];
      const bool a = t.links[id].a == host;
      const LinkLoad& load = result.links[id];
      out += a ? load.a_to_b_bytes : load.b_to_a_bytes;
      in += a ? load.b_to_a_bytes : load.a_to_b_bytes;
      if (in_order) {
        EXPECT_EQ(load.a_to_b_bytes, kData + kAcks);
        EXPECT_EQ(load.b_to_a_bytes, kData + kAcks);
      }
    }
    EXPECT_EQ(out, 16 * kData + acks * (kAckFrame + kEthernetOverhead));
    EXPECT_EQ(in, out);
  }
}

// The engine against the formula that slowdown is measured by: all sizes, all distances. Where the last packet is a few
// bytes its ACK waits for the one before it, some nanoseconds that the formula leaves out.
TEST(Books, AMessageAloneTakesWhatItsPathTakes) {
  FatTreeSettings shape{.k = 4};
  shape.aggregation_link = {.rate = Rate::gbps(40), .delay = 300 * kNanosecond};
  shape.core_link = {.rate = Rate::gbps(200), .delay = 5 * kMicrosecond};
  const Topology t = build_fat_tree(shape);
  for (const uint32_t mtu : {256U, 1024U, 4096U}) {
    FabricSettings settings = exact_settings();
    settings.hosts.mtu = mtu;
    const AloneTimes alone(t, LinkStates(t), settings.hosts);
    for (const HostId dst : {1U, 2U, 15U}) {
      for (const uint64_t bytes : {1U, 255U, 4096U, 4097U, 100'000U}) {
        const Workload workload = workload_of(16, {{.src = 0, .dst = dst, .bytes = bytes}});
        const RunResult result = run_fabric(t, workload, settings);
        const auto expected = static_cast<double>(alone.completion(workload.messages[0]));
        EXPECT_NEAR(static_cast<double>(support::last_completion(result)), expected, 0.005 * expected)
            << bytes << " bytes to host " << dst << ", MTU " << mtu;
        EXPECT_EQ(result.packet_hops, alone.expected_hops(workload));
      }
    }
  }
}

TEST(Books, AQueueAtItsLimitDropsAndSaysSo) {
  const Topology t = build_single_switch({.hosts = 5});
  FabricSettings settings = exact_settings();
  settings.switches.queue_limit = 50'000;
  settings.hosts.retransmit_timeout = 100 * kMicrosecond;
  settings.run.until = kSecond;
  const RunResult result = run_fabric(t, workload_of(5, Incast{.bytes = 100'000}), settings);
  EXPECT_TRUE(all_done(result));
  EXPECT_GT(support::drops_of(result, DropReason::kQueueFull), 0U);
  EXPECT_LE(result.peak_queue_bytes, 50'000U);
  EXPECT_GT(result.peak_queue_bytes, 45'000U);
  expect_books_balance(result);
}

TEST(Books, AnInterruptedRunKeepsWhatItHas) {
  const Topology t = build_single_switch({.hosts = 8});
  const Workload workload = workload_of(8, Permutation{.bytes = 1'000'000});
  FabricSettings settings = exact_settings();
  unsigned asked = 0;
  settings.on_progress = [&](const Progress& progress) {
    EXPECT_EQ(progress.messages, 8U);
    EXPECT_EQ(progress.messages_done, 0U);
    ++asked;
    return false;
  };
  const RunResult result = run_fabric(t, workload, settings);
  EXPECT_EQ(asked, 1U);
  EXPECT_EQ(result.end, RunResult::End::kInterrupted);
  EXPECT_EQ(result.messages.size(), 8U);
  expect_books_balance(result);
  settings.on_progress = [](const Progress&) { return true; };
  EXPECT_TRUE(all_done(run_fabric(t, workload, settings)));
}

struct Refusal {
  const char* description;
  void (*change)(FabricSettings& settings);
  const char* text;
};

TEST(FabricSettings, ThatDoNotFitAreRefused) {
  const Topology t = build_single_switch({.hosts = 4});
  const Workload workload = workload_of(4, Permutation{});
  for (const Refusal& row : {
           Refusal{"no payload", [](FabricSettings& s) { s.hosts.mtu = 0; }, "hosts.mtu"},
           Refusal{"a payload beyond 4096", [](FabricSettings& s) { s.hosts.mtu = 4097; }, "hosts.mtu"},
           Refusal{"no queue pair", [](FabricSettings& s) { s.hosts.qps_per_connection = 0; }, "qps_per_connection"},
           Refusal{"a window beyond the lookahead", [](FabricSettings& s) { s.run.window = kMicrosecond + 1; },
                   "run.window"},
           Refusal{"a trigger delay below the lookahead",
                   [](FabricSettings& s) { s.run.trigger_delay = kMicrosecond - 1; }, "run.trigger_delay"},
           Refusal{"an event on a link that does not exist",
                   [](FabricSettings& s) { s.events = {{.at = 0, .link = 99}}; }, "99"},
       }) {
    SCOPED_TRACE(row.description);
    FabricSettings settings = exact_settings();
    row.change(settings);
    expect_bad_input([&] { run_fabric(t, workload, settings); }, row.text);
  }
  expect_bad_input([&] { run_fabric(t, workload_of(5, Permutation{}), exact_settings()); }, "needs 5 hosts");
}

}  // namespace
}  // namespace heddle::lab
