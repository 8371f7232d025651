// Stage 1: what kind of packet is this, and where do its headers lie?
#pragma once

#include <cstdint>

#include "net/checksum.h"
#include "net/drop_reason.h"
#include "net/headers.h"
#include "net/packet.h"

namespace heddle::dataplane {

// Reads the headers of a frame of which `data_len` bytes are at hand and `pkt_len` bytes exist, and fills the parse
// fields of `meta` (l3, l3_offset, l4_offset, kind, protocol, vlan_tci). Every read lies inside `data_len`.
// A VLAN tag the kernel has stripped comes in as `stripped_tci` (af_packet), else 0.
//
// Returns kNone, or why the packet cannot be routed. A broken transport header is no such reason: a router forwards by
// IP, so the packet is kept as plain IP and hashed without its ports.
DropReason parse(const uint8_t* frame, uint32_t data_len, uint32_t pkt_len, uint16_t stripped_tci, PacketMeta& meta);

// ---------------------------------------------------------------------------------------------------------------------
// Untagged IPv4 is inline, tags and IPv6 are not.

namespace parsing {

// What is left to read: `readable` bytes at hand, `length` bytes in existence, both from the frame's start.
struct Extent {
  uint32_t readable;
  uint32_t length;
};

DropReason parse_tags(const uint8_t* frame, Extent extent, uint16_t stripped_tci, PacketMeta& meta);
DropReason parse_ipv4(const uint8_t* frame, Extent extent, PacketMeta& meta);
DropReason parse_ipv6(const uint8_t* frame, Extent extent, PacketMeta& meta);
void parse_transport(const uint8_t* frame, Extent extent, uint32_t offset, PacketMeta& meta);

constexpr uint16_t swap16(uint16_t x) { return static_cast<uint16_t>((x << 8U) | (x >> 8U)); }

inline bool readable(Extent extent, uint32_t offset, uint32_t bytes) { return offset + bytes <= extent.readable; }

// Why `bytes` at `offset` cannot be read: the frame is short, or the driver split it over segments.
inline DropReason short_reason(Extent extent, uint32_t offset, uint32_t bytes) {
  return offset + bytes > extent.length ? DropReason::kTooShort : DropReason::kHeaderSplit;
}

}  // namespace parsing

inline DropReason parse(const uint8_t* frame, uint32_t data_len, uint32_t pkt_len, uint16_t stripped_tci,
                        PacketMeta& meta) {
  using namespace parsing;  // NOLINT(google-build-using-namespace)
  const Extent extent{data_len, pkt_len};
  if (!readable(extent, 0, sizeof(net::EthernetHeader))) return short_reason(extent, 0, sizeof(net::EthernetHeader));
  meta.l4_offset = 0;
  meta.kind = PacketKind::kIp;
  if (net::load<uint16_t>(frame + 12) == swap16(net::kTypeIpv4) && stripped_tci == 0) [[likely]] {
    meta.vlan_tci = 0;
    meta.l3_offset = sizeof(net::EthernetHeader);
    return parse_ipv4(frame, extent, meta);
  }
  return parse_tags(frame, extent, stripped_tci, meta);
}

namespace parsing {

// RFC 1812 5.2.2: version, header length, checksum and total length are checked before anything is believed.
inline DropReason parse_ipv4(const uint8_t* frame, Extent extent, PacketMeta& meta) {
  const uint32_t offset = meta.l3_offset;
  if (!readable(extent, offset, sizeof(net::Ipv4Header))) return short_reason(extent, offset, sizeof(net::Ipv4Header));
  const auto* ip = net::header_at<net::Ipv4Header>(frame, offset);
  uint32_t header_bytes = sizeof(net::Ipv4Header);
  if (ip->version_ihl != 0x45) {
    if ((ip->version_ihl >> 4U) != 4) return DropReason::kIpv4Version;
    header_bytes = (ip->version_ihl & 0x0fU) * 4U;
    if (header_bytes < sizeof(net::Ipv4Header)) return DropReason::kIpv4HeaderLength;
    if (offset + header_bytes > extent.length) return DropReason::kIpv4HeaderLength;
    if (!readable(extent, offset, header_bytes)) return DropReason::kHeaderSplit;
  }
  const uint32_t total = ip->total_length;
  if (total < header_bytes || offset + total > extent.length) return DropReason::kIpv4TotalLength;
  const uint16_t sum = header_bytes == sizeof(net::Ipv4Header) ? net::ipv4_header_sum(ip, sizeof(net::Ipv4Header))
                                                               : net::ipv4_header_sum(ip, header_bytes);
  if (sum != 0xffff) return DropReason::kIpv4Checksum;

  meta.l3 = L3::kIpv4;
  meta.protocol = ip->protocol;
  // A fragment carries ports only in its first piece: hashing them would part it from the others.
  constexpr uint16_t kFragmented = swap16(net::kMoreFragments | net::kFragmentOffsetMask);
  if ((net::load<uint16_t>(&ip->fragment) & kFragmented) == 0) {
    parse_transport(frame, {extent.readable, offset + total}, offset + header_bytes, meta);
  }
  return DropReason::kNone;
}

// Ports, and a BTH behind UDP 4791. `extent.length` is where the IP packet ends: what lies behind it is padding.
inline void parse_transport(const uint8_t* frame, Extent extent, uint32_t offset, PacketMeta& meta) {
  const auto at_hand = [&](uint32_t bytes) {
    return offset + bytes <= extent.length && offset + bytes <= extent.readable && offset <= 0xffff;
  };
  if (meta.protocol == net::kProtocolUdp) {
    if (!at_hand(sizeof(net::UdpHeader))) return;
    const auto* udp = net::header_at<net::UdpHeader>(frame, offset);
    const uint32_t length = udp->length;
    if (length < sizeof(net::UdpHeader) || offset + length > extent.length) return;  // it lies: believe IP alone
    meta.l4_offset = static_cast<uint16_t>(offset);
    meta.kind = PacketKind::kTcpUdp;
    constexpr uint32_t kSmallestRoce = sizeof(net::UdpHeader) + sizeof(net::Bth) + net::kIcrcBytes;
    if (net::load<uint16_t>(&udp->destination_port) != swap16(net::kRocePort) || length < kSmallestRoce) return;
    if (offset + sizeof(net::UdpHeader) + sizeof(net::Bth) > extent.readable) return;
    const auto* bth = net::header_at<net::Bth>(frame, offset + sizeof(net::UdpHeader));
    if ((bth->flags & net::kBthVersionMask) == 0) meta.kind = PacketKind::kRoce;  // IBTA 9.2.6: TVer is 0
  } else if (meta.protocol == net::kProtocolTcp) {
    constexpr uint32_t kTcpHeader = 20;
    if (!at_hand(kTcpHeader)) return;
    meta.l4_offset = static_cast<uint16_t>(offset);
    meta.kind = PacketKind::kTcpUdp;
  }
}

}  // namespace parsing

}  // namespace heddle::dataplane
