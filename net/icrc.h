// The invariant CRC of RoCEv2 (IBTA annex A17.9.2): a CRC-32 over what no router may change.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::net {

// ICRC of a RoCEv2 packet, as the 4 bytes at its end read in little-endian order. `packet` begins with the IP header
// and holds `bytes` of headers (IPv4 without options or IPv6, UDP, BTH, and as much behind as is at hand, ICRC
// excluded); `zeros` bytes of zero payload follow that are not at hand. Needs at least IP, UDP and BTH.
uint32_t icrc(const uint8_t* packet, size_t bytes, size_t zeros);

// The CRC-32 of IEEE 802.3 (reflected), step by step: begins with the seed, ends with a complement.
inline constexpr uint32_t kCrc32Seed = 0xffffffff;
uint32_t crc32_update(uint32_t crc, const uint8_t* data, size_t bytes);
uint32_t crc32_update_zeros(uint32_t crc, size_t zeros);

}  // namespace heddle::net
