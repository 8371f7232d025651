// IP address prefixes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

namespace heddle::net {

enum class IpFamily : uint8_t { kIpv4, kIpv6 };

// An IPv4 address takes the first 4 of the 16 bytes, the rest are zero; bytes are in network order.
struct IpPrefix {
  IpFamily family = IpFamily::kIpv4;
  std::array<uint8_t, 16> address{};
  uint8_t length = 0;  // bits, 0 … 32 or 0 … 128

  friend auto operator<=>(const IpPrefix&, const IpPrefix&) = default;  // NOLINT(modernize-use-nullptr): its mistake
};

}  // namespace heddle::net
