// Real time for the packet path: the TSC, rescaled to picoseconds. Read once per burst.
#pragma once

#include <cstdint>

#include <rte_cycles.h>

#include "net/time.h"

namespace heddle::dataplane {

class TscClock {
 public:
  // Needs a calibrated TSC: after start_eal().
  TscClock() : start_(rte_rdtsc()), ps_per_tick_((kSecond << 20U) / rte_get_tsc_hz()) {}

  Time now() const {
    __extension__ using Uint128 = unsigned __int128;
    return static_cast<Time>((static_cast<Uint128>(rte_rdtsc() - start_) * ps_per_tick_) >> 20U);
  }

 private:
  uint64_t start_;
  uint64_t ps_per_tick_;  // 44.20 fixed point
};

}  // namespace heddle::dataplane
