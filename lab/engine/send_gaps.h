// How long queue pairs pause between two packets: what a switch's idle time for flowlets would find.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "net/time.h"

namespace heddle::lab {

// Pauses by length, from the start of one packet to that of the next, in steps of powers of two.
class SendGaps {
 public:
  static constexpr unsigned kLengths = 11;
  // Of pauses that `at_least(i)` counts: 1, 2, 4, … 1024 µs.
  static constexpr Duration length(unsigned i) { return kMicrosecond << i; }

  void note(Duration gap) { counts_[std::min(kLengths, static_cast<unsigned>(std::bit_width(gap / kMicrosecond)))]++; }
  // Pauses of `length(i)` and longer.
  uint64_t at_least(unsigned i) const {
    uint64_t sum = 0;
    for (unsigned longer = i + 1; longer <= kLengths; ++longer) sum += counts_[longer];
    return sum;
  }
  SendGaps& operator+=(const SendGaps& other) {
    for (unsigned i = 0; i <= kLengths; ++i) counts_[i] += other.counts_[i];
    return *this;
  }

 private:
  std::array<uint64_t, kLengths + 1> counts_{};  // below 1 µs, below 2, …, 1024 and more
};

}  // namespace heddle::lab
