// Stage 2: is the frame for us, and which traffic class is it?
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "net/drop_reason.h"
#include "net/ip_address.h"
#include "net/packet.h"

namespace heddle::dataplane {

enum class Trust : uint8_t { kDscp, kPcp, kNone };

// What a router port accepts and how it sorts what it accepts. Read-only while packets flow.
struct IngressPort {
  std::vector<net::Mac> macs;  // router MACs, at most 16 with those below; frames to others are not ours
  struct VlanMac {
    uint16_t vlan = 0;
    net::Mac mac{};
  };
  std::vector<VlanMac> vlan_macs;         // further ones, each only for frames of its sub-interface
  bool any_mac = false;                   // for replaying captures that hold both directions
  bool untagged = true;                   // untagged (or priority-tagged) frames accepted
  std::bitset<4096> vlans;                // sub-interfaces by VLAN id
  std::vector<net::IpAddress> addresses;  // the port answers for these (responder.h); with any, macs is not empty
  Trust trust = Trust::kDscp;
  uint8_t default_class = 0;  // where trust says none, or PCP is trusted and there is no tag, not even one of VLAN 0
  std::array<uint8_t, 64> class_of_dscp = default_dscp_map();
  std::array<uint8_t, 8> class_of_pcp{0, 1, 2, 3, 4, 5, 6, 7};

  // RoCE data (DSCP 26, AF31) in class 3 and CNPs (DSCP 48, CS6) in class 6, as NICs and SONiC ship it; the rest in 0.
  static constexpr std::array<uint8_t, 64> default_dscp_map() {
    std::array<uint8_t, 64> map{};
    map[26] = 3;
    map[48] = 6;
    return map;
  }
};

// Whether the frame's destination is this router port, on whatever VLAN; MAC control and link-local frames are told
// apart first, since they are never forwarded whatever their address. Needs the 14 bytes of the Ethernet header.
DropReason accept(const uint8_t* frame, const IngressPort& port);

// Sub-interface check and traffic class of a parsed packet. `stripped`: the driver took a tag out of the frame, which
// may have been all zeros (class 0's priority tag).
DropReason classify(const uint8_t* frame, const IngressPort& port, PacketMeta& meta, bool stripped = false);

// Of a parsed IP packet.
unsigned dscp_of(const uint8_t* frame, const HeaderFacts& facts);

// The traffic class alone, of a parsed packet; of one that is not IP, as if it had no DSCP.
uint8_t traffic_class_of(const uint8_t* frame, const IngressPort& port, const HeaderFacts& facts,
                         bool stripped = false);

// ---------------------------------------------------------------------------------------------------------------------

// 01:80:c2:00:00:00–0f (802.1Q 8.6.3), given as the first six bytes of a frame, little-endian.
constexpr bool is_link_local(uint64_t mac) { return (mac & 0xf0ffffffffff) == 0x0000c28001; }

inline uint64_t bits_of(const net::Mac& mac) {  // two loads: one of 8 bytes would read past the address
  return net::load<uint32_t>(mac.data()) | (static_cast<uint64_t>(net::load<uint16_t>(mac.data() + 4)) << 32U);
}

inline uint64_t destination_mac(const uint8_t* frame) { return net::load<uint64_t>(frame) & 0xffffffffffff; }

inline DropReason accept(const uint8_t* frame, const IngressPort& port) {
  const uint64_t to = destination_mac(frame);
  constexpr uint16_t kMacControlSwapped = 0x0888;
  if (net::load<uint16_t>(frame + 12) == kMacControlSwapped) return DropReason::kMacControl;
  if (is_link_local(to)) return DropReason::kLinkLocalControl;
  if (port.any_mac) return DropReason::kNone;
  for (const net::Mac& mac : port.macs) {
    if (bits_of(mac) == to) return DropReason::kNone;
  }
  for (const IngressPort::VlanMac& of : port.vlan_macs) {  // whether it is this frame's VLAN, classify sees
    if (bits_of(of.mac) == to) return DropReason::kNone;
  }
  return DropReason::kNotOurMac;
}

// A frame that was accepted by a sub-interface's own MAC belongs to that sub-interface.
inline bool is_mac_of_vlan(uint64_t to, unsigned vlan, const IngressPort& port) {
  if (port.any_mac) return true;
  for (const net::Mac& mac : port.macs) {
    if (bits_of(mac) == to) return true;
  }
  for (const IngressPort::VlanMac& of : port.vlan_macs) {
    if (of.vlan == vlan && bits_of(of.mac) == to) return true;
  }
  return false;
}

inline DropReason classify(const uint8_t* frame, const IngressPort& port, PacketMeta& meta, bool stripped) {
  const unsigned vlan = meta.vlan_tci & 0xfffU;
  if (vlan == 0 ? !port.untagged : !port.vlans[vlan]) return DropReason::kVlanUnknown;
  if (!port.vlan_macs.empty() && !is_mac_of_vlan(destination_mac(frame), vlan, port)) return DropReason::kNotOurMac;
  meta.traffic_class = traffic_class_of(frame, port, meta, stripped);
  return DropReason::kNone;
}

// IPv4 TOS is byte 1; the IPv6 traffic class straddles bytes 0 and 1 (RFC 8200 3). The DSCP is its upper 6 bits.
inline unsigned dscp_of(const uint8_t* frame, const HeaderFacts& facts) {
  const uint8_t* ip = frame + facts.l3_offset;
  return facts.l3 == L3::kIpv4 ? ip[1] >> 2U : ((ip[0] & 0x0fU) << 2U) | (ip[1] >> 6U);
}

inline uint8_t traffic_class_of(const uint8_t* frame, const IngressPort& port, const HeaderFacts& facts,
                                bool stripped) {
  if (port.trust == Trust::kDscp && facts.l3 != L3::kNone) return port.class_of_dscp[dscp_of(frame, facts)];
  if (port.trust == Trust::kPcp && (stripped || facts.l3_offset != sizeof(net::EthernetHeader))) {
    return port.class_of_pcp[facts.vlan_tci >> 13U];
  }
  return port.default_class;
}

}  // namespace heddle::dataplane
