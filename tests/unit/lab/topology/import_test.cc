#include "lab/topology/import.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lab/topology/builders.h"
#include "lab/topology/import_text.h"
#include "net/random.h"
#include "tests/unit/lab/topology/topology_checks.h"

namespace heddle::lab {
namespace {

// The fabrics below are small ones written for these tests in the formats of the simulators.

constexpr const char* kHtsimThreeTiers = R"(# a comment
Nodes 16
Tiers 3
Podsize 4

Tier 0
Oversubscribed 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 0

Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Bundle 1

Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 1000)";

constexpr const char* kHtsimTwoTiers = R"(nodes 12
tiers 2
podsize 12
tier 0
downlink_speed_gbps 200
radix_down 4
radix_up 4
downlink_latency_ns 500
switch_latency_ns 300
oversubscribed 1
queue_up 90
tier 1
downlink_speed_gbps 200
radix_down 6
downlink_latency_ns 800
switch_latency_ns 100
bundle 2
queue_down 90
)";

constexpr const char* kHpcc = R"(6 2 5
4 5
0 4 100Gbps 1000ns 0.000000
1 4 25000Mbps 0.001ms 0.000001
2 5 100Gbps 1us 0
3 5 12.5GBps 0.000001 0
4 5 400Gbps 2000ns 0

First line: total node #, switch node #, link #
src0 dst0 rate delay error_rate
)";

constexpr const char* kSimai = R"(10 2 2 4 11 H20
4 5 6 7 8 9
0 4 2400Gbps 0.000025ms 0
0 6 200Gbps 0.0005ms 0
1 4 2400Gbps 0.000025ms 0
1 7 200Gbps 0.0005ms 0
2 5 2400Gbps 0.000025ms 0
2 6 200Gbps 0.0005ms 0
3 5 2400Gbps 0.000025ms 0
3 7 200Gbps 0.0005ms 0
6 8 400Gbps 0.0005ms 0
7 8 400Gbps 0.0005ms 0
7 9 400Gbps 0.0005ms 0
)";

using Format = TopologyFormat;

Topology parse(const std::string& text, Format format, const ImportSettings& settings = {}) {
  return parse_topology(text, "fabric.txt", format, settings);
}

void expect_same_fabric(const Topology& x, const Topology& y) {
  ASSERT_EQ(x.host_count, y.host_count);
  ASSERT_EQ(x.nodes.size(), y.nodes.size());
  ASSERT_EQ(x.links.size(), y.links.size());
  for (NodeId n = 0; n < x.nodes.size(); ++n) {
    EXPECT_EQ(x.nodes[n].tier, y.nodes[n].tier) << n;
    EXPECT_EQ(x.nodes[n].pod, y.nodes[n].pod) << n;
  }
  for (LinkId id = 0; id < x.links.size(); ++id) {
    const Link& a = x.links[id];
    const Link& b = y.links[id];
    EXPECT_EQ(std::tie(a.a, a.b, a.a_port, a.b_port, a.delay, a.overhead, a.loss),
              std::tie(b.a, b.b, b.a_port, b.b_port, b.delay, b.overhead, b.loss));
    EXPECT_EQ(a.rate, b.rate);
  }
}

TEST(TopologyImport, HtsimThreeTiersAreTheFatTree) {
  const Topology t = parse(kHtsimThreeTiers, Format::kHtsim);
  EXPECT_EQ(t.kind, "file");
  expect_same_fabric(t, build_fat_tree({.k = 4}));
  EXPECT_EQ(t.nodes[20].name, "edge4");
  EXPECT_TRUE(t.notes.empty());
  EXPECT_TRUE(t.file_ids.empty());
}

TEST(TopologyImport, HtsimTwoTiersWithBundlesAndLatencies) {
  const Topology t = parse(kHtsimTwoTiers, Format::kHtsim);
  const LinkSettings host = {.rate = Rate::gbps(200), .delay = 650 * kNanosecond};
  const LinkSettings up = {.rate = Rate::gbps(200), .delay = 1000 * kNanosecond};
  expect_same_fabric(
      t,
      build_leaf_spine({.hosts = 12, .leaves = 3, .spines = 2, .links_per_pair = 2, .host_link = host, .uplink = up}));
  // Three switches and four cables: 2 × 500 + 2 × 800 + 2 × 300 + 100 ns, as the sum of the links must be.
  EXPECT_EQ(2 * host.delay + 2 * up.delay, 3'300 * kNanosecond);
  ASSERT_EQ(t.notes.size(), 2U);
  EXPECT_NE(t.notes[0].find("line 11: queue_up ignored"), std::string::npos);
}

TEST(TopologyImport, HtsimBundlesTowardsTheCore) {
  std::string text = kHtsimThreeTiers;
  text += "\nBundle 2";
  text.replace(text.find("Radix_Down 4"), 12, "Radix_Down 8");
  const Topology t = parse(text, Format::kHtsim);
  EXPECT_EQ(t.switch_count(), 8U + 8U + 2U);
  EXPECT_EQ(t.links_between(node(t, "agg1"), node(t, "core1")).size(), 2U);
}

TEST(TopologyImport, HpccReadsUnitsLossAndOrder) {
  const Topology t = parse(kHpcc, Format::kHpcc);
  EXPECT_EQ(t.kind, "file");
  expect_ports_fit_links(t);
  expect_hosts_first(t);
  EXPECT_EQ(t.host_count, 4U);
  EXPECT_EQ(t.nodes[5].name, "switch5");
  EXPECT_EQ(t.links[0].rate, Rate::gbps(100));
  EXPECT_EQ(t.links[1].rate, Rate::gbps(25));
  EXPECT_EQ(t.links[3].rate, Rate::gbps(100));
  EXPECT_EQ(t.links[4].rate, Rate::gbps(400));
  for (LinkId link = 0; link < 4; ++link) {
    EXPECT_EQ(t.links[link].delay, kMicrosecond);
  }
  EXPECT_EQ(t.links[4].delay, 2 * kMicrosecond);
  EXPECT_EQ(t.links[1].loss, 1e-6);
  EXPECT_EQ(t.links[0].overhead, 24);
  EXPECT_EQ(t.nodes[4].tier, 1U);
  EXPECT_NE(t.pod_of(0), t.pod_of(2));
  EXPECT_TRUE(t.notes.empty()) << "text after the links is not worth a word";
  EXPECT_EQ(parse(kHpcc, Format::kHpcc, {.overhead = 0}).links[4].overhead, 0);
}

TEST(TopologyImport, HpccHostsMayHaveAnyNumbers) {
  const Topology t = parse("4 2 3\n0 2\n1 0 1Gbps 1us 0\n2 3 1Gbps 1us 0\n2 0 1Gbps 1us 0\n", Format::kHpcc);
  EXPECT_EQ(t.file_ids, (std::vector<uint32_t>{1, 3, 0, 2}));
  EXPECT_EQ(t.nodes[0].name, "host1");
  EXPECT_EQ(t.nodes[1].name, "host3");
  EXPECT_EQ(t.nodes[2].name, "switch0");
  EXPECT_EQ(peer(t, "host3", 0), "switch2");
  EXPECT_EQ(peer(t, "switch0", 1), "switch2");
}

// Written out as text and read back, a built fabric is the same one, ports and pods included.
TEST(TopologyImport, HpccRoundTrip) {
  for (const Topology& built : {build_leaf_spine({}), build_fat_tree({.k = 8, .oversubscription = 2})}) {
    std::string text = fmt::format("{} {} {}\n", built.nodes.size(), built.switch_count(), built.links.size());
    for (NodeId n = built.host_count; n < built.nodes.size(); ++n) {
      text += fmt::format("{} ", n);
    }
    for (const Link& link : built.links) {
      text += fmt::format("\n{} {} {}Gbps {}ns 0.000000", link.a, link.b, link.rate.gbps(), link.delay / kNanosecond);
    }
    expect_same_fabric(parse(text, Format::kConweave), built);
  }
}

TEST(TopologyImport, LinksBeyondTheHeadersCountAreMentioned) {
  const Topology t = parse("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n", Format::kHpcc);
  EXPECT_EQ(t.links.size(), 2U);
  ASSERT_EQ(t.notes.size(), 1U);
  EXPECT_NE(t.notes[0].find("line 5 looks like a link"), std::string::npos) << t.notes[0];
}

TEST(TopologyImport, SimaiLeavesTheServersInsideOut) {
  const Topology t = parse(kSimai, Format::kSimai);
  expect_ports_fit_links(t);
  EXPECT_EQ(t.host_count, 4U);
  EXPECT_EQ(t.hosts_per_server, 2U);
  EXPECT_EQ(t.switch_count(), 4U);
  EXPECT_EQ(t.links.size(), 7U);
  EXPECT_EQ(peer(t, "host0", 0), "switch6");
  EXPECT_EQ(peer(t, "host1", 0), "switch7");
  EXPECT_EQ(peer(t, "switch6", 1), "host2") << "rail 0";
  EXPECT_EQ(t.nodes[node(t, "switch9")].tier, 2U);
  EXPECT_EQ(t.links[0].delay, 500 * kNanosecond);
  EXPECT_EQ(t.file_ids, (std::vector<uint32_t>{0, 1, 2, 3, 6, 7, 8, 9}));
  ASSERT_EQ(t.notes.size(), 1U);
  EXPECT_NE(t.notes[0].find("2 NVSwitches and 4 NVLinks left out"), std::string::npos) << t.notes[0];
}

struct Fault {
  const char* description;
  Format format;
  std::string text;
  const char* part;
};

std::string with(const char* text, const std::string& from, const std::string& to) {
  std::string changed = text;
  const size_t at = changed.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return changed.replace(at, from.size(), to);
}

TEST(TopologyImport, ErrorsSayWhereAndWhatIsAccepted) {
  const Fault faults[] = {
      {"empty file", Format::kHpcc, "", "fabric.txt:1: the header has 0 words; accepted: 'nodes switches links'"},
      {"header of another format", Format::kHpcc, kSimai, "say format simai"},
      {"and the other way", Format::kSimai, kHpcc, "say format hpcc"},
      {"no number", Format::kHpcc, with(kHpcc, "6 2 5", "six 2 5"), "fabric.txt:1: the number of nodes is 'six'"},
      {"negative", Format::kHpcc, with(kHpcc, "6 2 5", "6 -2 5"), "switches is '-2'; accepted: a whole number from 1"},
      {"huge", Format::kHpcc, with(kHpcc, "6 2 5", "6 2 99999999999"), "links is '99999999999'"},
      {"more switches than nodes", Format::kHpcc, with(kHpcc, "6 2 5", "6 6 5"), "a whole number from 1 to 5"},
      {"switch out of range", Format::kHpcc, with(kHpcc, "4 5\n", "4 6\n"), "fabric.txt:2: a switch id is '6'"},
      {"switch twice", Format::kHpcc, with(kHpcc, "4 5\n", "4 4\n"), "fabric.txt:2: switch 4 is listed twice"},
      {"node out of range", Format::kHpcc, with(kHpcc, "2 5 100", "2 7 100"), "fabric.txt:5: the second end"},
      {"rate without unit", Format::kHpcc, with(kHpcc, "400Gbps", "400G"),
       "fabric.txt:7: the rate of a link is '400G'"},
      {"unknown prefix", Format::kHpcc, with(kHpcc, "400Gbps", "400000000xbps"), "is '400000000xbps'"},
      {"half a unit", Format::kHpcc, with(kHpcc, "400Gbps", "400Gb"), "is '400Gb'"},
      {"rate of nothing", Format::kHpcc, with(kHpcc, "400Gbps", "Gbps"), "accepted: 1Mbps to 1600Gbps"},
      {"rate too low", Format::kHpcc, with(kHpcc, "400Gbps", "400"), "the rate of a link is '400'"},
      {"rate infinite", Format::kHpcc, with(kHpcc, "400Gbps", "infGbps"), "'infGbps'"},
      {"negative rate", Format::kHpcc, with(kHpcc, "400Gbps", "-1Gbps"), "'-1Gbps'"},
      {"delay in weeks", Format::kHpcc, with(kHpcc, "2000ns", "1w"),
       "the delay of a link is '1w'; accepted: 1ns to 1s"},
      {"no delay", Format::kHpcc, with(kHpcc, "2000ns", "0ns"), "'0ns'"},
      {"bare delay means seconds", Format::kHpcc, with(kHpcc, "2000ns", "1000"), "'1000'"},
      {"delay not a number", Format::kHpcc, with(kHpcc, "2000ns", "nan"), "'nan'"},
      {"always lost", Format::kHpcc, with(kHpcc, "0.000001\n", "1\n"), "fabric.txt:4: the error rate of a link is '1'"},
      {"cut short", Format::kHpcc, std::string(kHpcc).substr(0, std::string(kHpcc).find("25000")),
       "fabric.txt:4: the file ends within link 2 of 5"},
      {"too few switch ids", Format::kHpcc, "6 2 5\n4\n", "fabric.txt:2: the file ends within switch id 2 of 2"},
      {"text among links", Format::kHpcc, with(kHpcc, "2 5 100", "links: 2 5 100"),
       "the first end of a link is 'links:'"},
      {"link to itself", Format::kHpcc, with(kHpcc, "4 5 400", "4 4 400"), "fabric.txt:7: node 4 is linked to itself"},
      {"hosts linked", Format::kHpcc, with(kHpcc, "1 4 25", "1 2 25"), "fabric.txt:4: hosts 1 and 2 are linked"},
      {"two NICs", Format::kHpcc, with(kHpcc, "1 4 25", "0 5 25"), "fabric.txt:4: host 0 has a second link"},
      {"host left out", Format::kHpcc, with(kHpcc, "1 4 25", "4 5 25"), "fabric.txt: topology: host1 has no link"},
      {"islands", Format::kHpcc, "4 2 2\n2 3\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n", "no path from host0 to host1"},
      {"GPUs of half a server", Format::kSimai, with(kSimai, "10 2 2", "10 3 2"), "4 GPUs are no whole number"},
      {"only NVLinks", Format::kSimai, "4 2 1 1 2 X\n2 3\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n", "host0 has no link"},
      {"all nodes switches", Format::kSimai, "4 1 2 2 1 X\n", "all of them switches"},
      {"control characters", Format::kHpcc, "\x1b[2J\x07 1 1\n", "the number of nodes is '?[2J?'"},
      {"a long word", Format::kHpcc, std::string(5000, '7') + " 1 1\n", "'7777777777777777777777777777777777777777…'"},

      {"no header", Format::kHtsim, "Tier 0\n", "fabric.txt: Nodes is missing"},
      {"empty htsim file", Format::kHtsim, "", "fabric.txt: Nodes is missing"},
      {"one tier", Format::kHtsim, with(kHtsimThreeTiers, "Tiers 3", "Tiers 1"),
       "fabric.txt:3: Tiers is 1; accepted: 2"},
      {"a tier too many", Format::kHtsim, with(kHtsimThreeTiers, "Tiers 3", "Tiers 2"), "tier 2 in a fabric of two"},
      {"a tier missing", Format::kHtsim,
       std::string(kHtsimThreeTiers).substr(0, std::string(kHtsimThreeTiers).find("Tier 2")),
       "fabric.txt: tier 2 is missing"},
      {"tier 3", Format::kHtsim, with(kHtsimThreeTiers, "Tier 2", "Tier 3"), "the tier is '3'"},
      {"tier twice", Format::kHtsim, with(kHtsimThreeTiers, "Tier 2", "Tier 0"), "tier 0 comes a second time"},
      {"key twice", Format::kHtsim, with(kHtsimThreeTiers, "Bundle 1", "Radix_Up 2"),
       "fabric.txt:19: 'Radix_Up' comes a second time, first on line 17"},
      {"unknown key", Format::kHtsim, with(kHtsimThreeTiers, "Bundle", "Bundel"),
       "fabric.txt:19: 'Bundel' within a tier; accepted: Downlink_speed_Gbps"},
      {"key in the wrong place", Format::kHtsim, "Bundle 1\n", "'Bundle' in the header; accepted: Nodes"},
      {"no value", Format::kHtsim, "Nodes\n", "'Nodes' with 0 values"},
      {"two values", Format::kHtsim, "Nodes 4 4\n", "'Nodes' with 2 values"},
      {"not a number", Format::kHtsim, "Nodes 1.5\n", "Nodes is '1.5'"},
      {"zero radix", Format::kHtsim, with(kHtsimThreeTiers, "Radix_Down 4", "Radix_Down 0"), "Radix_Down is '0'"},
      {"no speed", Format::kHtsim, with(kHtsimTwoTiers, "downlink_speed_gbps 200", ""),
       "fabric.txt:4: tier 0 lacks Downlink_speed_Gbps"},
      {"no way up", Format::kHtsim, with(kHtsimTwoTiers, "radix_up 4", ""), "tier 0 lacks Radix_Up"},
      {"up from the top", Format::kHtsim, std::string(kHtsimThreeTiers) + "\nRadix_Up 2", "Radix_Up on the top tier"},
      {"bundled hosts", Format::kHtsim, with(kHtsimTwoTiers, "queue_up 90", "bundle 2"), "Bundle 2 towards hosts"},
      {"oversubscription that is none", Format::kHtsim, with(kHtsimTwoTiers, "oversubscribed 1", "oversubscribed 2"),
       "tier 0 has 800 Gb/s down and 800 up; accepted: Oversubscribed 1"},
      {"pods that do not fit", Format::kHtsim, with(kHtsimThreeTiers, "Podsize 4", "Podsize 6"), "16 / 6 (hosts by"},
      {"edges that do not fit", Format::kHtsim, with(kHtsimThreeTiers, "Nodes 16", "Nodes 20"),
       "5 pods with Bundle 1 take 5 ports of a core, which has 4"},
      {"leaf-spine with pods", Format::kHtsim, with(kHtsimTwoTiers, "podsize 12", "podsize 4"),
       "fabric.txt:3: Podsize is 4"},
      {"spines that do not fit", Format::kHtsim, with(kHtsimTwoTiers, "bundle 2", "bundle 1"),
       "2 spines with Bundle 1 take 2 uplinks of a leaf, which has 4"},
      {"too fast", Format::kHtsim,
       "nodes 2\ntiers 2\npodsize 2\ntier 0\ndownlink_speed_gbps 2000\nradix_down 1\nradix_up 1\n"
       "downlink_latency_ns 1\ntier 1\ndownlink_speed_gbps 2000\nradix_down 2\ndownlink_latency_ns 1\n",
       "fabric.txt:5: downlink_speed_gbps is '2000'; accepted: a whole number from 1 to 1600"},
      {"too large", Format::kHtsim,
       "nodes 60000\ntiers 2\npodsize 60000\ntier 0\ndownlink_speed_gbps 1\nradix_down 1\nradix_up 1\n"
       "downlink_latency_ns 1\ntier 1\ndownlink_speed_gbps 1\nradix_down 60000\ndownlink_latency_ns 1\n",
       "fabric.txt: leaf-spine: 60000 hosts and 60001 switches; accepted: up to 65536"},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.description);
    expect_bad_input([&] { parse(fault.text, fault.format); }, fault.part);
  }
}

// Whatever is done to a file, the answer is a topology or bad input: never a crash, never another exception.
void parse_anything(const std::string& text, Format format) {
  try {
    validate(parse(text, format));
  } catch (const Error& error) {
    ASSERT_EQ(error.kind(), Error::Kind::kBadInput) << error.what() << "\n" << text;
    ASSERT_EQ(std::string(error.what()).rfind("fabric.txt", 0), 0U) << error.what();
    ASSERT_LT(std::string(error.what()).size(), 400U);
  }
}

TEST(TopologyImport, SurvivesTruncation) {
  const std::pair<const char*, Format> files[] = {{kHtsimThreeTiers, Format::kHtsim},
                                                  {kHtsimTwoTiers, Format::kHtsim},
                                                  {kHpcc, Format::kHpcc},
                                                  {kSimai, Format::kSimai}};
  for (const auto& [text, format] : files) {
    for (size_t length = 0; length <= std::string(text).size(); ++length) {
      parse_anything(std::string(text).substr(0, length), format);
    }
  }
}

TEST(TopologyImport, SurvivesDamage) {
  const std::pair<const char*, Format> files[] = {{kHtsimThreeTiers, Format::kHtsim},
                                                  {kHtsimTwoTiers, Format::kHtsim},
                                                  {kHpcc, Format::kConweave},
                                                  {kSimai, Format::kSimai}};
  const char* fragments[] = {"0", "-1", "4294967296", "18446744073709551616", "1e308", "nan", "\n", " ", "#", "\t"};
  Random random(11);
  for (int round = 0; round < 20000; ++round) {
    const auto& [original, format] = files[random.below(4)];
    std::string text = original;
    for (uint32_t edits = 1 + random.below(4); edits > 0; --edits) {
      const size_t at = random.below(static_cast<uint32_t>(text.size()));
      switch (random.below(4)) {
        case 0:
          text[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          text.erase(at, 1 + random.below(8));
          break;
        case 2:
          text.insert(at, fragments[random.below(10)]);
          break;
        default:
          text[at] = static_cast<char>('0' + random.below(10));
      }
      text += text.empty() ? " " : "";
    }
    parse_anything(text, format);
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST(TopologyImport, ReadsFiles) {
  const auto path = std::filesystem::path(testing::TempDir()) / fmt::format("heddle-import-{}.txt", getpid());
  std::ofstream(path) << kHpcc;
  EXPECT_EQ(import_topology(path.string(), topology_format("hpcc")).host_count, 4U);
  expect_bad_input([&] { import_topology(path.string(), Format::kHtsim); }, path.string() + ":1: '6' with 2 values");
  expect_bad_input([&] { read_text_file(path.string(), 100); }, "longer than 100 bytes");
  std::filesystem::remove(path);
  expect_bad_input([&] { import_topology(path.string(), Format::kHpcc); }, "cannot be opened");
  expect_bad_input([&] { import_topology(testing::TempDir(), Format::kHpcc); }, "cannot be");
}

TEST(TopologyImport, KnowsItsFormats) {
  EXPECT_EQ(topology_format("htsim"), Format::kHtsim);
  EXPECT_EQ(topology_format("conweave"), Format::kConweave);
  EXPECT_EQ(topology_format("simai"), Format::kSimai);
  expect_bad_input([] { topology_format("ns3"); }, "'ns3'; accepted: htsim, hpcc, conweave, simai, ibnetdiscover");
}

}  // namespace
}  // namespace heddle::lab
