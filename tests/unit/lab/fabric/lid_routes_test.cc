// Adaptive routing: over other tables than shortest paths, and bounded.
#include "lab/fabric/lid_routes.h"

#include <gtest/gtest.h>

#include "net/error.h"
#include "net/infiniband.h"
#include "tests/support/fabric_runs.h"
#include "tests/unit/lab/subnet/subnet_fabrics.h"

namespace heddle::lab {
namespace {

FabricSettings adaptive() {
  FabricSettings settings = support::exact_settings();
  settings.hosts.link_layer = LinkLayer::kInfiniband;
  settings.hosts.out_of_order = OutOfOrder::kAnyOrderPlacement;
  settings.switches.scheduler = *lb::scheduler_named("adaptive");
  return settings;
}

Topology small_fat_tree() {
  FatTreeSettings of{.k = 4};
  of.host_link = of.aggregation_link = of.core_link = {.rate = Rate::gbps(100), .overhead = net::kInfinibandOverhead};
  return build_fat_tree(of);
}

TEST(AdaptiveRouting, OverUpDownTablesOfATreeIsThatOverShortestPaths) {
  const Topology t = small_fat_tree();
  const Workload workload = support::workload_of(16, Permutation{.bytes = 2'000'000, .seed = 3});
  FabricSettings settings = adaptive();
  const RunResult shortest = run_fabric(t, workload, settings);
  settings.switches.infiniband.routing = "up-down";
  const RunResult up_down = run_fabric(t, workload, settings);
  EXPECT_TRUE(support::all_done(up_down));
  EXPECT_GT(up_down.out_of_order_packets, 0U) << "packets took several ways";
  support::expect_same(up_down, shortest);
}

TEST(AdaptiveRouting, BoundedKeepsOrderAndLeavesForLessLoadedPorts) {
  const Topology t = small_fat_tree();
  const Workload workload = support::workload_of(16, Permutation{.bytes = 2'000'000, .seed = 3});
  FabricSettings settings = adaptive();
  const RunResult free = run_fabric(t, workload, settings);
  EXPECT_GT(free.out_of_order_packets, 0U);
  settings.switches.infiniband.adaptive.mode = AdaptiveMode::kBounded;
  apply_adaptive_mode(settings.switches);
  EXPECT_EQ(settings.switches.ars.idle_time, 30 * kMicrosecond);
  const RunResult bounded = run_fabric(t, workload, settings);
  EXPECT_TRUE(support::all_done(bounded));
  EXPECT_EQ(bounded.out_of_order_packets, 0U);
  EXPECT_GE(bounded.flowlets, 32U) << "every flow chose, at its edge and above";
}

TEST(AdaptiveRouting, BoundedIsAModeOfAdaptive) {
  SwitchSettings switches;
  switches.infiniband.adaptive.mode = AdaptiveMode::kBounded;
  try {
    apply_adaptive_mode(switches);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "fabric.adaptive_routing.mode: found bounded with scheduler ecmp; accepted: free, or scheduler: "
                 "adaptive");
  }
}

// --- what could close a loop of credits: alternatives_test.cc's ring of four

struct LoopRing {
  Topology topology = ring(4, 1);
  SubnetTables tables = shortest_path_tables(topology, all_up(topology));

  LoopRing() {
    tables.engine = "by hand";
    send(0, 2, 1);
    send(2, 0, 1);
    send(1, 3, 0);
    send(3, 1, 0);
  }
  void send(uint32_t from, HostId to, uint32_t by) {
    for (PortIndex port = 0; port < topology.ports[4 + from].size(); ++port) {
      if (topology.neighbor(4 + from, port) != 4 + by) continue;
      tables.switches[from].lft[tables.host_lids[to]] = static_cast<uint8_t>(port + 1);
    }
  }
};

TEST(LidRoutes, AdaptiveRoutingThatCouldCloseALoopIsRefused) {
  const LoopRing at;
  FabricSettings settings = adaptive();
  settings.switches.infiniband.routing = "minhop";  // whose tables these could be
  std::string note;
  try {
    routes_by_lid(at.topology, at.tables, settings, all_up(at.topology), note);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    const std::string text = error.what();
    EXPECT_EQ(text.find("fabric.scheduler: adaptive routing over the tables of by hand could close a loop of credits "
                        "that they do not close: sw0:1-sw1:1 VL 0"),
              0U)
        << text;
    EXPECT_NE(text.find("; accepted: ecmp, or fabric.routing: shortest-path"), std::string::npos) << text;
  }
  // On service levels that nobody uses it does no harm.
  settings.switches.infiniband.adaptive.levels = 0xfffe;
  EXPECT_NO_THROW(routes_by_lid(at.topology, at.tables, settings, all_up(at.topology), note));
}

TEST(LidRoutes, FailingOverThatCouldCloseALoopIsNotDone) {
  const LoopRing at;
  FabricSettings settings = adaptive();
  settings.switches.scheduler = {};
  settings.switches.infiniband.routing = "minhop";
  settings.events = {{.at = kMicrosecond, .link = 4, .kind = LinkEvent::Kind::kDown}};
  std::string note;
  const std::vector<SwitchRoutes> routes = routes_by_lid(at.topology, at.tables, settings, all_up(at.topology), note);
  for (const SwitchRoutes& of : routes) {
    for (const std::vector<PortIndex>& group : of.groups) EXPECT_EQ(group.size(), 1U);
  }
  EXPECT_EQ(note.find("self_healing: no other ports are taken for dead ones: with the tables of by hand they could"),
            0U)
      << note;
}

TEST(LidRoutes, WithoutFailuresTablesHaveOnePortForEachLid) {
  const Topology t = small_fat_tree();
  const SubnetTables tables = shortest_path_tables(t, all_up(t));
  FabricSettings settings = adaptive();
  settings.switches.scheduler = {};
  std::string note;
  const auto widest = [&] {
    size_t most = 0;
    for (const SwitchRoutes& of : routes_by_lid(t, tables, settings, all_up(t), note)) {
      for (const std::vector<PortIndex>& group : of.groups) most = std::max(most, group.size());
    }
    return most;
  };
  EXPECT_EQ(widest(), 1U);
  settings.events = {{.at = kMicrosecond, .link = 20, .kind = LinkEvent::Kind::kDown}};
  EXPECT_EQ(widest(), 2U);
  settings.switches.infiniband.self_healing = SelfHealing::kNone;
  EXPECT_EQ(widest(), 1U);
}

}  // namespace
}  // namespace heddle::lab
