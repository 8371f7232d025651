// What every row of the packet tables is held to: the verdict it names, the bytes a router must send, honest counters,
// and no harm from the same frame cut short or split over buffer segments anywhere.
#include <gtest/gtest.h>

#include "net/random.h"
#include "tests/support/rows.h"

namespace heddle::support {
namespace {

SwitchPlan plan_of(const Row& row) {
  SwitchPlan plan;
  if (row.change != nullptr) row.change(plan);
  return plan;
}

// A RoCEv2 frame whose IP header is followed directly by UDP: the ones the ICRC oracle reads.
std::optional<Bytes> roce_packet(const Bytes& frame, PacketKind kind) {
  if (kind != PacketKind::kRoce) return std::nullopt;
  Bytes ip(frame.begin() + static_cast<std::ptrdiff_t>(ip_offset(frame)), frame.end());
  if (ip[0] >> 4U == 6 && ip[6] != net::kProtocolUdp) return std::nullopt;
  return ip;
}

void expect_dropped(const Row& row, const TestSwitch& device, const Packet* packet, const Bytes& frame) {
  ASSERT_EQ(device.sink.taken, std::vector<Packet*>{const_cast<Packet*>(packet)}) << "not dropped";
  EXPECT_EQ(device.drops(row.verdict.port, row.verdict.drop), 1U)
      << "expected " << name_of(row.verdict.drop) << " at port " << row.verdict.port;
  if (row.verdict.port == kInPort) {
    EXPECT_EQ(content_of(packet), frame) << "it was dropped before its path was chosen";
  }
  for (PortId port = 0; port < 4; ++port) EXPECT_EQ(device.counters(port).tx_packets.get(), 0U);
}

void expect_forwarded(const Row& row, const TestSwitch& device, const Packet* packet, const Bytes& frame) {
  ASSERT_EQ(device.sent.size(), 1U) << "not forwarded";
  EXPECT_EQ(device.sent[0].packet, packet);
  EXPECT_EQ(device.sent[0].port, row.verdict.port);
  const PacketMeta& meta = meta_of(packet);
  EXPECT_EQ(meta.kind, row.verdict.kind);
  EXPECT_EQ(meta.traffic_class, row.verdict.traffic_class);
  EXPECT_EQ(meta.l4_offset != 0, row.verdict.kind != PacketKind::kIp) << "the transport header is known or is not";

  const Bytes out = content_of(packet);
  EXPECT_EQ(out, routed(frame, row.verdict.port, row.verdict.tci));
  EXPECT_EQ(packet->pkt_len, out.size()) << "queues and rates are counted in bytes of the frame that leaves";
  EXPECT_EQ(device.counters(row.verdict.port).tx_packets.get(), 1U);
  EXPECT_EQ(device.counters(row.verdict.port).tx_bytes.get(), out.size());
  if (const auto before = roce_packet(frame, row.verdict.kind)) {
    EXPECT_EQ(carried_icrc(*before), icrc(*before)) << "the row's own frame";
    const auto after = roce_packet(out, row.verdict.kind);
    EXPECT_EQ(carried_icrc(*after), icrc(*after)) << "the ICRC no longer fits";
  }
}

TEST_P(Rows, MeetTheirVerdict) {
  const Row& row = GetParam();
  const Bytes frame = row.frame();
  TestSwitch device(plan_of(row));
  const OwnedPacket packet = packet_of(row, frame, row.first_segment);
  device.pass(packet.get());
  EXPECT_EQ(device.counters(kInPort).rx_packets.get(), 1U);
  EXPECT_EQ(device.counters(kInPort).rx_bytes.get(), frame.size());
  EXPECT_EQ(device.all_drops(), row.verdict.drop == DropReason::kNone ? 0U : 1U);
  if (row.verdict.drop != DropReason::kNone) {
    expect_dropped(row, device, packet.get(), frame);
  } else {
    expect_forwarded(row, device, packet.get(), frame);
  }
}

// Whatever came of a frame that no row describes: one packet in is one packet out or one named drop, and what leaves
// is what a router must send.
void expect_sound(TestSwitch& device, const Packet* packet, const Bytes& frame) {
  ASSERT_EQ(device.sent.size() + device.sink.taken.size(), 1U);
  ASSERT_EQ(device.all_drops(), device.sink.taken.size());
  if (device.sent.empty()) return;
  const PortId port = device.sent[0].port;
  const PacketMeta& meta = meta_of(packet);
  std::optional<uint16_t> tci;
  if (port == kTaggedPort) tci = static_cast<uint16_t>((meta.traffic_class << 13U) | kOutVlan);
  ASSERT_EQ(content_of(packet), routed(frame, port, tci));
  ASSERT_LT(meta.traffic_class, kTrafficClasses);
}

// Each frame ends at the end of its heap block, so under AddressSanitizer a read past the frame fails the test.
TEST_P(Rows, AreSafeCutShortAnywhere) {
  const Row& row = GetParam();
  const Bytes whole = row.frame();
  for (size_t bytes = 0; bytes < std::min<size_t>(whole.size(), 400); ++bytes) {
    const Bytes frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    TestSwitch device(plan_of(row));
    const OwnedPacket packet = packet_of(row, frame, 0);
    device.pass(packet.get());
    ASSERT_NO_FATAL_FAILURE(expect_sound(device, packet.get(), frame)) << "cut to " << bytes << " bytes";
  }
}

TEST_P(Rows, AreSafeSplitOverSegmentsAnywhere) {
  const Row& row = GetParam();
  const Bytes frame = row.frame();
  for (size_t first = 1; first < std::min<size_t>(frame.size(), 400); ++first) {
    TestSwitch device(plan_of(row));
    const OwnedPacket packet = packet_of(row, frame, first);
    device.pass(packet.get());
    ASSERT_NO_FATAL_FAILURE(expect_sound(device, packet.get(), frame)) << first << " bytes in the first segment";
    if (row.verdict.drop != DropReason::kNone || device.sent.empty()) continue;
    // The earlier the split, the simpler a packet may look; it never looks like more than it is.
    if (row.first_segment == 0) {
      ASSERT_LE(meta_of(packet.get()).kind, row.verdict.kind) << first << " bytes in the first segment";
    }
  }
}

TEST_P(Rows, AreSafeWithRandomDamage) {
  const Row& row = GetParam();
  const Bytes whole = row.frame();
  if (whole.empty()) return;
  const uint32_t reach = std::min<uint32_t>(static_cast<uint32_t>(whole.size()), 100);
  Random random(whole.size());
  for (int round = 0; round < 200; ++round) {
    Bytes frame = whole;
    const unsigned wounds = 1 + random.below(4);
    for (unsigned i = 0; i < wounds; ++i) frame[random.below(reach)] = static_cast<uint8_t>(random.next());
    TestSwitch device(plan_of(row));
    const OwnedPacket packet = packet_of(row, frame, row.first_segment);
    device.pass(packet.get());
    ASSERT_NO_FATAL_FAILURE(expect_sound(device, packet.get(), frame)) << "round " << round;
  }
}

}  // namespace
}  // namespace heddle::support
