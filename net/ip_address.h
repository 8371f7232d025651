// IP addresses of either family, and where they lie in a header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "net/headers.h"
#include "net/prefix.h"

namespace heddle::net {

// As IpPrefix keeps its own: in network order, an IPv4 address in the first 4 bytes.
struct IpAddress {
  IpFamily family = IpFamily::kIpv4;
  std::array<uint8_t, 16> bytes{};

  constexpr IpAddress() = default;
  constexpr IpAddress(IpFamily of, const std::array<uint8_t, 16>& in_network_order)
      : family(of), bytes(in_network_order) {}
  // IPv4, in host order.
  constexpr IpAddress(uint32_t ipv4)  // NOLINT(google-explicit-constructor): how IPv4 addresses are written here
      : bytes{static_cast<uint8_t>(ipv4 >> 24U), static_cast<uint8_t>(ipv4 >> 16U), static_cast<uint8_t>(ipv4 >> 8U),
              static_cast<uint8_t>(ipv4)} {}

  constexpr size_t size() const { return family == IpFamily::kIpv4 ? 4 : 16; }
  // 0.0.0.0 or ::, which nobody has (RFC 1122 3.2.1.3, RFC 4291 2.5.2).
  constexpr bool is_unspecified() const { return bytes == std::array<uint8_t, 16>{}; }
  // The last four bytes: of an IPv4 address, all of it, in host order.
  constexpr uint32_t low_bits() const {
    uint32_t low = 0;
    for (size_t i = size() - 4; i < size(); ++i) low = low << 8U | bytes[i];
    return low;
  }

  friend constexpr bool operator==(const IpAddress&, const IpAddress&) = default;
};

// What the headers of the two families differ in, for whoever handles both alike. Offsets from the IP header.
struct IpLayout {
  uint16_t ether_type;
  uint8_t header_bytes;  // without options or extensions
  uint8_t source;
  uint8_t destination;
  uint8_t address_bytes;
};
constexpr IpLayout layout_of(IpFamily family) {
  if (family == IpFamily::kIpv4) return {kTypeIpv4, sizeof(Ipv4Header), 12, 16, 4};
  return {kTypeIpv6, sizeof(Ipv6Header), 8, 24, 16};
}

// Whether the IP header of that family at `ip` is addressed to it.
inline bool is_destination(const IpAddress& address, const uint8_t* ip) {
  return std::memcmp(ip + layout_of(address.family).destination, address.bytes.data(), address.size()) == 0;
}

}  // namespace heddle::net
