// Stage 5: what a router changes in a frame: Ethernet addresses and tag, TTL, checksum. All of it lies outside the RoCE
// ICRC (IBTA A17.9.2: TOS, TTL and the IPv4 checksum count as ones), so the ICRC stays valid.
#pragma once

#include <cstddef>
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
void rewrite_any(Packet* packet, const EthernetRewrite& next);

// A tag that the driver took out of the frame and that has been heeded: it lives on in the mbuf, and a ring hands that
// to the next switch.
void forget_stripped_tag(Packet* packet);

// Shortest frame without FCS (802.3 3.2.8 minFrameSize). A tag counts towards it, so that one that goes may leave too
// little behind; NICs pad what they send, virtual ports do not.
inline constexpr uint32_t kShortestFrame = 60;

// Whether a packet is IPv4 without a tag.
inline bool is_untagged_ipv4(const HeaderFacts& facts) {
  static_assert(offsetof(HeaderFacts, l3_offset) == 0 && offsetof(HeaderFacts, vlan_tci) == 4 &&
                offsetof(HeaderFacts, l3) == 6);
  constexpr uint64_t kFields = 0x00ff'ffff'0000'ffff;  // l3, vlan_tci, l3_offset: one comparison for the three
  constexpr uint64_t kWanted = uint64_t{static_cast<uint8_t>(L3::kIpv4)} << 48U | sizeof(net::EthernetHeader);
  return (net::load<uint64_t>(reinterpret_cast<const uint8_t*>(&facts)) & kFields) == kWanted;
}

// Turns the frame into the one that leaves, but for what its queue will say of it (ECN).
inline void rewrite(Packet* packet, const EthernetRewrite& next) {
  if (!is_untagged_ipv4(meta_of(packet)) || next.vlan_id != 0) [[unlikely]]
    return rewrite_any(packet, next);
  uint8_t* frame = frame_of(packet);
  decrement_ttl(frame + sizeof(net::EthernetHeader));
  std::memcpy(frame, &next, 2 * sizeof(net::Mac));  // destination, source
}

}  // namespace heddle::dataplane
