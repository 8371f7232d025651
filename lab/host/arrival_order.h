// How far packets of one queue pair arrive out of order, as in RFC 4737, on first copies alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace heddle::lab {

// From the packet that leaves a gap on, until the gap is closed.
class ArrivalOrder {
 public:
  // A packet arrived that no other overtook.
  void in_order(uint64_t psn) { overtakers_.push_back({psn, arrivals_++}); }
  // A packet arrived behind later ones. Returns its reordering extent (RFC 4737 4.2.2): how many arrivals ago the
  // earliest of those came that have a higher number.
  uint64_t late(uint64_t psn) {
    const auto first = std::upper_bound(overtakers_.begin(), overtakers_.end(), psn,
                                        [](uint64_t value, const Overtaker& of) { return value < of.psn; });
    const uint64_t arrival = arrivals_++;
    return first == overtakers_.end() ? 0 : arrival - first->arrival;  // 0: only repeated packets overtook it
  }

 private:
  struct Overtaker {
    uint64_t psn;
    uint64_t arrival;
  };
  std::vector<Overtaker> overtakers_;  // ascending in both
  uint64_t arrivals_ = 0;
};

}  // namespace heddle::lab
