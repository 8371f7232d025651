#include "dataplane/handover_ring.h"

#include <algorithm>
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

// Owner by owner, each getting its packets of the burst at once; what belongs to later ones moves up behind what was
// refused.
unsigned HandoverOut::offer(Packet** packets, unsigned count) {
  unsigned refused = 0;
  while (refused < count) {
    const unsigned owner = owner_of_port_[meta_of(packets[refused]).out_port];
    Packet* mine[kBurst];
    Packet* others[kBurst];
    unsigned n = 0;
    unsigned rest = 0;
    for (unsigned i = refused; i < count; ++i) {
      const bool is_mine = owner_of_port_[meta_of(packets[i]).out_port] == owner;
      (is_mine ? mine[n++] : others[rest++]) = packets[i];
    }
    const unsigned taken = rings_[owner]->push(mine, n);
    std::copy(mine + taken, mine + n, packets + refused);
    refused += n - taken;
    std::copy_n(others, rest, packets + refused);
    count = refused + rest;
  }
  return refused;
}

}  // namespace heddle::dataplane
