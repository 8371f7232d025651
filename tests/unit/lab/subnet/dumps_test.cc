#include "lab/subnet/dumps.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "lab/subnet/check.h"
#include "lab/subnet/ibnetdiscover.h"
#include "lab/topology/builders.h"
#include "lab/topology/import.h"
#include "lab/topology/import_text.h"
#include "tests/unit/lab/subnet/subnet_fabrics.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

// Two switches with a host each, ports numbered with gaps; dumps written for this test in the formats of the tools.
Topology two_switches() {
  return parse_topology(
      "switchguid=0xa00\nSwitch 8 \"S-a\" # \"left\"\n[2] \"H-c\"[1] # lid 1 4xHDR\n[8] \"S-b\"[3] # lid 2 4xHDR\n"
      "switchguid=0xb00\nSwitch 8 \"S-b\" # \"right\"\n[5] \"H-d\"[1] # lid 1 4xHDR\n"
      "caguid=0xc00\nCa 1 \"H-c\" # \"c\"\ncaguid=0xd00\nCa 1 \"H-d\" # \"d\"\n",
      "net", TopologyFormat::kIbnetdiscover);
}

constexpr const char* kLfts = R"(Unicast lids [0-7] of switch Lid 1 guid 0x0000000000000a00 ('left'):
0x0001 000 # Switch portguid 0x0000000000000a00: 'left'
0x0002 008 # Switch portguid 0x0000000000000b00: 'right'
0x0004 002 # Channel Adapter portguid 0x0000000000000c01: 'c'
0x0005 002 # Channel Adapter portguid 0x0000000000000c01: 'c'
0x0006 008 # Channel Adapter portguid 0x0000000000000d01: 'd'
0x0007 008 # Channel Adapter portguid 0x0000000000000d01: 'd'
6 lids dumped
Unicast lids [0x0-0x7] of switch DR path slid 0; dlid 0; 0,1,3 guid 0x0000000000000b00 (right):
  Lid  Out   Destination
       Port     Info
0x0001 003 : (Switch portguid 0x0000000000000a00: 'left')
0x0002 000 : (Switch portguid 0x0000000000000b00: 'right')
0x0004 003 : (Channel Adapter portguid 0x0000000000000c01: 'c')
0x0005 003 : (Channel Adapter portguid 0x0000000000000c01: 'c')
0x0006 005 : (Channel Adapter portguid 0x0000000000000d01: 'd')
0x0007 005 : (Channel Adapter portguid 0x0000000000000d01: 'd')
6 valid lids dumped
)";

TEST(SubnetDumps, ForwardingTablesOfOpensmAndOfDumpFtsAreRead) {
  const Topology t = two_switches();
  const SubnetTables tables = read_lft_dump(t, kLfts, "dump");
  EXPECT_EQ(tables.lmc, 1);
  EXPECT_EQ(tables.host_lids, (std::vector<Lid>{4, 6}));
  EXPECT_EQ(tables.switches[0].lid, 1);
  EXPECT_EQ(tables.switches[1].lid, 2);
  // Port 8 of the subnet is the second link here, port 3 the second of the other switch.
  EXPECT_EQ(tables.port(0, 6), 2);
  EXPECT_EQ(tables.port(0, 4), 1);
  EXPECT_EQ(tables.port(1, 5), 2);
  EXPECT_EQ(tables.port(1, 3), kLftUnreachable);
  EXPECT_EQ(tables.port(1, 900), kLftUnreachable);
  const SubnetCheck check = check_subnet(t, all_up(t), tables);
  EXPECT_TRUE(check.all_reachable()) << check.first;
  EXPECT_EQ(check.pairs, 4U);
}

TEST(SubnetDumps, LanesLevelsAndArbitrationAreRead) {
  const Topology t = two_switches();
  SubnetTables tables = read_lft_dump(t, kLfts, "dump");
  read_sl_to_vl_dump(t, R"(Switch 0x0000000000000a00, base LID 1, "left"
#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15
#--------------------------------------------------------
0   8   : 1  1  1  1  1  1  1  1  1  1  1  1  1  1  1  1
2   8   : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  15
#--------------------------------------------------------

Channel Adapter 0x0000000000000d01, base LID 6, "d"
0   0   : 7  6  5  4  3  2  1  0  0  1  2  3  4  5  6  7
)",
                     "sl2vl", tables);
  EXPECT_EQ(tables.vl(0, 1, 2, 9), 1);
  EXPECT_EQ(tables.vl(0, 1, 2, 15), 15);
  EXPECT_EQ(tables.vl(0, 0, 2, 4), 1);
  EXPECT_EQ(tables.host_vl(1, 1), 6);
  read_path_sl_dump(
      "Nov 30 01:18:28 391313 [B6EF66C0] 0x08 -> vltable_print:    route from src_lid=1 to dest_lid=2 on vl=3\n"
      "Nov 30 01:18:28 391314 [B6EF66C0] 0x08 -> vltable_print:    route from src_lid=6 to dest_lid=4 on vl=2\n"
      "something else\nroute from src_lid=4 to dest_lid=6 on vl=1\n",
      tables);
  EXPECT_EQ(tables.sl(1, 0), 2);
  EXPECT_EQ(tables.sl(0, 1), 1);
  EXPECT_EQ(tables.lanes(), 8U);  // a host's level 0
  read_vl_arbitration_dump(t, R"(# VLArbitration tables: Lid 1 port 8 LowCap 8 HighCap 8 HighLimit 4
# Low priority VL Arbitration Table:
VL    : |0x0 |0x1 |
WEIGHT: |0x0 |0x4 |
# High priority VL Arbitration Table:
VL    : |0x0 |0xf |
WEIGHT: |0xff |0x0 |
# VLArbitration tables: Lid 6 port 1 LowCap 8 HighCap 8
# Low priority VL Arbitration Table:
VL    : |0x2 |
WEIGHT: |0x40 |
)",
                           "vlarb", tables);
  const VlArbitration& at = tables.switches[0].vl_arbitration.at(2);
  EXPECT_EQ(at.high, (std::vector<VlArbitrationEntry>{{0, 255}}));
  EXPECT_EQ(at.low, (std::vector<VlArbitrationEntry>{{0, 0}, {1, 4}}));
  EXPECT_EQ(at.high_limit, 4);
  EXPECT_EQ(tables.host_vl_arbitration.at(1).low, (std::vector<VlArbitrationEntry>{{2, 64}}));
  EXPECT_EQ(read_host_order(tables, "0x0006\td\n0xFFFF\tDUMMY\n0x0004\tc\n", "order"), (std::vector<HostId>{1, 0}));
}

void expect_same(const SubnetTables& a, const SubnetTables& b) {
  EXPECT_EQ(a.lmc, b.lmc);
  EXPECT_EQ(a.host_lids, b.host_lids);
  EXPECT_EQ(a.path_sl, b.path_sl);
  EXPECT_EQ(a.host_sl_to_vl, b.host_sl_to_vl);
  EXPECT_EQ(a.host_vl_arbitration, b.host_vl_arbitration);
  ASSERT_EQ(a.switches.size(), b.switches.size());
  for (size_t s = 0; s < a.switches.size(); ++s) {
    EXPECT_EQ(a.switches[s].lid, b.switches[s].lid);
    EXPECT_EQ(a.switches[s].lft, b.switches[s].lft);
    EXPECT_EQ(a.switches[s].sl_to_vl, b.switches[s].sl_to_vl);
    EXPECT_EQ(a.switches[s].vl_arbitration, b.switches[s].vl_arbitration);
  }
}

TEST(SubnetDumps, ADirectoryThatWasWrittenIsReadAgain) {
  const std::string directory =
      (std::filesystem::temp_directory_path() / fmt::format("heddle-subnet-test-{}", getpid())).string();
  for (const Topology& t : {build_leaf_spine({.hosts = 12, .leaves = 3, .spines = 2}), two_switches(), ring(5, 2)}) {
    SubnetTables tables = shortest_path_tables(t, all_up(t), 1);
    write_subnet_directory(t, all_up(t), tables, {1, 0}, directory);
    expect_same(read_subnet_directory(t, directory), tables);
    EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(directory) / kSlToVlDump));
    const std::string order = std::filesystem::path(directory) / kHostOrderDump;
    EXPECT_EQ(read_host_order(tables, read_text_file(order), order), (std::vector<HostId>{1, 0}));
    tables.path_sl.assign(size_t{t.host_count} * t.host_count, 0);
    tables.path_sl[1] = 3;
    tables.host_sl_to_vl.assign(t.host_count, {0, 1, 2, 3});
    tables.host_vl_arbitration.assign(t.host_count, {{{0, 4}}, {{1, 4}, {2, 200}}, 2});
    for (SwitchTables& at : tables.switches) {
      at.sl_to_vl.assign((at.ports + 1) * (at.ports + 1), {0, 1, 2, 3, 15});
      at.vl_arbitration.assign(at.ports + 1, {{{1, 1}}, {{0, 255}}, 255});
    }
    write_subnet_directory(t, all_up(t), tables, {}, directory);
    expect_same(read_subnet_directory(t, directory), tables);
    EXPECT_EQ(
        parse_topology(read_text_file(directory + "/fabric.net"), "net", TopologyFormat::kIbnetdiscover).host_count,
        t.host_count);
  }
  std::filesystem::remove_all(directory);
}

TEST(SubnetDumps, MistakesAreNamedWithTheirLine) {
  const Topology t = two_switches();
  const SubnetTables tables = read_lft_dump(t, kLfts, "dump");
  expect_bad_input([&] { read_lft_dump(t, "what?\n", "dump"); }, "dump: no forwarding table");
  expect_bad_input([&] { read_lft_dump(t, "Unicast lids [0-7] of switch\n", "dump"); },
                   "dump:1: a table without its switch");
  expect_bad_input([&] { read_lft_dump(t, "Unicast lids [0-7] of switch Lid 1 guid 0x77 ('x'):\n", "dump"); },
                   "dump:1: switch 0x0000000000000077 is none of this topology");
  const std::string head = "Unicast lids [0-7] of switch Lid 1 guid 0xa00 ('left'):\n";
  expect_bad_input([&] { read_lft_dump(t, head + "0x0001 999 #\n", "dump"); }, "dump:2: the port is '999'");
  expect_bad_input([&] { read_lft_dump(t, head + "0xc000 001 #\n", "dump"); }, "dump:2: the LID is '0xc000'");
  SubnetTables spoilt = tables;
  expect_bad_input([&] { read_sl_to_vl_dump(t, "Switch 0xa00, base LID 1\n0 8 : 1 2\n", "sl", spoilt); },
                   "sl:2: 5 words");
  expect_bad_input([&] { read_host_order(tables, "0x0009\tx\n", "order"); }, "order:1: LID '0x0009' is no host's");
  expect_bad_input([&] { read_subnet_directory(t, "/nonexistent"); }, "cannot be opened");
}

}  // namespace
}  // namespace heddle::lab
