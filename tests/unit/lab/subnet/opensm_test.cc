// The real OpenSM over ibsim; skipped, and said so, where they are not installed.
#include "lab/subnet/opensm.h"

#include <gtest/gtest.h>

#include "lab/subnet/check.h"
#include "lab/subnet/load.h"
#include "lab/subnet/loops.h"
#include "lab/subnet/manager.h"
#include "lab/topology/builders.h"
#include "net/error.h"
#include "tests/unit/lab/subnet/subnet_fabrics.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

#define SKIP_WITHOUT_OPENSM()                                                           \
  if (!opensm_installed()) {                                                            \
    GTEST_SKIP() << "OpenSM and ibsim are not installed (Debian: opensm, ibsim-utils)"; \
  }

OpensmRun route(const Topology& t, const std::string& engine, const std::vector<bool>& up) {
  OpensmSettings settings;
  settings.engine = engine;
  return run_opensm(t, up, settings);
}

// Larger fabrics, with every engine, are tests/e2e/test_subnet.py's.
TEST(Opensm, FtreeIsFreeOfContentionForShiftsInItsOrder) {
  SKIP_WITHOUT_OPENSM();
  for (const Topology& t :
       {build_leaf_spine({.hosts = 64, .leaves = 8, .spines = 8}), build_fat_tree(FatTreeSettings{.k = 6})}) {
    SCOPED_TRACE(t.kind);
    const OpensmRun run = route(t, "ftree", all_up(t));
    EXPECT_EQ(run.tables.engine, "ftree");
    EXPECT_NE(run.version.find("OpenSM"), std::string::npos);
    const SubnetCheck check = check_subnet(t, all_up(t), run.tables);
    EXPECT_TRUE(check.all_reachable()) << check.first;
    ASSERT_EQ(run.host_order.size(), t.host_count);
    const ShiftContention shifts = shift_contention(t, run.tables, run.host_order);
    EXPECT_EQ(shifts.shifts, t.host_count - 1);
    EXPECT_EQ(shifts.free, shifts.shifts) << "most flows on a link: " << shifts.most;
  }
}

TEST(Opensm, MinhopClosesALoopOnARingAndUpdnNone) {
  SKIP_WITHOUT_OPENSM();
  const Topology t = ring(5, 4);
  const OpensmRun minhop = route(t, "minhop", all_up(t));
  EXPECT_TRUE(check_subnet(t, all_up(t), minhop.tables).all_reachable());
  EXPECT_EQ(find_credit_loops(t, minhop.tables).shortest.size(), 5U);
  const OpensmRun updn = route(t, "updn", all_up(t));
  EXPECT_TRUE(check_subnet(t, all_up(t), updn.tables).all_reachable());
  EXPECT_EQ(find_credit_loops(t, updn.tables).in_loops, 0U);
}

// dfsssp takes the shortest paths and breaks the loop with lanes, which it chooses per pair.
TEST(Opensm, DfssspBreaksTheLoopWithLanes) {
  SKIP_WITHOUT_OPENSM();
  const Topology t = ring(5, 4);
  const OpensmRun run = route(t, "dfsssp", all_up(t));
  const SubnetTables& tables = run.tables;
  EXPECT_TRUE(check_subnet(t, all_up(t), tables).all_reachable());
  EXPECT_EQ(check_subnet(t, all_up(t), tables).most_hops, 4U);
  EXPECT_GT(tables.lanes(), 1U);
  EXPECT_EQ(find_credit_loops(t, tables).in_loops, 0U);
  ASSERT_EQ(tables.host_vl_arbitration.size(), t.host_count);
  EXPECT_FALSE(tables.host_vl_arbitration[0].low.empty());
  EXPECT_EQ(tables.switches[0].vl_arbitration.size(), tables.switches[0].ports + 1U);
  SubnetTables one_lane = tables;
  one_lane.path_sl.clear();
  EXPECT_GT(find_credit_loops(t, one_lane).in_loops, 0U) << "the lanes are what breaks it";
}

TEST(Opensm, AResweepGoesAroundAFailedLink) {
  SKIP_WITHOUT_OPENSM();
  const Topology t = build_leaf_spine({.hosts = 32, .leaves = 4, .spines = 4});
  std::vector<bool> up = all_up(t);
  up[t.links_between(node(t, "leaf0"), node(t, "spine2"))[0]] = false;
  const SubnetTables before = route(t, "updn", all_up(t)).tables;
  EXPECT_EQ(before.host_lids, number_subnet(t, 0).host_lids);
  EXPECT_GT(check_subnet(t, up, before).dropped, 0U);
  const SubnetTables after = route(t, "updn", up).tables;
  EXPECT_TRUE(check_subnet(t, up, after).all_reachable());
  EXPECT_EQ(after.host_lids, before.host_lids) << "hosts keep their addresses";
}

TEST(Opensm, LmcGivesEveryHostSeveralPaths) {
  SKIP_WITHOUT_OPENSM();
  const Topology t = build_leaf_spine({.hosts = 16, .leaves = 4, .spines = 4});
  const ManagedSubnet subnet = manage_subnet(t, all_up(t), {.engine = "minhop", .directory = "", .lmc = 2});
  EXPECT_EQ(subnet.tables.lmc, 2);
  const SubnetCheck check = check_subnet(t, all_up(t), subnet.tables);
  EXPECT_TRUE(check.all_reachable()) << check.first;
  EXPECT_EQ(check.pairs, 4U * 16 * 15);
}

TEST(Opensm, WhatCannotBeRoutedIsAnErrorWithOpensmsWords) {
  SKIP_WITHOUT_OPENSM();
  const Topology t = ring(5, 2);
  try {
    route(t, "ftree", all_up(t));
    ADD_FAILURE() << "a ring is no fat-tree";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kFailed);
    EXPECT_NE(std::string(error.what()).find("ftree did not route this fabric"), std::string::npos) << error.what();
  }
  OpensmSettings settings;
  settings.interrupted = [] { return true; };
  EXPECT_THROW(run_opensm(t, all_up(t), settings), Error);
}

TEST(Opensm, EnginesThatThereAreNotAreRefused) {
  const Topology t = ring(5, 2);
  expect_bad_input([&] { manage_subnet(t, all_up(t), {.engine = "lash"}); },
                   "no engine 'lash'; accepted: shortest-path, up-down, minhop");
  EXPECT_EQ(manage_subnet(t, all_up(t), {.engine = "up-down"}).by, "built in");
  expect_bad_input([&] { manage_subnet(t, all_up(t), {.directory = "/nonexistent"}); }, "cannot be opened");
}

}  // namespace
}  // namespace heddle::lab
