// The CRCs of InfiniBand by long division, bit by bit, the highest power first: an oracle that shares no code, table or
// bit order with net/infiniband.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace heddle::support {

// Divides the bits of `bytes` (of each byte the lowest first, as they go on the wire), after a seed of ones, by the
// polynomial of `degree`; the complement of the remainder, its highest power in the lowest bit.
inline uint32_t book_crc(std::span<const uint8_t> bytes, unsigned degree, uint64_t polynomial) {
  const uint64_t top = uint64_t{1} << (degree - 1);
  const uint64_t mask = (top << 1U) - 1;
  uint64_t remainder = mask;
  for (const uint8_t byte : bytes) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const bool in = ((byte >> bit) & 1U) != 0;
      const bool out = (remainder & top) != 0;
      remainder = (remainder << 1U) & mask;
      if (in != out) remainder ^= polynomial;
    }
  }
  uint32_t reflected = 0;
  for (unsigned i = 0; i < degree; ++i) {
    if (((remainder >> i) & 1U) != 0) reflected |= 1U << (degree - 1 - i);
  }
  return ~reflected & static_cast<uint32_t>(mask);
}

// x^16 + x^12 + x^3 + x + 1, over all of the packet up to the VCRC (IBTA 7.8.2).
inline uint16_t book_vcrc(std::span<const uint8_t> packet) {
  return static_cast<uint16_t>(book_crc(packet, 16, 0x100b));
}

// CRC-32 over all of the packet up to the ICRC, with ones in the places of VL; GRH traffic class, flow label, hop
// limit; BTH FECN, BECN and reserved bits (IBTA 7.8.1).
inline uint32_t book_icrc(std::span<const uint8_t> packet) {
  std::vector<uint8_t> covered(packet.begin(), packet.end());
  covered[0] |= 0xf0;
  size_t bth = 8;
  if ((covered[1] & 3) == 3) {
    covered[8] |= 0x0f;
    covered[9] = covered[10] = covered[11] = covered[15] = 0xff;
    bth += 40;
  }
  covered[bth + 4] = 0xff;
  return book_crc(covered, 32, 0x04c11db7);
}

}  // namespace heddle::support
