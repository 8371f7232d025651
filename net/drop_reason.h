// Every way a packet can end in the switch other than being sent. There is no drop without a name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

enum class DropReason : uint8_t {
  kNone,  // not dropped
  // parse
  kTooShort,
  kHeaderSplit,
  kNotIp,
  kVlanUnknown,
  kNotOurMac,
  kMacControl,
  kLinkLocalControl,
  kIpv4Version,
  kIpv4HeaderLength,
  kIpv4TotalLength,
  kIpv4Checksum,
  kIpv6Version,
  kIpv6PayloadLength,
  kMartian,
  kMulticast,
  // route and path
  kTtlExpired,
  kNoRoute,
  kNoLiveNextHop,
  kNoLane,
  kPartition,
  // egress
  kFrameTooLong,
  kQueueFull,
  kManagementFull,
  kBufferFull,
  kHeadroomFull,
  kWred,
  kPfcStorm,
  kHandoverFull,
  kPortDown,
  kTransmitFailed,
  kShutdown,
  // on a link of the lab
  kLinkDown,
  kLinkLoss,
  kBitError,
  // at a host of the lab
  kOutOfOrder,
  // beside the packet path: seen in a device's counters, never as a packet
  kRxNoBuffer,
  kRxMissed,
  kRxError,
  kKernelRing,
  kCount
};

inline constexpr size_t kDropReasons = static_cast<size_t>(DropReason::kCount);

struct DropText {
  std::string_view name;     // as counters, JSON and `heddle show drops` spell it
  std::string_view meaning;  // one line for people
};

inline constexpr std::array<DropText, kDropReasons> kDropTexts{{
    {"none", "not dropped"},
    {"too_short", "frame ends inside its Ethernet, VLAN or IP header"},
    {"header_split", "headers do not lie in the first buffer segment"},
    {"not_ip", "ether type is neither IPv4 nor IPv6; ARP that is no request for an address of the port"},
    {"vlan_unknown", "no sub-interface for this VLAN id, or untagged where only tagged frames are accepted"},
    {"not_our_mac", "destination is none of the port's router MACs"},
    {"mac_control", "MAC control frame (0x8808), consumed, never forwarded"},
    {"link_local_control", "destination 01:80:c2:00:00:0x, never forwarded by a bridge or router (802.1Q 8.6.3)"},
    {"ipv4_version", "version field is not 4"},
    {"ipv4_header_length", "IHL below 5 or beyond the packet"},
    {"ipv4_total_length", "total length below the header's or beyond the frame"},
    {"ipv4_checksum", "header checksum wrong"},
    {"ipv6_version", "version field is not 6"},
    {"ipv6_payload_length", "payload length beyond the frame, or a jumbogram"},
    {"martian", "source or destination address that must not cross a router (RFC 1812 5.3.7, RFC 4291 2.5)"},
    {"multicast", "IP multicast or broadcast destination: not routed"},
    {"ttl_expired", "TTL or hop limit would reach 0"},
    {"no_route", "no prefix matches"},
    {"no_live_next_hop", "every member of the next-hop group is down"},
    {"no_lane", "the service level has no virtual lane between these ports (SL to VL table, IBTA 7.6.6)"},
    {"partition", "its P_Key is none of those that the host there may send or receive with (IBTA 10.9)"},
    {"frame_too_long", "frame exceeds what the egress port can send"},
    {"queue_full", "egress queue at its byte or packet limit"},
    {"management_full",
     "a subnet management packet found the egress buffer of VL15 full (IBTA 7.9: it has no credits)"},
    {"buffer_full", "shared buffer: the packet's priority group or egress queue had used up its share"},
    {"headroom_full", "a lossless class lost a packet: more arrived after XOFF than its headroom holds"},
    {"wred", "dropped early, queue between its WRED drop thresholds"},
    {"pfc_storm", "its egress queue is stormed by pause frames, and the PFC watchdog drops what is in it"},
    {"handover_full", "ring to the egress port's lcore full"},
    {"port_down", "egress port lost its link while the packet was queued"},
    {"transmit_failed", "driver refused the frame for good"},
    {"shutdown", "still queued when the switch had to stop"},
    {"link_down", "on a link when it went down, or sent into a dead one"},
    {"link_loss", "lost on a lossy link"},
    {"bit_error", "arrived with a wrong frame check sequence"},
    {"out_of_order", "refused by a receiving NIC because an earlier packet was missing"},
    {"rx_no_buffer", "device found no free mbuf (rx_nombuf)"},
    {"rx_missed", "device ran out of receive descriptors (imissed)"},
    {"rx_error", "device reported a bad frame (ierrors)"},
    {"kernel_ring", "lost in the kernel before an af_packet ring (interface rx_dropped)"},
}};

constexpr std::string_view name_of(DropReason reason) { return kDropTexts[static_cast<size_t>(reason)].name; }

}  // namespace heddle
