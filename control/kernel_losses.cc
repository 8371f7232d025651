#include "control/kernel_losses.h"

#include <algorithm>
#include <fstream>

namespace heddle::control {

namespace {

constexpr size_t kSamples = 10;

uint64_t interface_counter(const std::string& netdev, const char* name) {
  std::ifstream file("/sys/class/net/" + netdev + "/statistics/" + name);
  uint64_t value = 0;
  file >> value;
  return value;
}

// Frames the packet socket was offered: all that the interface received, and those that the kernel itself sent by it
// (a packet socket sees outgoing frames too, but not its own).
uint64_t offered(const dataplane::EthdevPort& port) {
  const std::string& netdev = port.facts().netdev;
  const uint64_t ours = port.device_counters().tx_packets;
  const uint64_t sent = interface_counter(netdev, "tx_packets");
  return interface_counter(netdev, "rx_packets") + (sent > ours ? sent - ours : 0);
}

}  // namespace

KernelLosses::KernelLosses(const std::vector<dataplane::EthdevPort>& ports) : watched_(ports.size()) {
  for (size_t i = 0; i < ports.size(); ++i) {
    watched_[i].active = ports[i].facts().driver == "net_af_packet" && !ports[i].facts().netdev.empty();
    if (!watched_[i].active) continue;
    watched_[i].seen_before = offered(ports[i]);
    watched_[i].gaps.assign(kSamples, 0);
  }
}

// What was offered and not taken is lost or still in the ring. Losses only grow while the ring comes and goes, so the
// smallest gap of the last second has the least of the ring in it.
void KernelLosses::sample(const std::vector<dataplane::EthdevPort>& ports) {
  for (size_t i = 0; i < ports.size(); ++i) {
    Watched& watched = watched_[i];
    if (!watched.active) continue;
    const uint64_t seen = offered(ports[i]) - watched.seen_before;
    const uint64_t taken = ports[i].device_counters().rx_packets;
    watched.gaps[watched.next++ % kSamples] = seen > taken ? seen - taken : 0;
    const uint64_t least = *std::min_element(watched.gaps.begin(), watched.gaps.end());
    if (least > watched.lost.load(std::memory_order_relaxed)) watched.lost.store(least, std::memory_order_relaxed);
  }
}

}  // namespace heddle::control
