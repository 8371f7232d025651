#include "dataplane/egress_queue.h"

namespace heddle::dataplane {

void EgressQueue::grow(uint32_t slots) {
  if (slots <= slot_count()) return;
  auto wider = std::make_unique<Queued[]>(slots);
  const uint32_t held = packets();
  for (uint32_t i = 0; i < held; ++i) wider[i] = slots_[(head_ + i) & mask_];
  slots_ = std::move(wider);
  mask_ = slots - 1;
  head_ = 0;
  tail_ = held;
  find_end();
}

}  // namespace heddle::dataplane
