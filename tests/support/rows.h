// One row of a packet-in/packet-out table, and the tests that every table of rows is put through.
#pragma once

#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/icrc.h"
#include "tests/support/test_switch.h"

namespace heddle::support {

// What should happen to a frame.
struct Verdict {
  DropReason drop = DropReason::kNone;
  PacketKind kind = PacketKind::kRoce;
  PortId port = kPlainPort;  // it leaves by, or its drop is charged to
  uint8_t traffic_class = 3;
  std::optional<uint16_t> tci;  // of the tag it leaves with
};

struct Row {
  std::string_view description;
  Bytes (*frame)();
  Verdict verdict;
  void (*change)(SwitchPlan& plan) = nullptr;  // of the usual switch
  std::optional<uint16_t> stripped_tci;        // a tag that the driver took out of the frame
  size_t first_segment = 0;                    // bytes in the first buffer segment; 0 = all
};

// In this order the fields a row needs most can be left out from the end.
constexpr Verdict forwarded(PacketKind kind = PacketKind::kRoce) { return {.kind = kind}; }
constexpr Verdict dropped(DropReason reason, PortId charged = kInPort) { return {.drop = reason, .port = charged}; }

// A RoCEv2 frame with a right ICRC.
Bytes roce4(const Ipv4& ip = {}, const Roce& bth = {}, size_t payload = 64);
Bytes roce6(const Ipv6& ip = {}, const Roce& bth = {}, size_t payload = 64);
Bytes frame4(const Ipv4& ip, const Bytes& payload);
Bytes frame6(const Ipv6& ip, const Bytes& payload);
// `frame` with the tag TCI (of type `type`) behind its addresses.
Bytes tagged(uint16_t tci, const Bytes& frame, uint16_t type = net::kTypeVlan);
// `frame` to another destination MAC.
Bytes sent_to(const net::Mac& mac, Bytes frame);

// Suite of all tables: forward_rows_test.cc tests it, each *_rows_test.cc instantiates it with its rows.
class Rows : public testing::TestWithParam<Row> {};

std::string row_name(const testing::TestParamInfo<Row>& row);

// The row's frame, cut to `bytes`, as a packet.
OwnedPacket packet_of(const Row& row, std::span<const uint8_t> frame, size_t first_segment);

// ---------------------------------------------------------------------------------------------------------------------

inline Bytes frame4(const Ipv4& ip, const Bytes& payload) { return ethernet({}, ipv4(ip, payload)); }
inline Bytes frame6(const Ipv6& ip, const Bytes& payload) {
  return ethernet({.type = net::kTypeIpv6}, ipv6(ip, payload));
}
inline Bytes roce4(const Ipv4& ip, const Roce& bth, size_t payload) {
  return ethernet({}, with_icrc(ipv4(ip, udp({}, roce(bth, pattern(payload))))));
}
inline Bytes roce6(const Ipv6& ip, const Roce& bth, size_t payload) {
  return ethernet({.type = net::kTypeIpv6}, with_icrc(ipv6(ip, udp({}, roce(bth, pattern(payload))))));
}

inline Bytes tagged(uint16_t tci, const Bytes& frame, uint16_t type) {
  Bytes out(frame.begin(), frame.begin() + 12);
  put16(out, type);
  put16(out, tci);
  out.insert(out.end(), frame.begin() + 12, frame.end());
  return out;
}

inline Bytes sent_to(const net::Mac& mac, Bytes frame) {
  std::copy(mac.begin(), mac.end(), frame.begin());
  return frame;
}

inline std::string row_name(const testing::TestParamInfo<Row>& row) {
  std::string name;
  for (const char c : row.param.description) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  return name;
}

inline void PrintTo(const Row& row, std::ostream* out) { *out << row.description; }

inline OwnedPacket packet_of(const Row& row, std::span<const uint8_t> frame, size_t first_segment) {
  OwnedPacket packet = make_packet(frame, {.first_segment = first_segment});
  if (row.stripped_tci) {
    packet->vlan_tci = *row.stripped_tci;
    packet->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
  }
  return packet;
}

}  // namespace heddle::support
