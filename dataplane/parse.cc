#include "dataplane/parse.h"

#include "net/checksum.h"
#include "net/headers.h"

namespace heddle::dataplane {

using net::header_at;
using net::load;

namespace {

// What is left to read: `readable` bytes at hand, `length` bytes in existence, both from the frame's start.
struct Extent {
  uint32_t readable;
  uint32_t length;
};

DropReason parse_ipv4(const uint8_t* frame, Extent extent, PacketMeta& meta);
DropReason parse_ipv6(const uint8_t* frame, Extent extent, PacketMeta& meta);
void parse_transport(const uint8_t* frame, Extent extent, uint32_t offset, PacketMeta& meta);

constexpr uint16_t swap16(uint16_t x) { return static_cast<uint16_t>((x << 8U) | (x >> 8U)); }

bool readable(Extent extent, uint32_t offset, uint32_t bytes) { return offset + bytes <= extent.readable; }

// Why `bytes` at `offset` cannot be read: the frame is short, or the driver split it over segments.
DropReason short_reason(Extent extent, uint32_t offset, uint32_t bytes) {
  return offset + bytes > extent.length ? DropReason::kTooShort : DropReason::kHeaderSplit;
}

}  // namespace

DropReason parse(const uint8_t* frame, uint32_t data_len, uint32_t pkt_len, uint16_t stripped_tci, PacketMeta& meta) {
  const Extent extent{data_len, pkt_len};
  if (!readable(extent, 0, sizeof(net::EthernetHeader))) return short_reason(extent, 0, sizeof(net::EthernetHeader));

  uint32_t offset = sizeof(net::EthernetHeader);
  uint16_t type = header_at<net::EthernetHeader>(frame, 0)->ether_type;
  uint16_t tci = stripped_tci;
  // 802.1Q 9: at most two tags. Only priority tags (VID 0) may sit under the tag that names the sub-interface.
  for (int tags = 0; (type == net::kTypeVlan || type == net::kTypeServiceVlan) && tags < 2; ++tags) {
    if (!readable(extent, offset, sizeof(net::VlanTag))) return short_reason(extent, offset, sizeof(net::VlanTag));
    const auto* tag = header_at<net::VlanTag>(frame, offset);
    const uint16_t inner = tag->tci;
    if ((tci & 0xfffU) != 0 && (inner & 0xfffU) != 0) return DropReason::kVlanUnknown;
    if ((tci & 0xfffU) == 0) tci = inner;
    type = tag->ether_type;
    offset += sizeof(net::VlanTag);
  }
  meta.vlan_tci = tci;
  meta.l3_offset = static_cast<uint16_t>(offset);
  meta.l4_offset = 0;
  meta.kind = PacketKind::kIp;
  if (type == net::kTypeIpv4) return parse_ipv4(frame, extent, meta);
  if (type == net::kTypeIpv6) return parse_ipv6(frame, extent, meta);
  meta.l3 = L3::kNone;
  return DropReason::kNotIp;
}

namespace {

// RFC 1812 5.2.2: version, header length, checksum and total length are checked before anything is believed.
DropReason parse_ipv4(const uint8_t* frame, Extent extent, PacketMeta& meta) {
  const uint32_t offset = meta.l3_offset;
  if (!readable(extent, offset, sizeof(net::Ipv4Header))) return short_reason(extent, offset, sizeof(net::Ipv4Header));
  const auto* ip = header_at<net::Ipv4Header>(frame, offset);
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
  if ((load<uint16_t>(&ip->fragment) & kFragmented) == 0) {
    parse_transport(frame, {extent.readable, offset + total}, offset + header_bytes, meta);
  }
  return DropReason::kNone;
}

// RFC 8200 4: extension headers in front of UDP or TCP. The chain is followed for at most 8 headers and as far as it
// is readable; past that the packet is plain IPv6.
DropReason parse_ipv6(const uint8_t* frame, Extent extent, PacketMeta& meta) {
  uint32_t offset = meta.l3_offset;
  if (!readable(extent, offset, sizeof(net::Ipv6Header))) return short_reason(extent, offset, sizeof(net::Ipv6Header));
  const auto* ip = header_at<net::Ipv6Header>(frame, offset);
  if ((frame[offset] >> 4U) != 6) return DropReason::kIpv6Version;
  const uint32_t payload = ip->payload_length;
  // Length 0 under a hop-by-hop header announces a jumbogram (RFC 2675), which no Ethernet frame can hold.
  if (payload == 0 && ip->next_header == net::kProtocolHopByHop) return DropReason::kIpv6PayloadLength;
  offset += sizeof(net::Ipv6Header);
  const uint32_t end = offset + payload;
  if (end > extent.length) return DropReason::kIpv6PayloadLength;

  meta.l3 = L3::kIpv6;
  meta.protocol = ip->next_header;
  for (int headers = 0; headers < 8; ++headers) {
    uint32_t bytes;
    switch (meta.protocol) {
      case net::kProtocolHopByHop:
      case net::kProtocolRouting:
      case net::kProtocolDestinationOptions:
      case net::kProtocolMobility:
        if (!readable(extent, offset, 8)) return DropReason::kNone;
        bytes = (frame[offset + 1] + 1U) * 8U;
        break;
      case net::kProtocolAuthentication:  // RFC 4302 2.2: length in 4-byte words, less 2
        if (!readable(extent, offset, 8)) return DropReason::kNone;
        bytes = (frame[offset + 1] + 2U) * 4U;
        break;
      case net::kProtocolFragment:
        if (readable(extent, offset, 8) && offset + 8 <= end) meta.protocol = frame[offset];
        return DropReason::kNone;  // addresses and protocol only
      default:
        parse_transport(frame, {extent.readable, end}, offset, meta);
        return DropReason::kNone;
    }
    if (offset + bytes > end) return DropReason::kNone;
    meta.protocol = frame[offset];
    offset += bytes;
  }
  return DropReason::kNone;
}

// Ports, and a BTH behind UDP 4791. `extent.length` is where the IP packet ends: what lies behind it is padding.
void parse_transport(const uint8_t* frame, Extent extent, uint32_t offset, PacketMeta& meta) {
  const auto at_hand = [&](uint32_t bytes) {
    return offset + bytes <= extent.length && offset + bytes <= extent.readable && offset <= 0xffff;
  };
  if (meta.protocol == net::kProtocolUdp) {
    if (!at_hand(sizeof(net::UdpHeader))) return;
    const auto* udp = header_at<net::UdpHeader>(frame, offset);
    const uint32_t length = udp->length;
    if (length < sizeof(net::UdpHeader) || offset + length > extent.length) return;  // it lies: believe IP alone
    meta.l4_offset = static_cast<uint16_t>(offset);
    meta.kind = PacketKind::kTcpUdp;
    constexpr uint32_t kSmallestRoce = sizeof(net::UdpHeader) + sizeof(net::Bth) + net::kIcrcBytes;
    if (load<uint16_t>(&udp->destination_port) != swap16(net::kRocePort) || length < kSmallestRoce) return;
    if (offset + sizeof(net::UdpHeader) + sizeof(net::Bth) > extent.readable) return;
    const auto* bth = header_at<net::Bth>(frame, offset + sizeof(net::UdpHeader));
    if ((bth->flags & net::kBthVersionMask) == 0) meta.kind = PacketKind::kRoce;  // IBTA 9.2.6: TVer is 0
  } else if (meta.protocol == net::kProtocolTcp) {
    constexpr uint32_t kTcpHeader = 20;
    if (!at_hand(kTcpHeader)) return;
    meta.l4_offset = static_cast<uint16_t>(offset);
    meta.kind = PacketKind::kTcpUdp;
  }
}

}  // namespace

}  // namespace heddle::dataplane
