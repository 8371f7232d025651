#include "lab/subnet/load.h"

#include <utility>

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "net/random.h"
#include "tests/unit/lab/subnet/subnet_fabrics.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

TEST(SubnetLoad, PathsAreCountedPerDirectionOfALink) {
  // 4 leaves with 8 hosts, 4 spines: 8 hosts send to 24 others over 4 uplinks, 48 on each, and as many come back.
  const Topology t = build_leaf_spine({.hosts = 32, .leaves = 4, .spines = 4});
  const PathsPerLink paths = count_paths(t, all_up(t), shortest_path_tables(t, all_up(t)));
  EXPECT_EQ(paths.links, 32U);
  EXPECT_EQ(paths.least, 48U);
  EXPECT_EQ(paths.most, 48U);
  EXPECT_DOUBLE_EQ(paths.mean, 48);
  // A ring of five: each host's packets pass one link to a neighbour's hosts and two to the next: 2·2 + 2·2·2 paths of
  // two hosts each way round.
  const Topology r = ring(5, 2);
  const PathsPerLink around = count_paths(r, all_up(r), shortest_path_tables(r, all_up(r)));
  EXPECT_EQ(around.links, 10U);
  EXPECT_EQ(around.most, 12U);
  EXPECT_EQ(around.least, 12U);
  const Topology alone = build_single_switch({.hosts = 4, .link = {}});
  EXPECT_EQ(count_paths(alone, all_up(alone), shortest_path_tables(alone, all_up(alone))).links, 0U);
}

// Destination modulo in the order of the hosts: a shift by s sends the hosts of a leaf to as many destinations in a
// row, hence over different uplinks, in every tier of a full fat-tree (Zahavi 2012, theorem 1).
TEST(SubnetLoad, ShiftsAreFreeOfContentionInFullFatTrees) {
  for (const Topology& t :
       {build_leaf_spine({.hosts = 64, .leaves = 8, .spines = 8}), build_fat_tree(FatTreeSettings{.k = 8})}) {
    const ShiftContention shifts = shift_contention(t, shortest_path_tables(t, all_up(t)), natural_order(t));
    EXPECT_EQ(shifts.shifts, t.host_count - 1);
    EXPECT_EQ(shifts.free, shifts.shifts) << t.kind << ": most " << shifts.most;
    EXPECT_EQ(shifts.most, 1U);
  }
}

TEST(SubnetLoad, FewerUplinksMeanAsMuchMoreContention) {
  const Topology t = build_leaf_spine({.hosts = 64, .leaves = 8, .spines = 2});
  const SubnetTables tables = shortest_path_tables(t, all_up(t));
  const ShiftContention shifts = shift_contention(t, tables, natural_order(t));
  EXPECT_EQ(shifts.most, 4U);  // 8 hosts over 2 uplinks
  EXPECT_LT(shifts.free, shifts.shifts);
  // In any other order than that of the leaves, hosts of a leaf send over one uplink now and then.
  const Topology full = build_leaf_spine({.hosts = 64, .leaves = 8, .spines = 8});
  std::vector<HostId> shuffled = natural_order(full);
  Random random(5);
  for (uint32_t i = 63; i > 0; --i) std::swap(shuffled[i], shuffled[random.below(i + 1)]);
  EXPECT_GT(shift_contention(full, shortest_path_tables(full, all_up(full)), shuffled).most, 1U);
}

TEST(SubnetLoad, RandomPermutationsAreRepeatableAndShareLinks) {
  const Topology t = build_fat_tree(FatTreeSettings{.k = 8});
  const SubnetTables tables = shortest_path_tables(t, all_up(t));
  const PermutationContention random = permutation_contention(t, tables, 1);
  EXPECT_EQ(random.permutations, 20U);
  EXPECT_GT(random.mean_most, 2);
  EXPECT_LT(random.mean_share, 0.75);
  EXPECT_GT(random.mean_share, 0.4);
  EXPECT_EQ(permutation_contention(t, tables, 1).mean_share, random.mean_share);
  EXPECT_NE(permutation_contention(t, tables, 2).mean_share, random.mean_share);
  const Topology one = build_single_switch({.hosts = 16, .link = {}});
  EXPECT_DOUBLE_EQ(permutation_contention(one, shortest_path_tables(one, all_up(one)), 1).mean_share, 1);
}

}  // namespace
}  // namespace heddle::lab
