#include "lab/topology/routing.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include "lab/topology/builders.h"
#include "net/random.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

std::vector<bool> all_up(const Topology& t) { return std::vector<bool>(t.links.size(), true); }

// The members towards a host, none if it cannot be reached.
std::vector<PortIndex> members(const Topology& t, const std::vector<SwitchRoutes>& routes, const std::string& name,
                               HostId host) {
  const SwitchRoutes& r = routes[node(t, name) - t.host_count];
  const uint16_t group = r.group_of_host[host];
  return group == kUnreachable ? std::vector<PortIndex>{} : r.groups.at(group);
}

// The definition, done slowly: a port is a member if one hop through it is the beginning of a shortest way.
std::vector<std::vector<PortIndex>> members_by_definition(const Topology& t, const std::vector<bool>& up, HostId host) {
  constexpr int kFar = 1 << 20;
  std::vector<int> hops(t.nodes.size(), kFar);
  hops[host] = 0;
  for (size_t round = 0; round < t.nodes.size(); ++round) {  // Bellman-Ford
    for (LinkId id = 0; id < t.links.size(); ++id) {
      const auto [a, b] = std::pair(t.links[id].a, t.links[id].b);
      const bool transit_a = a == host || !t.is_host(a);
      const bool transit_b = b == host || !t.is_host(b);
      if (up[id] && transit_a && transit_b) {
        hops[a] = std::min(hops[a], hops[b] + 1);
        hops[b] = std::min(hops[b], hops[a] + 1);
      }
    }
  }
  std::vector<std::vector<PortIndex>> result(t.switch_count());
  for (NodeId n = t.host_count; n < t.nodes.size(); ++n) {
    for (size_t port = 0; port < t.ports[n].size(); ++port) {
      const LinkId link = t.ports[n][port];
      if (up[link] && hops[n] < kFar && hops[t.other_end(link, n)] == hops[n] - 1) {
        result[n - t.host_count].push_back(static_cast<PortIndex>(port));
      }
    }
  }
  return result;
}

void expect_as_defined(const Topology& t, const std::vector<bool>& up) {
  const std::vector<SwitchRoutes> routes = compute_routes(t, up);
  ASSERT_EQ(routes.size(), t.switch_count());
  for (HostId host = 0; host < t.host_count; ++host) {
    const auto expected = members_by_definition(t, up, host);
    for (uint32_t s = 0; s < t.switch_count(); ++s) {
      const uint16_t group = routes[s].group_of_host[host];
      const auto found = group == kUnreachable ? std::vector<PortIndex>{} : routes[s].groups.at(group);
      ASSERT_EQ(found, expected[s]) << t.nodes[t.host_count + s].name << " to " << t.nodes[host].name;
    }
  }
}

// Every group once, none empty, members ascending, all of them used, numbered by the first host that uses them.
void expect_tidy_groups(const SwitchRoutes& routes) {
  std::set<std::vector<PortIndex>> seen;
  for (const auto& group : routes.groups) {
    ASSERT_FALSE(group.empty());
    ASSERT_TRUE(std::is_sorted(group.begin(), group.end()));
    ASSERT_EQ(std::adjacent_find(group.begin(), group.end()), group.end());
    ASSERT_TRUE(seen.insert(group).second);
  }
  uint16_t next = 0;
  for (const uint16_t group : routes.group_of_host) {
    ASSERT_TRUE(group == kUnreachable || group <= next);
    next = group == next ? static_cast<uint16_t>(next + 1) : next;
  }
  ASSERT_EQ(next, routes.groups.size());
}

Topology random_graph(Random& random) {
  GraphSettings settings;
  const uint32_t switches = 2 + random.below(12);
  for (uint32_t s = 0; s < switches; ++s) {
    settings.switches.push_back({.name = "s" + std::to_string(s), .hosts = random.below(3) + (s == 0 ? 1 : 0)});
    if (s > 0) {
      settings.links.push_back({.a = "s" + std::to_string(s), .b = "s" + std::to_string(random.below(s))});
    }
  }
  for (uint32_t extra = random.below(3 * switches); extra > 0; --extra) {
    const uint32_t a = random.below(switches);
    const uint32_t b = (a + 1 + random.below(switches - 1)) % switches;
    settings.links.push_back({"s" + std::to_string(a), "s" + std::to_string(b), 1 + random.below(2)});
  }
  return build_graph(settings);
}

TEST(Routing, EqualsTheDefinitionOnRandomGraphsWithFailures) {
  Random random(3);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const Topology t = random_graph(random);
    std::vector<bool> up = all_up(t);
    for (size_t link = 0; link < up.size(); ++link) {
      up[link] = round % 3 == 0 || random.below(100) < 85;
    }
    expect_as_defined(t, up);
    for (const SwitchRoutes& routes : compute_routes(t, up)) {
      expect_tidy_groups(routes);
    }
  }
}

TEST(Routing, EqualsTheDefinitionOnBuiltFabrics) {
  for (const Topology& t : {build_single_switch({.hosts = 5}),
                            build_leaf_spine({.hosts = 8, .leaves = 4, .spines = 3, .links_per_pair = 2}),
                            build_rail({.hosts = 24, .nics_per_server = 4, .servers_per_group = 3, .spines = 2}),
                            build_fat_tree({.k = 4})}) {
    SCOPED_TRACE(t.kind);
    expect_as_defined(t, all_up(t));
  }
}

TEST(Routing, FatTreeOfFourHasTheKnownGroups) {
  const Topology t = build_fat_tree({.k = 4});
  const auto routes = compute_routes(t, all_up(t));
  using Ports = std::vector<PortIndex>;
  EXPECT_EQ(members(t, routes, "edge0", 0), Ports{0}) << "own host";
  EXPECT_EQ(members(t, routes, "edge0", 2), (Ports{2, 3})) << "same pod, other edge: both aggregation switches";
  EXPECT_EQ(members(t, routes, "edge0", 15), (Ports{2, 3})) << "other pod";
  EXPECT_EQ(members(t, routes, "agg0", 2), Ports{1}) << "down to the edge";
  EXPECT_EQ(members(t, routes, "agg0", 15), (Ports{2, 3})) << "up to both its cores";
  EXPECT_EQ(members(t, routes, "core0", 15), Ports{3}) << "down to the pod";
  EXPECT_EQ(routes[0].groups.size(), 3U) << "two hosts and up";
}

TEST(Routing, ParallelLinksAreMembersOfTheirOwn) {
  const Topology t = build_leaf_spine({.hosts = 4, .leaves = 2, .spines = 2, .links_per_pair = 3});
  const auto routes = compute_routes(t, all_up(t));
  EXPECT_EQ(members(t, routes, "leaf0", 3), (std::vector<PortIndex>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(members(t, routes, "spine1", 3), (std::vector<PortIndex>{3, 4, 5}));
}

TEST(Routing, RateDoesNotMatter) {
  Topology t = build_leaf_spine({.hosts = 4, .leaves = 2, .spines = 2});
  t.links[4].rate = Rate::gbps(10);
  EXPECT_EQ(members(t, compute_routes(t, all_up(t)), "leaf0", 3), (std::vector<PortIndex>{2, 3}));
}

TEST(Routing, ADownLinkLeavesItsGroups) {
  const Topology t = build_fat_tree({.k = 4});
  std::vector<bool> up = all_up(t);
  up[t.links_between(node(t, "agg0"), node(t, "core0"))[0]] = false;
  auto routes = compute_routes(t, up);
  using Ports = std::vector<PortIndex>;
  EXPECT_EQ(members(t, routes, "agg0", 15), Ports{3});
  EXPECT_EQ(members(t, routes, "edge0", 15), (Ports{2, 3})) << "still reachable over both aggregation switches";
  EXPECT_EQ(members(t, routes, "agg2", 0), Ports{3}) << "core0 is no longer on a shortest way to pod 0";
  EXPECT_EQ(members(t, routes, "agg2", 8), (Ports{2, 3})) << "but to pod 2";
  EXPECT_EQ(members(t, routes, "core0", 0), (Ports{1, 2, 3})) << "what arrives there goes back up through any pod";

  up[t.links_between(node(t, "agg0"), node(t, "core1"))[0]] = false;
  routes = compute_routes(t, up);
  EXPECT_EQ(members(t, routes, "edge0", 15), Ports{3}) << "agg0 has no core left";
  EXPECT_EQ(members(t, routes, "edge0", 2), (Ports{2, 3})) << "within the pod nothing changed";

  up = all_up(t);
  EXPECT_EQ(members(t, compute_routes(t, up), "agg0", 15), (Ports{2, 3})) << "and back";
}

TEST(Routing, ADownHostIsUnreachableEverywhere) {
  const Topology t = build_leaf_spine({.hosts = 4, .leaves = 2, .spines = 2});
  std::vector<bool> up = all_up(t);
  up[t.ports[1][0]] = false;
  const auto routes = compute_routes(t, up);
  for (const SwitchRoutes& r : routes) {
    EXPECT_EQ(r.group_of_host[1], kUnreachable);
    EXPECT_NE(r.group_of_host[0], kUnreachable);
  }
}

TEST(Routing, ASplitFabricKnowsOnlyItsSide) {
  const Topology t = build_leaf_spine({.hosts = 4, .leaves = 2, .spines = 1});
  std::vector<bool> up = all_up(t);
  up[t.links_between(node(t, "leaf1"), node(t, "spine0"))[0]] = false;
  const auto routes = compute_routes(t, up);
  EXPECT_EQ(members(t, routes, "leaf0", 0), std::vector<PortIndex>{0});
  EXPECT_TRUE(members(t, routes, "leaf0", 2).empty());
  EXPECT_TRUE(members(t, routes, "spine0", 3).empty());
  EXPECT_EQ(members(t, routes, "leaf1", 3), std::vector<PortIndex>{1});
}

bool same(const std::vector<SwitchRoutes>& x, const std::vector<SwitchRoutes>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const SwitchRoutes& a, const SwitchRoutes& b) {
    return a.group_of_host == b.group_of_host && a.groups == b.groups;
  });
}

TEST(Routing, ThreadsDoNotMatter) {
  const Topology t = build_fat_tree({.k = 12});
  std::vector<bool> up = all_up(t);
  Random random(7);
  for (size_t link = 0; link < up.size(); ++link) {
    up[link] = random.below(20) != 0;
  }
  const auto routes_with = [&](size_t threads) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    return compute_routes(t, up);
  };
  const auto alone = routes_with(1);
  for (const size_t threads : {2U, 3U, 4U, 8U}) {
    EXPECT_TRUE(same(alone, routes_with(threads))) << threads;
  }
}

// Follows the routes from src to dst, taking a random member each time; -1 if they do not lead there.
int links_walked(const Topology& t, const std::vector<SwitchRoutes>& routes, HostId src, HostId dst, Random& random) {
  NodeId at = t.leaf_of(src);
  for (int links = 1; links < 10; ++links) {
    if (t.is_host(at)) {
      return at == dst ? links : -1;
    }
    const SwitchRoutes& r = routes[at - t.host_count];
    const uint16_t group = r.group_of_host[dst];
    if (group == kUnreachable) {
      return -1;
    }
    const auto& ports = r.groups[group];
    at = t.neighbor(at, ports[random.below(static_cast<uint32_t>(ports.size()))]);
  }
  return -1;
}

TEST(Routing, EveryPairOfAThousandHostsIsReached) {
  const Topology t = build_fat_tree({.k = 16});
  const auto routes = compute_routes(t, all_up(t));
  Random random(1);
  for (HostId src = 0; src < t.host_count; ++src) {
    for (HostId dst = 0; dst < t.host_count; ++dst) {
      if (src != dst) {
        const int expected = t.leaf_of(src) == t.leaf_of(dst) ? 2 : t.pod_of(src) == t.pod_of(dst) ? 4 : 6;
        ASSERT_EQ(links_walked(t, routes, src, dst, random), expected) << src << " to " << dst;
      }
    }
  }
}

TEST(Routing, GroupSizesOfAThousandHosts) {
  const Topology t = build_fat_tree({.k = 16});
  const auto routes = compute_routes(t, all_up(t));
  for (uint32_t s = 0; s < t.switch_count(); ++s) {
    const Node& here = t.nodes[t.host_count + s];
    for (HostId host = 0; host < t.host_count; ++host) {
      const bool below =
          here.tier == 3 || (here.tier == 2 && here.pod == t.pod_of(host)) || t.leaf_of(host) == t.host_count + s;
      ASSERT_EQ(routes[s].groups[routes[s].group_of_host[host]].size(), below ? 1U : 8U);
    }
    EXPECT_EQ(routes[s].groups.size(), here.tier == 3 ? 16U : 9U) << here.name;
  }
}

// 16,000 hosts and 2,000 switches: the largest fabric the lab is held to. Seconds and tens of megabytes; the limits
// leave room for slow, busy and instrumented machines, and still catch anything quadratic in the hosts.
TEST(Routing, SixteenThousandHostsFitInTimeAndMemory) {
  const Topology t = build_fat_tree({.hosts = 16000});
  ASSERT_EQ(t.switch_count(), 2000U);
  const auto begin = std::chrono::steady_clock::now();
  const auto routes = compute_routes(t, all_up(t));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 30);
  size_t bytes = 0;
  for (const SwitchRoutes& r : routes) {
    bytes += sizeof(SwitchRoutes) + r.group_of_host.capacity() * sizeof(uint16_t);
    for (const auto& group : r.groups) {
      bytes += sizeof(std::vector<PortIndex>) + group.capacity() * sizeof(PortIndex);
    }
  }
  EXPECT_LT(bytes, size_t{100} << 20U);
  EXPECT_GE(bytes, routes_bytes(t));
  EXPECT_LT(bytes, routes_bytes(t) * 11 / 10);
  RecordProperty("milliseconds", static_cast<int>(took.count() * 1e3));
  RecordProperty("bytes", static_cast<int>(bytes));
  Random random(2);
  for (int pair = 0; pair < 20000; ++pair) {
    const HostId src = random.below(t.host_count);
    const HostId dst = random.below(t.host_count);
    if (src != dst) {
      ASSERT_GT(links_walked(t, routes, src, dst, random), 0);
    }
  }
}

}  // namespace
}  // namespace heddle::lab
