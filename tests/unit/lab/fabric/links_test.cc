// Links that fail, come back, slow down or lose packets during a run.
#include <map>
#include <optional>
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
using support::drops_of;
using support::exact_settings;
using support::workload_of;

constexpr uint64_t kDataWire = 4096 + kDataFrameOverhead + kEthernetOverhead;
constexpr uint64_t kAckWire = kAckFrame + kEthernetOverhead;
constexpr Duration kPacketTime = Rate::gbps(100).time_for(kDataWire);

// Data packets that went from `node` over a link whose data packets are full; ACKs share it.
uint64_t data_packets_from(const Topology& t, const RunResult& result, NodeId node, LinkId link) {
  const LinkLoad& load = result.links[link];
  const bool a = t.links[link].a == node;
  const uint64_t packets = a ? load.a_to_b_packets : load.b_to_a_packets;
  const uint64_t bytes = a ? load.a_to_b_bytes : load.b_to_a_bytes;
  return (bytes - packets * kAckWire) / (kDataWire - kAckWire);
}

class LeafSpineLinks : public testing::Test {
 protected:
  LeafSpineLinks() {
    for (PortIndex port = 0; port < t_.ports[leaf_].size(); ++port) {
      if (!t_.is_host(t_.neighbor(leaf_, port))) uplinks_.push_back(t_.ports[leaf_][port]);
    }
  }

  // Which uplink of leaf 0 a single packet from `src` to `dst` takes; none if it takes none.
  std::optional<LinkId> uplink_of(HostId src, HostId dst, Time start, const std::vector<LinkEvent>& events) {
    FabricSettings settings = exact_settings();
    settings.events = events;
    settings.switches.convergence = 30 * kMicrosecond;
    settings.run.until = start + 20 * kMicrosecond;
    const RunResult result =
        run_fabric(t_, workload_of(16, {{.src = src, .dst = dst, .bytes = 4096, .start = start}}), settings);
    std::optional<LinkId> taken;
    for (const LinkId link : uplinks_) {
      if (data_packets_from(t_, result, leaf_, link) == 0) continue;
      EXPECT_FALSE(taken) << "one packet on two uplinks";
      taken = link;
    }
    return taken;
  }

  Topology t_ = build_leaf_spine({.hosts = 16, .leaves = 2, .spines = 4});
  NodeId leaf_ = t_.host_count;
  std::vector<LinkId> uplinks_;
};

TEST_F(LeafSpineLinks, OnlyFlowsOfTheDeadMemberMoveAndTheyComeBack) {
  ASSERT_EQ(uplinks_.size(), 4U);
  const LinkId dead = uplinks_[1];
  const std::vector<LinkEvent> down{{.at = 1, .link = dead, .kind = LinkEvent::Kind::kDown}};
  std::vector<LinkEvent> down_and_up = down;
  down_and_up.push_back({.at = 40 * kMicrosecond, .link = dead, .kind = LinkEvent::Kind::kUp});
  unsigned moved = 0;
  std::map<LinkId, unsigned> refuge;
  for (HostId src = 0; src < 8; ++src) {
    for (HostId dst = 8; dst < 16; ++dst) {
      SCOPED_TRACE(testing::Message() << src << " to " << dst);
      const auto healthy = uplink_of(src, dst, 0, {});
      // The leaf alone knows at 10 µs; everyone knows at 31 µs; nobody yet that the link is back at 41 µs but the leaf.
      const auto local = uplink_of(src, dst, 10 * kMicrosecond, down);
      const auto converged = uplink_of(src, dst, 31 * kMicrosecond, down);
      const auto restored = uplink_of(src, dst, 71 * kMicrosecond, down_and_up);
      ASSERT_TRUE(healthy && local && converged && restored);
      EXPECT_EQ(*restored, *healthy);
      EXPECT_NE(*local, dead);
      EXPECT_NE(*converged, dead);
      if (*healthy != dead) {
        EXPECT_EQ(*local, *healthy) << "a flow moved that had no reason to";
      } else {
        ++moved;
        refuge[*local]++;
      }
    }
  }
  EXPECT_GE(moved, 5U) << "too few flows on the dead link to show anything";
  EXPECT_GE(refuge.size(), 2U) << "all flows of the dead member went to one other";
}

TEST_F(LeafSpineLinks, WhatIsQueuedOrOnTheWayIsLostWithTheLink) {
  // Four hosts into one: its link has a queue when it fails.
  std::vector<Flow> flows;
  for (HostId src = 0; src < 4; ++src) flows.push_back({.src = src, .dst = 7, .bytes = 80 * 4096});
  FabricSettings settings = exact_settings();
  settings.hosts.retransmit_timeout = 50 * kMicrosecond;
  const LinkId link = t_.ports[7][0];
  settings.events = {{.at = 20 * kMicrosecond, .link = link, .kind = LinkEvent::Kind::kDown},
                     {.at = 30 * kMicrosecond, .link = link, .kind = LinkEvent::Kind::kUp}};
  const RunResult result = run_fabric(t_, workload_of(16, flows), settings);
  EXPECT_TRUE(all_done(result));
  EXPECT_GT(drops_of(result, DropReason::kPortDown), 20U);
  const uint64_t on_the_way = drops_of(result, DropReason::kLinkDown);
  EXPECT_GE(on_the_way, 3U);       // 1 µs holds three packets, and the last one was being sent
  EXPECT_LE(on_the_way, 4U + 4U);  // ACKs on their way back
  EXPECT_GT(drops_of(result, DropReason::kNoLiveNextHop), 0U);
  support::expect_books_balance(result);
}

TEST_F(LeafSpineLinks, AFailureAfterTheEndTakesNothing) {
  const Workload workload = workload_of(16, {{.src = 0, .dst = 7, .bytes = 80 * 4096}});
  const LinkId link = t_.ports[7][0];
  FabricSettings settings = exact_settings();
  settings.run.until = 12 * kMicrosecond;
  settings.events = {{.at = settings.run.until, .link = link, .kind = LinkEvent::Kind::kDown}};
  const RunResult failing = run_fabric(t_, workload, settings);
  EXPECT_EQ(support::all_drops(failing), 0U);
  EXPECT_GT(failing.packets_in_flight, 3U) << "some were on the link";
  support::expect_books_balance(failing);
  settings.events.clear();
  support::expect_same(failing, run_fabric(t_, workload, settings));
}

// Hosts on all leaves send a packet each to another leaf every 3 µs.
Workload drizzle(uint32_t hosts, Time until) {
  Random random(11);
  std::vector<Flow> flows;
  for (Time at = 0; at < until; at += 3 * kMicrosecond) {
    for (HostId src = 0; src < hosts; ++src) {
      const HostId dst = (src + 4 + random.below(hosts - 8)) % hosts;
      flows.push_back({.src = src, .dst = dst, .bytes = 4096, .start = at + random.below(2000) * kNanosecond});
    }
  }
  return workload_of(hosts, flows);
}

TEST(FabricLinks, NothingIsLostOnceRoutingHasConverged) {
  const Topology t = build_leaf_spine({.hosts = 16, .leaves = 4, .spines = 4});
  const Workload workload = drizzle(16, 300 * kMicrosecond);
  for (const char* scheduler : {"ecmp", "rps", "round-robin"}) {
    SCOPED_TRACE(scheduler);
    FabricSettings settings = exact_settings();
    settings.switches.scheduler = *lb::scheduler_named(scheduler);
    settings.switches.convergence = 100 * kMicrosecond;
    settings.hosts.out_of_order = OutOfOrder::kAnyOrderPlacement;
    settings.hosts.retransmit_timeout = 400 * kMicrosecond;
    settings.events = {{.at = 40 * kMicrosecond, .link = static_cast<LinkId>(t.links.size() - 1)}};
    const RunResult whole = run_fabric(t, workload, settings);
    EXPECT_TRUE(all_done(whole));
    const auto lost = [](const RunResult& result) {
      return drops_of(result, DropReason::kLinkDown) + drops_of(result, DropReason::kNoLiveNextHop) +
             drops_of(result, DropReason::kPortDown);
    };
    const auto lost_until = [&](Time until) {
      settings.run.until = until;
      const RunResult part = run_fabric(t, workload, settings);
      EXPECT_EQ(part.end, RunResult::End::kTimeLimit);
      EXPECT_EQ(part.ended_at, until);
      support::expect_books_balance(part);
      return lost(part);
    };
    EXPECT_EQ(lost_until(38 * kMicrosecond), 0U);
    EXPECT_GT(lost_until(135 * kMicrosecond), lost_until(45 * kMicrosecond))
        << "others send into the failure until then";
    // 10 µs more for packets that were on their way to the spine.
    EXPECT_EQ(lost_until(150 * kMicrosecond), lost(whole));
    for (MessageId m = 0; m < workload.messages.size(); ++m) {
      if (workload.messages[m].start < 150 * kMicrosecond) continue;
      // Without a loss of its own; at most it waits for the repetition of an earlier one on its queue pair.
      EXPECT_LT(support::completion_of(whole.messages[m]), 450 * kMicrosecond);
    }
  }
}

struct RateRow {
  const char* description;
  HostId host;     // whose link changes
  bool from_host;  // which way
  bool both;
  bool slows;
};

TEST(FabricLinks, ARateChangesOnTheWayItIsSaidTo) {
  const Topology t = build_single_switch({.hosts = 2});
  constexpr uint64_t kPackets = 1000;
  const Workload workload = workload_of(2, {{.src = 0, .dst = 1, .bytes = kPackets * 4096}});
  FabricSettings settings = exact_settings();
  settings.hosts.ack_every = 16;
  const Duration alone = support::last_completion(run_fabric(t, workload, settings));
  const Time half = kPackets / 2 * kPacketTime;
  const Duration slow_packet = Rate::gbps(25).time_for(kDataWire);
  for (const RateRow& row : {RateRow{"the sender's link, its way", 0, true, false, true},
                             RateRow{"the sender's link, the other way", 0, false, false, false},
                             RateRow{"the receiver's link, towards it", 1, false, false, true},
                             RateRow{"the receiver's link, away from it", 1, true, false, false},
                             RateRow{"the sender's link, both ways", 0, true, true, true},
                             RateRow{"the receiver's link, both ways", 1, true, true, true}}) {
    SCOPED_TRACE(row.description);
    const LinkId link = t.ports[row.host][0];
    const bool a_to_b = (t.links[link].a == row.host) == row.from_host;
    const LinkDirection direction = row.both ? LinkDirection::kBoth
                                    : a_to_b ? LinkDirection::kAToB
                                             : LinkDirection::kBToA;
    settings.events = {
        {.at = half, .link = link, .kind = LinkEvent::Kind::kRate, .direction = direction, .rate = Rate::gbps(25)}};
    const RunResult result = run_fabric(t, workload, settings);
    EXPECT_TRUE(all_done(result));
    EXPECT_EQ(support::all_drops(result), 0U);
    const Duration extra = row.slows ? kPackets / 2 * (slow_packet - kPacketTime) : 0;
    EXPECT_NEAR(static_cast<double>(support::last_completion(result)), static_cast<double>(alone + extra),
                static_cast<double>(row.slows ? 5 * slow_packet : kPacketTime));
  }
}

TEST(FabricLinks, AFasterLinkDrainsItsQueueFaster) {
  const Topology t = build_single_switch({.hosts = 3});
  const Workload workload =
      workload_of(3, {{.src = 0, .dst = 2, .bytes = 500 * 4096}, {.src = 1, .dst = 2, .bytes = 500 * 4096}});
  FabricSettings settings = exact_settings();
  settings.events = {
      {.at = 500 * kPacketTime, .link = t.ports[2][0], .kind = LinkEvent::Kind::kRate, .rate = Rate::gbps(400)}};
  // By then the senders are done and half of it stands in the queue.
  const Duration expected = 500 * kPacketTime + 500 * Rate::gbps(400).time_for(kDataWire);
  const RunResult result = run_fabric(t, workload, settings);
  EXPECT_NEAR(static_cast<double>(support::last_completion(result)), static_cast<double>(expected),
              static_cast<double>(6 * kMicrosecond));
  EXPECT_GT(result.peak_queue_bytes, 490U * 4096);
}

TEST(FabricLinks, LossBeginsAndEndsWhenItIsSaidTo) {
  const Topology t = build_single_switch({.hosts = 2});
  std::vector<Flow> flows;
  for (unsigned i = 0; i < 3; ++i) {
    flows.push_back({.src = 0, .dst = 1, .bytes = 100 * 4096, .start = i * 200 * kMicrosecond});
  }
  FabricSettings settings = exact_settings();
  settings.hosts.out_of_order = OutOfOrder::kSelectiveRepeat;
  settings.hosts.retransmit_timeout = 20 * kMicrosecond;
  const LinkId link = t.ports[1][0];
  const bool to_host = t.links[link].b == 1;
  settings.events = {{.at = 200 * kMicrosecond,
                      .link = link,
                      .kind = LinkEvent::Kind::kLoss,
                      .direction = to_host ? LinkDirection::kAToB : LinkDirection::kBToA,
                      .loss = 0.25},
                     {.at = 380 * kMicrosecond, .link = link, .kind = LinkEvent::Kind::kLoss, .loss = 0}};
  const RunResult result = run_fabric(t, workload_of(2, flows), settings);
  EXPECT_TRUE(all_done(result));
  const Duration alone = support::completion_of(result.messages[0]);
  EXPECT_EQ(alone, AloneTimes(t, LinkStates(t), settings.hosts).completion({.src = 0, .dst = 1, .bytes = 100 * 4096}));
  EXPECT_GT(support::completion_of(result.messages[1]), alone);
  EXPECT_LT(support::completion_of(result.messages[1]), 180 * kMicrosecond);
  EXPECT_EQ(support::completion_of(result.messages[2]), alone);
  // 100 packets and their repetitions, a quarter lost each time: 33 ± 4 × 6.7.
  EXPECT_NEAR(static_cast<double>(drops_of(result, DropReason::kLinkLoss)), 33, 27);
  EXPECT_EQ(support::all_drops(result), drops_of(result, DropReason::kLinkLoss));
}

TEST(FabricLinks, AHostWhoseLinkIsBackSendsAgain) {
  const Topology t = build_single_switch({.hosts = 3});
  FabricSettings settings = exact_settings();
  settings.hosts.retransmit_timeout = 100 * kMicrosecond;
  settings.events = {{.at = 5 * kMicrosecond, .link = t.ports[0][0], .kind = LinkEvent::Kind::kDown},
                     {.at = 150 * kMicrosecond, .link = t.ports[0][0], .kind = LinkEvent::Kind::kUp}};
  const RunResult result = run_fabric(
      t, workload_of(3, {{.src = 0, .dst = 1, .bytes = 50 * 4096}, {.src = 2, .dst = 1, .bytes = 8192}}), settings);
  EXPECT_TRUE(all_done(result));
  EXPECT_GT(result.messages[0].sent, 200 * kMicrosecond);
  EXPECT_LT(result.messages[0].sent, 300 * kMicrosecond);
  EXPECT_LT(result.messages[1].sent, 20 * kMicrosecond) << "another host's message";
  EXPECT_GE(result.timeouts, 2U);
  EXPECT_GT(drops_of(result, DropReason::kLinkDown), 40U);
}

// What comes after a change of routes at the same time does not make it forgotten.
TEST(FabricLinks, NewRoutesComeWhateverElseHappensAtThatTime) {
  const Topology t = build_leaf_spine({.hosts = 16, .leaves = 4, .spines = 4});
  FabricSettings settings = support::exact_settings();
  settings.switches.convergence = 10 * kMicrosecond;
  settings.run.until = 500 * kMicrosecond;
  const auto last = static_cast<LinkId>(t.links.size() - 1);
  std::vector<Flow> flows;
  for (uint32_t host = 0; host < 12; ++host) {
    flows.push_back({.src = host, .dst = 12 + host % 4, .bytes = 4096, .start = 50 * kMicrosecond});
  }
  const LinkEvent down{.at = kMicrosecond, .link = last};
  const LinkEvent slower{.at = kMicrosecond, .link = 0, .kind = LinkEvent::Kind::kRate, .rate = Rate::gbps(50)};
  for (const auto& events : {std::vector<LinkEvent>{down}, {down, slower}, {slower, down}}) {
    settings.events = events;
    const RunResult result = run_fabric(t, support::workload_of(16, flows), settings);
    EXPECT_EQ(support::drops_of(result, DropReason::kNoLiveNextHop), 0U) << events.size() << " events";
  }
}

// Routing, by host or by LID, knows of it from the beginning, however long it takes to hear of later failures.
TEST(FabricLinks, NothingIsLostToALinkThatWasNeverThere) {
  const Topology t = build_leaf_spine({.hosts = 8, .leaves = 2, .spines = 2});
  const Workload workload = workload_of(8, {{.src = 4, .dst = 0, .bytes = 2'000'000}});
  FabricSettings settings = exact_settings();
  const LinkId dead = t.links_between(t.leaf_of(0), t.host_count + 2).front();
  settings.events = {{.at = 0, .link = dead, .kind = LinkEvent::Kind::kDown}};
  settings.switches.convergence = kSecond;
  settings.switches.scheduler = *lb::scheduler_named("rps");
  const RunResult ethernet = run_fabric(t, workload, settings);
  settings.hosts.link_layer = LinkLayer::kInfiniband;
  settings.switches.scheduler = *lb::scheduler_named("adaptive");
  const RunResult infiniband = run_fabric(t, workload, settings);
  for (const RunResult* result : {&ethernet, &infiniband}) {
    EXPECT_TRUE(all_done(*result));
    EXPECT_EQ(support::all_drops(*result), 0U);
    EXPECT_EQ(result->retransmitted, 0U);
    EXPECT_EQ(result->links[dead].a_to_b_packets + result->links[dead].b_to_a_packets, 0U);
  }
}

// A link that has another rate from the beginning is a link of that rate, whatever is worked out from rates.
TEST(FabricLinks, ARateAtTheStartIsTheLinksRate) {
  constexpr Rate kRate = Rate::gbps(25);
  const auto incast =
      workload_of(3, {{.src = 0, .dst = 2, .bytes = 8'000'000}, {.src = 1, .dst = 2, .bytes = 8'000'000}});
  const Topology fast = build_single_switch({.hosts = 3, .link = {.rate = Rate::gbps(400)}});
  const Topology slow = build_single_switch({.hosts = 3, .link = {.rate = kRate}});
  std::vector<LinkEvent> events;
  for (LinkId link = 0; link < 3; ++link) {
    events.push_back({.at = 0, .link = link, .kind = LinkEvent::Kind::kRate, .rate = kRate});
  }
  FabricSettings plain = exact_settings();
  plain.hosts.start_jitter = true;
  FabricSettings dcqcn = plain;
  dcqcn.hosts.dcqcn = flowctl::dcqcn_sets().front();
  dcqcn.switches.flow_control.ecn = {.min_bytes = 100'000, .max_bytes = 400'000, .max_probability = 0.2};
  FabricSettings pauses = plain;
  pauses.switches.flow_control.buffer = 1'000'000;
  pauses.switches.flow_control.lossless = 1U << 3U;
  const struct {
    const char* what;
    FabricSettings settings;
  } rows[] = {{"start jitter", plain}, {"DCQCN", dcqcn}, {"headroom", pauses}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    FabricSettings settings = row.settings;
    const RunResult built = run_fabric(slow, incast, settings);
    EXPECT_TRUE(all_done(built));
    settings.events = events;
    support::expect_same(built, run_fabric(fast, incast, settings));
  }
}

// A host that keeps to the rate of its path leaves nothing to queue before the slow link.
TEST(FabricLinks, AStaticRateIsThatOfThePathAtTheStart) {
  const Topology t = build_leaf_spine({.hosts = 8, .leaves = 2, .spines = 1});
  FabricSettings settings = exact_settings();
  settings.hosts.static_rate_of_path = true;
  const LinkId slow = t.links_between(t.leaf_of(0), t.host_count + 2).front();
  settings.events = {{.at = 0, .link = slow, .kind = LinkEvent::Kind::kRate, .rate = Rate::gbps(10)}};
  const RunResult result = run_fabric(t, workload_of(8, {{.src = 0, .dst = 4, .bytes = 2'000'000}}), settings);
  EXPECT_TRUE(all_done(result));
  EXPECT_LT(result.peak_queue_bytes, 3 * kDataWire);
}

}  // namespace
}  // namespace heddle::lab
