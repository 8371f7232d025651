// Real RoCEv2 frames (tests/captures): what parse finds in every one of them, and that forwarding keeps them valid.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "dataplane/parse.h"
#include "lb/flow_hash.h"
#include "tests/support/icrc.h"
#include "tests/support/pcap.h"
#include "tests/support/test_switch.h"

namespace heddle::support {
namespace {

// Golden: number of frames from tests/captures/README.md; queue pairs, UDP source ports and opcodes read with tshark
// 4.0 (infiniband.bth.destqp, udp.srcport, infiniband.bth.opcode). All exact.
struct Capture {
  const char* name;
  size_t frames;
  std::set<uint32_t> queue_pairs;
  std::set<unsigned> source_ports;
  std::set<unsigned> opcodes;
  L3 l3 = L3::kIpv4;
};

std::string path_of(const Capture& capture) { return std::string("tests/captures/") + capture.name + ".pcap"; }

class Captures : public testing::TestWithParam<Capture> {};

TEST_P(Captures, EveryFrameIsRoceWithTheKnownQueuePairs) {
  const Capture& capture = GetParam();
  const std::vector<Bytes> frames = read_pcap(path_of(capture));
  EXPECT_EQ(frames.size(), capture.frames);
  std::set<uint32_t> queue_pairs;
  std::set<unsigned> source_ports;
  std::set<unsigned> opcodes;
  for (const Bytes& frame : frames) {
    const OwnedPacket packet = make_packet(frame);
    PacketMeta meta;
    ASSERT_EQ(dataplane::parse(frame_of(packet.get()), packet->data_len, packet->pkt_len, 0, meta), DropReason::kNone);
    ASSERT_EQ(meta.kind, PacketKind::kRoce);
    EXPECT_EQ(meta.l3, capture.l3);
    EXPECT_EQ(meta.l3_offset, 14);
    EXPECT_EQ(meta.l4_offset, capture.l3 == L3::kIpv4 ? 34 : 54);
    EXPECT_EQ(meta.protocol, net::kProtocolUdp);
    EXPECT_EQ(meta.vlan_tci, 0);
    const auto* udp = net::header_at<net::UdpHeader>(frame.data(), meta.l4_offset);
    const auto* bth = net::header_at<net::Bth>(frame.data(), meta.l4_offset + sizeof(net::UdpHeader));
    queue_pairs.insert(bth->dest_qp);
    source_ports.insert(udp->source_port);
    opcodes.insert(bth->opcode);
  }
  EXPECT_EQ(queue_pairs, capture.queue_pairs);
  EXPECT_EQ(source_ports, capture.source_ports);
  EXPECT_EQ(opcodes, capture.opcodes);
}

// Both directions of a capture come in by one port that takes any MAC, and leave by another.
TEST_P(Captures, EveryFrameIsForwardedWithItsIcrcIntact) {
  SwitchPlan plan;
  plan.ports[kInPort].ingress.any_mac = true;
  plan.ports[kPlainPort].max_frame = 9000;
  TestSwitch device(plan);
  device.prefixes().add4(ip4(192, 0, 2, 0), 24, 0);
  device.prefixes().add6(ip6(0, 0), 48, 0);
  for (const Bytes& frame : read_pcap(path_of(GetParam()))) {
    const std::span<const uint8_t> ip = std::span(frame).subspan(14);
    ASSERT_EQ(carried_icrc(ip), icrc(ip)) << "the oracle disagrees with the kernel that made this frame";
    const OwnedPacket packet = make_packet(frame);
    device.sent.clear();
    device.pass(packet.get());
    ASSERT_EQ(device.sent.size(), 1U);
    ASSERT_EQ(device.sent[0].port, kPlainPort);
    const Bytes out = content_of(packet.get());
    ASSERT_EQ(out, routed(frame, kPlainPort, std::nullopt));
    const std::span<const uint8_t> ip_out = std::span(out).subspan(14);
    ASSERT_EQ(carried_icrc(ip_out), icrc(ip_out));
  }
  EXPECT_EQ(device.all_drops(), 0U);
  EXPECT_EQ(device.counters(kPlainPort).tx_packets.get(), GetParam().frames);
}

const Capture kCaptures[] = {
    {"rxe-ce-marked", 40, {0x11}, {49'441}, {0, 1, 2, 17}},
    {"rxe-cm-rping", 47, {0x1, 0x11}, {55'410, 64'689}, {4, 6, 8, 12, 13, 15, 17, 100}},
    {"rxe-cnp-injected", 43, {0x11}, {49'441}, {0, 1, 2, 17, 129}},
    {"rxe-ipv6-send", 24, {0x11}, {49'441}, {0, 2, 17}, L3::kIpv6},
    {"rxe-loss-nak", 51, {0x11}, {49'441}, {0, 1, 2, 17}},
    {"rxe-mtu4096-write", 24, {0x11}, {49'441}, {6, 8, 17}},
    {"rxe-multiqp-write", 100, {0x11, 0x12, 0x13, 0x14}, {49'441, 49'476, 49'513, 49'552}, {6, 7, 8, 17}},
    {"rxe-rc-read", 72, {0x11}, {49'441}, {12, 13, 14, 15}},
    {"rxe-rc-send", 40, {0x11}, {49'441}, {0, 1, 2, 17}},
    {"rxe-rc-write", 72, {0x11}, {49'441}, {6, 7, 8, 17}},
    {"rxe-reorder-nak", 54, {0x11}, {49'441}, {0, 1, 2, 17}},
    {"rxe-tail-loss-timeout", 46, {0x11}, {49'441}, {0, 1, 2, 17}},
    {"rxe-tos-ecn",
     153,
     {0x1, 0x11, 0x12, 0x13, 0x14, 0x15},
     {49'593, 49'790, 50'817, 51'733, 55'410, 62'704},
     {0, 2, 4, 6, 8, 17, 100}},
    {"rxe-ud-send", 20, {0x11}, {57'236}, {100}},
};
INSTANTIATE_TEST_SUITE_P(Files, Captures, testing::ValuesIn(kCaptures), [](const auto& row) {
  std::string name = row.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The four queue pairs of one sender take different paths, each always the same.
TEST(CapturedFlows, AQueuePairIsAFlow) {
  const lb::FlowHasher hasher({});
  std::map<std::pair<bool, uint32_t>, std::set<uint32_t>> hashes;  // by direction and queue pair
  for (const Bytes& frame : read_pcap("tests/captures/rxe-multiqp-write.pcap")) {
    PacketMeta meta;
    const auto bytes = static_cast<uint32_t>(frame.size());
    ASSERT_EQ(dataplane::parse(frame.data(), bytes, bytes, 0, meta), DropReason::kNone);
    const uint32_t queue_pair = net::header_at<net::Bth>(frame.data(), meta.l4_offset + 8)->dest_qp;
    hashes[{frame[29] == 1, queue_pair}].insert(hasher.hash(frame.data(), meta));
  }
  EXPECT_EQ(hashes.size(), 8U) << "four queue pairs, data and acknowledgements";
  std::set<uint32_t> all;
  for (const auto& [flow, of_flow] : hashes) {
    EXPECT_EQ(of_flow.size(), 1U) << "one flow, several hashes: queue pair " << flow.second;
    all.insert(of_flow.begin(), of_flow.end());
  }
  EXPECT_EQ(all.size(), 8U);
}

TEST(PcapReader, RefusesWhatIsNoWholePcapFile) {
  EXPECT_THROW(read_pcap("tests/captures/README.md"), std::runtime_error);
  EXPECT_THROW(read_pcap("tests/captures/none.pcap"), std::runtime_error);
}

}  // namespace
}  // namespace heddle::support
