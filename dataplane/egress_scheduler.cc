#include "dataplane/egress_scheduler.h"

#include <algorithm>
#include <bit>

namespace heddle::dataplane {

namespace {
// Bytes a class of weight 1 may send per round: above the largest frame, so that every visit sends something.
constexpr uint32_t kQuantum = 10'000;
}  // namespace

EgressScheduler::EgressScheduler() {
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) queues_[tc].set_class(tc);
}

void EgressScheduler::configure(const EgressSettings& settings) {
  set_rate(settings.rate);
  overhead_ = static_cast<int16_t>(settings.overhead);
  catch_up_ = settings.catch_up;
  strict_ = 0;
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    const ClassSettings& of = settings.classes[tc];
    queues_[tc].configure(of.limit_bytes, settings.limit_packets);
    quantum_[tc] = kQuantum * of.weight;
    if (of.strict) strict_ |= static_cast<uint8_t>(1U << tc);
  }
}

void EgressScheduler::reserve(uint32_t packets) {
  for (EgressQueue& queue : queues_) queue.reserve(packets);
}

void EgressScheduler::take_wire(uint32_t frame_bytes, Time now) {
  if (rate_.is_unlimited()) return;
  wire_free_at_ = later_of(wire_free_at_, now - catch_up_) +
                  rate_.time_for(static_cast<uint64_t>(int64_t{frame_bytes} + overhead_));
}

uint64_t EgressScheduler::bytes() const {
  uint64_t sum = 0;
  for (const EgressQueue& queue : queues_) sum += queue.bytes();
  return sum;
}

unsigned EgressScheduler::next_by_deficit(uint8_t open) {
  const auto fits = [this](unsigned tc) { return deficit_[tc] >= queues_[tc].front_bytes(); };
  if (in_turn_) {
    const bool paused = ((open >> turn_) & 1U) == 0;
    if (!paused && fits(turn_)) return turn_;
    if (paused)
      deficit_[turn_] = 0;  // else a class that is paused in turn after turn would save up, then shut out others
  }
  for (;;) {  // ends: a quantum exceeds every frame, and some class is open
    do turn_ = static_cast<uint8_t>((turn_ + 1U) % kTrafficClasses);
    while (((open >> turn_) & 1U) == 0);
    in_turn_ = true;
    deficit_[turn_] += quantum_[turn_];
    in_credit_ |= static_cast<uint8_t>(1U << turn_);
    if (fits(turn_)) return turn_;
  }
}

}  // namespace heddle::dataplane
