#include "dataplane/handover_ring.h"

#include <bit>
#include <cstddef>

#include "net/error.h"

namespace heddle::dataplane {

HandoverRing::HandoverRing(uint32_t packets) {
  // One slot more than asked for: a ring of n slots holds n − 1.
  const uint32_t slots = std::bit_ceil(packets + 1);
  const auto bytes = static_cast<size_t>(rte_ring_get_memsize(slots));
  memory_ = std::make_unique<std::byte[]>(bytes + RTE_CACHE_LINE_SIZE);
  void* at = memory_.get();
  size_t room = bytes + RTE_CACHE_LINE_SIZE;
  ring_ = static_cast<rte_ring*>(std::align(RTE_CACHE_LINE_SIZE, bytes, at, room));
  if (ring_ == nullptr || rte_ring_init(ring_, "handover", slots, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0) {
    throw_failed("cannot make a handover ring of {} packets", packets);
  }
}

}  // namespace heddle::dataplane
