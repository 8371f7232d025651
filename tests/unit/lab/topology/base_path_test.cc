#include "lab/topology/base_path.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "lab/topology/routing.h"
#include "net/random.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

using Path = std::vector<LinkId>;

TEST(BasePaths, RunFromSourceToDestination) {
  for (const Topology& t :
       {build_single_switch({.hosts = 4}),
        build_leaf_spine({.hosts = 8, .leaves = 4, .spines = 3, .links_per_pair = 2}),
        build_rail({.hosts = 24, .nics_per_server = 4, .servers_per_group = 3}), build_fat_tree({.k = 4})}) {
    SCOPED_TRACE(t.kind);
    const BasePaths paths(t);
    const auto routes = compute_routes(t, LinkStates(t).up());
    for (HostId src = 0; src < t.host_count; ++src) {
      for (HostId dst = 0; dst < t.host_count; ++dst) {
        const Path path = paths.path(src, dst);
        if (src == dst) {
          EXPECT_TRUE(path.empty());
          continue;
        }
        NodeId at = src;
        for (const LinkId link : path) {
          const Link& l = t.links[link];
          ASSERT_TRUE(l.a == at || l.b == at);
          if (!t.is_host(at)) {  // the path is one the switches would take
            const SwitchRoutes& r = routes[at - t.host_count];
            const auto& group = r.groups.at(r.group_of_host[dst]);
            ASSERT_TRUE(std::binary_search(group.begin(), group.end(), l.a == at ? l.a_port : l.b_port));
          }
          at = t.other_end(link, at);
        }
        ASSERT_EQ(at, dst);
      }
    }
  }
}

TEST(BasePaths, TakeTheLowestPortsOfEqualOnes) {
  const Topology t = build_fat_tree({.k = 4});
  const BasePaths paths(t);
  const auto between = [&](const char* a, const char* b) { return t.links_between(node(t, a), node(t, b))[0]; };
  EXPECT_EQ(paths.path(0, 15), (Path{t.ports[0][0], between("edge0", "agg0"), between("agg0", "core0"),
                                     between("core0", "agg6"), between("agg6", "edge7"), t.ports[15][0]}));
  EXPECT_EQ(paths.path(0, 1), (Path{t.ports[0][0], t.ports[1][0]}));
}

TEST(BasePaths, PreferWideThenShort) {
  Topology t = build_leaf_spine({.hosts = 4, .leaves = 2, .spines = 3});
  const LinkId up1 = t.links_between(node(t, "leaf0"), node(t, "spine0"))[0];
  const LinkId down1 = t.links_between(node(t, "leaf1"), node(t, "spine1"))[0];
  t.links[up1].rate = Rate::gbps(40);    // the way over spine0 begins narrow
  t.links[down1].rate = Rate::gbps(50);  // that over spine1 ends narrow
  EXPECT_EQ(t.other_end(BasePaths(t).path(0, 3)[1], node(t, "leaf0")), node(t, "spine2"));
  EXPECT_EQ(BasePaths(t).bottleneck_rate(0, 3), Rate::gbps(100));
  t.links[t.links_between(node(t, "leaf0"), node(t, "spine2"))[0]].rate = Rate::gbps(30);
  EXPECT_EQ(BasePaths(t).bottleneck_rate(0, 3), Rate::gbps(50));
  t.links[up1].rate = Rate::gbps(50);
  t.links[down1].delay = 10 * kMicrosecond;
  EXPECT_EQ(t.other_end(BasePaths(t).path(0, 3)[1], node(t, "leaf0")), node(t, "spine0")) << "as wide, but shorter";
}

TEST(BasePaths, BottleneckIsOfTheDirectionTravelled) {
  const Topology t = build_leaf_spine({.hosts = 2, .leaves = 2, .spines = 1, .uplink = {.rate = Rate::gbps(400)}});
  EXPECT_EQ(BasePaths(t).bottleneck_rate(0, 1), Rate::gbps(100));
  LinkStates states(t);
  const LinkId up = t.links_between(node(t, "leaf0"), node(t, "spine0"))[0];
  states.apply({.link = up, .kind = LinkEvent::Kind::kRate, .direction = LinkDirection::kAToB, .rate = Rate::gbps(7)});
  const BasePaths paths(t, states);
  EXPECT_EQ(paths.bottleneck_rate(0, 1), Rate::gbps(7));
  EXPECT_EQ(paths.bottleneck_rate(1, 0), Rate::gbps(100));
  EXPECT_TRUE(paths.bottleneck_rate(0, 0).is_unlimited());
}

TEST(BasePaths, AvoidDownLinks) {
  const Topology t = build_leaf_spine({.hosts = 2, .leaves = 2, .spines = 2});
  LinkStates states(t);
  states.apply({.link = t.links_between(node(t, "leaf1"), node(t, "spine0"))[0], .kind = LinkEvent::Kind::kDown});
  EXPECT_EQ(t.other_end(BasePaths(t, states).path(0, 1)[1], node(t, "leaf0")), node(t, "spine1"));
  states.apply({.link = t.links_between(node(t, "leaf1"), node(t, "spine1"))[0], .kind = LinkEvent::Kind::kDown});
  EXPECT_TRUE(BasePaths(t, states).path(0, 1).empty());
  EXPECT_EQ(BasePaths(t, states).one_way(0, 1, 1000), 0U);
  LinkStates cut(t);
  cut.apply({.link = t.ports[1][0], .kind = LinkEvent::Kind::kDown});
  EXPECT_TRUE(BasePaths(t, cut).path(0, 1).empty());
  EXPECT_TRUE(BasePaths(t, cut).path(1, 0).empty());
}

// ConWeave's 128-host leaf-spine: the authors' simulator reports a base round trip of 8.32 us across the spine, which
// is twice the propagation of four links of 1 us and one store-and-forward of 1,000 bytes at 100G on each
// (conweave-ns3 v1.0.0, config leaf_spine_128_100G_OS2).
TEST(BasePaths, RoundTripOfConWeavesFabric) {
  LinkSettings link;
  link.overhead = 0;
  LinkSettings uplink = link;
  const Topology t = build_leaf_spine({.host_link = link, .uplink = uplink});
  const BasePaths paths(t);
  EXPECT_EQ(paths.one_way(0, 127, 1000) + paths.delay(127, 0), 8'320 * kNanosecond);
  EXPECT_EQ(paths.delay(0, 1), 2 * kMicrosecond);
}

TEST(BasePaths, OneWayCountsEveryLinksOwnOverheadAndRate) {
  const Topology t = build_leaf_spine({.hosts = 2,
                                       .leaves = 2,
                                       .spines = 1,
                                       .host_link = {.rate = Rate::gbps(100), .delay = kMicrosecond, .overhead = 24},
                                       .uplink = {.rate = Rate::gbps(400), .delay = 2 * kMicrosecond, .overhead = 0}});
  // 1,026 + 24 bytes at 100G are 84 ns, 1,026 bytes at 400G 20.52 ns; two of each, and 6 us of cable.
  EXPECT_NEAR(static_cast<double>(BasePaths(t).one_way(0, 1, 1026)), 6'000'000 + 2 * 84'000 + 2 * 20'520, 2);
}

TEST(BasePaths, MayBeAskedFromSeveralThreads) {
  const Topology t = build_fat_tree({.k = 8});
  const BasePaths shared(t);
  const auto sum_of = [&](const BasePaths& paths) {
    uint64_t sum = 0;
    Random random(5);
    for (int i = 0; i < 20000; ++i) {
      const HostId src = random.below(t.host_count);
      for (const LinkId link : paths.path(src, random.below(t.host_count))) {
        sum = sum * 31 + link;
      }
    }
    return sum;
  };
  uint64_t sums[4] = {};
  std::vector<std::thread> threads;
  for (uint64_t& sum : sums) {
    threads.emplace_back([&] { sum = sum_of(shared); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const uint64_t expected = sum_of(BasePaths(t));
  EXPECT_EQ(std::count(std::begin(sums), std::end(sums), expected), 4);
}

}  // namespace
}  // namespace heddle::lab
