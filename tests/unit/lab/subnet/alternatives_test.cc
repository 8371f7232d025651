#include "lab/subnet/alternatives.h"

#include <gtest/gtest.h>

#include "tests/unit/lab/subnet/subnet_fabrics.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

const std::vector<PortIndex>& group_of(const std::vector<SwitchRoutes>& routes, uint32_t s, Lid lid) {
  return routes[s].groups[routes[s].group_of_host[lid]];
}

// With tables of shortest paths, along the tables or by routes is the same.
TEST(Alternatives, OfShortestPathsAreAllThatBeginOne) {
  for (const Topology& t : {build_fat_tree(FatTreeSettings{.k = 4}),
                            build_leaf_spine({.hosts = 32, .leaves = 4, .spines = 3}), random_graph(3, 12, 10)}) {
    std::vector<bool> up = all_up(t);
    for (int round = 0; round < 2; ++round) {
      const SubnetTables tables = shortest_path_tables(t, up, 1);
      const std::vector<SwitchRoutes> along = equal_length_groups(t, tables, up);
      const std::vector<SwitchRoutes> by_route = groups_by_lid(tables, compute_routes(t, up));
      for (uint32_t s = 0; s < along.size(); ++s) {
        for (HostId host = 0; host < t.host_count; ++host) {
          for (uint32_t path = 0; path < 2; ++path) {
            const auto lid = static_cast<Lid>(tables.host_lids[host] + path);
            if (tables.port(s, lid) == kLftUnreachable) continue;
            EXPECT_EQ(group_of(along, s, lid), group_of(by_route, s, lid)) << t.kind << " switch " << s;
          }
        }
      }
      for (LinkId link = 0; link < t.links.size(); ++link) {  // the first between switches
        if (t.is_host(t.links[link].a) || t.is_host(t.links[link].b)) continue;
        up[link] = false;
        break;
      }
    }
  }
}

// Whichever members are taken, hop by hop at random, a packet arrives after as many hops as by the tables.
TEST(Alternatives, LeadNearerWithEveryHop) {
  Random random(7);
  uint64_t choices = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Topology t = random_graph(seed, 16, 14);
    for (const SubnetTables& tables : {shortest_path_tables(t, all_up(t)), up_down_tables(t, all_up(t))}) {
      const std::vector<SwitchRoutes> routes = equal_length_groups(t, tables, all_up(t));
      for (HostId from = 0; from < t.host_count; ++from) {
        for (HostId to = 0; to < t.host_count; ++to) {
          if (from == to) continue;
          const Lid lid = tables.host_lids[to];
          uint32_t by_table = 0;
          for (NodeId at = t.leaf_of(from); at != to; ++by_table) {
            at = t.neighbor(at, static_cast<PortIndex>(tables.port(at - t.host_count, lid) - 1));
          }
          NodeId at = t.leaf_of(from);
          for (uint32_t hop = 0; hop < by_table; ++hop) {
            ASSERT_FALSE(t.is_host(at));
            const std::vector<PortIndex>& members = group_of(routes, at - t.host_count, lid);
            choices += members.size() - 1;
            at = t.neighbor(at, members[random.below(static_cast<uint32_t>(members.size()))]);
          }
          ASSERT_EQ(at, to) << "seed " << seed << ", " << tables.engine;
        }
      }
    }
  }
  EXPECT_GT(choices, 1000U) << "there was something to choose";
}

TEST(Alternatives, OfABrokenWayAreNone) {
  const Topology t = build_leaf_spine({.hosts = 8, .leaves = 2, .spines = 4});
  SubnetTables tables = shortest_path_tables(t, all_up(t));
  const Lid lid = tables.host_lids[7];
  EXPECT_EQ(group_of(equal_length_groups(t, tables, all_up(t)), 0, lid).size(), 4U);
  // The spine that leaf0's table names sends the packet back to leaf0, by its first port.
  const NodeId spine = t.neighbor(t.host_count, static_cast<PortIndex>(tables.port(0, lid) - 1));
  tables.switches[spine - t.host_count].lft[lid] = 1;
  const std::vector<SwitchRoutes> routes = equal_length_groups(t, tables, all_up(t));
  EXPECT_EQ(group_of(routes, 0, lid), std::vector<PortIndex>{static_cast<PortIndex>(tables.port(0, lid) - 1)});
}

TEST(Alternatives, SplitByTheTablesPort) {
  const Topology t = build_leaf_spine({.hosts = 16, .leaves = 2, .spines = 4});
  const SubnetTables tables = shortest_path_tables(t, all_up(t));
  std::vector<SwitchRoutes> routes = groups_by_lid(tables, compute_routes(t, all_up(t)));
  split_by_table(tables, routes);
  for (uint32_t s = 0; s < 2; ++s) {
    ASSERT_EQ(routes[s].table_member.size(), routes[s].groups.size());
    EXPECT_EQ(routes[s].groups.size(), 8U + 4U) << "hosts of its own, and each spine as the table's choice";
    for (HostId host = 0; host < 16; ++host) {
      const Lid lid = tables.host_lids[host];
      const uint16_t group = routes[s].group_of_host[lid];
      EXPECT_EQ(routes[s].groups[group][routes[s].table_member[group]] + 1, tables.port(s, lid));
    }
  }
}

// Four switches in a ring; what is two hops away goes by switch 1 or by switch 0, and never closes the circle.
// The other way round is as long, and would.
TEST(Alternatives, CanCloseALoopThatTheTablesDoNot) {
  const Topology t = ring(4, 1);
  SubnetTables tables = shortest_path_tables(t, all_up(t));
  const auto port_to = [&](uint32_t s, uint32_t neighbor) {
    for (PortIndex port = 0; port < t.ports[4 + s].size(); ++port) {
      if (t.neighbor(4 + s, port) == 4 + neighbor) return static_cast<uint8_t>(port + 1);
    }
    return kLftUnreachable;
  };
  const auto send = [&](uint32_t from, HostId to, uint32_t by) {
    tables.switches[from].lft[tables.host_lids[to]] = port_to(from, by);
  };
  send(0, 2, 1);
  send(2, 0, 1);
  send(1, 3, 0);
  send(3, 1, 0);
  EXPECT_EQ(find_credit_loops(t, tables).in_loops, 0U);
  const std::vector<SwitchRoutes> routes = equal_length_groups(t, tables, all_up(t));
  EXPECT_EQ(group_of(routes, 0, tables.host_lids[2]).size(), 2U);
  const CreditLoops loops = added_loops(t, tables, routes, 0xffff);
  EXPECT_EQ(loops.in_loops, 8U) << "each direction of the ring";
  EXPECT_EQ(loops.shortest.size(), 4U);
  EXPECT_EQ(added_loops(t, tables, routes, 0xfffe).in_loops, 0U) << "not for the level in use";

  // Tables with loops of their own are not made worse.
  const Topology five = ring(5, 1);
  const SubnetTables looped = shortest_path_tables(five, all_up(five));
  EXPECT_EQ(added_loops(five, looped, equal_length_groups(five, looped, all_up(five)), 0xffff).in_loops, 0U);
}

// Hosts of one leaf share what is walked; the result is that of walking all.
TEST(Alternatives, OnTreesCloseNoLoops) {
  for (const Topology& t :
       {build_fat_tree(FatTreeSettings{.k = 6}), build_leaf_spine({.hosts = 64, .leaves = 8, .spines = 4})}) {
    const SubnetTables tables = up_down_tables(t, all_up(t), 1);
    const std::vector<SwitchRoutes> routes = equal_length_groups(t, tables, all_up(t));
    const CreditLoops loops = find_credit_loops(t, tables, {&routes, 0xffff});
    EXPECT_EQ(loops.in_loops, 0U) << describe_loop(t, loops.shortest);
    EXPECT_GE(loops.dependencies, find_credit_loops(t, tables).dependencies);
  }
}

}  // namespace
}  // namespace heddle::lab
