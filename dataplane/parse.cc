#include "dataplane/parse.h"

namespace heddle::dataplane::parsing {

using net::header_at;

DropReason parse_tags(const uint8_t* frame, Extent extent, uint16_t stripped_tci, PacketMeta& meta) {
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
  if (type == net::kTypeIpv4) return parse_ipv4(frame, extent, meta);
  if (type == net::kTypeIpv6) return parse_ipv6(frame, extent, meta);
  meta.l3 = L3::kNone;
  return DropReason::kNotIp;
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

}  // namespace heddle::dataplane::parsing
