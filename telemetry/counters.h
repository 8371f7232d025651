// What is counted while packets flow. Every block belongs to one lcore (or one lab switch): a packet writes no line
// that another core writes. Readers sum over the blocks and may see a burst half counted, never a torn number.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "net/drop_reason.h"
#include "net/packet.h"

namespace heddle::telemetry {

struct PortCounters {
  uint64_t rx_packets = 0;
  uint64_t rx_bytes = 0;  // frames without FCS
  uint64_t tx_packets = 0;
  uint64_t tx_bytes = 0;
  std::array<uint64_t, kDropReasons>
      drops{};  // before the egress queue: at the port a packet came in by; after it: at the port it was to leave by

  PortCounters& operator+=(const PortCounters& other) {
    rx_packets += other.rx_packets;
    rx_bytes += other.rx_bytes;
    tx_packets += other.tx_packets;
    tx_bytes += other.tx_bytes;
    for (size_t i = 0; i < drops.size(); ++i) drops[i] += other.drops[i];
    return *this;
  }
};

// Traffic of one member of a next-hop group.
struct PathCounters {
  uint64_t packets = 0;
  uint64_t bytes = 0;
};

// One lcore's counters of one switch.
struct alignas(64) SwitchCounters {
  std::vector<PortCounters> ports;
  std::vector<PathCounters> paths;  // by lb::NextHop::counter
};

}  // namespace heddle::telemetry
