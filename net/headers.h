// Wire layouts, as they lie in a frame. Everything is big-endian and unaligned; nothing here checks lengths.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace heddle::net {

static_assert(std::endian::native == std::endian::little, "byte swaps below assume a little-endian host");

// An unaligned load in host order.
template <typename T>
T load(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Big-endian integers of a header. They have alignment 1, so a header struct may start anywhere in a frame.
template <typename Int, size_t kBytes = sizeof(Int)>
class BigEndian {
 public:
  constexpr BigEndian() = default;
  constexpr BigEndian(Int value) { *this = value; }  // NOLINT(google-explicit-constructor): reads as the integer it is

  constexpr operator Int() const {        // NOLINT(google-explicit-constructor)
    if (!std::is_constant_evaluated()) {  // compilers do not see the swap in the loop below
      // Not std::bit_cast: AddressSanitizer of GCC 12 does not see what it reads.
      if constexpr (kBytes == 2) return __builtin_bswap16(load<uint16_t>(bytes_.data()));
      if constexpr (kBytes == 4) return __builtin_bswap32(load<uint32_t>(bytes_.data()));
    }
    Int value = 0;
    for (const uint8_t byte : bytes_) value = static_cast<Int>((value << 8U) | byte);
    return value;
  }
  constexpr BigEndian& operator=(Int value) {
    for (size_t i = kBytes; i-- > 0; value = static_cast<Int>(value >> 8U)) bytes_[i] = static_cast<uint8_t>(value);
    return *this;
  }

 private:
  std::array<uint8_t, kBytes> bytes_{};
};
using Be16 = BigEndian<uint16_t>;
using Be24 = BigEndian<uint32_t, 3>;
using Be32 = BigEndian<uint32_t>;

using Mac = std::array<uint8_t, 6>;

// IEEE 802.3 3.2 and 802.1Q 9.
struct EthernetHeader {
  Mac destination;
  Mac source;
  Be16 ether_type;
};
static_assert(sizeof(EthernetHeader) == 14 && offsetof(EthernetHeader, ether_type) == 12);

struct VlanTag {  // what follows the type 0x8100 or 0x88a8
  Be16 tci;       // PCP 3, DEI 1, VID 12
  Be16 ether_type;
};
static_assert(sizeof(VlanTag) == 4);

inline constexpr uint16_t kTypeIpv4 = 0x0800;
inline constexpr uint16_t kTypeIpv6 = 0x86dd;
inline constexpr uint16_t kTypeVlan = 0x8100;
inline constexpr uint16_t kTypeServiceVlan = 0x88a8;
inline constexpr uint16_t kTypeMacControl = 0x8808;

// RFC 791 3.1
struct Ipv4Header {
  uint8_t version_ihl;
  uint8_t tos;  // DSCP 6, ECN 2 (RFC 3168 23.1)
  Be16 total_length;
  Be16 id;
  Be16 fragment;  // reserved, DF, MF, offset 13
  uint8_t ttl;
  uint8_t protocol;
  Be16 checksum;
  Be32 source;
  Be32 destination;
};
static_assert(sizeof(Ipv4Header) == 20 && offsetof(Ipv4Header, ttl) == 8 && offsetof(Ipv4Header, source) == 12);
inline constexpr uint16_t kMoreFragments = 0x2000;
inline constexpr uint16_t kFragmentOffsetMask = 0x1fff;

// RFC 8200 3
struct Ipv6Header {
  Be32 version_class_label;
  Be16 payload_length;
  uint8_t next_header;
  uint8_t hop_limit;
  std::array<uint8_t, 16> source;
  std::array<uint8_t, 16> destination;
};
static_assert(sizeof(Ipv6Header) == 40 && offsetof(Ipv6Header, hop_limit) == 7 && offsetof(Ipv6Header, source) == 8);

inline constexpr uint8_t kProtocolHopByHop = 0;
inline constexpr uint8_t kProtocolTcp = 6;
inline constexpr uint8_t kProtocolUdp = 17;
inline constexpr uint8_t kProtocolRouting = 43;
inline constexpr uint8_t kProtocolFragment = 44;
inline constexpr uint8_t kProtocolAuthentication = 51;
inline constexpr uint8_t kProtocolDestinationOptions = 60;
inline constexpr uint8_t kProtocolMobility = 135;

// RFC 768
struct UdpHeader {
  Be16 source_port;
  Be16 destination_port;
  Be16 length;
  Be16 checksum;
};
static_assert(sizeof(UdpHeader) == 8);
inline constexpr uint16_t kRocePort = 4791;  // IBTA annex A17

// Base transport header, IBTA 9.2
struct Bth {
  uint8_t opcode;
  uint8_t flags;  // SE 1, MigReq 1, PadCnt 2, TVer 4
  Be16 pkey;
  uint8_t congestion;  // FECN 1, BECN 1, reserved 6; outside the RoCE ICRC
  Be24 dest_qp;
  uint8_t ack_request;  // AckReq 1, reserved 7
  Be24 psn;
};
static_assert(sizeof(Bth) == 12 && offsetof(Bth, dest_qp) == 5 && offsetof(Bth, psn) == 9);
inline constexpr uint8_t kBthVersionMask = 0x0f;
inline constexpr uint8_t kBthAckRequest = 0x80;
inline constexpr uint8_t kBthFecn = 0x80;
inline constexpr uint8_t kBthBecn = 0x40;

// ACK extended transport header, IBTA 9.3.5
struct Aeth {
  uint8_t syndrome;  // 000xxxxx ACK with credits, 001xxxxx RNR NAK, 011xxxxx NAK with code
  Be24 msn;
};
static_assert(sizeof(Aeth) == 4);

// RDMA extended transport header, IBTA 9.3.3
struct Reth {
  Be32 address_high;
  Be32 address_low;
  Be32 rkey;
  Be32 dma_length;
};
static_assert(sizeof(Reth) == 16);
inline constexpr size_t kIcrcBytes = 4;

// MAC control frame for priority-based flow control, IEEE 802.1Q 36 (802.1Qbb) and 802.3 annex 31D.
struct PfcFrame {
  EthernetHeader ethernet;
  Be16 opcode;  // 0x0101
  Be16 class_enable;
  std::array<Be16, 8> quanta;  // units of 512 bit times; 0 = resume
};
static_assert(sizeof(PfcFrame) == 34);

// RC opcodes that the packet path or the lab look at (rdma-core <infiniband/opcode.h> has the full list).
enum class Opcode : uint8_t {
  kRcSendFirst = 0x00,
  kRcSendMiddle = 0x01,
  kRcSendLast = 0x02,
  kRcSendOnly = 0x04,
  kRcWriteFirst = 0x06,
  kRcWriteMiddle = 0x07,
  kRcWriteLast = 0x08,
  kRcWriteOnly = 0x0a,
  kRcAck = 0x11,
  kCnp = 0x81,  // IBTA A17.9.3
};

// Opcodes of packets that answer rather than carry data: ACK and NAK (of every reliable transport, atomic ones
// included: IBTA table 38, 9.3.5) and CNP.
constexpr bool is_roce_control(uint8_t opcode) {
  const unsigned operation = opcode & 0x1fU;
  return opcode == static_cast<uint8_t>(Opcode::kCnp) || ((operation == 0x11 || operation == 0x12) && opcode < 0x60);
}

// A header of type T at `offset`; the caller has checked the length.
template <typename T>
T* header_at(void* frame, size_t offset) {
  static_assert(alignof(T) == 1);
  return reinterpret_cast<T*>(static_cast<uint8_t*>(frame) + offset);
}
template <typename T>
const T* header_at(const void* frame, size_t offset) {
  static_assert(alignof(T) == 1);
  return reinterpret_cast<const T*>(static_cast<const uint8_t*>(frame) + offset);
}

}  // namespace heddle::net
