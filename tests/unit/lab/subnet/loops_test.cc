#include "lab/subnet/loops.h"

#include <gtest/gtest.h>

#include "lab/subnet/check.h"
#include "lab/subnet/tables.h"
#include "lab/topology/builders.h"
#include "tests/unit/lab/subnet/subnet_fabrics.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

TEST(SubnetLoops, ShortestPathOnARingClosesALoopAndUpDownNone) {
  for (const uint32_t switches : {5U, 6U, 9U}) {
    SCOPED_TRACE(switches);
    const Topology t = ring(switches, 4);
    const CreditLoops loops = find_credit_loops(t, shortest_path_tables(t, all_up(t)));
    // Every link in both directions, each direction a cycle by itself.
    EXPECT_EQ(loops.channels, 2 * switches);
    EXPECT_EQ(loops.in_loops, 2 * switches);
    EXPECT_EQ(loops.shortest.size(), switches);
    const CreditLoops none = find_credit_loops(t, up_down_tables(t, all_up(t)));
    EXPECT_EQ(none.in_loops, 0U);
    EXPECT_TRUE(none.shortest.empty());
  }
}

// With three switches every pair is one hop apart: nobody waits for a second link.
TEST(SubnetLoops, ARingOfThreeHasNoDependencies) {
  const Topology t = ring(3, 4);
  const CreditLoops loops = find_credit_loops(t, shortest_path_tables(t, all_up(t)));
  EXPECT_EQ(loops.channels, 6U);
  EXPECT_EQ(loops.dependencies, 0U);
  EXPECT_EQ(loops.in_loops, 0U);
}

TEST(SubnetLoops, TheLoopIsNamedByItsLinksAndLanes) {
  const Topology t = ring(5, 1);
  const CreditLoops loops = find_credit_loops(t, shortest_path_tables(t, all_up(t)));
  ASSERT_EQ(loops.shortest.size(), 5U);
  EXPECT_EQ(describe_loop(t, loops.shortest),
            "sw0:1-sw1:1 VL 0 → sw1:2-sw2:1 VL 0 → sw2:2-sw3:1 VL 0 → sw3:2-sw4:1 VL 0 → sw4:2-sw0:2 VL 0 → "
            "sw0:1-sw1:1 VL 0");
  EXPECT_EQ(describe_loop(t, {}), "");
}

TEST(SubnetLoops, FatTreesHaveNone) {
  for (const Topology& t :
       {build_fat_tree(FatTreeSettings{.k = 8}), build_leaf_spine({.hosts = 64, .leaves = 8, .spines = 4})}) {
    std::vector<bool> up = all_up(t);
    for (int round = 0; round < 2; ++round) {
      for (const SubnetTables& tables : {shortest_path_tables(t, up, 1), up_down_tables(t, up, 1)}) {
        const CreditLoops loops = find_credit_loops(t, tables);
        EXPECT_EQ(loops.in_loops, 0U) << t.kind << ", " << tables.engine << ": " << describe_loop(t, loops.shortest);
        EXPECT_GT(loops.dependencies, 0U);
      }
      up[t.links_between(t.host_count, t.neighbor(t.host_count, t.uplinks(t.host_count)[0]))[0]] = false;
    }
  }
}

// examples/lab/pfc-deadlock.yaml's: leaf0 and leaf2 have no spine in common, and what they send each other turns up
// again at another leaf.
TEST(SubnetLoops, UpDownGetsByWithoutACommonRoot) {
  const Topology t = build_leaf_spine({.hosts = 16, .leaves = 4, .spines = 2});
  std::vector<bool> up = all_up(t);
  up[t.links_between(node(t, "leaf0"), node(t, "spine1"))[0]] = false;
  up[t.links_between(node(t, "leaf2"), node(t, "spine0"))[0]] = false;
  EXPECT_EQ(find_credit_loops(t, shortest_path_tables(t, up)).shortest.size(), 4U);
  const SubnetTables tables = up_down_tables(t, up);
  const SubnetCheck check = check_subnet(t, up, tables);
  EXPECT_TRUE(check.all_reachable()) << check.first;
  EXPECT_EQ(find_credit_loops(t, tables).in_loops, 0U);
}

TEST(SubnetLoops, UpDownHasNoneOnRandomGraphs) {
  uint32_t shortest_had = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Topology t = random_graph(seed, 20, 15);
    shortest_had += find_credit_loops(t, shortest_path_tables(t, all_up(t))).in_loops > 0 ? 1 : 0;
    const CreditLoops loops = find_credit_loops(t, up_down_tables(t, all_up(t)));
    EXPECT_EQ(loops.in_loops, 0U) << "seed " << seed << ": " << describe_loop(t, loops.shortest);
  }
  EXPECT_GT(shortest_had, 20U) << "otherwise the graphs show nothing";
}

// A dateline: paths that cross the link between the last switch and the first go on on lane 1, as lane-based engines do
// it. The same tables without lanes have loops.
TEST(SubnetLoops, LanesBreakALoop) {
  const uint32_t n = 5;
  const Topology t = ring(n, 2);
  SubnetTables tables = shortest_path_tables(t, all_up(t));
  ASSERT_GT(find_credit_loops(t, tables).in_loops, 0U);
  // Service level 1 for pairs whose way crosses the dateline, on lane 1 all the way: lane 0 then lacks that link, and
  // lane 1 is only used by paths through it, which are too short to close the circle.
  tables.path_sl.assign(size_t{t.host_count} * t.host_count, 0);
  for (HostId from = 0; from < t.host_count; ++from) {
    for (HostId to = 0; to < t.host_count; ++to) {
      NodeId at = t.leaf_of(from);
      while (from != to && !t.is_host(at)) {
        const auto port = static_cast<PortIndex>(tables.port(at - t.host_count, tables.host_lids[to]) - 1);
        const NodeId next = t.neighbor(at, port);
        const bool crosses = !t.is_host(next) && (at + 1 - t.host_count) / n != (next + 1 - t.host_count) / n &&
                             (at == t.host_count || next == t.host_count);
        if (crosses && (at - t.host_count == n - 1 || next - t.host_count == n - 1)) {
          tables.path_sl[size_t{from} * t.host_count + to] = 1;
        }
        at = next;
      }
    }
  }
  for (SwitchTables& at : tables.switches) {
    at.sl_to_vl.resize((at.ports + 1) * (at.ports + 1));
    for (SlToVl& map : at.sl_to_vl) map = {0, 1};
  }
  const CreditLoops loops = find_credit_loops(t, tables);
  EXPECT_EQ(loops.in_loops, 0U) << describe_loop(t, loops.shortest);
  EXPECT_GT(loops.channels, 2 * n) << "lane 1 is used as well";
  // All on one lane again, by the maps alone.
  for (SwitchTables& at : tables.switches) {
    for (SlToVl& map : at.sl_to_vl) map = {1, 1};
  }
  EXPECT_EQ(find_credit_loops(t, tables).shortest.at(0).vl, 1);
}

}  // namespace
}  // namespace heddle::lab
