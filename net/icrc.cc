#include "net/icrc.h"

#include <array>
#include <cstring>

#include "net/headers.h"

namespace heddle::net {

namespace {

// CRC-32 of IEEE 802.3, reflected.
constexpr uint32_t kPolynomial = 0xedb88320;

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}
constexpr auto kTable = make_table();

// A zero byte multiplies the register by x^8 in GF(2): a 32×32 bit matrix. n zeros are its n-th power, by squaring.
using Matrix = std::array<uint32_t, 32>;  // column i: where bit i goes

uint32_t times(const Matrix& matrix, uint32_t vector) {
  uint32_t sum = 0;
  for (unsigned i = 0; vector != 0; ++i, vector >>= 1U) {
    if ((vector & 1U) != 0) sum ^= matrix[i];
  }
  return sum;
}

}  // namespace

uint32_t crc32_update(uint32_t crc, const uint8_t* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) crc = kTable[(crc ^ data[i]) & 0xffU] ^ (crc >> 8U);
  return crc;
}

uint32_t crc32_update_zeros(uint32_t crc, size_t zeros) {
  Matrix power;
  for (unsigned i = 0; i < 32; ++i) {
    const uint32_t unit = 1U << i;
    power[i] = kTable[unit & 0xffU] ^ (unit >> 8U);
  }
  for (; zeros != 0; zeros >>= 1U) {
    if ((zeros & 1U) != 0) crc = times(power, crc);
    Matrix square;
    for (unsigned i = 0; i < 32; ++i) square[i] = times(power, power[i]);
    power = square;
  }
  return crc;
}

uint32_t icrc(const uint8_t* packet, size_t bytes, size_t zeros) {
  // Fields that change on the way count as ones: IPv4 TOS, TTL and checksum; IPv6 traffic class, flow label and hop
  // limit; the UDP checksum; FECN, BECN and the reserved bits of the BTH. In front, 8 bytes of ones stand for an LRH.
  std::array<uint8_t, 8> lrh;
  lrh.fill(0xff);
  std::array<uint8_t, sizeof(Ipv6Header) + sizeof(UdpHeader) + sizeof(Bth)> head;
  const bool four = (packet[0] >> 4U) == 4;
  const size_t udp = four ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
  const size_t masked = udp + sizeof(UdpHeader) + sizeof(Bth);
  std::memcpy(head.data(), packet, masked);
  if (four) {
    head[1] = head[8] = head[10] = head[11] = 0xff;
  } else {
    head[0] |= 0x0fU;
    head[1] = head[2] = head[3] = head[7] = 0xff;
  }
  head[udp + 6] = head[udp + 7] = 0xff;
  head[udp + sizeof(UdpHeader) + 4] = 0xff;

  uint32_t crc = crc32_update(kCrc32Seed, lrh.data(), lrh.size());
  crc = crc32_update(crc, head.data(), masked);
  crc = crc32_update(crc, packet + masked, bytes - masked);
  return ~crc32_update_zeros(crc, zeros);
}

}  // namespace heddle::net
