#include "lab/topology/builders.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

struct Expected {
  const char* description;
  std::function<Topology()> build;
  const char* kind;
  uint32_t hosts;
  uint32_t switches;
  size_t links;
  uint32_t pods;
};

const Expected kFabrics[] = {
    {"one switch", [] { return build_single_switch({.hosts = 16}); }, "single-switch", 16, 1, 16, 1},
    {"the default leaf-spine", [] { return build_leaf_spine({}); }, "leaf-spine", 128, 16, 128 + 64, 8},
    {"parallel links", [] { return build_leaf_spine({.hosts = 6, .leaves = 3, .spines = 2, .links_per_pair = 4}); },
     "leaf-spine", 6, 5, 6 + 24, 3},
    {"one leaf", [] { return build_leaf_spine({.hosts = 4, .leaves = 1, .spines = 1}); }, "leaf-spine", 4, 2, 5, 1},
    {"the default rail fabric", [] { return build_rail({}); }, "rail", 128, 16, 128 + 64, 1},
    {"rails in groups",
     [] { return build_rail({.hosts = 48, .nics_per_server = 4, .servers_per_group = 3, .spines = 2}); }, "rail", 48,
     4 * 4 + 2, 48 + 32, 4},
    {"k = 4", [] { return build_fat_tree({.k = 4}); }, "fat-tree", 16, 20, 48, 4},
    {"k = 6", [] { return build_fat_tree({.k = 6}); }, "fat-tree", 54, 45, 162, 6},
    {"the default fat-tree", [] { return build_fat_tree(FatTreeSettings{}); }, "fat-tree", 1024, 320, 3072, 16},
    {"432 hosts", [] { return build_fat_tree({.hosts = 432}); }, "fat-tree", 432, 180, 1296, 12},
    {"2:1, as ConWeave's fat_k4", [] { return build_fat_tree({.k = 4, .oversubscription = 2}); }, "fat-tree", 32, 20,
     64, 4},
    {"3 pods of radix-8 switches", [] { return build_fat_tree({.radix = 8, .pods = 3}); }, "fat-tree", 48, 3 * 8 + 16,
     48 + 48 + 48, 3},
    {"radix 6, 2:1: 4 hosts and 2 uplinks an edge", [] { return build_fat_tree({.radix = 6, .oversubscription = 2}); },
     "fat-tree", 6 * 3 * 4, 6 * (3 + 2) + 2 * 3, 72 + 36 + 36, 6},
};

TEST(TopologyBuilders, CountsAreAsExpected) {
  for (const Expected& fabric : kFabrics) {
    SCOPED_TRACE(fabric.description);
    const Topology t = fabric.build();
    EXPECT_EQ(t.kind, fabric.kind);
    EXPECT_EQ(t.host_count, fabric.hosts);
    EXPECT_EQ(t.switch_count(), fabric.switches);
    EXPECT_EQ(t.links.size(), fabric.links);
    EXPECT_EQ(t.pod_count(), fabric.pods);
  }
}

// Ports to lower tiers first, then to higher ones, each in the order of the nodes they lead to.
TEST(TopologyBuilders, PortsAreInOrder) {
  for (const Expected& fabric : kFabrics) {
    SCOPED_TRACE(fabric.description);
    const Topology t = fabric.build();
    expect_ports_fit_links(t);
    expect_hosts_first(t);
    for (NodeId n = t.host_count; n < t.nodes.size(); ++n) {
      std::vector<std::pair<bool, NodeId>> order;
      for (size_t port = 0; port < t.ports[n].size(); ++port) {
        const NodeId other = t.neighbor(n, static_cast<PortIndex>(port));
        EXPECT_NE(t.nodes[other].tier, t.nodes[n].tier);
        order.emplace_back(t.nodes[other].tier > t.nodes[n].tier, other);
      }
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << t.nodes[n].name;
    }
  }
}

TEST(TopologyBuilders, LeafSpineIsWiredLeafBySpine) {
  const Topology t = build_leaf_spine({.hosts = 6, .leaves = 3, .spines = 2, .links_per_pair = 2});
  EXPECT_EQ(peer(t, "leaf1", 0), "host2");
  EXPECT_EQ(peer(t, "leaf1", 1), "host3");
  EXPECT_EQ(peer(t, "leaf1", 2), "spine0");
  EXPECT_EQ(peer(t, "leaf1", 3), "spine0");
  EXPECT_EQ(peer(t, "leaf1", 4), "spine1");
  EXPECT_EQ(peer(t, "spine1", 2), "leaf1");
  EXPECT_EQ(t.uplinks(node(t, "leaf2")), (std::vector<PortIndex>{2, 3, 4, 5}));
  EXPECT_TRUE(t.uplinks(node(t, "spine0")).empty());
  EXPECT_EQ(t.pod_of(4), 2U);
  EXPECT_EQ(t.nodes[node(t, "spine0")].pod, kNoPod);
}

TEST(TopologyBuilders, LinkSettingsReachTheirTier) {
  const LinkSettings host = {.rate = Rate::gbps(200), .delay = 300 * kNanosecond, .overhead = 0, .loss = 0.25};
  const LinkSettings up = {.rate = Rate::gbps(800), .delay = 2 * kMicrosecond, .overhead = 20, .bit_error = 1e-12};
  const Topology t = build_leaf_spine({.hosts = 4, .leaves = 2, .spines = 1, .host_link = host, .uplink = up});
  for (LinkId id = 0; id < t.links.size(); ++id) {
    const LinkSettings& expected = id < 4 ? host : up;
    EXPECT_EQ(t.links[id].rate, expected.rate);
    EXPECT_EQ(t.links[id].delay, expected.delay);
    EXPECT_EQ(t.links[id].overhead, expected.overhead);
    EXPECT_EQ(t.links[id].loss, expected.loss);
    EXPECT_EQ(t.links[id].bit_error, expected.bit_error);
  }
}

struct Derivation {
  const char* description;
  uint32_t hosts_per_leaf;
  uint32_t spines;
  uint32_t links_per_pair;
  uint64_t uplink_gbps;  // 0 = left out
  double oversubscription;
  uint32_t expected_spines;
  double expected_gbps;
};

TEST(TopologyBuilders, UplinksFollowFromOversubscription) {
  const Derivation rows[] = {
      {"spines given: uplinks at the host rate", 16, 8, 1, 0, 0, 8, 100},
      {"nothing given: no oversubscription", 16, 0, 1, 0, 0, 16, 100},
      {"uplink rate given: spines for 1:1", 16, 0, 1, 400, 0, 4, 400},
      {"2:1 gives half the spines", 16, 0, 1, 0, 2, 8, 100},
      {"3:1 with parallel faster links", 48, 0, 2, 200, 3, 4, 200},
      {"spines and ratio give the rate", 16, 8, 1, 0, 1, 8, 200},
      {"a rate that is no round number", 10, 3, 1, 0, 1, 3, 1000.0 / 3},
      {"1.5:1", 12, 0, 1, 0, 1.5, 8, 100},
      {"all given and consistent", 16, 4, 2, 100, 2, 4, 100},
  };
  for (const Derivation& row : rows) {
    SCOPED_TRACE(row.description);
    const LinkSettings uplink = {.rate = Rate::gbps(row.uplink_gbps)};
    const Topology t = build_leaf_spine({.hosts = 2 * row.hosts_per_leaf,
                                         .leaves = 2,
                                         .spines = row.spines,
                                         .links_per_pair = row.links_per_pair,
                                         .oversubscription = row.oversubscription,
                                         .uplink = uplink});
    EXPECT_EQ(t.switch_count() - 2, row.expected_spines);
    EXPECT_NEAR(t.links.back().rate.gbps(), row.expected_gbps, 1e-6);
    const Topology rail = build_rail({.hosts = 3 * row.hosts_per_leaf,
                                      .nics_per_server = 3,
                                      .spines = row.spines,
                                      .links_per_pair = row.links_per_pair,
                                      .oversubscription = row.oversubscription,
                                      .uplink = uplink});
    EXPECT_EQ(rail.switch_count() - 3, row.expected_spines);
    EXPECT_NEAR(rail.links.back().rate.gbps(), row.expected_gbps, 1e-6);
  }
}

TEST(TopologyBuilders, RailPutsEachNicOfAServerOnItsOwnLeaf) {
  const Topology t = build_rail({.hosts = 48, .nics_per_server = 4, .servers_per_group = 3, .spines = 2});
  EXPECT_EQ(t.hosts_per_server, 4U);
  for (HostId host = 0; host < t.host_count; ++host) {
    const uint32_t server = host / 4;
    EXPECT_EQ(t.server_of(host), server);
    EXPECT_EQ(t.pod_of(host), server / 3);
    EXPECT_EQ(t.nodes[t.leaf_of(host)].name, "leaf" + std::to_string(server / 3 * 4 + host % 4));
    EXPECT_EQ(t.nodes[t.leaf_of(host)].pod, server / 3);
  }
  EXPECT_EQ(peer(t, "leaf5", 0), "host13") << "group 1 begins with server 3";
  EXPECT_EQ(t.uplinks(node(t, "leaf5")), (std::vector<PortIndex>{3, 4}));
}

TEST(TopologyBuilders, FatTreeOfFourIsAlFaresFigure) {
  const Topology t = build_fat_tree({.k = 4});
  EXPECT_EQ(peer(t, "edge5", 0), "host10");
  EXPECT_EQ(peer(t, "edge5", 1), "host11");
  EXPECT_EQ(peer(t, "edge5", 2), "agg4");
  EXPECT_EQ(peer(t, "edge5", 3), "agg5");
  EXPECT_EQ(peer(t, "agg5", 0), "edge4");
  EXPECT_EQ(peer(t, "agg5", 1), "edge5");
  EXPECT_EQ(peer(t, "agg5", 2), "core2") << "second aggregation switch: second half of the cores";
  EXPECT_EQ(peer(t, "agg5", 3), "core3");
  for (PortIndex pod = 0; pod < 4; ++pod) {
    EXPECT_EQ(peer(t, "core3", pod), "agg" + std::to_string(2 * pod + 1));
  }
  EXPECT_EQ(t.pod_of(10), 2U);
  EXPECT_EQ(t.nodes[node(t, "agg5")].pod, 2U);
  EXPECT_EQ(t.nodes[node(t, "core3")].pod, kNoPod);
  EXPECT_EQ(t.nodes[node(t, "core3")].tier, 3U);
}

// Property: in a k fat-tree every switch has k links, and every pair of pods shares every core.
TEST(TopologyBuilders, FatTreesOfEveryKAreComplete) {
  for (uint32_t k = 4; k <= 20; k += 2) {
    SCOPED_TRACE(k);
    const Topology t = build_fat_tree({.k = k});
    EXPECT_EQ(t.host_count, k * k * k / 4);
    for (NodeId n = t.host_count; n < t.nodes.size(); ++n) {
      EXPECT_EQ(t.ports[n].size(), k);
      std::set<NodeId> neighbors;
      std::set<uint32_t> pods;
      for (const LinkId link : t.ports[n]) {
        neighbors.insert(t.other_end(link, n));
        pods.insert(t.nodes[t.other_end(link, n)].pod);
      }
      EXPECT_EQ(neighbors.size(), k) << t.nodes[n].name;
      EXPECT_EQ(pods.size(), t.nodes[n].tier == 3 ? k : t.nodes[n].tier == 2 ? 2 : 1) << t.nodes[n].name;
    }
  }
}

TEST(TopologyBuilders, FatTreeByHostsFindsItsK) {
  const uint32_t sizes[][2] = {{16, 4},   {54, 6},    {128, 8},   {250, 10},   {432, 12},
                               {686, 14}, {1024, 16}, {8192, 32}, {16000, 40}, {65536, 64}};
  for (const auto& [hosts, k] : sizes) {
    const FatTreeShape shape = fat_tree_shape({.hosts = hosts});
    EXPECT_EQ(shape.pods, k);
    EXPECT_EQ(shape.pods * shape.edges_per_pod * shape.hosts_per_edge, hosts);
  }
  EXPECT_EQ(fat_tree_shape({.hosts = 32, .oversubscription = 2}).pods, 4U);
  EXPECT_EQ(fat_tree_shape({.k = 16, .hosts = 1024}).pods, 16U) << "both given, and they agree";
}

TEST(TopologyBuilders, FatTreeRatesFollowTheTierBelow) {
  const Topology t = build_fat_tree({.k = 4,
                                     .host_link = {.rate = Rate::gbps(200)},
                                     .aggregation_link = {.rate = Rate::gbps(400), .delay = 2 * kMicrosecond}});
  EXPECT_EQ(t.links[t.links_between(0, t.leaf_of(0))[0]].rate, Rate::gbps(200));
  EXPECT_EQ(t.links[t.links_between(node(t, "edge0"), node(t, "agg1"))[0]].rate, Rate::gbps(400));
  const Link& core = t.links[t.links_between(node(t, "agg0"), node(t, "core0"))[0]];
  EXPECT_EQ(core.rate, Rate::gbps(400));
  EXPECT_EQ(core.delay, kMicrosecond) << "only the rate is derived";
  EXPECT_EQ(build_fat_tree({.k = 4, .host_link = {.rate = Rate::gbps(200)}}).links.back().rate, Rate::gbps(200));
}

TEST(TopologyBuilders, FatTreeShapeMayHaveBundles) {
  const Topology t = build_fat_tree({.pods = 2,
                                     .edges_per_pod = 1,
                                     .hosts_per_edge = 3,
                                     .aggregations_per_pod = 2,
                                     .links_per_edge_aggregation = 3,
                                     .cores_per_aggregation = 1,
                                     .links_per_aggregation_core = 2},
                                    {});
  EXPECT_EQ(t.links_between(node(t, "edge1"), node(t, "agg3")).size(), 3U);
  EXPECT_EQ(t.links_between(node(t, "agg3"), node(t, "core1")).size(), 2U);
  EXPECT_TRUE(t.links_between(node(t, "agg3"), node(t, "core0")).empty());
}

TEST(TopologyBuilders, GraphTakesAnything) {
  const Topology t = build_graph({.hosts = {"storage"},
                                  .switches = {{.name = "a", .hosts = 2, .host_link = {.rate = Rate::gbps(25)}},
                                               {.name = "b", .hosts = 1},
                                               {.name = "top"}},
                                  .links = {{.a = "storage", .b = "b"},
                                            {.a = "a", .b = "top", .count = 2},
                                            {.a = "top", .b = "b", .link = {.rate = Rate::gbps(400)}}}});
  expect_ports_fit_links(t);
  expect_hosts_first(t);
  EXPECT_EQ(t.nodes[0].name, "storage");
  EXPECT_EQ(t.nodes[3].name, "host3");
  EXPECT_EQ(peer(t, "a", 0), "host1");
  EXPECT_EQ(peer(t, "a", 1), "host2");
  EXPECT_EQ(peer(t, "a", 2), "top");
  EXPECT_EQ(peer(t, "b", 0), "host3");
  EXPECT_EQ(peer(t, "b", 1), "storage");
  EXPECT_EQ(peer(t, "top", 2), "b");
  EXPECT_EQ(t.links[0].rate, Rate::gbps(25));
  EXPECT_EQ(t.nodes[node(t, "a")].tier, 1U);
  EXPECT_EQ(t.nodes[node(t, "top")].tier, 2U);
  EXPECT_EQ(t.uplinks(node(t, "a")), (std::vector<PortIndex>{2, 3}));
  EXPECT_EQ(t.pod_of(0), t.pod_of(3)) << "two tiers: a pod is a leaf";
  EXPECT_NE(t.pod_of(0), t.pod_of(1));
  EXPECT_EQ(t.nodes[node(t, "top")].pod, kNoPod);
}

TEST(TopologyBuilders, GraphRingHasOneTier) {
  GraphSettings ring;
  for (int i = 0; i < 5; ++i) {
    ring.switches.push_back({.name = "s" + std::to_string(i), .hosts = 4});
    ring.links.push_back({.a = "s" + std::to_string(i), .b = "s" + std::to_string((i + 1) % 5)});
  }
  const Topology t = build_graph(ring);
  EXPECT_EQ(t.pod_count(), 5U);
  for (NodeId n = t.host_count; n < t.nodes.size(); ++n) {
    EXPECT_EQ(t.nodes[n].tier, 1U);
    EXPECT_TRUE(t.uplinks(n).empty());
  }
}

// A fat-tree given as a mere graph: tiers and pods must come out as the builder knows them.
TEST(TopologyBuilders, TiersAndPodsAreFoundAgain) {
  for (const uint32_t k : {4U, 6U, 8U}) {
    const Topology built = build_fat_tree({.k = k});
    Topology t = built;
    for (Node& n : t.nodes) {
      n.tier = 0;
      n.pod = kNoPod;
    }
    derive_tiers_and_pods(t);
    for (NodeId n = 0; n < t.nodes.size(); ++n) {
      EXPECT_EQ(t.nodes[n].tier, built.nodes[n].tier) << t.nodes[n].name;
      EXPECT_EQ(t.nodes[n].pod, built.nodes[n].pod) << t.nodes[n].name;
    }
  }
}

struct Refusal {
  const char* description;
  std::function<void()> build;
  const char* part;
};

TEST(TopologyBuilders, RefusalsSayWhatWouldBeAccepted) {
  const LinkSettings none = {.rate = Rate::unlimited()};
  const Refusal rows[] = {
      {"uneven leaves", [] { build_leaf_spine({.hosts = 100, .leaves = 8}); }, "accepted: a multiple of 8"},
      {"no hosts", [] { build_leaf_spine({.hosts = 0}); }, "hosts is 0; accepted: 1 or more"},
      {"no leaves", [] { build_leaf_spine({.leaves = 0}); }, "leaves is 0"},
      {"no links", [] { build_leaf_spine({.links_per_pair = 0}); }, "links_per_pair is 0"},
      {"half a spine", [] { build_leaf_spine({.hosts = 8, .leaves = 8, .spines = 0, .oversubscription = 2}); },
       "needs 0.500 spines; accepted: a whole number"},
      {"three that contradict", [] { build_leaf_spine({.oversubscription = 4, .uplink = {.rate = Rate::gbps(100)}}); },
       "make 2.000"},
      {"negative ratio", [] { build_leaf_spine({.oversubscription = -1}); }, "oversubscription is -1"},
      {"uplinks too fast", [] { build_leaf_spine({.spines = 1, .oversubscription = 0.001}); }, "accepted: 0.001 to"},
      {"host links without a rate", [=] { build_leaf_spine({.host_link = none}); }, "the host links have no rate"},
      {"too many hosts", [] { build_leaf_spine({.hosts = 4'000'000'000, .leaves = 8}); }, "accepted: up to 65536"},
      {"too many spines", [] { build_leaf_spine({.spines = 4'000'000'000}); }, "accepted: up to 65536 and 16384"},
      {"too many ports", [] { build_leaf_spine({.links_per_pair = 4'000'000'000}); }, "more than 32767 ports"},
      {"half a server", [] { build_rail({.hosts = 100, .nics_per_server = 8}); }, "accepted: a multiple of 8"},
      {"uneven groups", [] { build_rail({.hosts = 80, .servers_per_group = 4}); }, "accepted: a divisor of 10"},
      {"rail overflow", [] { build_rail({.hosts = 4'000'000'000, .servers_per_group = 1}); }, "accepted: up to 65536"},
      {"switch too large", [] { build_single_switch({.hosts = 40'000}); }, "accepted: up to 32767"},
      {"empty switch", [] { build_single_switch({.hosts = 0}); }, "hosts is 0"},
      {"odd k", [] { build_fat_tree({.k = 5}); }, "k is 5; accepted: an even number from 4 to 64"},
      {"k too large", [] { build_fat_tree({.k = 66}); }, "k is 66"},
      {"1,000 hosts", [] { build_fat_tree({.hosts = 1000}); }, "accepted: 16, 54, 128, 250, 432, 686, 1024, …"},
      {"1 host", [] { build_fat_tree({.hosts = 1}); }, "accepted: 16, …"},
      {"a million hosts", [] { build_fat_tree({.hosts = 1'000'000}); }, "8192, 9826, 11664, 13718, 16000"},
      {"k and hosts apart", [] { build_fat_tree({.k = 4, .hosts = 54}); }, "k 4 has 16 hosts, not 54"},
      {"k and radix", [] { build_fat_tree({.k = 4, .radix = 4}); }, "accepted: k, hosts, or radix with pods"},
      {"pods alone", [] { build_fat_tree({.pods = 4}); }, "pods 4 without radix"},
      {"more pods than core ports", [] { build_fat_tree({.radix = 4, .pods = 5}); }, "accepted: up to 4"},
      {"odd radix", [] { build_fat_tree({.radix = 7}); }, "radix is 7"},
      {"huge radix", [] { build_fat_tree({.radix = 1024}); }, "accepted: up to 65536 and 16384"},
      {"2.5 uplinks", [] { build_fat_tree({.radix = 10, .oversubscription = 3}); }, "2.500 uplinks"},
      {"3.4 hosts", [] { build_fat_tree({.k = 4, .oversubscription = 1.7}); }, "3.400 hosts"},
      {"fat-tree ratio 0", [] { build_fat_tree({.k = 4, .oversubscription = 0}); }, "accepted: above 0"},
      {"shape without cores",
       [] {
         build_fat_tree(FatTreeShape{1, 1, 1, 1, 1, 0, 1}, {});
       },
       "at least one of each"},
      {"unknown node",
       [] {
         build_graph({.hosts = {"h"}, .switches = {{.name = "s"}}, .links = {{"h", "t"}}});
       },
       "names 't', which is no node; accepted: h, s"},
      {"no links",
       [] {
         build_graph({.hosts = {"h"}, .switches = {{.name = "s"}}, .links = {{"h", "s", 0}}});
       },
       "0 links between h and s"},
      {"name twice", [] { build_graph({.hosts = {"s"}, .switches = {{.name = "s", .hosts = 1}}}); }, "called 's'"},
      {"graph too large", [] { build_graph({.switches = {{.name = "s", .hosts = 4'000'000'000}}}); },
       "accepted: up to 65536"},
      {"host without link", [] { build_graph({.hosts = {"h"}, .switches = {{.name = "s", .hosts = 1}}}); },
       "h has no link"},
  };
  for (const Refusal& row : rows) {
    SCOPED_TRACE(row.description);
    expect_bad_input(row.build, row.part);
  }
}

}  // namespace
}  // namespace heddle::lab
