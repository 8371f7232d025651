// Extensible records of InfiniBand links: data, management and flow-control packets, by their bytes and by tshark.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "lab/engine/capture.h"
#include "lab/topology/builders.h"
#include "net/error.h"
#include "net/infiniband.h"
#include "net/management.h"
#include "tests/support/command.h"
#include "tests/support/fabric_runs.h"
#include "tests/support/infiniband.h"

namespace heddle::lab {
namespace {

using Bytes = std::vector<uint8_t>;

struct Record {
  uint64_t time;
  uint8_t type;
  uint8_t interface;
  Bytes packet;
};

std::vector<Record> records_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const Bytes bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::vector<Record> records;
  for (size_t at = 0; at + 16 <= bytes.size();) {
    const size_t length = bytes[at + 10] << 8U | bytes[at + 11];
    EXPECT_EQ(bytes[at + 14] << 8U | bytes[at + 15], static_cast<int>(length - 16));
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    records.push_back({net::load<uint64_t>(&bytes[at]), bytes[at + 8], static_cast<uint8_t>(bytes[at + 9] & 3U),
                       Bytes(begin + 16, begin + static_cast<std::ptrdiff_t>(length))});
    at += length;
  }
  return records;
}

// One flow of four packets; then the other leaf is lost to spine0, which says so to leaf0, where the capture is.
class ErfCapture : public testing::Test {
 protected:
  void SetUp() override {
    const LinkSettings link{.rate = Rate::gbps(100), .overhead = net::kInfinibandOverhead};
    const Topology t = build_leaf_spine({.hosts = 4, .leaves = 2, .spines = 2, .host_link = link, .uplink = link});
    FabricSettings settings = support::exact_settings();
    settings.hosts.link_layer = LinkLayer::kInfiniband;
    settings.switches.infiniband.notice_repeats = 0;
    const NodeId leaf = t.leaf_of(0);
    const NodeId spine = t.neighbor(leaf, t.uplinks(leaf)[0]);
    settings.captures.push_back({{leaf, t.uplinks(leaf)[0]}, file_});
    settings.events = {
        {.at = 100 * kMicrosecond, .link = t.links_between(t.leaf_of(2), spine)[0], .kind = LinkEvent::Kind::kDown}};
    const RunResult result =
        run_fabric(t, support::workload_of(4, {Flow{.src = 0, .dst = 2, .bytes = 16'384}}), settings);
    ASSERT_TRUE(support::all_done(result));
    EXPECT_EQ(result.healing.notices_sent, 1U);
  }
  void TearDown() override { std::filesystem::remove(file_); }

  std::string file_ = testing::TempDir() + "erf_capture_" + std::to_string(getpid()) + ".erf";
};

TEST_F(ErfCapture, HoldsEveryPacketWithItsCrcs) {
  unsigned data = 0;
  unsigned management = 0;
  unsigned credits = 0;
  uint64_t last = 0;
  for (const Record& record : records_of(file_)) {
    EXPECT_GE(record.time, last);
    last = record.time;
    const Bytes& packet = record.packet;
    if (record.type == 25) {
      EXPECT_EQ(packet.size(), 8U) << "6, and what Wireshark wants beyond";
      ++credits;
      continue;
    }
    ASSERT_EQ(record.type, 21);
    const std::span<const uint8_t> all(packet);
    EXPECT_EQ(net::load<uint32_t>(&packet[packet.size() - 6]), support::book_icrc(all.first(packet.size() - 6)));
    EXPECT_EQ(net::load<uint16_t>(&packet[packet.size() - 2]), support::book_vcrc(all.first(packet.size() - 2)));
    if (packet[0] >> 4U != 15) {
      ++data;
      continue;
    }
    ++management;
    EXPECT_EQ(packet.size(), net::kManagementFrame);
    EXPECT_EQ(record.interface, 1) << "came in";
    net::ReachNotice notice;
    ASSERT_TRUE(net::parse_reach_notice(packet.data(), packet.size(), notice));
    EXPECT_EQ(notice, (net::ReachNotice{.sweep = 1, .restored = false, .count = 1, .ranges = {net::LidRange{3, 2}}}));
    // The spine makes it at once; it is on the wire for 23.36 ns and under way for a microsecond.
    const double us = static_cast<double>(record.time) / 4294967296.0 * 1e6;
    EXPECT_NEAR(us, 101.02336, 0.001);
  }
  EXPECT_EQ(data, 8U) << "four packets and their ACKs";
  EXPECT_EQ(management, 1U);
  EXPECT_GT(credits, 2U);
}

TEST_F(ErfCapture, IsReadByTshark) {
  if (!support::output_of("tshark --version 2>/dev/null").second) GTEST_SKIP() << "tshark is not here";
  const auto [text, ok] =
      support::output_of("tshark -r " + file_ +
                         " -T fields -E separator=/s -e frame.len -e infiniband.lrh.vl "
                         "-e infiniband.bth.opcode -e infiniband.mad.mgmtclass -e infiniband.mad.method "
                         "-e infiniband.mad.attributeid -e infiniband_link.op -e _ws.malformed 2>/dev/null");
  ASSERT_TRUE(ok);
  const size_t packets = records_of(file_).size();
  EXPECT_EQ(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), packets);
  EXPECT_NE(text.find("4122 0x00 1"), std::string::npos) << text;
  EXPECT_NE(text.find("290 0x0f 100 0x01 0x05 0x0002"), std::string::npos) << text;
  EXPECT_EQ(text.find("Malformed"), std::string::npos) << text;
}

TEST(ErfCaptures, AreOfInfinibandAlone) {
  try {
    const Capture capture("x.erf", "leaf0:0", kMicrosecond);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    EXPECT_STREQ(error.what(), "--capture: found x.erf for Ethernet links; accepted: another ending, for pcapng");
  }
}

}  // namespace
}  // namespace heddle::lab
