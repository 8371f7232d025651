#include "control/memory_budget.h"

#include <algorithm>
#include <cstdlib>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "dataplane/device_traits.h"
#include "dataplane/fib.h"

namespace heddle::control {

namespace {

// What one pool element takes. Without hugepages a mempool takes the pages for scattered and lays no element across the
// edge of one (rte_mempool_op_calc_mem_size_helper): of 2,500 bytes one fits a page, of 4,500 each takes two.
uint64_t bytes_in_pool(uint64_t element, MemoryMode mode) {
  constexpr uint64_t kPage = 4096;
  if (mode == MemoryMode::kHugepages) return element;
  if (element > kPage) return (element + kPage - 1) / kPage * kPage;
  return kPage / (kPage / element);
}

}  // namespace

uint32_t handover_packets(const SwitchConfig& config) { return config.buffer.on ? config.buffer.packets : 1024; }

MemoryBudget plan_memory(const SwitchConfig& config, const std::vector<PortDemand>& ports) {
  MemoryBudget budget;
  const unsigned workers = config.workers;
  const auto port_count = static_cast<uint32_t>(ports.size());
  budget.handover_packets = workers > 1 ? handover_packets(config) : 0;

  uint32_t largest = RTE_MBUF_DEFAULT_DATAROOM;
  budget.packets = config.buffer_packets;
  for (const PortDemand& port : ports) {
    budget.packets += port.ring_packets + port.resident_packets;
    largest = std::max(largest, port.buffer_bytes);
  }
  // What the buffer holds may lie in rings or in queues, never in both.
  if (!config.buffer.on) budget.packets += workers * (workers - 1) * budget.handover_packets;
  if (config.resequencer.enabled) budget.packets += workers * config.resequencer.max_packets;
  // A cache may hold one and a half times its size; each lcore has a burst in hand and one waiting per port.
  budget.packets += (workers + 1) * kMempoolCache * 3 / 2 + workers * kBurst * (port_count + 2);
  budget.buffer_bytes = largest + RTE_PKTMBUF_HEADROOM;

  const uint64_t element = sizeof(rte_mbuf) + kPrivateBytes + budget.buffer_bytes + sizeof(rte_mempool_objhdr) +
                           2 * RTE_CACHE_LINE_SIZE;  // header, trailer, rounding
  budget.pool_bytes = budget.packets * (bytes_in_pool(element, config.memory) + sizeof(void*) * 2) + (8U << 20U);
  budget.fib_bytes = 2 * dataplane::Fib::memory_bytes(config.max_routes);
  return budget;
}

std::vector<PortDemand> guess_demand(const SwitchConfig& config) {
  std::vector<PortDemand> demand;
  for (const PortConfig& port : config.ports) {
    PortDemand one;
    // Drivers round rings up, NICs to powers of two.
    one.ring_packets = 2U * (port.rx_ring + port.tx_ring);
    // A queue per class, and what ixgbe leaves between them: 128 queues of the least size each way.
    if (port.pfc == PfcBackend::kEthdev) one.ring_packets = one.ring_packets * kTrafficClasses + 2 * 128 * 32;
    const std::string slot = dataplane::devarg(port.device, "framesz");
    const auto slot_bytes = slot.empty() ? 0U : static_cast<uint32_t>(std::strtoul(slot.c_str(), nullptr, 10));
    one.buffer_bytes = std::max({port.frame_bytes(), slot_bytes, 2048U});
    if (dataplane::devarg(port.device, "infinite_rx") == "1") {
      one.resident_packets = dataplane::count_pcap_frames(dataplane::devarg(port.device, "rx_pcap"));
    }
    demand.push_back(one);
  }
  return demand;
}

}  // namespace heddle::control
