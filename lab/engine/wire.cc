#include "lab/engine/wire.h"

#include <cmath>

namespace heddle::lab {

void Outbox::push_more(const Flight& flight) {
  if (more_ == nullptr) more_ = std::make_unique<std::vector<Flight>>();
  more_->push_back(flight);
}

void LateFlights::push_more(const Flight& flight) {
  if (more_ == nullptr) more_ = std::make_unique<GrowingRing<Flight>>();
  more_->push(flight);
}

DropReason Wire::Particulars::fate_of(uint32_t frame_bytes, Time start, Time arrival) {
  while (next_change < changes.size() && changes[next_change].at <= start) {
    up = changes[next_change].up;
    loss = changes[next_change].loss;
    ++next_change;
  }
  if (!up) return DropReason::kLinkDown;
  for (size_t i = next_change; i < changes.size() && changes[i].at < arrival; ++i) {
    if (!changes[i].up) return DropReason::kLinkDown;
  }
  if (loss > 0 && random.uniform() < loss) return DropReason::kLinkLoss;
  if (bit_error > 0) {
    const double bits = 8.0 * (frame_bytes + 4);  // the frame and its FCS
    if (random.uniform() < -std::expm1(bits * std::log1p(-bit_error))) return DropReason::kBitError;
  }
  return DropReason::kNone;
}

}  // namespace heddle::lab
