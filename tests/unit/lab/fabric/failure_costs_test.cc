// What hosts do about packets that are lost, late or out of order, seen from outside.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/host/roce.h"
#include "lab/ideal/alone_time.h"
#include "lab/topology/builders.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

using support::all_done;
using support::all_drops;
using support::completion_of;
using support::exact_settings;
using support::workload_of;

constexpr OutOfOrder kModes[] = {OutOfOrder::kGoBackN, OutOfOrder::kSelectiveRepeat, OutOfOrder::kInOrderPlacement,
                                 OutOfOrder::kAnyOrderPlacement};
constexpr Duration kPacketTime = Rate::gbps(100).time_for(4096 + kDataFrameOverhead + kEthernetOverhead);

Topology one_switch(uint32_t hosts, Duration delay = kMicrosecond) {
  return build_single_switch({.hosts = hosts, .link = {.delay = delay}});
}

// A link that fails for 10 ns while packet `n` of host 0's only message is on it; short links, so that no other is.
FabricSettings losing_packet(uint32_t n, OutOfOrder mode) {
  FabricSettings settings = exact_settings();
  const Time middle = n * kPacketTime + kPacketTime / 2;
  settings.events = {{.at = middle, .link = 0, .kind = LinkEvent::Kind::kDown},
                     {.at = middle + 10 * kNanosecond, .link = 0, .kind = LinkEvent::Kind::kUp}};
  settings.hosts.out_of_order = mode;
  settings.hosts.ack_every = 8;
  settings.run.until = kSecond;
  return settings;
}

struct LossRow {
  const char* description;
  OutOfOrder mode;
  uint32_t lost;  // of packets 0 … 99
  uint64_t timeouts;
  uint64_t naks_least;
  uint64_t naks_most;
  uint64_t repeated_least;
  uint64_t repeated_most;
};

TEST(Recovery, RepeatsWhatEachWayOfRecoveryHasTo) {
  const Topology t = one_switch(2, 10 * kNanosecond);
  const Workload workload = workload_of(2, {{.src = 0, .dst = 1, .bytes = 100 * 4096}});
  // A NAK is at the sender two packet times and two ACKs after the packet behind the gap has left: three or four
  // packets.
  for (const LossRow& row : {
           LossRow{"go-back-N: one NAK, all since the gap again", OutOfOrder::kGoBackN, 40, 0, 1, 1, 3, 5},
           LossRow{"go-back-N: the last packet takes a time-out", OutOfOrder::kGoBackN, 99, 1, 0, 0, 4, 4},
           LossRow{"selective repeat: the lost packet alone", OutOfOrder::kSelectiveRepeat, 40, 0, 2, 5, 1, 1},
           LossRow{"selective repeat: after a time-out only what is missing", OutOfOrder::kSelectiveRepeat, 99, 1, 0, 0,
                   4, 4},
           LossRow{"in-order placement: no NAK, after a time-out all since the last ACK", OutOfOrder::kInOrderPlacement,
                   40, 1, 0, 0, 1, 60},
           LossRow{"any-order placement: no NAK, after a time-out all since the last ACK",
                   OutOfOrder::kAnyOrderPlacement, 40, 1, 0, 0, 1, 60},
       }) {
    SCOPED_TRACE(row.description);
    const FabricSettings settings = losing_packet(row.lost, row.mode);
    const RunResult result = run_fabric(t, workload, settings);
    EXPECT_TRUE(all_done(result));
    EXPECT_EQ(support::drops_of(result, DropReason::kLinkDown), 1U);
    EXPECT_EQ(result.timeouts, row.timeouts);
    EXPECT_GE(result.naks, row.naks_least);
    EXPECT_LE(result.naks, row.naks_most);
    EXPECT_GE(result.retransmitted, row.repeated_least);
    EXPECT_LE(result.retransmitted, row.repeated_most);
    EXPECT_EQ(result.data_packets, 100 + result.retransmitted);
    // Nothing else is lost: what was repeated without need was refused or came twice.
    EXPECT_EQ(result.retransmitted, 1 + result.duplicates + support::drops_of(result, DropReason::kOutOfOrder));
    support::expect_books_balance(result);
  }
}

// The last packet is lost: no NAK can say so. It is repeated a time-out after the last ACK, to the picosecond.
TEST(Recovery, ATailLossCostsOneTimeoutFromTheLastAck) {
  const Topology t = one_switch(2, 10 * kNanosecond);
  const Workload workload = workload_of(2, {{.src = 0, .dst = 1, .bytes = 16 * 4096}});
  FabricSettings settings = losing_packet(15, OutOfOrder::kGoBackN);
  settings.hosts.ack_every = 1;
  settings.hosts.retransmit_timeout = 100 * kMicrosecond;
  const RunResult result = run_fabric(t, workload, settings);
  const AloneTimes alone(t, LinkStates(t), settings.hosts);
  // ACK of packet 14 back at the sender, the time-out, and packet 15 like a message of its own.
  const Time last_ack = alone.completion({.src = 0, .dst = 1, .bytes = 15 * 4096});
  const Time expected = last_ack + 100 * kMicrosecond + alone.completion({.src = 0, .dst = 1, .bytes = 4096});
  EXPECT_EQ(result.timeouts, 1U);
  EXPECT_EQ(result.retransmitted, 1U);
  EXPECT_EQ(result.messages[0].sent, expected);
}

TEST(Recovery, EveryAckRestartsTheTimer) {
  const Topology t = one_switch(9);
  std::vector<Flow> flows;
  for (uint32_t h = 0; h < 8; ++h) flows.push_back({.src = h, .dst = 8, .bytes = 400'000});
  FabricSettings settings = exact_settings();
  settings.hosts.retransmit_timeout = 40 * kMicrosecond;
  settings.run.until = 100 * kMillisecond;
  const RunResult steady = run_fabric(t, workload_of(9, flows), settings);
  EXPECT_TRUE(all_done(steady));
  EXPECT_GT(support::last_completion(steady), 6 * settings.hosts.retransmit_timeout) << "the run is too short to show";
  EXPECT_EQ(steady.timeouts, 0U);
  EXPECT_EQ(steady.retransmitted, 0U);

  settings.hosts.ack_every = 1024;  // no ACK but the last: now the timer has nothing to restart it
  const RunResult silent = run_fabric(t, workload_of(9, flows), settings);
  EXPECT_TRUE(all_done(silent));
  EXPECT_GT(silent.timeouts, 0U);
  EXPECT_GT(silent.duplicates, 0U);
  EXPECT_EQ(all_drops(silent), 0U);
}

// A time-out, and then the ACK before the port is free: there is nothing to repeat any more.
TEST(Recovery, AnAckThatOvertakesARepetitionMakesItNeedless) {
  const Topology t = one_switch(3);
  const Workload workload = workload_of(
      3, {{.src = 0, .dst = 1, .bytes = 4096}, {.src = 0, .dst = 2, .bytes = 300 * 4096, .start = kPacketTime / 3}});
  FabricSettings settings = exact_settings();
  settings.run.until = 20 * kMillisecond;
  const AloneTimes alone(t, LinkStates(t), settings.hosts);
  const Duration round_trip = alone.completion(workload.messages[0]);
  uint64_t needless = 0;
  for (Duration early = 10 * kNanosecond; early < kPacketTime; early += 20 * kNanosecond) {
    settings.hosts.retransmit_timeout = round_trip - early;
    const RunResult result = run_fabric(t, workload, settings);
    ASSERT_TRUE(all_done(result));
    EXPECT_GE(result.timeouts, 1U);
    EXPECT_EQ(result.data_packets, 301 + result.retransmitted);
    EXPECT_EQ(result.retransmitted, result.duplicates);
    EXPECT_EQ(all_drops(result), 0U);
    // The timer of the first message always runs out; its packet crosses the receiver's link once more or not.
    const LinkLoad& to_receiver = result.links[1];
    const uint64_t copies = t.links[1].a == 1 ? to_receiver.b_to_a_packets : to_receiver.a_to_b_packets;
    if (copies == 1) ++needless;
  }
  EXPECT_GT(needless, 0U) << "no ACK came between time-out and repetition";
}

// A sender that has used up its window waits for an ACK, so one has to come.
TEST(Recovery, AWindowBelowTheCoalescingDoesNotStall) {
  const Topology t = one_switch(2);
  const Workload workload = workload_of(2, {{.src = 0, .dst = 1, .bytes = 100 * 4096}});
  FabricSettings settings = exact_settings();
  settings.hosts.window_bytes = 8 * 4096;
  settings.hosts.ack_every = 64;
  const RunResult result = run_fabric(t, workload, settings);
  EXPECT_TRUE(all_done(result));
  EXPECT_EQ(result.timeouts, 0U);
  EXPECT_LT(support::last_completion(result), 200 * kMicrosecond);
}

// Window / round trip (Little 1961), as long as that is less than the link's rate.
TEST(Recovery, AWindowLimitsTheRate) {
  const Topology t = one_switch(2, 5 * kMicrosecond);
  constexpr uint64_t kPackets = 480;
  const Workload workload = workload_of(2, {{.src = 0, .dst = 1, .bytes = kPackets * 4096}});
  FabricSettings settings = exact_settings();
  const AloneTimes alone(t, LinkStates(t), settings.hosts);
  const Duration round_trip = alone.completion({.src = 0, .dst = 1, .bytes = 4096});
  for (const uint64_t window : {1U, 8U, 24U}) {
    settings.hosts.window_bytes = window * 4096;
    const RunResult result = run_fabric(t, workload, settings);
    const auto rounds = static_cast<double>(kPackets) / static_cast<double>(window);
    EXPECT_NEAR(static_cast<double>(support::last_completion(result)) / static_cast<double>(round_trip), rounds,
                0.02 * rounds + static_cast<double>(window * kPacketTime) / static_cast<double>(round_trip))
        << window << " packets";
  }
  settings.hosts.window_bytes = 1000 * 4096;
  EXPECT_EQ(support::last_completion(run_fabric(t, workload, settings)), alone.completion(workload.messages[0]));
}

struct AckRow {
  uint32_t ack_every;
  std::vector<uint64_t> packets;  // of each message, one after another on one queue pair
  uint64_t acks;
};

TEST(Recovery, AcknowledgesEveryNthPacketAndEveryMessage) {
  const Topology t = one_switch(2);
  for (const AckRow& row : {AckRow{1, {10}, 10}, AckRow{4, {10}, 3}, AckRow{4, {8}, 2}, AckRow{16, {10, 1, 40}, 5},
                            AckRow{1024, {100, 100}, 2}}) {
    std::vector<Flow> flows;
    for (const uint64_t n : row.packets) flows.push_back({.src = 0, .dst = 1, .bytes = n * 4096});
    FabricSettings settings = exact_settings();
    settings.hosts.ack_every = row.ack_every;
    const RunResult result = run_fabric(t, workload_of(2, flows), settings);
    EXPECT_TRUE(all_done(result));
    EXPECT_EQ(result.packets_sent - result.data_packets, row.acks) << "every " << row.ack_every;
  }
}

// Losses everywhere, queues that overflow, packets out of order: all messages arrive all the same.
TEST(Recovery, EveryMessageArrivesThroughLossOnEveryLink) {
  LeafSpineSettings shape{.hosts = 16, .leaves = 4, .spines = 4};
  shape.host_link.loss = 2e-3;
  shape.host_link.bit_error = 1e-8;
  shape.uplink = {.loss = 5e-3, .bit_error = 2e-8};
  shape.uplink.rate = Rate::gbps(100);
  const Topology t = build_leaf_spine(shape);
  const Workload workload = workload_of(16, Incast{.bytes = 200'000, .fan_in = 12, .victim_count = 3});
  for (const OutOfOrder mode : kModes) {
    for (const std::string scheduler : {"ecmp", "rps"}) {
      SCOPED_TRACE(testing::Message() << scheduler << ", mode " << static_cast<int>(mode));
      FabricSettings settings = exact_settings();
      settings.switches.scheduler = *lb::scheduler_named(scheduler);
      settings.switches.queue_limit = 100'000;
      settings.hosts.out_of_order = mode;
      settings.hosts.window_bytes = 16 * 4096;
      settings.hosts.retransmit_timeout = 200 * kMicrosecond;
      settings.run.until = kSecond;
      const RunResult result = run_fabric(t, workload, settings);
      EXPECT_TRUE(all_done(result));
      EXPECT_GT(support::drops_of(result, DropReason::kLinkLoss), 0U);
      EXPECT_GT(support::drops_of(result, DropReason::kBitError), 0U);
      EXPECT_GT(support::drops_of(result, DropReason::kQueueFull), 0U);
      EXPECT_GT(result.retransmitted, 0U);
      EXPECT_EQ(result.packets_in_flight, 0U);
      support::expect_books_balance(result);
      const bool refuses = mode == OutOfOrder::kGoBackN;
      if (refuses) {
        EXPECT_GT(support::drops_of(result, DropReason::kOutOfOrder), 0U);
      }
      if (mode == OutOfOrder::kAnyOrderPlacement) {
        EXPECT_EQ(support::drops_of(result, DropReason::kOutOfOrder), 0U);
      }
      const bool has_naks = mode == OutOfOrder::kGoBackN || mode == OutOfOrder::kSelectiveRepeat;
      EXPECT_EQ(result.naks > 0, has_naks);
    }
  }
}

// Packets out of order alone, nothing lost: hosts that place them where they belong repeat nothing.
TEST(Recovery, PlacementInAnyOrderNeedsNoRepetition) {
  const Topology t = build_leaf_spine({.hosts = 32, .leaves = 4, .spines = 8});
  const Workload workload = workload_of(32, Permutation{.bytes = 400'000});
  FabricSettings settings = exact_settings();
  settings.switches.scheduler = *lb::scheduler_named("rps");
  settings.hosts.out_of_order = OutOfOrder::kAnyOrderPlacement;
  const RunResult any = run_fabric(t, workload, settings);
  EXPECT_TRUE(all_done(any));
  EXPECT_GT(any.out_of_order_packets, 100U);
  EXPECT_GT(any.out_of_order_degree, 1U);
  EXPECT_EQ(any.retransmitted + any.naks + any.timeouts + any.duplicates, 0U);

  settings.hosts.out_of_order = OutOfOrder::kGoBackN;
  const RunResult strict = run_fabric(t, workload, settings);
  EXPECT_TRUE(all_done(strict));
  EXPECT_GT(strict.naks, 0U);
  EXPECT_GT(strict.retransmitted, any.data_packets / 10);
  EXPECT_GT(support::last_completion(strict), support::last_completion(any));

  settings.switches.scheduler = *lb::scheduler_named("ecmp");  // one path each: nothing is out of order
  const RunResult ordered = run_fabric(t, workload, settings);
  EXPECT_EQ(ordered.out_of_order_packets, 0U);
  EXPECT_EQ(ordered.naks, 0U);
}

}  // namespace
}  // namespace heddle::lab
