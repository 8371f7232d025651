// A link's rate, and how long bytes take on it.
#pragma once

#include <cstdint>
#include <limits>

#include "net/time.h"

namespace heddle {

// What a frame occupies on an Ethernet link beyond its own bytes: FCS 4, preamble and SFD 8, inter-packet gap 12
// (IEEE 802.3 clauses 3.2 and 4.4.2).
inline constexpr int kEthernetOverhead = 24;

// Bits per second, 0 = unlimited. Serialisation time is kept as picoseconds per byte in 44.20 fixed point, so that the
// packet path multiplies and shifts instead of dividing; the error is below 10^-6 of a byte time from 1M to 1600G.
class Rate {
 public:
  constexpr Rate() = default;
  constexpr explicit Rate(uint64_t bits_per_second)
      : bits_per_second_(bits_per_second),
        ps_per_byte_(bits_per_second == 0 ? 0 : ((8 * kSecond) << 20U) / bits_per_second) {}

  static constexpr Rate gbps(uint64_t g) { return Rate(g * 1'000'000'000); }
  static constexpr Rate unlimited() { return Rate(); }

  constexpr uint64_t bits_per_second() const { return bits_per_second_; }
  constexpr double gbps() const { return static_cast<double>(bits_per_second_) / 1e9; }
  constexpr bool is_unlimited() const { return bits_per_second_ == 0; }

  // How long `bytes` occupy the link; 0 on an unlimited one. Right below 2^44 ps, 17.5 seconds: that is 2 MiB at 1M,
  // and in proportion at other rates.
  constexpr Duration time_for(uint64_t bytes) const { return (bytes * ps_per_byte_) >> 20U; }

  // The same for whatever the time's own 64 bits hold, 2^41 bytes at 1M. Three times the work: not for every packet.
  constexpr Duration long_time_for(uint64_t bytes) const {
    return (bytes >> 20U) * ps_per_byte_ + time_for(bytes & ((uint64_t{1} << 20U) - 1));
  }

  // How many whole bytes pass in `d`; only meaningful on a limited rate. Divides: not for the packet path.
  constexpr uint64_t bytes_in(Duration d) const {
    return static_cast<uint64_t>(static_cast<double>(d) * static_cast<double>(bits_per_second_) / 8e12);
  }

  friend constexpr bool operator==(Rate a, Rate b) { return a.bits_per_second_ == b.bits_per_second_; }

 private:
  uint64_t bits_per_second_ = 0;
  uint64_t ps_per_byte_ = 0;
};

}  // namespace heddle
