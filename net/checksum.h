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
