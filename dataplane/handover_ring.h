// Packets on their way from the lcore that received them to the lcore that owns their egress port: one single-producer
// single-consumer ring for each ordered pair of lcores, so that a flow (one ingress port, one lcore, one ring) keeps
// its order.
#pragma once

#include <memory>
#include <vector>

#include <rte_ring.h>

#include "dataplane/pipeline.h"

namespace heddle::dataplane {

class HandoverRing {
 public:
  // Room for `packets`, rounded up to a power of two.
  explicit HandoverRing(uint32_t packets);

  // Takes as many as there is room for, the first ones; returns how many.
  unsigned push(Packet* const* packets, unsigned count) {
    return rte_ring_sp_enqueue_burst(ring_, reinterpret_cast<void* const*>(packets), count, nullptr);
  }
  unsigned pop(Packet** packets, unsigned room) {
    return rte_ring_sc_dequeue_burst(ring_, reinterpret_cast<void**>(packets), room, nullptr);
  }
  bool empty() const { return rte_ring_empty(ring_) != 0; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  rte_ring* ring_;
};

// What one lcore offers to the others.
class HandoverOut : public Handover {
 public:
  // `owner_of_port[p]` is the worker that owns port p; `rings[w]` leads to worker w (null for the lcore itself).
  HandoverOut(std::vector<unsigned> owner_of_port, std::vector<HandoverRing*> rings)
      : owner_of_port_(std::move(owner_of_port)), rings_(std::move(rings)) {}

  unsigned offer(Packet** packets, unsigned count) override;

 private:
  std::vector<unsigned> owner_of_port_;
  std::vector<HandoverRing*> rings_;
};

}  // namespace heddle::dataplane
