// The Internet checksum as the packet path needs it: verify a header, update one field.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/headers.h"

namespace heddle::net {

// One's-complement sum of an IPv4 header folded to 16 bits (RFC 1071); 0xffff if the checksum is right. `bytes` is a
// multiple of 4, 20–60. Byte order does not matter to the test.
inline uint16_t ipv4_header_sum(const void* header, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(header);
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; i += 4) sum += load<uint32_t>(at + i);
  sum = (sum & 0xffffffff) + (sum >> 32U);
  sum = (sum & 0xffff) + (sum >> 16U);
  sum = (sum & 0xffff) + (sum >> 16U);
  sum = (sum & 0xffff) + (sum >> 16U);
  return static_cast<uint16_t>(sum);
}

// The same test for a header of 20 bytes in nine instructions. One's-complement sums are sums modulo 65535, where
// 2^16 ≡ 2^32 ≡ 2^64 ≡ 1: words of any size may be added, and carries come back in as 1. The header is intact if 65535
// divides the sum, which is never 0 because no header begins with a 0: an odd divisor d divides x exactly if
// x · d⁻¹ (mod 2^64) does not exceed 2^64 / d (Granlund and Montgomery 1994, section 9).
inline bool ipv4_header_is_intact(const void* header) {
  const auto* at = static_cast<const uint8_t*>(header);
  constexpr auto add = [](uint64_t a, uint64_t b) { return a + b + (a + b < b ? 1U : 0U); };
  const uint64_t sum = add(add(load<uint64_t>(at), load<uint64_t>(at + 8)), load<uint32_t>(at + 16));
  constexpr uint64_t kQuotient = ~uint64_t{0} / 0xffff;
  constexpr uint64_t kInverse = -kQuotient;
  static_assert(kInverse * 0xffff == 1);
  return sum * kInverse <= kQuotient;
}

// The checksum after one 16-bit word of the header changed from `before` to `after`: RFC 1624 equation 3,
// HC' = ~(~HC + ~m + m'). All three as they lie in the frame, in one byte order.
constexpr uint16_t update_checksum(uint16_t checksum, uint16_t before, uint16_t after) {
  uint32_t sum = static_cast<uint16_t>(~checksum);
  sum += static_cast<uint16_t>(~before);
  sum += after;
  sum = (sum & 0xffff) + (sum >> 16U);
  sum = (sum & 0xffff) + (sum >> 16U);
  return static_cast<uint16_t>(~sum);
}

// One's-complement sum (RFC 1071) of `bytes` bytes as 16-bit words in the order they lie in memory, folded, on top of
// another such sum. A last odd byte counts as if a zero followed.
inline uint16_t ones_sum(const void* data, size_t bytes, uint16_t on_top_of = 0) {
  const auto* at = static_cast<const uint8_t*>(data);
  uint64_t sum = on_top_of;
  size_t i = 0;
  for (; i + 2 <= bytes; i += 2) sum += load<uint16_t>(at + i);
  if (i < bytes) sum += at[i];
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16U);
  return static_cast<uint16_t>(sum);
}

// The one's-complement sum of a UDP packet and its pseudo header (RFC 768, RFC 8200 8.1), as it lies; 0xffff if the
// checksum in it is right. `addresses` are source and destination, `address_bytes` both together.
inline uint16_t udp_sum(const void* addresses, size_t address_bytes, const void* udp, uint16_t udp_bytes) {
  const uint16_t lengths[2] = {__builtin_bswap16(udp_bytes), __builtin_bswap16(kProtocolUdp)};
  return ones_sum(udp, udp_bytes, ones_sum(lengths, sizeof lengths, ones_sum(addresses, address_bytes)));
}

}  // namespace heddle::net
