// The RoCEv2 invariant CRC as a receiver computes it, bit by bit: an oracle that shares no code with the switch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/support/frames.h"

namespace heddle::support {

// Where the layers of a RoCEv2 packet lie, in bytes from its IP header.
struct RoceBounds {
  size_t udp = 0;
  size_t end = 0;  // of the IP packet: the ICRC is its last four bytes
};

// Bounds of a well-formed RoCEv2 packet that starts with its IP header and has no IPv6 extension header.
RoceBounds roce_bounds(std::span<const uint8_t> ip);

// The ICRC that `ip` (from the IP header to at least the end of the IP packet) should carry: CRC-32 over eight bytes of
// ones in place of the LRH, then IP header, UDP, BTH and payload with what a router may change set to ones: DS field,
// TTL or hop limit, IPv4 checksum, flow label, UDP checksum, the BTH's FECN/BECN byte (IBTA annex A17.3.3).
uint32_t icrc(std::span<const uint8_t> ip);

// The ICRC it does carry; stored least significant byte first.
uint32_t carried_icrc(std::span<const uint8_t> ip);

// The packet with its last four bytes replaced by the right ICRC.
Bytes with_icrc(Bytes ip);

// ---------------------------------------------------------------------------------------------------------------------

inline RoceBounds roce_bounds(std::span<const uint8_t> ip) {
  if (ip[0] >> 4U == 4) return {(ip[0] & 15U) * size_t{4}, get16(ip, 2)};
  return {40, 40 + size_t{get16(ip, 4)}};
}

inline uint32_t icrc(std::span<const uint8_t> ip) {
  const RoceBounds bounds = roce_bounds(ip);
  Bytes covered(8, 0xff);
  put(covered, ip.first(bounds.end - 4));
  uint8_t* header = covered.data() + 8;
  if (header[0] >> 4U == 4) {
    for (const size_t at : {1, 8, 10, 11}) header[at] = 0xff;
  } else {
    header[0] |= 0x0f;
    for (const size_t at : {1, 2, 3, 7}) header[at] = 0xff;
  }
  for (const size_t at : {6, 7, 8 + 4}) header[bounds.udp + at] = 0xff;

  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : covered) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

inline uint32_t carried_icrc(std::span<const uint8_t> ip) {
  const auto at = ip.subspan(roce_bounds(ip).end - 4, 4);
  return at[0] | (uint32_t{at[1]} << 8U) | (uint32_t{at[2]} << 16U) | (uint32_t{at[3]} << 24U);
}

inline Bytes with_icrc(Bytes ip) {
  const uint32_t crc = icrc(ip);
  const size_t end = roce_bounds(ip).end;
  for (size_t i = 0; i < 4; ++i) ip[end - 4 + i] = static_cast<uint8_t>(crc >> (8U * i));
  return ip;
}

}  // namespace heddle::support
