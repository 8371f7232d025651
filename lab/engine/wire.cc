#include "lab/engine/wire.h"

#include <cmath>

namespace heddle::lab {

DropReason Wire::fate_of(const Packet* packet, Time start, Time arrival) {
  while (next_change_ < changes_.size() && changes_[next_change_].at <= start) {
    up_ = changes_[next_change_].up;
    loss_ = changes_[next_change_].loss;
    ++next_change_;
  }
  if (!up_) return DropReason::kLinkDown;
  for (size_t i = next_change_; i < changes_.size() && changes_[i].at < arrival; ++i) {
    if (!changes_[i].up) return DropReason::kLinkDown;
  }
  if (loss_ > 0 && random_.uniform() < loss_) return DropReason::kLinkLoss;
  if (bit_error_ > 0) {
    const double bits = 8.0 * (packet->pkt_len + 4);  // the frame and its FCS
    if (random_.uniform() < -std::expm1(bits * std::log1p(-bit_error_))) return DropReason::kBitError;
  }
  return DropReason::kNone;
}

}  // namespace heddle::lab
