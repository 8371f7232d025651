// Stage 8: what a router changes in a frame: Ethernet addresses and tag, TTL, checksum. All of it lies outside the RoCE
// ICRC (IBTA A17.9.2: TOS, TTL and the IPv4 checksum count as ones), so the ICRC stays valid.
#pragma once

#include <cstring>

#include "net/packet.h"

namespace heddle::dataplane {

// Bytes of the Ethernet header that `rewrite` will write.
inline uint32_t ethernet_bytes(const EthernetRewrite& rewrite) {
  return static_cast<uint32_t>(sizeof(net::EthernetHeader)) +
         (rewrite.vlan_id != 0 ? static_cast<uint32_t>(sizeof(net::VlanTag)) : 0);
}

// TTL less one (it is above 1). The checksum, read as it lies, grows by one for that, from 0xfffe to 0 and from 0xffff
// to 1: RFC 1624 equation 3 where the word that changes has the TTL in its first byte.
inline void decrement_ttl(uint8_t* ip) {
  const auto word = net::load<uint32_t>(ip + 8);  // TTL, protocol, checksum
  const uint32_t next = word + 0x10000 - 1 + (word >= 0xfffe0000 ? 0x10000 : 0);
  std::memcpy(ip + 8, &next, sizeof next);
}

// IPv6, or a tag comes or goes: the new Ethernet header ends where the IP header begins, old tags vanish, the next
// hop's tag comes with the class as PCP. The mbuf keeps at least 4 bytes of headroom for that tag.
void rewrite_any(Packet* packet);

// Turns the frame into the one that leaves.
inline void rewrite(Packet* packet) {
  const PacketMeta& meta = meta_of(packet);
  // A tag that the driver took out of the frame lives on in the mbuf, and a ring hands that to the next switch.
  const bool untagged = meta.l3_offset == sizeof(net::EthernetHeader) && meta.vlan_tci == 0;
  if (!untagged || meta.l3 != L3::kIpv4 || meta.rewrite.vlan_id != 0) [[unlikely]]
    return rewrite_any(packet);
  uint8_t* frame = frame_of(packet);
  decrement_ttl(frame + sizeof(net::EthernetHeader));
  std::memcpy(frame, &meta.rewrite, 2 * sizeof(net::Mac));  // destination, source
}

}  // namespace heddle::dataplane
