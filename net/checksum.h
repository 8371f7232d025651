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

}  // namespace heddle::net
