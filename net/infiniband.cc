#include "net/infiniband.h"

#include <array>
#include <cstring>

#include "net/icrc.h"

namespace heddle::net {

namespace {

constexpr uint16_t kPolynomial = 0xd008;  // 0x100b, reflected

constexpr std::array<uint16_t, 256> make_table() {
  std::array<uint16_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    unsigned crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    table[i] = static_cast<uint16_t>(crc);
  }
  return table;
}
constexpr auto kTable = make_table();

constexpr uint16_t next(uint16_t crc, uint8_t byte) {
  return static_cast<uint16_t>(kTable[(crc ^ byte) & 0xffU] ^ (crc >> 8U));
}

}  // namespace

uint16_t link_crc(const uint8_t* packet, size_t bytes, size_t zeros, const uint8_t* tail, size_t tail_bytes) {
  uint16_t crc = 0xffff;
  for (size_t i = 0; i < bytes; ++i) crc = next(crc, packet[i]);
  for (size_t i = 0; i < zeros; ++i) crc = next(crc, 0);
  for (size_t i = 0; i < tail_bytes; ++i) crc = next(crc, tail[i]);
  return static_cast<uint16_t>(~crc);
}

uint32_t infiniband_icrc(const uint8_t* packet, size_t bytes, size_t zeros) {
  // Fields that switches and routers change count as ones: the VL; of a GRH traffic class, flow label and hop limit;
  // of the BTH the byte with FECN and BECN.
  std::array<uint8_t, sizeof(Lrh) + sizeof(Ipv6Header) + sizeof(Bth)> head;
  const bool global = (packet[1] & 3U) == kLnhGrh;
  const size_t bth = sizeof(Lrh) + (global ? sizeof(Ipv6Header) : 0);
  const size_t masked = bth + sizeof(Bth);
  std::memcpy(head.data(), packet, masked);
  head[0] |= 0xf0U;
  if (global) {
    head[sizeof(Lrh)] |= 0x0fU;
    head[sizeof(Lrh) + 1] = head[sizeof(Lrh) + 2] = head[sizeof(Lrh) + 3] = head[sizeof(Lrh) + 7] = 0xff;
  }
  head[bth + offsetof(Bth, congestion)] = 0xff;
  uint32_t crc = crc32_update(kCrc32Seed, head.data(), masked);
  crc = crc32_update(crc, packet + masked, bytes - masked);
  return ~crc32_update_zeros(crc, zeros);
}

}  // namespace heddle::net
