#include "lab/topology/link_state.h"

#include <limits>

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

constexpr uint64_t kGbps = 1'000'000'000;

TEST(LinkStates, BeginUpAtTheirRate) {
  const Topology t = build_leaf_spine({.uplink = {.rate = Rate::gbps(400)}});
  const LinkStates states(t);
  for (LinkId link = 0; link < t.links.size(); ++link) {
    EXPECT_TRUE(states.is_up(link));
    EXPECT_EQ(states.rate(link, true), t.links[link].rate);
    EXPECT_EQ(states.rate(link, false), t.links[link].rate);
  }
}

TEST(LinkStates, FollowEvents) {
  const Topology t = build_single_switch({.hosts = 2});
  LinkStates states(t);
  using Kind = LinkEvent::Kind;
  states.apply({.link = 1, .kind = Kind::kDown});
  EXPECT_TRUE(states.is_up(0));
  EXPECT_FALSE(states.is_up(1));
  states.apply({.link = 1, .kind = Kind::kRate, .direction = LinkDirection::kAToB, .rate = Rate::gbps(10)});
  EXPECT_FALSE(states.is_up(1)) << "a rate does not bring a link up";
  states.apply({.link = 1, .kind = Kind::kUp});
  EXPECT_TRUE(states.is_up(1));
  EXPECT_EQ(states.rate(1, true), Rate::gbps(10)) << "the rate outlives the outage";
  EXPECT_EQ(states.rate(1, false), Rate::gbps(100));
  states.apply({.link = 1, .kind = Kind::kRate, .direction = LinkDirection::kBToA, .rate = Rate::gbps(20)});
  EXPECT_EQ(states.rate(1, true), Rate::gbps(10));
  EXPECT_EQ(states.rate(1, false), Rate::gbps(20));
  states.apply({.link = 1, .kind = Kind::kRate, .rate = Rate::gbps(50)});
  EXPECT_EQ(states.rate(1, true), Rate::gbps(50));
  EXPECT_EQ(states.rate(1, false), Rate::gbps(50));
  states.apply({.link = 1, .kind = Kind::kLoss, .loss = 0.5});
  EXPECT_TRUE(states.is_up(1));
  EXPECT_EQ(states.rate(1, true), Rate::gbps(50));
}

TEST(LinkStates, EventsAreChecked) {
  const Topology t = build_single_switch({.hosts = 2});
  using Kind = LinkEvent::Kind;
  validate(t, {.link = 1, .kind = Kind::kDown});
  validate(t, {.link = 1, .kind = Kind::kRate, .rate = Rate::gbps(1)});
  validate(t, {.link = 1, .kind = Kind::kLoss, .loss = 0.999});
  expect_bad_input([&] { validate(t, {.link = 2, .kind = Kind::kUp}); }, "no link 2; accepted: 0 to 1");
  expect_bad_input([&] { validate(t, {.link = 0, .kind = Kind::kRate}); }, "host0:0-switch0:0 cannot run at 0 Gb/s");
  expect_bad_input([&] { validate(t, {.link = 0, .kind = Kind::kRate, .rate = Rate::gbps(2000)}); }, "to 1600");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double loss : {1.0, -0.1, nan}) {
    expect_bad_input([&] { validate(t, {.link = 0, .kind = Kind::kLoss, .loss = loss}); }, "from 0 to below 1");
  }
}

TEST(Capacities, OfALeafAreItsUplinks) {
  const Topology t = build_leaf_spine({.uplink = {.rate = Rate::gbps(400)}});
  LinkStates states(t);
  const uint32_t leaf3 = node(t, "leaf3") - t.host_count;
  const uint32_t spine1 = node(t, "spine1") - t.host_count;
  EXPECT_EQ(switch_capacities(t, states)[leaf3].out, 8 * 400 * kGbps);
  EXPECT_EQ(switch_capacities(t, states)[leaf3].in, 8 * 400 * kGbps);
  EXPECT_EQ(pod_capacities(t, states)[3].out, 8 * 400 * kGbps);

  const LinkId link = t.links_between(node(t, "leaf3"), node(t, "spine1"))[0];
  states.apply(
      {.link = link, .kind = LinkEvent::Kind::kRate, .direction = LinkDirection::kAToB, .rate = Rate::gbps(40)});
  EXPECT_EQ(switch_capacities(t, states)[leaf3].out, (7 * 400 + 40) * kGbps);
  EXPECT_EQ(switch_capacities(t, states)[leaf3].in, 8 * 400 * kGbps);
  EXPECT_EQ(switch_capacities(t, states)[spine1].in, (7 * 400 + 40) * kGbps);
  EXPECT_EQ(pod_capacities(t, states)[3].out, (7 * 400 + 40) * kGbps);
  EXPECT_EQ(pod_capacities(t, states)[3].in, 8 * 400 * kGbps);
  EXPECT_EQ(pod_capacities(t, states)[2].out, 8 * 400 * kGbps) << "another leaf";

  states.apply({.link = link, .kind = LinkEvent::Kind::kDown});
  EXPECT_EQ(switch_capacities(t, states)[leaf3].out, 7 * 400 * kGbps);
  EXPECT_EQ(switch_capacities(t, states)[leaf3].in, 7 * 400 * kGbps);
  EXPECT_EQ(pod_capacities(t, states)[3].in, 7 * 400 * kGbps);
}

TEST(Capacities, OfAPodAreItsCoreLinks) {
  const Topology t = build_fat_tree({.k = 8, .core_link = {.rate = Rate::gbps(50)}});
  LinkStates states(t);
  for (const Capacity& pod : pod_capacities(t, states)) {
    EXPECT_EQ(pod.out, 16 * 50 * kGbps);
    EXPECT_EQ(pod.in, 16 * 50 * kGbps);
  }
  EXPECT_EQ(pod_capacities(t, states).size(), 8U);
  // A link within a pod does not count, one to the cores does.
  states.apply({.link = t.links_between(node(t, "edge0"), node(t, "agg0"))[0], .kind = LinkEvent::Kind::kDown});
  EXPECT_EQ(pod_capacities(t, states)[0].out, 16 * 50 * kGbps);
  EXPECT_EQ(switch_capacities(t, states)[0].out, 3 * 100 * kGbps);
  states.apply({.link = t.links_between(node(t, "agg0"), node(t, "core0"))[0], .kind = LinkEvent::Kind::kDown});
  EXPECT_EQ(pod_capacities(t, states)[0].out, 15 * 50 * kGbps);
  EXPECT_EQ(pod_capacities(t, states)[1].out, 16 * 50 * kGbps);
}

TEST(Capacities, OfARailGroupAreTheUplinksOfItsLeaves) {
  const Topology t = build_rail({.hosts = 32, .nics_per_server = 4, .servers_per_group = 4, .spines = 2});
  const LinkStates states(t);
  EXPECT_EQ(pod_capacities(t, states)[1].out, 4 * 2 * 100 * kGbps);
  EXPECT_EQ(switch_capacities(t, states)[0].out, 2 * 100 * kGbps);
}

}  // namespace
}  // namespace heddle::lab
