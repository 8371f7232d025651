// Stage 3: longest prefix match, destination address → route id → next-hop group.
#pragma once

#include <array>
#include <cstdint>

#include "net/drop_reason.h"
#include "net/packet.h"

namespace heddle::dataplane {

using RouteId = uint64_t;                    // as wide as rte_fib writes its results
inline constexpr RouteId kNoRoute = 0x7fff;  // also the default next hop of the FIBs, whose entries hold 15 bits

using Ipv6Address = std::array<uint8_t, 16>;

// Where the prefixes are kept: rte_fib in a real switch, one table shared by all switches in the lab.
class RouteLookup {
 public:
  virtual ~RouteLookup() = default;
  // Route ids of `count` ≤ kBurst IPv4 destinations in host byte order; kNoRoute where nothing matches.
  virtual void lookup4(const uint32_t* destinations, RouteId* routes, unsigned count) const = 0;
  // The same for IPv6.
  virtual void lookup6(const Ipv6Address* destinations, RouteId* routes, unsigned count) const = 0;
};

// What a router checks before it looks up: TTL (RFC 1812 5.2.7.3, RFC 8200 3) and addresses that must not cross a
// router (RFC 1812 5.3.7, RFC 4291 2.4–2.7). The packet is parsed.
DropReason check_routable(const uint8_t* frame, const PacketMeta& meta);

// First octets of IPv4 addresses that a router forwards to and from: 1–126 and 128–223 (RFC 1812 5.3.7).
inline constexpr std::array<uint8_t, 256> kIpv4Unicast = [] {
  std::array<uint8_t, 256> unicast{};
  for (unsigned octet = 1; octet < 224; ++octet) unicast[octet] = octet != 127;
  return unicast;
}();

// The destinations of a burst, gathered while its headers are at hand.
struct Destinations {
  uint32_t ipv4[kBurst];  // in host byte order; anything for IPv6 packets
  unsigned ipv6 = 0;      // how many packets are IPv6
};

// fe80::/10: of one link (RFC 4291 2.5.6).
inline bool is_ipv6_link_local(const uint8_t* address) { return address[0] == 0xfe && (address[1] & 0xc0U) == 0x80; }

// Whether a router forwards to and from the IPv6 address: neither multicast, nor link-local (fe80::/10), unspecified or
// loopback. Site-local ones are global to it (RFC 4291 2.5.7).
inline bool is_ipv6_unicast(const uint8_t* address) {
  if (address[0] == 0xff || is_ipv6_link_local(address)) return false;
  // ::/127, in network order: all but the last bit are zero
  return net::load<uint64_t>(address) != 0 || (net::load<uint64_t>(address + 8) & ~(uint64_t{1} << 56U)) != 0;
}

// Looks up `count` ≤ kBurst parsed packets and writes PacketMeta::route.
void route(const RouteLookup& lookup, const Destinations& to, Packet* const* packets, unsigned count);

// ---------------------------------------------------------------------------------------------------------------------

inline DropReason check_routable(const uint8_t* frame, const PacketMeta& meta) {
  const uint8_t* ip = frame + meta.l3_offset;
  if (meta.l3 == L3::kIpv4) {
    const uint8_t source = ip[12];
    const uint8_t destination = ip[16];
    // Ordinary unicast, 1–126 and 128–223, in one comparison each: x − 1 < 223 and x ≠ 127.
    if (static_cast<uint8_t>(destination - 1U) >= 223 || destination == 127) {
      return destination >= 224 ? DropReason::kMulticast : DropReason::kMartian;
    }
    if (static_cast<uint8_t>(source - 1U) >= 223 || source == 127) return DropReason::kMartian;
    if (ip[8] <= 1) return DropReason::kTtlExpired;
    return DropReason::kNone;
  }
  const uint8_t* source = ip + 8;
  const uint8_t* destination = ip + 24;
  if (destination[0] == 0xff) return DropReason::kMulticast;
  if (!is_ipv6_unicast(source) || !is_ipv6_unicast(destination)) return DropReason::kMartian;
  if (ip[7] <= 1) return DropReason::kTtlExpired;
  return DropReason::kNone;
}

}  // namespace heddle::dataplane
