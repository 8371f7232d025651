// Stage 8: what a router changes in a frame: Ethernet addresses and tag, TTL, checksum. All of it lies outside the RoCE
// ICRC (IBTA A17.9.2: TOS, TTL and the IPv4 checksum count as ones), so the ICRC stays valid.
#pragma once

#include <cstring>

#include "net/checksum.h"
#include "net/packet.h"

namespace heddle::dataplane {

// Bytes of the Ethernet header that `rewrite` will write.
inline uint32_t ethernet_bytes(const EthernetRewrite& rewrite) {
  return static_cast<uint32_t>(sizeof(net::EthernetHeader)) +
         (rewrite.vlan_id != 0 ? static_cast<uint32_t>(sizeof(net::VlanTag)) : 0);
}

// TTL or hop limit less one (it is above 1). TTL and protocol share a 16-bit word of the IPv4 header.
inline void decrement_ttl(uint8_t* ip, L3 l3) {
  if (l3 == L3::kIpv4) {
    auto checksum = net::load<uint16_t>(ip + 10);
    const auto word = net::load<uint16_t>(ip + 8);
    const auto changed = static_cast<uint16_t>(word - 1);  // the TTL is the word's low byte on a little-endian host
    checksum = net::update_checksum(checksum, word, changed);
    std::memcpy(ip + 8, &changed, sizeof changed);
    std::memcpy(ip + 10, &checksum, sizeof checksum);
  } else {
    ip[7]--;
  }
}

// Turns the frame into the one that leaves: the new Ethernet header ends where the IP header begins, old tags vanish,
// the next hop's tag comes with the class as PCP. The mbuf keeps at least 4 bytes of headroom for that tag.
inline void rewrite(Packet* packet) {
  PacketMeta& meta = meta_of(packet);
  uint8_t* ip = frame_of(packet) + meta.l3_offset;
  decrement_ttl(ip, meta.l3);
  const bool tagged = meta.rewrite.vlan_id != 0;
  // A tag that the driver took out of the frame lives on in the mbuf, and a ring hands that to the next switch.
  if (tagged || meta.l3_offset != sizeof(net::EthernetHeader) || meta.vlan_tci != 0) {
    const auto now_bytes = static_cast<int>(ethernet_bytes(meta.rewrite));
    const int shift = static_cast<int>(meta.l3_offset) - now_bytes;  // < 0: the header grows into the headroom
    packet->data_off = static_cast<uint16_t>(packet->data_off + shift);
    packet->data_len = static_cast<uint16_t>(packet->data_len - shift);
    packet->pkt_len = static_cast<uint32_t>(static_cast<int>(packet->pkt_len) - shift);
    uint8_t* frame = ip - now_bytes;
    if (tagged) {
      auto* tag = net::header_at<net::VlanTag>(frame, 14);
      net::header_at<net::EthernetHeader>(frame, 0)->ether_type = net::kTypeVlan;
      tag->tci = static_cast<uint16_t>((meta.traffic_class << 13U) | meta.rewrite.vlan_id);
      tag->ether_type = meta.l3 == L3::kIpv4 ? net::kTypeIpv4 : net::kTypeIpv6;
    } else {
      net::header_at<net::EthernetHeader>(frame, 0)->ether_type =
          meta.l3 == L3::kIpv4 ? net::kTypeIpv4 : net::kTypeIpv6;
    }
    meta.l3_offset = static_cast<uint16_t>(now_bytes);
    packet->ol_flags &= ~static_cast<uint64_t>(RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
  }
  std::memcpy(frame_of(packet), &meta.rewrite, 12);  // destination, source
}

}  // namespace heddle::dataplane
