// Wire layouts of InfiniBand links: the local route header in front of a BTH, and the flow-control packet.
//
//   data:          LRH 8 | [GRH 40] | BTH 12 | … | payload, padded to 4 | ICRC 4 | VCRC 2    (IBTA volume 1, 5.2)
//   flow control:  Op 4, FCTBS 12 | VL 4, FCCL 12 | LPCRC 2                                  (IBTA volume 1, 7.9.4)
//
// A GRH (IBTA 8.3) has the layout of net::Ipv6Header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/headers.h"

namespace heddle::net {

// IBTA 7.7
struct Lrh {
  uint8_t vl_version;  // VL 4, LVer 4
  uint8_t sl_next;     // SL 4, reserved 2, LNH 2
  Be16 destination;    // DLID
  Be16 length;         // reserved 5, PktLen 11: words of 4 bytes from the LRH's first byte to the one before VCRC
  Be16 source;         // SLID
};
static_assert(sizeof(Lrh) == 8 && offsetof(Lrh, sl_next) == 1 && offsetof(Lrh, destination) == 2 &&
              offsetof(Lrh, length) == 4 && offsetof(Lrh, source) == 6);

// Link next header, IBTA 7.7.4.
inline constexpr uint8_t kLnhBth = 2;  // IBA local
inline constexpr uint8_t kLnhGrh = 3;  // IBA global
constexpr uint8_t virtual_lane(const Lrh& lrh) { return lrh.vl_version >> 4U; }
constexpr uint8_t service_level(const Lrh& lrh) { return lrh.sl_next >> 4U; }
inline constexpr uint16_t kPacketLengthMask = 0x07ff;

// P_Keys, IBTA 10.9: the highest bit tells full members from limited ones.
inline constexpr uint16_t kFullMember = 0x8000;
inline constexpr uint16_t kDefaultPartition = 0xffff;
// Whether a packet with one key is for a port with the other: the same partition, and one of them a full member.
constexpr bool may_talk(uint16_t a, uint16_t b) { return ((a ^ b) & 0x7fff) == 0 && ((a | b) & kFullMember) != 0; }

inline constexpr size_t kVcrcBytes = 2;
// What a packet occupies on the wire beside its own bytes: start and end delimiter, a symbol each (IBTA volume 2, 5.3).
inline constexpr int kInfinibandOverhead = 2;

// IBTA 7.9.4. Op is 0, or 1 while the link comes up.
struct FlowControlPacket {
  Be16 op_fctbs;  // Op 4, FCTBS 12
  Be16 vl_fccl;   // VL 4, FCCL 12
  Be16 lpcrc;     // as it lies on the wire; see link_crc
};
static_assert(sizeof(FlowControlPacket) == 6 && offsetof(FlowControlPacket, vl_fccl) == 2 &&
              offsetof(FlowControlPacket, lpcrc) == 4);
// The same with counters of 28 bits, for links that have agreed on more than 12: vendors' formats are not published.
struct WideFlowControlPacket {
  Be32 op_fctbs;  // Op 4, FCTBS 28
  Be32 vl_fccl;   // VL 4, FCCL 28
  Be16 lpcrc;
};
static_assert(sizeof(WideFlowControlPacket) == 10 && offsetof(WideFlowControlPacket, vl_fccl) == 4 &&
              offsetof(WideFlowControlPacket, lpcrc) == 8);

// VCRC and LPCRC (IBTA 7.8.2, 7.9.4): CRC-16 with the polynomial 0x100b, seed of ones, bits of a byte from the lowest,
// complemented; as the 2 bytes at the packet's end read in little-endian order. `zeros` bytes of zero follow the
// `bytes` that are at hand; both are covered, and then `tail_bytes` of `tail`.
uint16_t link_crc(const uint8_t* packet, size_t bytes, size_t zeros = 0, const uint8_t* tail = nullptr,
                  size_t tail_bytes = 0);

// ICRC of a packet that begins with an LRH (IBTA 7.8.1), as the 4 bytes in front of VCRC read in little-endian order.
// `bytes` of headers are at hand, the BTH's among them; `zeros` bytes of zero payload follow.
uint32_t infiniband_icrc(const uint8_t* packet, size_t bytes, size_t zeros);

}  // namespace heddle::net
