// Fabrics with InfiniBand links: what hosts put on the wire, that credits heal what links lose, and that nothing but
// the inputs decides a run.
#include "lab/host/infiniband.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "dataplane/lanes.h"
#include "lab/fabric/credits.h"
#include "lab/subnet/dumps.h"
#include "lab/topology/builders.h"
#include "net/error.h"
#include "tests/support/command.h"
#include "tests/support/fabric_runs.h"
#include "tests/support/infiniband.h"

namespace heddle::lab {
namespace {

using support::all_done;
using support::expect_same;
using support::workload_of;

FabricSettings infiniband(const char* scheduler = "ecmp") {
  FabricSettings settings = support::exact_settings();
  settings.hosts.link_layer = LinkLayer::kInfiniband;
  settings.switches.scheduler = *lb::scheduler_named(scheduler);
  if (settings.switches.scheduler.granularity == lb::Granularity::kPacket) {
    settings.hosts.out_of_order = OutOfOrder::kAnyOrderPlacement;
  }
  return settings;
}

LinkSettings ib_link(double loss = 0) {
  return {.rate = Rate::gbps(100), .delay = kMicrosecond, .overhead = net::kInfinibandOverhead, .loss = loss};
}

Topology small_fabric(double loss = 0) {
  LeafSpineSettings settings{.hosts = 16, .leaves = 4, .spines = 4, .links_per_pair = 1};
  settings.host_link = settings.uplink = ib_link(loss);
  return build_leaf_spine(settings);
}

// --- packets

TEST(InfinibandPackets, AreLaidOutAsTheStandardSays) {
  const Topology t = small_fabric();
  SubnetTables tables = shortest_path_tables(t, std::vector<bool>(t.links.size(), true), 2);
  tables.path_sl.assign(16 * 16, 5);
  tables.host_sl_to_vl.assign(16, SlToVl{});
  for (SlToVl& map : tables.host_sl_to_vl) map[5] = 3;
  const InfinibandWriter writer(2, tables);
  PacketArena arena;
  PacketArena::Cache cache(arena);
  Packet* packet = cache.take();

  writer.write_data(packet,
                    {.destination = 9,
                     .source_port = 0xc007,
                     .opcode = net::Opcode::kRcSendOnly,
                     .dest_qp = 0x123456,
                     .psn = 0xabcdef,
                     .ack_request = true},
                    1001);
  EXPECT_EQ(packet->pkt_len, 8U + 12 + 1004 + 4 + 2) << "padded to a word";
  EXPECT_EQ(packet->data_len, 20);
  const std::vector<uint8_t> by_hand{0x30, 0x52, 0x00, 0x2a, 0x01, 0x01, 0x00, 0x0c,  // LRH: LIDs 42, 12
                                     0x04, 0x30, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef};
  EXPECT_EQ(std::vector<uint8_t>(frame_of(packet), frame_of(packet) + 20), by_hand);

  writer.write_ack(packet, {.destination = 9, .opcode = net::Opcode::kRcAck, .dest_qp = 7, .psn = 8}, kAethAck, 0x123);
  EXPECT_EQ(packet->pkt_len, kInfinibandAckFrame);
  EXPECT_EQ(lrh_of(packet).length, (30 - 2) / 4);
  EXPECT_EQ(lrh_of(packet).destination / 4, 10) << "one of LIDs 40–43";
  EXPECT_EQ(frame_of(packet)[20], kAethAck);
  writer.write_cnp(packet, {.destination = 9, .dest_qp = 7});
  EXPECT_EQ(packet->pkt_len, 8U + 12 + 4 + 2);
  const std::vector<uint8_t> cnp{0x30, 0x52, 0x00, 0x28, 0x00, 0x06, 0x00, 0x0c,  // the same lane and level, 24 bytes
                                 0x80, 0x00, 0xff, 0xff, 0x40, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00};
  std::vector<uint8_t> written(frame_of(packet), frame_of(packet) + 20);
  EXPECT_EQ(written[3] & 0xfc, 0x28) << "one of LIDs 40–43";
  written[3] = 0x28;
  EXPECT_EQ(written, cnp);
  EXPECT_TRUE(writer.is_ours(12) && writer.is_ours(15));
  EXPECT_FALSE(writer.is_ours(11) || writer.is_ours(16));
  cache.put(packet);
}

// Wireshark 4.0 has a dissector for these packets but does not know link type 247: the file's interfaces become ones of
// a type that can be given a dissector.
void read_as(const std::string& file, uint8_t link_type) {
  FILE* f = fopen(file.c_str(), "r+b");
  ASSERT_NE(f, nullptr);
  std::vector<uint8_t> bytes(1 << 20);
  bytes.resize(fread(bytes.data(), 1, bytes.size(), f));
  for (size_t at = 0; at + 12 <= bytes.size(); at += net::load<uint32_t>(&bytes[at + 4])) {
    if (net::load<uint32_t>(&bytes[at]) != 1) continue;  // interface description block
    EXPECT_EQ(net::load<uint16_t>(&bytes[at + 8]), 247);
    bytes[at + 8] = link_type;
  }
  rewind(f);
  EXPECT_EQ(fwrite(bytes.data(), 1, bytes.size(), f), bytes.size());
  fclose(f);
}

TEST(InfinibandPackets, AreReadByTshark) {
  if (!support::output_of("tshark --version 2>/dev/null").second) GTEST_SKIP() << "tshark is not here";
  const std::string file = testing::TempDir() + "infiniband_test_" + std::to_string(getpid()) + ".pcapng";
  const Topology t = small_fabric();
  FabricSettings settings = infiniband();
  settings.hosts.mtu = 2048;
  settings.captures.push_back({{16, 0}, file});  // leaf0's port to host 0
  const RunResult result = run_fabric(t, workload_of(16, {Flow{.src = 0, .dst = 9, .bytes = 50'001}}), settings);
  ASSERT_TRUE(all_done(result));
  read_as(file, 147);
  const auto [text, ok] = support::output_of(
      "tshark -o 'uat:user_dlts:\"User 0 (DLT=147)\",\"infiniband\",\"0\",\"\",\"0\",\"\"' -r " + file +
      " -T fields -E separator=/s -e frame.len -e infiniband.lrh.dlid -e infiniband.lrh.slid "
      "-e infiniband.lrh.pktlen -e infiniband.bth.opcode -e infiniband.bth.psn -e infiniband.invariant.crc "
      "-e infiniband.variant.crc 2>/dev/null");
  std::filesystem::remove(file);
  ASSERT_TRUE(ok);
  // 25 data packets in, 25 ACKs out.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 50);
  EXPECT_NE(text.find("2074 10 1 518 0 0 0x"), std::string::npos) << text.substr(0, 400);  // SEND first
  EXPECT_NE(text.find("878 10 1 219 2 24 0x"), std::string::npos) << text.substr(0, 400);  // 849 bytes, padded to 852
  EXPECT_NE(text.find("30 1 10 7 17 24 0x"), std::string::npos) << text.substr(0, 400);    // the last ACK
}

// The CRCs of a file's packets, by the book.
TEST(InfinibandPackets, CarryTheCrcsThatTheBookComputes) {
  const std::string file = testing::TempDir() + "infiniband_crc_" + std::to_string(getpid()) + ".pcapng";
  FabricSettings settings = infiniband();
  settings.captures.push_back({{16, 0}, file});
  run_fabric(small_fabric(), workload_of(16, {Flow{.src = 0, .dst = 9, .bytes = 9000}}), settings);
  FILE* in = fopen(file.c_str(), "rb");
  ASSERT_NE(in, nullptr);
  std::vector<uint8_t> bytes(1 << 20);
  bytes.resize(fread(bytes.data(), 1, bytes.size(), in));
  fclose(in);
  std::filesystem::remove(file);
  unsigned checked = 0;
  for (size_t at = 0; at + 12 <= bytes.size();) {
    const auto type = net::load<uint32_t>(&bytes[at]);
    const auto length = net::load<uint32_t>(&bytes[at + 4]);
    if (type == 6) {  // enhanced packet block
      const auto captured = net::load<uint32_t>(&bytes[at + 20]);
      const std::vector<uint8_t> packet(bytes.begin() + static_cast<std::ptrdiff_t>(at) + 28,
                                        bytes.begin() + static_cast<std::ptrdiff_t>(at) + 28 + captured);
      const std::span<const uint8_t> all(packet);
      EXPECT_EQ(net::load<uint32_t>(&packet[captured - 6]), support::book_icrc(all.first(captured - 6)));
      EXPECT_EQ(net::load<uint16_t>(&packet[captured - 2]), support::book_vcrc(all.first(captured - 2)));
      ++checked;
    }
    at += length;
  }
  EXPECT_EQ(checked, 6U);
}

// --- credits

TEST(InfinibandFabric, HealsWhatItsLinksLose) {
  const Topology t = small_fabric(0.01);
  for (const char* scheduler : {"ecmp", "adaptive"}) {
    SCOPED_TRACE(scheduler);
    FabricSettings settings = infiniband(scheduler);
    settings.hosts.retransmit_timeout = 200 * kMicrosecond;
    settings.switches.infiniband.credits.buffer = 16 * 1024;  // a leak of three packets would stop a link
    const RunResult result = run_fabric(t, workload_of(16, Permutation{.bytes = 2'000'000, .seed = 3}), settings);
    EXPECT_TRUE(all_done(result));
    EXPECT_GT(support::drops_of(result, DropReason::kLinkLoss), 100U);
    EXPECT_EQ(support::all_drops(result),
              support::drops_of(result, DropReason::kLinkLoss) + support::drops_of(result, DropReason::kOutOfOrder))
        << "nothing is dropped for lack of buffer";
    EXPECT_EQ(result.credit_violations, 0U);
  }
}

TEST(InfinibandFabric, BeginsAnewWithALinkThatComesBack) {
  const Topology t = small_fabric();
  for (const char* scheduler : {"ecmp", "adaptive"}) {
    SCOPED_TRACE(scheduler);
    FabricSettings settings = infiniband(scheduler);
    settings.hosts.retransmit_timeout = 300 * kMicrosecond;
    settings.switches.convergence = 50 * kMicrosecond;
    const LinkId uplink = t.ports[16][4];
    for (const LinkId link : {uplink, t.ports[0][0]}) {  // of a leaf, and of host 0
      settings.events.push_back({.at = 60 * kMicrosecond, .link = link, .kind = LinkEvent::Kind::kDown});
    }
    for (const LinkId link : {uplink, t.ports[0][0]}) {
      settings.events.push_back({.at = 200 * kMicrosecond, .link = link, .kind = LinkEvent::Kind::kUp});
    }
    const RunResult result = run_fabric(t, workload_of(16, Permutation{.bytes = 4'000'000, .seed = 3}), settings);
    EXPECT_TRUE(all_done(result));
    EXPECT_GT(support::drops_of(result, DropReason::kLinkDown), 0U);
    EXPECT_EQ(result.credit_violations, 0U);
  }
}

TEST(InfinibandFabric, DependsOnItsInputsAlone) {
  const Topology t = small_fabric(0.002);
  const Workload workload = workload_of(16, Permutation{.bytes = 600'000, .seed = 3});
  for (const char* scheduler : {"ecmp", "adaptive"}) {
    SCOPED_TRACE(scheduler);
    FabricSettings settings = infiniband(scheduler);
    settings.hosts.retransmit_timeout = 200 * kMicrosecond;
    settings.switches.infiniband.credits.buffer = 32 * 1024;
    const RunResult one = run_fabric(t, workload, settings);
    EXPECT_TRUE(all_done(one));
    settings.run.threads = 4;
    expect_same(one, run_fabric(t, workload, settings));
    settings.run.threads = 1;
    settings.run.window = 300 * kNanosecond;
    const RunResult other = run_fabric(t, workload, settings);
    expect_same(one, other);
    EXPECT_EQ(one.lanes[0].stalled, other.lanes[0].stalled);
    EXPECT_EQ(one.control_frames, other.control_frames);
  }
}

// Four LIDs a host, four spines: the queue pairs of one connection take different ways.
TEST(InfinibandFabric, SpreadsQueuePairsOverTheAddressesOfAHost) {
  const Topology t = small_fabric();
  const auto uplinks_used = [&](uint8_t lmc) {
    FabricSettings settings = infiniband();
    settings.switches.infiniband.lmc = lmc;
    settings.hosts.qps_per_connection = 16;
    const RunResult result = run_fabric(t, workload_of(16, {Flow{.src = 0, .dst = 9, .bytes = 1'600'000}}), settings);
    EXPECT_TRUE(all_done(result));
    unsigned used = 0;
    for (const PortIndex port : t.uplinks(16)) {
      const LinkId link = t.ports[16][port];
      const uint64_t bytes = t.links[link].a == 16 ? result.links[link].a_to_b_bytes : result.links[link].b_to_a_bytes;
      used += bytes > 50'000 ? 1 : 0;
    }
    return used;
  };
  EXPECT_EQ(uplinks_used(0), 1U);
  EXPECT_EQ(uplinks_used(2), 4U);
}

TEST(InfinibandFabric, RefusesWhatItsLinksDoNotHave) {
  const Topology t = small_fabric();
  const Workload workload = workload_of(16, {Flow{.src = 0, .dst = 9, .bytes = 1000}});
  FabricSettings settings = infiniband();
  settings.hosts.dcqcn = flowctl::dcqcn_sets().front();
  EXPECT_THROW(run_fabric(t, workload, settings), Error);
  settings = support::exact_settings();
  settings.hosts.ccti.emplace();
  EXPECT_THROW(run_fabric(t, workload, settings), Error) << "on Ethernet links";
}

// --- lanes

// As `fabric.tables` takes them.
std::string directory_of(const Topology& topology, const SubnetTables& tables) {
  std::string directory = testing::TempDir() + "heddle-lanes-" + std::to_string(getpid());
  write_subnet_directory(topology, std::vector<bool>(topology.links.size(), true), tables, {}, directory);
  return directory;
}

// Host 0 sends to hosts 1 and 2 of its switch at once, on lanes that its tables give different weights.
struct LaneRow {
  const char* description;
  VlArbitration arbitration;
  double share_of_first;
};

TEST(InfinibandLanes, ShareALinkByTheirWeights) {
  const LaneRow rows[] = {
      {"without tables lanes take turns", {}, 0.5},
      {"three to one", {.high = {}, .low = {{0, 193}, {1, 64}}}, 0.75},
      {"the high table first, but for a packet in five", {.high = {{0, 65}}, .low = {{1, 65}}, .high_limit = 4}, 0.8}};
  const Topology t = build_single_switch({.hosts = 4, .link = ib_link()});
  for (const LaneRow& row : rows) {
    SubnetTables tables = shortest_path_tables(t, std::vector<bool>(4, true));
    tables.path_sl.assign(16, 0);
    tables.path_sl[0 * 4 + 2] = 1;  // to host 2, and its ACKs back
    tables.path_sl[2 * 4 + 0] = 1;
    SlToVl map{};
    map[1] = 1;
    tables.host_sl_to_vl.assign(4, map);
    tables.switches[0].sl_to_vl.assign(25, map);
    tables.host_vl_arbitration.assign(4, row.arbitration);
    tables.switches[0].vl_arbitration.assign(5, row.arbitration);
    FabricSettings settings = infiniband();
    settings.switches.infiniband.tables = directory_of(t, tables);
    const RunResult result = run_fabric(
        t, workload_of(4, {Flow{.src = 0, .dst = 1, .bytes = 8'192'000}, Flow{.src = 0, .dst = 2, .bytes = 8'192'000}}),
        settings);
    ASSERT_TRUE(all_done(result)) << row.description;
    ASSERT_EQ(result.lanes.size(), 2U);
    // The first is done when its 2000 packets are; until then it had its share of the link.
    const auto alone = static_cast<double>(2000 * Rate::gbps(100).time_for(infiniband_data_frame(4096) + 2));
    EXPECT_NEAR(alone / static_cast<double>(result.messages[0].received), row.share_of_first, 0.01) << row.description;
  }
}

// The same between switches: two lanes that meet at one output.
TEST(InfinibandLanes, ShareASwitchsOutputByTheirWeights) {
  const Topology t = build_single_switch({.hosts = 4, .link = ib_link()});
  SubnetTables tables = shortest_path_tables(t, std::vector<bool>(4, true));
  tables.path_sl.assign(16, 0);
  tables.path_sl[1 * 4 + 3] = 1;
  SlToVl map{};
  map[1] = 1;
  tables.host_sl_to_vl.assign(4, map);
  tables.switches[0].sl_to_vl.assign(25, map);
  tables.switches[0].vl_arbitration.assign(5, {.high = {}, .low = {{0, 193}, {1, 64}}});
  FabricSettings settings = infiniband();
  settings.switches.infiniband.tables = directory_of(t, tables);
  const RunResult result = run_fabric(
      t, workload_of(4, {Flow{.src = 0, .dst = 3, .bytes = 8'192'000}, Flow{.src = 1, .dst = 3, .bytes = 8'192'000}}),
      settings);
  ASSERT_TRUE(all_done(result));
  const auto alone = static_cast<double>(2000 * Rate::gbps(100).time_for(infiniband_data_frame(4096) + 2));
  EXPECT_NEAR(alone / static_cast<double>(result.messages[0].received), 0.75, 0.01);
  EXPECT_GT(result.lanes[1].stalled, result.lanes[0].stalled) << "host 1 waits longer for its lane's credit";
}

// Host 0 sends on lane 0, which its port puts before all others, and receives from host 2, whom it acknowledges on lane
// 1: those ACKs keep to their lane's place. Where both are on one lane, they go before data.
TEST(InfinibandLanes, AcknowledgementsKeepToTheirLane) {
  const Topology t = build_single_switch({.hosts = 4, .link = ib_link()});
  const Workload workload =
      workload_of(4, {Flow{.src = 0, .dst = 1, .bytes = 8'192'000}, Flow{.src = 2, .dst = 0, .bytes = 4096}});
  const auto acknowledged_at = [&](uint8_t sl_of_acks) {
    SubnetTables tables = shortest_path_tables(t, std::vector<bool>(4, true));
    tables.path_sl.assign(16, 0);
    tables.path_sl[0 * 4 + 2] = sl_of_acks;
    SlToVl map{};
    map[1] = 1;
    tables.host_sl_to_vl.assign(4, map);
    tables.switches[0].sl_to_vl.assign(25, map);
    tables.host_vl_arbitration.assign(4, {.high = {{0, 64}}, .low = {{1, 64}}, .high_limit = 255});
    FabricSettings settings = infiniband();
    settings.switches.infiniband.tables = directory_of(t, tables);
    const RunResult result = run_fabric(t, workload, settings);
    EXPECT_TRUE(all_done(result));
    return std::pair(result.messages[1].sent, result.messages[0].received);
  };
  const auto [behind, data_done] = acknowledged_at(1);
  EXPECT_NEAR(static_cast<double>(behind), static_cast<double>(data_done), 3e6);
  EXPECT_LT(acknowledged_at(0).first, 10 * kMicrosecond);
}

TEST(InfinibandLanes, DropWhatTheirMapDiscards) {
  const Topology t = build_single_switch({.hosts = 4, .link = ib_link()});
  SubnetTables tables = shortest_path_tables(t, std::vector<bool>(4, true));
  SlToVl map{};
  map[0] = dataplane::kNoLane;
  tables.switches[0].sl_to_vl.assign(25, map);
  FabricSettings settings = infiniband();
  settings.switches.infiniband.tables = directory_of(t, tables);
  settings.run.until = kMillisecond;
  const RunResult result = run_fabric(t, workload_of(4, {Flow{.src = 0, .dst = 3, .bytes = 100'000}}), settings);
  EXPECT_EQ(support::drops_of(result, DropReason::kNoLane), 25U);
  EXPECT_EQ(result.messages[0].received, kNever);
}

// --- partitions

struct KeyRow {
  const char* description;
  HostId from;
  HostId to;
  bool arrives;
};

TEST(InfinibandPartitions, LetMembersTalkAndNobodyElse) {
  const Topology t = small_fabric();
  FabricSettings settings = infiniband();
  settings.run.until = 2 * kMillisecond;
  settings.switches.infiniband.partitions = {{"red", 0x11, {0, 4, 5}, {8, 12}}, {"blue", 0x22, {1, 9}, {}}};
  const KeyRow rows[] = {{"two full members on different leaves", 0, 4, true},
                         {"two full members of one leaf", 4, 5, true},
                         {"a full and a limited one", 0, 8, true},
                         {"a limited and a full one", 8, 0, true},
                         {"two limited ones", 8, 12, false},
                         {"another partition", 0, 9, false},
                         {"another partition on the same leaf", 0, 1, false},
                         {"a host of no partition", 0, 15, false},
                         {"two hosts of no partition, in the default one", 14, 15, true}};
  for (const KeyRow& row : rows) {
    const RunResult result =
        run_fabric(t, workload_of(16, {Flow{.src = row.from, .dst = row.to, .bytes = 100'000}}), settings);
    EXPECT_EQ(result.messages[0].received != kNever, row.arrives) << row.description;
    EXPECT_EQ(support::drops_of(result, DropReason::kPartition) == 0, row.arrives) << row.description;
    EXPECT_EQ(result.credit_violations, 0U);
  }
}

}  // namespace
}  // namespace heddle::lab
