// InfiniBand fabrics that lose a link and have no new tables for a long time.
#include <algorithm>

#include <gtest/gtest.h>

#include "lab/host/roce.h"
#include "lab/topology/builders.h"
#include "net/infiniband.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

using support::drops_of;

constexpr LinkSettings kLink{.rate = Rate::gbps(100), .delay = kMicrosecond, .overhead = net::kInfinibandOverhead};

FabricSettings settings_of(SelfHealing healing, const char* scheduler = "ecmp") {
  FabricSettings settings = support::exact_settings();
  settings.hosts.link_layer = LinkLayer::kInfiniband;
  settings.hosts.out_of_order = OutOfOrder::kAnyOrderPlacement;
  settings.hosts.retransmit_timeout = 200 * kMicrosecond;
  settings.switches.scheduler = *lb::scheduler_named(scheduler);
  settings.switches.infiniband.self_healing = healing;
  settings.switches.infiniband.notice_repeats = 0;
  settings.switches.convergence = kSecond;
  settings.run.until = 20 * kMillisecond;
  return settings;
}

// Packets that found no way, here or on a dead link.
uint64_t astray(const RunResult& result) {
  return drops_of(result, DropReason::kNoLiveNextHop) + drops_of(result, DropReason::kNoRoute);
}

// New tables are due long after the end.
bool all_received(const RunResult& result) {
  return std::all_of(result.messages.begin(), result.messages.end(),
                     [](const MessageTimes& times) { return times.sent != kNever; });
}

struct Broken {
  Topology topology;
  Workload workload;
  LinkId link = 0;
  RunResult run(FabricSettings settings) const {
    settings.events = {{.at = 100 * kMicrosecond, .link = link, .kind = LinkEvent::Kind::kDown}};
    return run_fabric(topology, workload, settings);
  }
};

// Every host sends to the leaf after the next or the one behind that; the first leaf loses a spine.
Broken two_tiers() {
  LeafSpineSettings of{.hosts = 16, .leaves = 4, .spines = 4};
  of.host_link = of.uplink = kLink;
  Broken broken{build_leaf_spine(of), {}, 0};
  broken.workload = support::workload_of(16, Shift{.bytes = 2'000'000, .distance = 5});
  const NodeId leaf = broken.topology.leaf_of(0);
  broken.link = broken.topology.ports[leaf][broken.topology.uplinks(leaf)[0]];
  return broken;
}

// A pod switch loses an edge: only the edges of other pods, three switches away, have another way.
Broken three_tiers() {
  FatTreeSettings of{.k = 4};
  of.host_link = of.aggregation_link = of.core_link = kLink;
  Broken broken{build_fat_tree(of), {}, 0};
  broken.workload = support::workload_of(16, Shift{.bytes = 4'000'000, .distance = 4});
  const NodeId edge = broken.topology.leaf_of(0);
  broken.link = broken.topology.ports[edge][broken.topology.uplinks(edge)[0]];
  return broken;
}

TEST(SelfHealing, EachStepLosesLess) {
  for (const Broken& broken : {two_tiers(), three_tiers()}) {
    SCOPED_TRACE(broken.topology.kind);
    const RunResult none = broken.run(settings_of(SelfHealing::kNone));
    const RunResult failover = broken.run(settings_of(SelfHealing::kFailover));
    const RunResult notify = broken.run(settings_of(SelfHealing::kNotify));
    EXPECT_FALSE(all_received(none)) << "no new tables";
    EXPECT_EQ(none.healing.failovers, 0U);
    EXPECT_GT(astray(none), astray(failover)) << "the edge sends by other ports";
    EXPECT_GT(failover.healing.failovers, 0U);
    EXPECT_EQ(failover.healing.notices_sent, 0U);
    EXPECT_FALSE(all_received(failover)) << "who is above it cannot";
    EXPECT_GT(astray(failover), 10 * astray(notify));
    EXPECT_TRUE(all_received(notify));
    EXPECT_GT(notify.healing.notices_sent, 0U);
    EXPECT_EQ(notify.healing.notices_sent, notify.healing.notices_received);
  }
}

// A spine tells three leaves, a round trip's worth of packets is lost; nobody has anything to pass on.
TEST(SelfHealing, InTwoTiersOneNoticeToEachLeafIsAll) {
  const RunResult result = two_tiers().run(settings_of(SelfHealing::kNotify));
  EXPECT_EQ(result.healing.notices_sent, 3U);
  // At most two leaves send at the link's rate to that spine until they hear, a link's delay after it went down; then
  // there is what is on its way and what waited at their ports.
  constexpr uint64_t kMost = 2 * (2 * kMicrosecond / Rate::gbps(100).time_for(4124) + 8);
  EXPECT_LE(astray(result), kMost);
}

TEST(SelfHealing, AdaptiveRoutingHearsNoticesToo) {
  for (const Broken& broken : {two_tiers(), three_tiers()}) {
    SCOPED_TRACE(broken.topology.kind);
    const RunResult deaf = broken.run(settings_of(SelfHealing::kNone, "adaptive"));
    const RunResult notify = broken.run(settings_of(SelfHealing::kNotify, "adaptive"));
    EXPECT_GT(astray(deaf), 10 * astray(notify));
    EXPECT_TRUE(all_received(notify));
    EXPECT_EQ(notify.healing.failovers, 0U) << "every packet chooses anyway";
  }
}

// The link comes back, and another fails that only the first one's return makes bearable.
TEST(SelfHealing, HearsOfLinksThatComeBack) {
  Broken broken = two_tiers();
  FabricSettings settings = settings_of(SelfHealing::kNotify);
  const NodeId leaf = broken.topology.leaf_of(0);
  std::vector<LinkId> uplinks;
  for (const PortIndex port : broken.topology.uplinks(leaf)) uplinks.push_back(broken.topology.ports[leaf][port]);
  settings.events = {{.at = 50 * kMicrosecond, .link = uplinks[0], .kind = LinkEvent::Kind::kDown},
                     {.at = 100 * kMicrosecond, .link = uplinks[0], .kind = LinkEvent::Kind::kUp}};
  for (size_t i = 1; i < 4; ++i) {
    settings.events.push_back({.at = 150 * kMicrosecond, .link = uplinks[i], .kind = LinkEvent::Kind::kDown});
  }
  const RunResult result = run_fabric(broken.topology, broken.workload, settings);
  EXPECT_TRUE(all_received(result)) << "all by the first spine";
  // The spine to three leaves; when it is back, to all four, and first to the one that was away what it could not know;
  // then three more spines.
  EXPECT_EQ(result.healing.notices_sent, 3U + 1U + 4U + 3U * 3U);
}

// New tables, and with them everything that was told, take over in the middle of the traffic; and again.
TEST(SelfHealing, EndsWithTheNextSweep) {
  Broken broken = three_tiers();
  FabricSettings settings = settings_of(SelfHealing::kNotify);
  settings.switches.convergence = 20 * kMicrosecond;
  const RunResult result = broken.run(settings);
  EXPECT_TRUE(all_received(result));
  FabricSettings later = settings;
  later.switches.convergence = 50 * kMicrosecond;
  const NodeId other = broken.topology.leaf_of(8);
  later.events = {{.at = 100 * kMicrosecond, .link = broken.link, .kind = LinkEvent::Kind::kDown},
                  {.at = 140 * kMicrosecond,
                   .link = broken.topology.ports[other][broken.topology.uplinks(other)[0]],
                   .kind = LinkEvent::Kind::kDown}};
  const RunResult both = run_fabric(broken.topology, broken.workload, later);
  EXPECT_TRUE(all_received(both));
  EXPECT_LT(astray(both), 5 * astray(result)) << "the second failure is told again under the first one's tables";
}

TEST(SelfHealing, DependsOnNoThreads) {
  for (const char* scheduler : {"ecmp", "adaptive"}) {
    FabricSettings settings = settings_of(SelfHealing::kNotify, scheduler);
    settings.switches.infiniband.notice_repeats = 3;
    const RunResult one = three_tiers().run(settings);
    settings.run.threads = 3;
    const RunResult three = three_tiers().run(settings);
    support::expect_same(one, three);
    EXPECT_EQ(one.healing.notices_sent, three.healing.notices_sent);
    EXPECT_EQ(one.healing.failovers, three.healing.failovers);
  }
}

// As often as asked for, in steps that are kept; on links that lose nothing it changes nobody's way.
TEST(SelfHealing, NoticesAreRepeated) {
  const RunResult once = two_tiers().run(settings_of(SelfHealing::kNotify));
  for (const unsigned repeats : {1U, 3U}) {
    FabricSettings settings = settings_of(SelfHealing::kNotify);
    settings.switches.infiniband.notice_repeats = static_cast<uint8_t>(repeats);
    const RunResult result = two_tiers().run(settings);
    EXPECT_EQ(result.healing.notices_sent, 3U * (1 + repeats));
    EXPECT_EQ(result.healing.notices_received, result.healing.notices_sent);
    EXPECT_EQ(astray(result), astray(once));
    EXPECT_TRUE(all_received(result));
  }
  FabricSettings settings = settings_of(SelfHealing::kNotify);
  settings.switches.infiniband.notice_repeats = 3;
  settings.switches.infiniband.notice_interval = kMillisecond;
  settings.run.until = 100 * kMicrosecond + 2 * kMillisecond + 500 * kMicrosecond;
  EXPECT_EQ(two_tiers().run(settings).healing.notices_sent, 3U * 3) << "after 1 and 2 ms, not yet after 3";
}

// The link by which a leaf would hear is bad: one notice gets there now and then, one of several does.
TEST(SelfHealing, ARepeatedNoticeGetsThroughALossyLink) {
  uint64_t once = 0;
  uint64_t repeated = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Broken broken = two_tiers();
    const Topology& topology = broken.topology;
    const NodeId spine = topology.neighbor(topology.leaf_of(0), topology.uplinks(topology.leaf_of(0))[0]);
    for (const LinkId link : topology.ports[spine]) broken.topology.links[link].loss = 0.3;
    FabricSettings settings = settings_of(SelfHealing::kNotify);
    settings.run.seed = seed;
    settings.run.until = 3 * kMillisecond;
    once += astray(broken.run(settings));
    settings.switches.infiniband.notice_repeats = 8;
    repeated += astray(broken.run(settings));
  }
  EXPECT_GT(once, 2 * repeated);
}

// Lossy links lose notices: what is not heard costs packets until the tables are new, and the books balance.
TEST(SelfHealing, NoticesMayBeLost) {
  Broken broken = two_tiers();
  FabricSettings settings = settings_of(SelfHealing::kNotify);
  settings.run.until = 2 * kMillisecond;
  for (Link& link : broken.topology.links) link.loss = 0.5;
  const RunResult result = broken.run(settings);
  EXPECT_LT(result.healing.notices_received, result.healing.notices_sent);
}

}  // namespace
}  // namespace heddle::lab
