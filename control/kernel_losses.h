// Frames that the kernel lost before an af_packet port's ring. The packet socket drops them without telling anybody
// that ethdev could ask, but the interface has counted them as received.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/ethdev_port.h"

namespace heddle::control {

class KernelLosses {
 public:
  explicit KernelLosses(const std::vector<dataplane::EthdevPort>& ports);

  // Takes a sample of every af_packet port. Called every 100 ms or so.
  void sample(const std::vector<dataplane::EthdevPort>& ports);
  // Frames lost so far at a port: never too many, and exact once the port has been quiet for a second.
  uint64_t lost(size_t port) const { return watched_[port].lost.load(std::memory_order_relaxed); }

 private:
  struct Watched {
    bool active = false;
    uint64_t seen_before = 0;    // by the interface, when the switch began
    std::vector<uint64_t> gaps;  // recent samples of seen − taken, a ring
    size_t next = 0;
    std::atomic<uint64_t> lost{0};
  };

  std::vector<Watched> watched_;
};

}  // namespace heddle::control
