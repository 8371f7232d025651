// Frames for tests, put together layer by layer from the outside in. Every field has the value a router would accept
// and can be made to lie; lengths and checksums are worked out unless they are given.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/headers.h"

namespace heddle::support {

using Bytes = std::vector<uint8_t>;
using Address6 = std::array<uint8_t, 16>;

inline constexpr net::Mac kRouterMac{0x02, 0, 0, 0, 0x01, 0x00};
inline constexpr net::Mac kHostMac{0x02, 0, 0, 0, 0xaa, 0x01};

constexpr uint32_t ip4(unsigned a, unsigned b, unsigned c, unsigned d) {
  return (a << 24U) | (b << 16U) | (c << 8U) | d;
}

// 2001:db8:`net`::`host`
constexpr Address6 ip6(uint16_t net, uint16_t host) {
  Address6 address{0x20, 0x01, 0x0d, 0xb8};
  address[4] = static_cast<uint8_t>(net >> 8U);
  address[5] = static_cast<uint8_t>(net);
  address[14] = static_cast<uint8_t>(host >> 8U);
  address[15] = static_cast<uint8_t>(host);
  return address;
}

struct Ethernet {
  net::Mac destination = kRouterMac;
  net::Mac source = kHostMac;
  uint16_t type = net::kTypeIpv4;
};

struct Ipv4 {
  uint8_t version = 4;
  std::optional<uint8_t> ihl;  // 4-byte words
  uint8_t tos = 26U << 2U;
  std::optional<uint16_t> total_length;
  uint16_t id = 0x4d2;
  uint16_t fragment = 0x4000;  // DF
  uint8_t ttl = 64;
  uint8_t protocol = net::kProtocolUdp;
  std::optional<uint16_t> checksum;
  uint32_t source = ip4(10, 1, 0, 7);
  uint32_t destination = ip4(10, 2, 0, 9);
  Bytes options;
};

struct Ipv6 {
  uint8_t version = 6;
  uint8_t traffic_class = 26U << 2U;
  uint32_t flow_label = 0;
  std::optional<uint16_t> payload_length;
  uint8_t next_header = net::kProtocolUdp;
  uint8_t hop_limit = 64;
  Address6 source = ip6(1, 7);
  Address6 destination = ip6(2, 9);
};

struct Udp {
  uint16_t source_port = 0xc123;
  uint16_t destination_port = net::kRocePort;
  std::optional<uint16_t> length;
  uint16_t checksum = 0;
};

struct Roce {
  uint8_t opcode = 0x04;  // RC SEND Only
  uint8_t flags = 0;      // SE 1, MigReq 1, PadCnt 2, TVer 4
  uint8_t congestion = 0;
  uint32_t dest_qp = 0x11;
  uint32_t psn = 0x2a;
};

Bytes join(std::initializer_list<Bytes> parts);
Bytes pattern(size_t bytes);  // a payload in which every byte's place shows
Bytes ethernet(const Ethernet& header, const Bytes& rest);
Bytes vlan_tag(uint16_t tci, uint16_t next_type, const Bytes& rest);
Bytes ipv4(const Ipv4& header, const Bytes& payload);
Bytes ipv6(const Ipv6& header, const Bytes& payload);
// An extension header of 8 × (1 + `extra`) bytes that names `next` (RFC 8200 4.3, 4.4, 4.6).
Bytes extension(uint8_t next, uint8_t extra, const Bytes& rest);
Bytes fragment_header(uint8_t next, uint16_t offset_and_more, const Bytes& rest);  // RFC 8200 4.5
Bytes udp(const Udp& header, const Bytes& payload);
Bytes tcp(uint16_t source_port, uint16_t destination_port, const Bytes& payload);
Bytes roce(const Roce& header, const Bytes& payload);  // BTH, payload and four bytes of room for the ICRC

// RFC 1071 over whole bytes, by the book: the test's own, not the switch's.
uint16_t internet_checksum(std::span<const uint8_t> bytes);

// ---------------------------------------------------------------------------------------------------------------------

inline void put16(Bytes& out, unsigned value) {
  out.push_back(static_cast<uint8_t>(value >> 8U));
  out.push_back(static_cast<uint8_t>(value));
}
inline void put32(Bytes& out, uint32_t value) {
  put16(out, value >> 16U);
  put16(out, value & 0xffffU);
}
template <typename Range>
void put(Bytes& out, const Range& bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline unsigned get16(std::span<const uint8_t> bytes, size_t at) { return bytes[at] * 256U + bytes[at + 1]; }

inline Bytes join(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) put(all, part);
  return all;
}

inline Bytes pattern(size_t bytes) {
  Bytes out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(i * 7 + (i >> 8U) + 1);
  return out;
}

inline Bytes ethernet(const Ethernet& header, const Bytes& rest) {
  Bytes out;
  put(out, header.destination);
  put(out, header.source);
  put16(out, header.type);
  put(out, rest);
  return out;
}

inline Bytes vlan_tag(uint16_t tci, uint16_t next_type, const Bytes& rest) {
  Bytes out;
  put16(out, tci);
  put16(out, next_type);
  put(out, rest);
  return out;
}

inline uint16_t internet_checksum(std::span<const uint8_t> bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) sum += i + 1 < bytes.size() ? get16(bytes, i) : bytes[i] * 256U;
  while (sum > 0xffff) sum = (sum >> 16U) + (sum & 0xffff);
  return static_cast<uint16_t>(0xffff - sum);
}

inline Bytes ipv4(const Ipv4& header, const Bytes& payload) {
  const size_t header_bytes = 20 + header.options.size();
  Bytes out;
  const unsigned ihl = header.ihl.value_or(static_cast<uint8_t>(header_bytes / 4));
  out.push_back(static_cast<uint8_t>(header.version * 16U + ihl));
  out.push_back(header.tos);
  put16(out, header.total_length.value_or(static_cast<uint16_t>(header_bytes + payload.size())));
  put16(out, header.id);
  put16(out, header.fragment);
  out.push_back(header.ttl);
  out.push_back(header.protocol);
  put16(out, 0);
  put32(out, header.source);
  put32(out, header.destination);
  put(out, header.options);
  const uint16_t checksum = header.checksum.value_or(internet_checksum(out));
  out[10] = static_cast<uint8_t>(checksum >> 8U);
  out[11] = static_cast<uint8_t>(checksum);
  put(out, payload);
  return out;
}

inline Bytes ipv6(const Ipv6& header, const Bytes& payload) {
  Bytes out;
  put32(out, (uint32_t{header.version} << 28U) | (uint32_t{header.traffic_class} << 20U) | header.flow_label);
  put16(out, header.payload_length.value_or(static_cast<uint16_t>(payload.size())));
  out.push_back(header.next_header);
  out.push_back(header.hop_limit);
  put(out, header.source);
  put(out, header.destination);
  put(out, payload);
  return out;
}

inline Bytes extension(uint8_t next, uint8_t extra, const Bytes& rest) {
  Bytes out{next, extra, 1, 4, 0, 0, 0, 0};  // PadN, which makes sense as an option and as a routing header
  out.resize(8U * (1U + extra));
  put(out, rest);
  return out;
}

inline Bytes fragment_header(uint8_t next, uint16_t offset_and_more, const Bytes& rest) {
  Bytes out{next, 0};
  put16(out, offset_and_more);
  put32(out, 0xfeed);
  put(out, rest);
  return out;
}

inline Bytes udp(const Udp& header, const Bytes& payload) {
  Bytes out;
  put16(out, header.source_port);
  put16(out, header.destination_port);
  put16(out, header.length.value_or(static_cast<uint16_t>(8 + payload.size())));
  put16(out, header.checksum);
  put(out, payload);
  return out;
}

inline Bytes tcp(uint16_t source_port, uint16_t destination_port, const Bytes& payload) {
  Bytes out;
  put16(out, source_port);
  put16(out, destination_port);
  put32(out, 1);
  put32(out, 2);
  put16(out, 0x5010);  // data offset 5 words, ACK
  put16(out, 0xffff);
  put32(out, 0);
  put(out, payload);
  return out;
}

inline Bytes roce(const Roce& header, const Bytes& payload) {
  Bytes out{header.opcode, header.flags, 0xff, 0xff};
  put32(out, (uint32_t{header.congestion} << 24U) | header.dest_qp);
  put32(out, header.psn);
  put(out, payload);
  put32(out, 0);
  return out;
}

}  // namespace heddle::support
