// A tag counts towards the 60 bytes that a frame has at least (802.3 3.2.8): where one goes, zeros take its place.
#include <gtest/gtest.h>

#include "dataplane/rewrite.h"
#include "tests/support/rows.h"

namespace heddle::support {
namespace {

struct Case {
  const char* description;
  Bytes (*frame)();
  size_t leaves_with;  // bytes
  std::optional<uint16_t> stripped_tci = {};
  uint16_t tailroom = 100;
};

void PrintTo(const Case& of, std::ostream* out) { *out << of.description; }

// An Ethernet frame of `bytes`, less where its packet alone is longer: 42 bytes and a payload.
Bytes of_bytes(size_t bytes, unsigned second_octet = 2) {
  return frame4({.destination = ip4(10, second_octet, 0, 9)}, udp({.destination_port = 9}, pattern(bytes - 42)));
}
// What a sender makes of a packet too short for a frame: zeros behind it.
Bytes padded(Bytes frame, size_t bytes = 60) {
  frame.resize(std::max(frame.size(), bytes));
  return frame;
}

class ShortestFrame : public testing::TestWithParam<Case> {};

TEST_P(ShortestFrame, LeavesAsLongAsItMustBe) {
  const Case& of = GetParam();
  const Bytes frame = of.frame();
  TestSwitch device;
  const OwnedPacket packet = make_packet(frame, {.tailroom = of.tailroom});
  if (of.stripped_tci) {
    packet->vlan_tci = *of.stripped_tci;
    packet->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
  }
  device.pass(packet.get());
  ASSERT_EQ(device.sent.size(), 1U);
  const PortId out = device.sent[0].port;
  std::optional<uint16_t> tci;
  if (out == kTaggedPort) tci = static_cast<uint16_t>((meta_of(packet.get()).traffic_class << 13U) | kOutVlan);
  EXPECT_EQ(content_of(packet.get()), padded(routed(frame, out, tci), of.leaves_with));
  EXPECT_EQ(packet->pkt_len, of.leaves_with);
  EXPECT_EQ(device.counters(out).tx_bytes.get(), of.leaves_with);
  EXPECT_EQ(device.counters(kInPort).rx_bytes.get(), frame.size());
}

INSTANTIATE_TEST_SUITE_P(
    Table, ShortestFrame,
    testing::Values(
        Case{"60 bytes with a tag that goes", [] { return tagged(10, of_bytes(56)); }, 60},
        Case{"63 bytes with a tag that goes", [] { return tagged(10, of_bytes(59)); }, 60},
        Case{"64 bytes with a tag that goes", [] { return tagged(10, of_bytes(60)); }, 60},
        Case{"65 bytes with a tag that goes", [] { return tagged(10, of_bytes(61)); }, 61},
        Case{"an empty packet in a tagged frame of 64 bytes", [] { return tagged(10, padded(of_bytes(42))); }, 60},
        Case{"a tagged frame shorter than it may be", [] { return tagged(10, of_bytes(42)); }, 60},
        Case{"IPv6, 60 bytes with a tag that goes", [] { return tagged(10, frame6({.next_header = 59}, pattern(2))); },
             60},
        Case{"two tags that go", [] { return tagged(10, tagged(0, of_bytes(52))); }, 60},
        Case{"a tag for another: 60 bytes stay", [] { return tagged(10, of_bytes(56, 3)); }, 60},
        Case{"the kernel took the tag of a frame of 60 bytes", [] { return of_bytes(56); }, 60, uint16_t{10}},
        Case{"the kernel took a priority tag of all zeros", [] { return of_bytes(56); }, 60, uint16_t{0}},
        Case{"the kernel took the tag, another comes", [] { return of_bytes(56, 3); }, 64, uint16_t{10}},
        Case{"just enough room behind it", [] { return tagged(10, of_bytes(56)); }, 60, {}, 4},
        Case{"no room behind it: as it is", [] { return tagged(10, of_bytes(52)); }, 52, {}, 3}));

}  // namespace
}  // namespace heddle::support
