#include "lab/subnet/tables.h"

#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "lab/subnet/check.h"
#include "lab/topology/builders.h"
#include "tests/unit/lab/subnet/subnet_fabrics.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

struct Fabric {
  const char* description;
  Topology topology;
  uint32_t most_hops;  // of a shortest path: links
};

std::vector<Fabric> fabrics() {
  return {
      {"one switch", build_single_switch({.hosts = 9, .link = {}}), 2},
      {"leaf-spine with two links per pair",
       build_leaf_spine({.hosts = 32, .leaves = 4, .spines = 4, .links_per_pair = 2}), 4},
      {"fat-tree of three tiers", build_fat_tree(FatTreeSettings{.k = 8}), 6},
      {"oversubscribed fat-tree", build_fat_tree(FatTreeSettings{.radix = 12, .pods = 6, .oversubscription = 2}), 6},
      {"ring of five", ring(5, 4), 4},
      {"random graph", random_graph(7, 24, 20), 0},
  };
}

TEST(SubnetTables, BuiltInRoutingReachesEveryPair) {
  for (const Fabric& fabric : fabrics()) {
    for (const uint8_t lmc : {0, 2}) {
      SCOPED_TRACE(fmt::format("{}, LMC {}", fabric.description, lmc));
      const Topology& t = fabric.topology;
      const SubnetCheck shortest = check_subnet(t, all_up(t), shortest_path_tables(t, all_up(t), lmc));
      EXPECT_TRUE(shortest.all_reachable()) << shortest.first;
      EXPECT_EQ(shortest.pairs, (uint64_t{1} << lmc) * t.host_count * (t.host_count - 1));
      if (fabric.most_hops != 0) {
        EXPECT_EQ(shortest.most_hops, fabric.most_hops);
      }
      const SubnetCheck up_down = check_subnet(t, all_up(t), up_down_tables(t, all_up(t), lmc));
      EXPECT_TRUE(up_down.all_reachable()) << up_down.first;
      EXPECT_GE(up_down.all_hops, shortest.all_hops);
    }
  }
}

// The rule itself, on random graphs: after a step down no step up, where "up" is nearer to a root, and between equals
// to the switch that comes first.
TEST(SubnetTables, UpDownNeverTurnsUpAgain) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Topology t = random_graph(seed, 16, 14);
    const SubnetTables tables = up_down_tables(t, all_up(t));
    const std::vector<uint16_t> ranks = up_down_ranks(t, all_up(t));
    for (HostId to = 0; to < t.host_count; ++to) {
      for (uint32_t first = 0; first < t.switch_count(); ++first) {
        bool down = false;
        uint32_t s = first;
        for (uint32_t hops = 0; hops < t.switch_count(); ++hops) {
          const uint8_t port = tables.port(s, tables.host_lids[to]);
          ASSERT_NE(port, kLftUnreachable);
          const NodeId next = t.neighbor(t.host_count + s, static_cast<PortIndex>(port - 1));
          if (t.is_host(next)) break;
          const uint32_t n = next - t.host_count;
          const bool goes_up = ranks[n] != ranks[s] ? ranks[n] < ranks[s] : n < s;
          ASSERT_FALSE(down && goes_up) << "seed " << seed << ", from sw" << first << " to host " << to;
          down = !goes_up;
          s = n;
        }
      }
    }
  }
}

// All to all over a full fat-tree: with every pair's destination chosen by modulo, links of a tier carry the same
// number of pairs upwards (counted from all hosts), which no tier reusing the digits of another could reach.
TEST(SubnetTables, DestinationModuloSpreadsEveryTier) {
  const Topology t = build_fat_tree(FatTreeSettings{.k = 8});
  const SubnetTables tables = shortest_path_tables(t, all_up(t));
  std::map<std::pair<NodeId, PortIndex>, uint32_t> destinations;  // by switch and upward port
  for (NodeId n = t.host_count; n < t.nodes.size(); ++n) {
    for (const PortIndex up : t.uplinks(n)) destinations[{n, up}] = 0;
  }
  for (HostId from = 0; from < t.host_count; from += 4) {  // one host of each edge switch
    for (HostId to = 0; to < t.host_count; ++to) {
      NodeId n = t.leaf_of(from);
      while (!t.is_host(n)) {
        const auto port = static_cast<PortIndex>(tables.port(n - t.host_count, tables.host_lids[to]) - 1);
        const auto counted = destinations.find({n, port});
        if (counted != destinations.end()) ++counted->second;
        n = t.neighbor(n, port);
      }
    }
  }
  for (const auto& [port, count] : destinations) {
    // 124 hosts beyond an edge switch over 4 uplinks; 4 edge switches × 112 hosts beyond the pod over 16 core links.
    const uint32_t expected = t.nodes[port.first].tier == 1 ? 31 : 28;
    EXPECT_EQ(count, expected) << t.nodes[port.first].name << ":" << port.second;
  }
}

TEST(SubnetTables, WithLmcPathsOfOneHostTakeDifferentUplinks) {
  const Topology t = build_leaf_spine({.hosts = 32, .leaves = 4, .spines = 8});
  const SubnetTables tables = shortest_path_tables(t, all_up(t), 3);
  for (HostId to = 8; to < t.host_count; ++to) {
    std::set<uint8_t> ports;
    for (uint32_t path = 0; path < 8; ++path) {
      EXPECT_EQ(tables.host_lids[to] % 8, 0);
      ports.insert(tables.port(0, static_cast<Lid>(tables.host_lids[to] + path)));
    }
    EXPECT_EQ(ports.size(), 8U);
  }
}

TEST(SubnetTables, LinksThatAreDownAreAvoidedOrReported) {
  const Topology t = build_leaf_spine({.hosts = 16, .leaves = 4, .spines = 2});
  std::vector<bool> up = all_up(t);
  up[t.links_between(node(t, "leaf0"), node(t, "spine0"))[0]] = false;
  EXPECT_TRUE(check_subnet(t, up, shortest_path_tables(t, up)).all_reachable());
  EXPECT_TRUE(check_subnet(t, up, up_down_tables(t, up)).all_reachable());
  const SubnetCheck stale = check_subnet(t, up, shortest_path_tables(t, all_up(t)));
  EXPECT_GT(stale.dropped, 0U);
  EXPECT_EQ(stale.reachable + stale.dropped, stale.pairs);
  EXPECT_NE(stale.first.find("whose link to"), std::string::npos) << stale.first;
  // A host without its link is lost for everybody, and everybody for it.
  up[t.ports[3][0]] = false;
  const SubnetCheck alone = check_subnet(t, up, shortest_path_tables(t, up));
  EXPECT_EQ(alone.dropped, 30U);
}

TEST(SubnetTables, CheckTellsLoopsAndWrongHostsFromDrops) {
  const Topology t = ring(3, 2);
  const SubnetTables good = shortest_path_tables(t, all_up(t));
  const auto to_next = [&](uint32_t s, uint32_t next) {  // the port of switch s to switch `next`
    const NodeId n = t.host_count + s;
    const LinkId link = t.links_between(n, t.host_count + next).at(0);
    return static_cast<uint8_t>((t.links[link].a == n ? t.links[link].a_port : t.links[link].b_port) + 1);
  };
  SubnetTables looping = good;
  looping.switches[0].lft[good.host_lids[5]] = to_next(0, 1);
  looping.switches[1].lft[good.host_lids[5]] = to_next(1, 0);
  const SubnetCheck loop = check_subnet(t, all_up(t), looping);
  EXPECT_EQ(loop.looping, 4U);
  EXPECT_EQ(loop.reachable, loop.pairs - 4);
  EXPECT_NE(loop.first.find("where it has been"), std::string::npos) << loop.first;
  SubnetTables wrong = good;
  std::swap(wrong.switches[2].lft[good.host_lids[4]], wrong.switches[2].lft[good.host_lids[5]]);
  EXPECT_EQ(check_subnet(t, all_up(t), wrong).misled, 10U);
  expect_bad_input([&] { require_reachable(t, all_up(t), wrong); }, "10 of 30 paths do not arrive");
}

TEST(SubnetTables, WhatDoesNotFitASubnetIsRefused) {
  const Topology t = ring(3, 2);
  const SubnetTables good = shortest_path_tables(t, all_up(t));
  struct Row {
    const char* description;
    std::function<void(SubnetTables&)> spoil;
    const char* error;
  };
  const Row rows[] = {
      {"a host too few", [](SubnetTables& x) { x.host_lids.pop_back(); }, "tables for 5 hosts"},
      {"a LID twice", [](SubnetTables& x) { x.host_lids[1] = x.host_lids[0]; }, "host1 has LID 1, which another"},
      {"a multicast LID", [](SubnetTables& x) { x.host_lids[1] = 0xC000; }, "which is none of a node"},
      {"ports", [](SubnetTables& x) { x.switches[1].ports = 3; }, "tables for 3 ports of sw1, which has 4"},
      {"SL to VL", [](SubnetTables& x) { x.switches[1].sl_to_vl.resize(7); }, "7 SL to VL tables at sw1"},
      {"arbitration", [](SubnetTables& x) { x.switches[1].vl_arbitration.resize(4); }, "4 VL arbitration tables"},
      {"service levels", [](SubnetTables& x) { x.path_sl.resize(6); }, "do not fit 6 hosts"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.description);
    SubnetTables spoilt = good;
    row.spoil(spoilt);
    expect_bad_input([&] { check_subnet(t, all_up(t), spoilt); }, row.error);
  }
  expect_bad_input([] { number_subnet(build_single_switch({.hosts = 255, .link = {}}), 0); },
                   "switch0 has 255 ports; accepted: up to 254");
  expect_bad_input([&] { number_subnet(t, 8); }, "LMC is 8; accepted: 0 to 7");
  expect_bad_input([] { number_subnet(build_fat_tree(FatTreeSettings{.k = 16}), 6); }, "accepted: up to 49151");
}

TEST(SubnetTables, LanesAreThoseThatServiceLevelsInUseReach) {
  const Topology t = ring(3, 1);
  SubnetTables tables = shortest_path_tables(t, all_up(t));
  EXPECT_EQ(tables.lanes(), 1U);
  for (SwitchTables& at : tables.switches) {
    at.sl_to_vl.resize((at.ports + 1) * (at.ports + 1));
    for (SlToVl& map : at.sl_to_vl) map = {0, 1, 2, 3};
  }
  EXPECT_EQ(tables.lanes(), 1U) << "no path is on another SL than 0";
  tables.path_sl.assign(9, 0);
  tables.path_sl[1] = 2;
  EXPECT_EQ(tables.lanes(), 3U);
  EXPECT_EQ(tables.sl(0, 1), 2);
  EXPECT_EQ(tables.vl(0, 1, 2, 3), 3);
}

}  // namespace
}  // namespace heddle::lab
