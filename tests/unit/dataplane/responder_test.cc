// What a port says for itself, packet in and packet out: the answer to each kind of request, byte by byte, and no
// answer to anything else.
#include "dataplane/responder.h"

#include <gtest/gtest.h>

#include "net/random.h"
#include "tests/support/lossless_switch.h"
#include "tests/support/rows.h"

namespace heddle::support {
namespace {

constexpr uint32_t kOwn = ip4(10, 1, 0, 1);
constexpr uint32_t kHost = ip4(10, 1, 0, 7);
constexpr Address6 kOwn6 = ip6(1, 1);
constexpr Address6 kHost6 = ip6(1, 7);
constexpr net::Mac kVlanMac{0x02, 0, 0, 0, 0x01, 0x10};
constexpr net::Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr net::Mac kSolicitedNode{0x33, 0x33, 0xff, 0, 0, 1};

// The usual switch, whose first port has two addresses, and a MAC of its own on VLAN 20.
SwitchPlan plan_with_addresses() {
  SwitchPlan plan;
  dataplane::IngressPort& ingress = plan.ports[kInPort].ingress;
  ingress.addresses = {net::IpAddress(kOwn), net::IpAddress(net::IpFamily::kIpv6, kOwn6)};
  ingress.vlan_macs = {{20, kVlanMac}};
  return plan;
}

struct Arp {
  uint16_t hardware = 1;
  uint16_t protocol = net::kTypeIpv4;
  uint8_t hardware_bytes = 6;
  uint8_t protocol_bytes = 4;
  uint16_t operation = 1;
  net::Mac sender_mac = kHostMac;
  uint32_t sender = kHost;
  net::Mac target_mac{};
  uint32_t target = kOwn;
};

Bytes arp(const Arp& packet) {
  Bytes out;
  put16(out, packet.hardware);
  put16(out, packet.protocol);
  out.push_back(packet.hardware_bytes);
  out.push_back(packet.protocol_bytes);
  put16(out, packet.operation);
  put(out, packet.sender_mac);
  put32(out, packet.sender);
  put(out, packet.target_mac);
  put32(out, packet.target);
  return out;
}
Bytes arp_frame(const Arp& packet, const net::Mac& to = kBroadcast, const net::Mac& from = kHostMac) {
  Bytes out = ethernet({.destination = to, .source = from, .type = net::kTypeArp}, arp(packet));
  out.resize(60);
  return out;
}
Bytes arp_answer(const net::Mac& own) {
  return arp_frame({.operation = 2, .sender_mac = own, .sender = kOwn, .target_mac = kHostMac, .target = kHost},
                   kHostMac, own);
}

// ICMPv6 message with its checksum over the pseudo header (RFC 8200 8.1), worked out by the book.
Bytes icmp6(const Address6& from, const Address6& to, Bytes message) {
  Bytes all;
  put(all, from);
  put(all, to);
  put32(all, static_cast<uint32_t>(message.size()));
  put32(all, 58);
  put(all, message);
  const uint16_t sum = internet_checksum(all);
  message[2] = static_cast<uint8_t>(sum >> 8U);
  message[3] = static_cast<uint8_t>(sum);
  return message;
}

struct Discovery {
  net::Mac to = kSolicitedNode;
  net::Mac from_mac = kHostMac;
  uint8_t hop_limit = 255;
  Address6 source = kHost6;
  Address6 destination{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 1};
  uint8_t type = 135;
  uint8_t code = 0;
  uint32_t flags = 0;
  Address6 target = kOwn6;
  Bytes options{1, 1, 0x02, 0, 0, 0, 0xaa, 0x01};
  bool intact = true;
};

Bytes discovery(const Discovery& d) {
  Bytes message{d.type, d.code, 0, 0};
  put32(message, d.flags);
  put(message, d.target);
  put(message, d.options);
  message = icmp6(d.source, d.destination, message);
  if (!d.intact) message[3] ^= 1U;
  return ethernet({.destination = d.to, .source = d.from_mac, .type = net::kTypeIpv6},
                  ipv6({.traffic_class = 0,
                        .next_header = 58,
                        .hop_limit = d.hop_limit,
                        .source = d.source,
                        .destination = d.destination},
                       message));
}
Bytes advertisement(const net::Mac& own) {
  Bytes option{2, 1};
  put(option, own);
  return discovery({.to = kHostMac,
                    .from_mac = own,
                    .source = kOwn6,
                    .destination = kHost6,
                    .type = 136,
                    .flags = 0xe0000000,
                    .options = option});
}

Bytes echo4(uint8_t type, const Ipv4& header, const net::Mac& to = kRouterMac, const net::Mac& from = kHostMac) {
  Bytes message{type, 0, 0, 0, 0x12, 0x34, 0, 7};
  put(message, pattern(57));
  const uint16_t sum = internet_checksum(message);
  message[2] = static_cast<uint8_t>(sum >> 8U);
  message[3] = static_cast<uint8_t>(sum);
  return ethernet({.destination = to, .source = from}, ipv4(header, message));
}
constexpr uint8_t kPing = 8;
Ipv4 to_own(uint8_t ttl = 64) { return {.ttl = ttl, .protocol = 1, .source = kHost, .destination = kOwn}; }
Ipv4 from_own() { return {.ttl = 64, .protocol = 1, .source = kOwn, .destination = kHost}; }

Bytes echo6(uint8_t type, const Address6& source, const Address6& destination, uint8_t hop_limit, const net::Mac& to,
            const net::Mac& from) {
  Bytes message{type, 0, 0, 0, 0x12, 0x34, 0, 7};
  put(message, pattern(64));
  return ethernet({.destination = to, .source = from, .type = net::kTypeIpv6},
                  ipv6({.next_header = 58, .hop_limit = hop_limit, .source = source, .destination = destination},
                       icmp6(source, destination, message)));
}
constexpr uint8_t kPing6 = 128;

Bytes with_options(Ipv4 header) {
  header.options = {7, 7, 4, 0, 0, 0, 0, 0};
  return echo4(header.source == kHost ? kPing : 0, header, header.source == kHost ? kRouterMac : kHostMac,
               header.source == kHost ? kHostMac : kRouterMac);
}

struct Answered {
  std::string_view description;
  Bytes request;
  Bytes answer;
  uint8_t traffic_class = 0;
  std::optional<uint16_t> stripped{};  // a tag that the driver took out of the request
};

OwnedPacket received(const Bytes& frame, std::optional<uint16_t> stripped = {}) {
  OwnedPacket packet = make_packet(frame, {.tailroom = 64});
  if (stripped) {
    packet->vlan_tci = *stripped;
    packet->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
  }
  return packet;
}

void expect_answer(const Answered& row, const SwitchPlan& plan) {
  SCOPED_TRACE(row.description);
  TestSwitch device(plan);
  const OwnedPacket packet = received(row.request, row.stripped);
  device.pass(packet.get());
  ASSERT_EQ(device.sent.size(), 1U) << "no answer";
  EXPECT_EQ(device.sent[0].port, kInPort);
  EXPECT_EQ(content_of(packet.get()), row.answer);
  EXPECT_EQ(packet->pkt_len, row.answer.size());
  EXPECT_EQ(packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED, 0U);
  EXPECT_EQ(meta_of(packet.get()).traffic_class, row.traffic_class);
  EXPECT_EQ(device.counters(kInPort).answered.get(), 1U);
  EXPECT_EQ(device.counters(kInPort).rx_packets.get(), 1U);
  EXPECT_EQ(device.counters(kInPort).tx_packets.get(), 1U);
  EXPECT_EQ(device.all_drops(), 0U);
}

std::vector<Answered> answered_rows() {
  const uint16_t vlan10 = 5U << 13U | 10U;
  const uint16_t vlan20 = 20;
  const Bytes unasked = discovery({.source = {}, .options = {}});
  Bytes to_all = discovery({.to = {0x33, 0x33, 0, 0, 0, 1},
                            .from_mac = kRouterMac,
                            .source = kOwn6,
                            .destination = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                            .type = 136,
                            .flags = 0xa0000000,
                            .options = {2, 1, 0x02, 0, 0, 0, 0x01, 0}});
  return {
      {"ARP to all", arp_frame({}), arp_answer(kRouterMac)},
      {"ARP to us, as a cache asks again", arp_frame({.target_mac = kRouterMac}, kRouterMac), arp_answer(kRouterMac)},
      {"ARP of a host without an address yet (RFC 5227 2.1.1)", arp_frame({.sender = 0}),
       arp_frame({.operation = 2, .sender_mac = kRouterMac, .sender = kOwn, .target_mac = kHostMac, .target = 0},
                 kHostMac, kRouterMac)},
      {"ARP on a VLAN: its tag stays", tagged(vlan10, arp_frame({})), tagged(vlan10, arp_answer(kRouterMac))},
      {"ARP on a VLAN with a MAC of its own", tagged(vlan20, arp_frame({})), tagged(vlan20, arp_answer(kVlanMac))},
      {"ARP whose tag the driver took out", arp_frame({}), tagged(vlan10, arp_answer(kRouterMac)), 0, vlan10},
      {"solicitation", discovery({}), advertisement(kRouterMac)},
      {"solicitation without the asker's MAC", discovery({.options = {}}), advertisement(kRouterMac)},
      {"solicitation to us alone", discovery({.to = kRouterMac, .destination = kOwn6}), advertisement(kRouterMac)},
      {"solicitation of who has no address: all hear it", unasked, to_all},
      {"solicitation on a VLAN with a MAC of its own", tagged(vlan20, discovery({})),
       tagged(vlan20, advertisement(kVlanMac))},
      {"solicitation whose tag the driver took out", discovery({}), tagged(vlan20, advertisement(kVlanMac)), 0, vlan20},
      {"ping", echo4(kPing, to_own()), echo4(0, from_own(), kHostMac, kRouterMac), 3},
      {"ping with the last TTL there is", echo4(kPing, to_own(1)), echo4(0, from_own(), kHostMac, kRouterMac), 3},
      {"ping with options", with_options(to_own()), with_options(from_own()), 3},
      {"ping on a VLAN", tagged(vlan10, echo4(kPing, to_own())),
       tagged(vlan10, echo4(0, from_own(), kHostMac, kRouterMac)), 3},
      {"ping over IPv6", echo6(kPing6, kHost6, kOwn6, 1, kRouterMac, kHostMac),
       echo6(129, kOwn6, kHost6, 64, kHostMac, kRouterMac), 3},
  };
}

TEST(Responder, AnswersWhoAsks) {
  for (const Answered& row : answered_rows()) expect_answer(row, plan_with_addresses());
}

// With a buffer an answer is charged as any packet that came in by the port, and released as it leaves.
TEST(Responder, KeepsTheBuffersBooks) {
  SwitchPlan plan = lossless_plan();
  plan.ports[kInPort].ingress = plan_with_addresses().ports[kInPort].ingress;
  for (const Answered& row : answered_rows()) {
    SCOPED_TRACE(row.description);
    TestSwitch device(plan);
    const OwnedPacket packet = received(row.request, row.stripped);
    std::vector<Packet*> packets{packet.get()};
    ASSERT_EQ(device.ingress(packets), 1U);
    device.pipeline().forward(packets.data(), 1, kMicrosecond);
    EXPECT_EQ(device.pipeline().buffer().occupancy(kInPort, row.traffic_class).bytes(), row.answer.size());
    EXPECT_EQ(device.egress(kInPort).size(), 1U);
    EXPECT_EQ(device.pipeline().buffer().occupancy(kInPort, row.traffic_class).bytes(), 0U);
  }
}

struct Unanswered {
  std::string_view description;
  Bytes frame;
};

std::vector<Unanswered> unanswered_rows() {
  Ipv4 fragment = to_own();
  fragment.fragment = 0x2000;
  return {
      {"ARP for another address", arp_frame({.target = ip4(10, 1, 0, 2)})},
      {"ARP reply", arp_frame({.operation = 2})},
      {"ARP of other hardware", arp_frame({.hardware = 6})},
      {"ARP of another protocol", arp_frame({.protocol = net::kTypeIpv6})},
      {"ARP with addresses of other lengths", arp_frame({.hardware_bytes = 8})},
      {"ARP from a group", arp_frame({.sender_mac = kBroadcast})},
      {"ARP in a frame from a group", arp_frame({}, kBroadcast, kSolicitedNode)},
      {"ARP to another station", arp_frame({}, {0x02, 0, 0, 0, 9, 9})},
      {"ARP on a VLAN that is not ours", tagged(77, arp_frame({}))},
      {"ARP to the MAC of another VLAN", tagged(10, arp_frame({}, kVlanMac))},
      {"solicitation that a router has forwarded", discovery({.hop_limit = 254})},
      {"solicitation for another address", discovery({.target = ip6(1, 2)})},
      {"solicitation with a wrong checksum", discovery({.intact = false})},
      {"solicitation with a code", discovery({.code = 1})},
      {"advertisement", discovery({.type = 136})},
      {"solicitation from a group", discovery({.source = {0xff, 2}})},
      {"ping to another address", echo4(kPing, {.protocol = 1, .destination = ip4(10, 9, 0, 1)})},
      {"ping in fragments", echo4(kPing, fragment)},
      {"ping to all stations", echo4(kPing, to_own(), kBroadcast)},
      {"ping from no station", echo4(kPing, {.protocol = 1, .source = ip4(224, 0, 0, 1), .destination = kOwn})},
      {"answer to a ping", echo4(0, to_own())},
      {"ping over IPv6 from nobody", echo6(kPing6, {}, kOwn6, 64, kRouterMac, kHostMac)},
      {"RoCE to an address of ours", roce4({.destination = kOwn})},
  };
}

// Whatever is no request meets the same end, unchanged, as in a switch without addresses.
void expect_as_without(const Bytes& frame, std::optional<uint16_t> stripped = {}) {
  SwitchPlan without = plan_with_addresses();
  without.ports[kInPort].ingress.addresses.clear();
  TestSwitch device(plan_with_addresses());
  TestSwitch other(without);
  const OwnedPacket packet = received(frame, stripped);
  const OwnedPacket same = received(frame, stripped);
  device.pass(packet.get());
  other.pass(same.get());
  ASSERT_EQ(device.counters(kInPort).answered.get(), 0U);
  ASSERT_EQ(device.sent.size(), other.sent.size());
  for (size_t reason = 0; reason < kDropReasons; ++reason) {
    ASSERT_EQ(device.drops(kInPort, static_cast<DropReason>(reason)),
              other.drops(kInPort, static_cast<DropReason>(reason)));
  }
  ASSERT_EQ(content_of(packet.get()), content_of(same.get()));
  if (device.sent.empty()) return;  // what is dropped may have been looked at
  ASSERT_EQ(static_cast<const HeaderFacts&>(meta_of(packet.get())),
            static_cast<const HeaderFacts&>(meta_of(same.get())));
}

TEST(Responder, LeavesEverythingElseAlone) {
  for (const Unanswered& row : unanswered_rows()) {
    SCOPED_TRACE(row.description);
    expect_as_without(row.frame);
  }
}

// Cut short anywhere, no request is read past its end. A cut into the padding, or into what a ping carries, still
// leaves one.
TEST(Responder, ReadsNoFurtherThanTheFrame) {
  for (const Answered& row : answered_rows()) {
    SCOPED_TRACE(row.description);
    for (size_t bytes = 0; bytes < row.request.size(); ++bytes) {
      TestSwitch device(plan_with_addresses());
      const OwnedPacket packet = make_packet(std::span(row.request).first(bytes));
      device.pass(packet.get());
      ASSERT_EQ(device.sent.size() + device.all_drops(), 1U);
      if (bytes < 42) {
        ASSERT_EQ(device.sent.size(), 0U) << bytes;
      }
    }
  }
}

// Of any segments: what is wanted lies in the first, or the packet is for the other stages.
TEST(Responder, AnswersFromTheFirstSegment) {
  for (const Answered& row : answered_rows()) {
    SCOPED_TRACE(row.description);
    for (size_t first = 1; first < row.request.size(); ++first) {
      TestSwitch device(plan_with_addresses());
      const OwnedPacket packet = make_packet(row.request, {.first_segment = first});
      if (row.stripped) {
        packet->vlan_tci = *row.stripped;
        packet->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
      }
      device.pass(packet.get());
      ASSERT_EQ(device.sent.size() + device.all_drops(), 1U);
      if (!device.sent.empty()) {
        ASSERT_EQ(content_of(packet.get()), row.answer) << first;
      }
    }
  }
}

// One byte of a request changed, at random: an answer goes to a station, and says nothing of another address than ours.
TEST(Responder, SaysNothingOfOtherAddresses) {
  Random random(7);
  const std::vector<Answered> rows = answered_rows();
  unsigned answers = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Answered& row = rows[random.below(static_cast<uint32_t>(rows.size()))];
    Bytes frame = row.request;
    frame[random.below(static_cast<uint32_t>(frame.size()))] = static_cast<uint8_t>(random.below(256));
    TestSwitch device(plan_with_addresses());
    const OwnedPacket packet = received(frame, row.stripped);
    device.pass(packet.get());
    ASSERT_EQ(device.sent.size() + device.all_drops(), 1U);
    if (device.counters(kInPort).answered.get() == 0) continue;
    ++answers;
    const Bytes out = content_of(packet.get());
    EXPECT_TRUE((out[0] & 1U) == 0 || (out[0] == 0x33 && out[5] == 1)) << "to a group";
    EXPECT_EQ(device.sent[0].port, kInPort);
  }
  EXPECT_GT(answers, 1000U);
}

}  // namespace
}  // namespace heddle::support
