// Subnet management packets (SMPs) on an InfiniBand link, and the one that switches send each other here: a notice of
// what they cannot reach any more.
//
//   LRH 8 (VL 15) | BTH 12 (UD SEND only, QP 0) | DETH 8 | MAD 256 | ICRC 4 | VCRC 2    (IBTA volume 1, 13.4, 14.2.1)
//
// The notice is a Trap (IBTA 13.4.8) of the subnet class with a vendor's Notice in it; what its data details say is our
// own, because vendors' formats are not published. It goes to whoever is at the other end of the link: the permissive
// LID (IBTA 4.1.3).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "net/headers.h"
#include "net/infiniband.h"

namespace heddle::net {

inline constexpr uint8_t kManagementLane = 15;
inline constexpr uint16_t kPermissiveLid = 0xffff;

// Datagram extended transport header, IBTA 9.3.1
struct Deth {
  Be32 qkey;
  uint8_t reserved;
  Be24 source_qp;
};
static_assert(sizeof(Deth) == 8 && offsetof(Deth, source_qp) == 5);

// Header of every management datagram, IBTA 13.4.2
struct MadHeader {
  uint8_t base_version;
  uint8_t management_class;
  uint8_t class_version;
  uint8_t method;
  Be16 status;
  Be16 class_specific;
  Be32 transaction_high;
  Be32 transaction_low;
  Be16 attribute;
  Be16 reserved;
  Be32 modifier;
};
static_assert(sizeof(MadHeader) == 24 && offsetof(MadHeader, attribute) == 16);

// Up to where the attribute's 64 bytes begin, IBTA 14.2.1.1
struct LidRoutedSmp {
  MadHeader mad;
  std::array<uint8_t, 8> management_key;
  std::array<uint8_t, 32> reserved;
};
static_assert(sizeof(LidRoutedSmp) == 64);

inline constexpr uint32_t kMadBytes = 256;

// A run of LIDs.
struct LidRange {
  uint16_t first = 0;
  uint16_t count = 0;
  friend bool operator==(const LidRange&, const LidRange&) = default;
};

struct ReachNotice {
  static constexpr size_t kMostRanges = 6;  // so that all that is not zero lies within 128 bytes

  uint16_t sweep = 0;     // of the subnet manager, whose tables it is about
  bool restored = false;  // these can be reached again; else: cannot
  uint8_t count = 0;      // of ranges
  std::array<LidRange, kMostRanges> ranges{};
  friend bool operator==(const ReachNotice&, const ReachNotice&) = default;
};

inline constexpr uint32_t kManagementFrame = sizeof(Lrh) + sizeof(Bth) + sizeof(Deth) + kMadBytes + 6;
inline constexpr uint32_t kNoticeHeaders = 128;  // of those, what a notice writes; zeros follow

// Writes the headers of a notice from the switch that has that LID; `number` tells its notices apart.
void write_reach_notice(uint8_t* packet, uint16_t lid, uint32_t number, const ReachNotice& notice);
// False if the packet is no such notice, or a malformed one.
bool parse_reach_notice(const uint8_t* packet, size_t bytes, ReachNotice& notice);

}  // namespace heddle::net
