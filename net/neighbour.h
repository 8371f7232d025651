// How neighbours on a link find each other and see whether they are there: ARP, IPv6 neighbour discovery, echo.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "net/headers.h"

namespace heddle::net {

inline constexpr uint16_t kTypeArp = 0x0806;

// RFC 826, for IPv4 over Ethernet.
struct ArpPacket {
  Be16 hardware_type;  // 1: Ethernet
  Be16 protocol_type;  // 0x0800: IPv4
  uint8_t hardware_bytes;
  uint8_t protocol_bytes;
  Be16 operation;
  Mac sender_mac;
  std::array<uint8_t, 4> sender;
  Mac target_mac;
  std::array<uint8_t, 4> target;
};
static_assert(sizeof(ArpPacket) == 28 && offsetof(ArpPacket, sender) == 14 && offsetof(ArpPacket, target) == 24);
inline constexpr uint16_t kArpRequest = 1;
inline constexpr uint16_t kArpReply = 2;

// Echo request and reply begin alike in both families: RFC 792, RFC 4443 4.1.
struct IcmpHeader {
  uint8_t type;
  uint8_t code;
  Be16 checksum;
};
static_assert(sizeof(IcmpHeader) == 4);
inline constexpr uint8_t kProtocolIcmp = 1;
inline constexpr uint8_t kProtocolIcmpv6 = 58;
inline constexpr uint8_t kEchoRequest = 8;
inline constexpr uint8_t kEchoReply = 0;
inline constexpr uint8_t kEchoRequest6 = 128;
inline constexpr uint8_t kEchoReply6 = 129;

// Neighbour solicitation and advertisement, RFC 4861 4.3 and 4.4; options follow.
struct NeighbourMessage {
  IcmpHeader icmp;
  Be32 flags;  // of an advertisement: router, solicited, override, then 29 reserved
  std::array<uint8_t, 16> target;
};
static_assert(sizeof(NeighbourMessage) == 24 && offsetof(NeighbourMessage, target) == 8);
inline constexpr uint8_t kNeighbourSolicitation = 135;
inline constexpr uint8_t kNeighbourAdvertisement = 136;
inline constexpr uint32_t kAdvertisesRouter = 0x8000'0000;
inline constexpr uint32_t kAdvertisesSolicited = 0x4000'0000;
inline constexpr uint32_t kAdvertisesOverride = 0x2000'0000;
inline constexpr uint8_t kNeighbourHopLimit = 255;  // nothing that a router has forwarded (RFC 4861 7.1)

// Source or target link-layer address, RFC 4861 4.6.1.
struct LinkAddressOption {
  uint8_t type;   // 1 source, 2 target
  uint8_t units;  // of 8 bytes: 1
  Mac mac;
};
static_assert(sizeof(LinkAddressOption) == 8);
inline constexpr uint8_t kTargetLinkAddress = 2;

}  // namespace heddle::net
