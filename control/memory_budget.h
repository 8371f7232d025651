// How many packet buffers a switch needs, and how much memory DPDK must be given for it.
#pragma once

#include <cstdint>

#include "control/switch_config.h"

namespace heddle::control {

// Every place a packet can be at the same moment has its buffers: driver rings, egress queues, hand-over rings, the
// lcores' hands and mempool caches, and what a device keeps for itself. A pool smaller than that stalls (all buffers in
// one place) instead of dropping by name.
struct MemoryBudget {
  uint32_t packets = 0;           // buffers in the pool
  uint32_t buffer_bytes = 0;      // data room of each, headroom included
  uint32_t handover_packets = 0;  // of each hand-over ring
  uint64_t pool_bytes = 0;
  uint64_t fib_bytes = 0;
  uint64_t total_bytes() const { return pool_bytes + fib_bytes; }
};

inline constexpr unsigned kMempoolCache = 256;

// What one port contributes; before its device is open, guessed from the configuration.
struct PortDemand {
  uint32_t ring_packets = 0;      // receive + transmit descriptors
  uint32_t resident_packets = 0;  // kept by the device
  uint32_t buffer_bytes = 0;      // data room its receive side needs
};

// Packets that each hand-over ring holds: with a shared buffer all that it may hold, since what lies in a ring is
// charged to it and must not be refused there.
uint32_t handover_packets(const SwitchConfig& config);

MemoryBudget plan_memory(const SwitchConfig& config, const std::vector<PortDemand>& ports);

// Demand of each port as far as the configuration tells.
std::vector<PortDemand> guess_demand(const SwitchConfig& config);

}  // namespace heddle::control
