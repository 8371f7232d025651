#include "lab/subnet/ibnetdiscover.h"

#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "lab/topology/import.h"
#include "tests/unit/lab/subnet/subnet_fabrics.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

std::string names(const Topology& t) {
  std::string all;
  for (const Node& node : t.nodes) all += (all.empty() ? "" : ", ") + node.name;
  return all;
}

constexpr TopologyFormat kFormat = TopologyFormat::kIbnetdiscover;

// Two leaves and a spine as a subnet with gaps in its port numbers, a dual-port adapter and a router; written for this
// test in the format of ibnetdiscover's output.
constexpr const char* kSubnet = R"(#
# Topology file: generated on Mon Jan  5 10:00:00 2026
#
# Initiated from node 0002c90300000010 port 0002c90300000011

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x2c90200000000
switchguid=0x2c90200000000(2c90200000000)
Switch	41 "S-0002c90200000000"		# "MF0;leaf:QM8700/U1" enhanced port 0 lid 3 lmc 0
[1]	"H-0002c90300000010"[1](2c90300000011) 		# "node1 mlx5_0" lid 1 4xHDR
[7]	"H-0002c90300000020"[1](2c90300000021) 		# "node2 HCA-1" lid 2 4xEDR
[40]	"S-0002c90200000200"[1]		# "spine" lid 5 4xHDR

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x2c90200000100
switchguid=0x2c90200000100(2c90200000100)
Switch	41 "S-0002c90200000100"		# "MF0;leaf:QM8700/U1" enhanced port 0 lid 4 lmc 0
[2]	"H-0002c90300000020"[2](2c90300000022) 		# "node2 HCA-1" lid 6 4xEDR
[40]	"S-0002c90200000200"[9]		# "spine" lid 5 4xHDR
[41]	"R-0002c90400000000"[1](2c90400000001) 		# "router" lid 9 4xHDR

switchguid=0x2c90200000200(2c90200000200)
Switch	41 "S-0002c90200000200"		# "spine" base port 0 lid 5 lmc 0
[1]	"S-0002c90200000000"[40]		# "MF0;leaf:QM8700/U1" lid 3 4xHDR
[9]	"S-0002c90200000100"[40]		# "MF0;leaf:QM8700/U1" lid 4 4xHDR

caguid=0x2c90300000020
Ca	2 "H-0002c90300000020"		# "node2 HCA-1"
[1](2c90300000021) 	"S-0002c90200000000"[7]		# lid 2 lmc 0 "MF0;leaf:QM8700/U1" lid 3 4xEDR
[2](2c90300000022) 	"S-0002c90200000100"[2]		# lid 6 lmc 0 "MF0;leaf:QM8700/U1" lid 4 4xEDR

caguid=0x2c90300000010
Ca	1 "H-0002c90300000010"		# "node1 mlx5_0"
[1](2c90300000011) 	"S-0002c90200000000"[1]		# lid 1 lmc 0 "MF0;leaf:QM8700/U1" lid 3 4xHDR

rtguid=0x2c90400000000
Rt	1 "R-0002c90400000000"		# "router"
[1](2c90400000001) 	"S-0002c90200000100"[41]		# lid 9 lmc 0 "leaf" lid 4 4xHDR
)";

TEST(Ibnetdiscover, ASubnetIsReadWithItsNamesNumbersAndRates) {
  const Topology t = parse_topology(kSubnet, "net", kFormat, {.delay = 50 * kNanosecond});
  expect_ports_fit_links(t);
  expect_hosts_first(t);
  ASSERT_EQ(t.host_count, 3U);
  ASSERT_EQ(t.switch_count(), 3U);
  EXPECT_EQ(t.kind, "file");
  EXPECT_EQ(names(t),
            "node2_HCA-1_p1, node2_HCA-1_p2, node1_mlx5_0, MF0;leaf_QM8700/U1, "
            "MF0;leaf_QM8700/U1_S-0002c90200000100, spine");
  EXPECT_EQ(t.nodes[3].tier, 1);
  EXPECT_EQ(t.nodes[5].tier, 2);
  EXPECT_EQ(t.links.size(), 5U);
  EXPECT_EQ(t.links[t.ports[0][0]].rate.gbps(), 100);
  EXPECT_EQ(t.links[t.ports[2][0]].rate.gbps(), 200);
  EXPECT_EQ(t.links[0].delay, 50 * kNanosecond);
  EXPECT_EQ(node_guid(t, 0), 0x2c90300000020U);
  EXPECT_EQ(node_guid(t, 1), 0x2c90300000020U);
  EXPECT_EQ(node_guid(t, 4), 0x2c90200000100U);
  EXPECT_EQ(t.port_numbers[1], std::vector<uint16_t>{2});
  EXPECT_EQ(t.port_numbers[3], (std::vector<uint16_t>{7, 1, 40}));  // in the order of the hosts
  EXPECT_EQ(t.port_numbers[5], (std::vector<uint16_t>{1, 9}));
  ASSERT_EQ(t.notes.size(), 1U);
  EXPECT_EQ(t.notes[0], "1 routers left out: the lab has one subnet");
}

TEST(Ibnetdiscover, AnIbsimFileMayBeTerse) {
  const Topology t = parse_topology(
      "# by hand\nSwitch 8 \"Left\"\n[1] \"Hca1\"\n[3] \"Right\"[5] w=4\nSwitch\t8 \"Right\"\n[2] \"Hca2\"[1]\n"
      "Hca 2 \"Hca1\"\nHca 1 \"Hca2\"\n",
      "net", kFormat, {.rate = Rate::gbps(40)});
  EXPECT_EQ(names(t), "Hca1, Hca2, Left, Right");
  EXPECT_EQ(t.port_numbers[3], (std::vector<uint16_t>{2, 5}));
  EXPECT_TRUE(t.guids.empty());
  EXPECT_EQ(t.links[0].rate.gbps(), 40);
  ASSERT_EQ(t.notes.size(), 1U);
  EXPECT_EQ(t.notes[0], "3 links have no speed in the file: 40 Gb/s assumed");
}

TEST(Ibnetdiscover, WhatIsWrittenIsReadAgain) {
  for (const Topology& t : {build_fat_tree(FatTreeSettings{.k = 6}),
                            build_leaf_spine({.hosts = 24, .leaves = 4, .spines = 3, .links_per_pair = 2}), ring(5, 4),
                            random_graph(3, 12, 9), parse_topology(kSubnet, "net", kFormat)}) {
    SCOPED_TRACE(t.kind);
    const Topology back = parse_topology(write_ibnetdiscover(t, all_up(t)), "net", kFormat);
    expect_ports_fit_links(back);
    ASSERT_EQ(back.nodes.size(), t.nodes.size());
    ASSERT_EQ(back.links.size(), t.links.size());
    ASSERT_EQ(back.host_count, t.host_count);
    for (NodeId n = 0; n < t.nodes.size(); ++n) {
      EXPECT_EQ(node_guid(back, n), node_guid(t, n));
      // The same node is at the other end of the port of the same number.
      const auto ends = [n](const Topology& of) {
        std::map<uint32_t, std::pair<NodeId, uint64_t>> by_number;
        for (PortIndex port = 0; port < of.ports[n].size(); ++port) {
          by_number[port_number(of, n, port)] = {of.neighbor(n, port),
                                                 of.links[of.ports[n][port]].rate.bits_per_second()};
        }
        return by_number;
      };
      EXPECT_EQ(ends(back), ends(t));
    }
  }
}

TEST(Ibnetdiscover, WhatIsDownIsNotWritten) {
  const Topology t = build_leaf_spine({.hosts = 8, .leaves = 2, .spines = 2});
  std::vector<bool> up = all_up(t);
  up[t.links_between(node(t, "leaf0"), node(t, "spine1"))[0]] = false;
  up[t.ports[5][0]] = false;
  const Topology back = parse_topology(write_ibnetdiscover(t, up), "net", kFormat);
  EXPECT_EQ(back.host_count, 7U);
  EXPECT_FALSE(find_node(back, "host5"));
  EXPECT_TRUE(back.links_between(node(back, "leaf0"), node(back, "spine1")).empty());
  EXPECT_EQ(back.links.size(), t.links.size() - 2);
}

TEST(Ibnetdiscover, RatesAreThoseOfTheData) {
  struct Row {
    const char* text;
    double gbps;  // IBTA volume 2: lanes × signalling rate × coding
  };
  const Row rows[] = {{"4xSDR", 8},   {"4xDDR", 16},  {"4xQDR", 32},  {"4xFDR10", 40}, {"4xFDR", 54.545},
                      {"4xEDR", 100}, {"4xHDR", 200}, {"2xHDR", 100}, {"4xNDR", 400},  {"4xXDR", 800},
                      {"1xEDR", 25},  {"8xNDR", 800}, {"12xQDR", 96}};
  for (const Row& row : rows) {
    ASSERT_TRUE(infiniband_rate(row.text)) << row.text;
    EXPECT_NEAR(static_cast<double>(infiniband_rate(row.text)->bits_per_second()) / 1e9, row.gbps, 1e-3) << row.text;
  }
  for (const char* text : {"", "4x", "HDR", "3xHDR", "4xABC", "x", "4HDR"}) EXPECT_FALSE(infiniband_rate(text)) << text;
  EXPECT_EQ(infiniband_speed(Rate::gbps(400)), "4xNDR");
  EXPECT_EQ(infiniband_speed(Rate::gbps(100)), "4xEDR");
  EXPECT_EQ(infiniband_speed(Rate::gbps(10)), "1xFDR10");
  EXPECT_EQ(infiniband_speed(Rate::gbps(800)), "8xNDR");
  EXPECT_EQ(infiniband_speed(Rate::gbps(110)), "4xEDR");
  const Topology odd = build_single_switch({.hosts = 3, .link = {.rate = Rate::gbps(110)}});
  EXPECT_NE(write_ibnetdiscover(odd, all_up(odd)).find("# 3 links have rates that InfiniBand does not have"),
            std::string::npos);
}

TEST(Ibnetdiscover, MistakesAreNamedWithTheirLine) {
  struct Row {
    const char* description;
    const char* text;
    const char* error;
  };
  const std::string hosts = "Ca 1 \"H\"\n[1] \"S\"[1]\nCa 1 \"I\"\n[1] \"S\"[2]\n";
  const Row rows[] = {
      {"nothing", "", "0 hosts and 0 switches"},
      {"no ports", "Switch \"S\"\n", "net:1: the number of ports of a node is '\"S\"'"},
      {"too many ports", "Switch 255 \"S\"\n", "net:1: the number of ports of a node is 255; accepted: 1 to 254"},
      {"no id", "Switch 8 S\n", "net:1: a node without its id"},
      {"a port before all nodes", "[1] \"S\"[1]\n", "net:1: a port before the first node"},
      {"a port it does not have", "Switch 8 \"S\"\n[9] \"H\"[1]\n", "net:2: a port of 'S' has no number from 1 to 8"},
      {"leads nowhere", "Switch 8 \"S\"\n[1]\n", "net:2: port 1 of 'S' does not say where it leads"},
      {"an unknown node", "Switch 8 \"S\"\n[1] \"H\"[1]\n", "net:2: port 1 leads to 'H', which is no node"},
      {"the other end's port", "Ca 1 \"H\"\n[1] \"S\"[9]\nSwitch 8 \"S\"\n", "net:2: port 1 leads to port 9 of 'S'"},
      {"two nodes of one id", "Ca 1 \"H\"\nCa 1 \"H\"\n", "net:2: node 'H' comes twice"},
      {"two ends of one port", "Ca 1 \"H\"\n[1] \"S\"[1]\nCa 1 \"I\"\n[1] \"S\"[1]\nSwitch 8 \"S\"\n",
       "net:4: port 1 of 'S' leads to port 1 of 'H' and to port 1 of 'I'"},
      {"hosts back to back", "Ca 1 \"H\"\n[1] \"I\"[1]\nCa 1 \"I\"\n", "'H' and 'I' are linked directly"},
      {"itself", "Switch 8 \"S\"\n[1] \"S\"[1]\n", "net:2: port 1 leads to itself"},
      {"a GUID", "switchguid=0xzz\n", "net:1: the GUID is 'zz'"},
      {"ibsim's include", "include more.net\n", "net:1: found ibsim's 'include'"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.description);
    expect_bad_input([&] { parse_topology(row.text, "net", kFormat); }, row.error);
  }
}

}  // namespace
}  // namespace heddle::lab
