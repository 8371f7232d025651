#include "lab/topology/topology.h"

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

// Two hosts on each of two switches that are linked twice.
Topology dumbbell() {
  Topology t;
  t.kind = "graph";
  for (int host = 0; host < 4; ++host) {
    t.add_host("host" + std::to_string(host), static_cast<uint32_t>(host / 2));
  }
  t.add_switch("left", 1, 0);
  t.add_switch("right", 1, 1);
  for (HostId host = 0; host < 4; ++host) {
    t.connect(host, 4 + host / 2, {});
  }
  t.connect(4, 5, {.rate = Rate::gbps(400), .delay = 2 * kMicrosecond});
  t.connect(4, 5, {.rate = Rate::gbps(400), .delay = 500 * kNanosecond});
  return t;
}

TEST(Topology, ReadsBackWhatWasBuilt) {
  const Topology t = dumbbell();
  validate(t);
  expect_ports_fit_links(t);
  expect_hosts_first(t);
  EXPECT_EQ(t.switch_count(), 2U);
  EXPECT_EQ(t.leaf_of(1), 4U);
  EXPECT_EQ(t.leaf_of(2), 5U);
  EXPECT_EQ(t.pod_of(3), 1U);
  EXPECT_EQ(t.pod_count(), 2U);
  EXPECT_EQ(t.neighbor(4, 2), 5U);
  EXPECT_EQ(t.neighbor(5, 0), 2U);
  EXPECT_EQ(t.links_between(5, 4), (std::vector<LinkId>{4, 5}));
  EXPECT_EQ(t.links_between(0, 5), std::vector<LinkId>{});
  EXPECT_EQ(t.smallest_delay(), 500 * kNanosecond);
  EXPECT_TRUE(t.uplinks(4).empty()) << "both switches are of one tier";
  EXPECT_EQ(t.uplinks(0), std::vector<PortIndex>{0});
}

TEST(Topology, NamesLinksAndPorts) {
  const Topology t = dumbbell();
  EXPECT_EQ(link_name(t, 5), "left:3-right:3");
  EXPECT_EQ(find_port(t, "right:1"), (PortRef{5, 1}));
  EXPECT_EQ(find_node(t, "middle"), std::nullopt);
  EXPECT_EQ(node_names(t), "host0…host3, left, right");
  const Topology leaf_spine = build_leaf_spine({});
  EXPECT_EQ(node_names(leaf_spine), "host0…host127, leaf0…leaf7, spine0…spine7");
}

TEST(Topology, RefusesPortsThatDoNotExist) {
  const Topology t = dumbbell();
  for (const char* text : {"middle:0", "", ":", "left0:0"}) {
    expect_bad_input([&] { find_port(t, text); }, "accepted: node:port with one of host0…host3, left, right");
  }
  for (const char* text : {"left:4", "left", "left:", "left:x", "left:1x", "left:-1", "left:99999999999999999999"}) {
    expect_bad_input([&] { find_port(t, text); }, "accepted: left:0 to left:3");
  }
}

struct Fault {
  const char* description;
  std::function<void(Topology&)> spoil;
  const char* part;
};

TEST(Topology, ValidationNamesWhatIsWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Fault faults[] = {
      {"rate 0", [](Topology& t) { t.links[4].rate = Rate(); }, "left:2-right:2 has a rate of 0 Gb/s"},
      {"rate above 1600G", [](Topology& t) { t.links[4].rate = Rate::gbps(1601); }, "accepted: 0.001 to 1600"},
      {"no delay, so no lookahead", [](Topology& t) { t.links[5].delay = 0; }, "left:3-right:3 has a delay of 0 us"},
      {"delay above a second", [](Topology& t) { t.links[5].delay = kSecond + 1; }, "has a delay of"},
      {"overhead too small", [](Topology& t) { t.links[0].overhead = -33; }, "an overhead of -33 bytes"},
      {"overhead too large", [](Topology& t) { t.links[0].overhead = 257; }, "accepted: -32 to 256"},
      {"every frame lost", [](Topology& t) { t.links[0].loss = 1; }, "loss 1 and"},
      {"loss not a number", [=](Topology& t) { t.links[0].loss = nan; }, "loss nan"},
      {"negative bit error", [](Topology& t) { t.links[0].bit_error = -1e-12; }, "bit error -1e-12"},
      {"same name twice", [](Topology& t) { t.nodes[5].name = "left"; }, "two nodes are called 'left'"},
      {"no name", [](Topology& t) { t.nodes[5].name.clear(); }, "a node without a name"},
      {"host with two links", [](Topology& t) { t.connect(0, 5, {}); }, "host0 has 2 links; accepted: one"},
      {"switch without links", [](Topology& t) { t.add_switch("idle", 1, 0); }, "idle has no link"},
      {"servers of three NICs", [](Topology& t) { t.hosts_per_server = 3; }, "4 hosts do not make whole servers of 3"},
      {"servers of no NICs", [](Topology& t) { t.hosts_per_server = 0; }, "whole servers of 0"},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.description);
    Topology t = dumbbell();
    fault.spoil(t);
    expect_bad_input([&] { validate(t); }, fault.part);
  }
}

TEST(Topology, RefusesHostsWithoutAPathBetweenThem) {
  Topology t;
  t.add_host("a", 0);
  t.add_host("b", 0);
  t.add_switch("x", 1, 0);
  t.add_switch("y", 1, 1);
  t.connect(0, 2, {});
  t.connect(1, 3, {});
  expect_bad_input([&] { validate(t); }, "there is no path from a to b");
}

TEST(Topology, RefusesHostsLinkedToEachOther) {
  Topology t;
  t.add_host("a", 0);
  t.add_host("b", 0);
  t.add_host("c", 0);
  t.add_switch("x", 1, 0);
  t.connect(0, 1, {});
  t.connect(2, 3, {});
  expect_bad_input([&] { validate(t); }, "a and b are linked directly");
}

TEST(Topology, RefusesNothingToSimulate) {
  Topology t;
  expect_bad_input([&] { validate(t); }, "0 hosts and 0 switches");
  t.add_host("a", 0);
  expect_bad_input([&] { validate(t); }, "1 hosts and 0 switches");
}

TEST(Topology, ConnectRefusesALoop) {
  Topology t = dumbbell();
  expect_bad_input([&] { t.connect(4, 4, {}); }, "left is linked to itself");
}

TEST(Topology, PortsAreBounded) {
  Topology t;
  t.add_host("a", 0);
  t.add_switch("x", 1, 0);
  t.add_switch("y", 1, 0);
  for (uint32_t i = 0; i < kMaxPorts; ++i) {
    t.connect(1, 2, {});
  }
  expect_bad_input([&] { t.connect(1, 2, {}); }, "x has more than 32767 ports");
  expect_bad_input([&] { t.connect(0, 2, {}); }, "y has more than 32767 ports");
  EXPECT_TRUE(t.ports[0].empty()) << "a refused link leaves nothing behind";
}

TEST(Topology, HostsComeBeforeSwitches) {
  Topology t = dumbbell();
  try {
    t.add_host("late", 0);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kFailed);
  }
}

// A broken map of ports is our own fault, not the user's.
TEST(Topology, PortMapsAreChecked) {
  Topology t = dumbbell();
  std::swap(t.ports[4][2], t.ports[4][3]);
  try {
    validate(t);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kFailed) << error.what();
  }
}

}  // namespace
}  // namespace heddle::lab
