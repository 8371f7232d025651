#include "dataplane/egress_scheduler.h"

#include <algorithm>
#include <bit>

namespace heddle::dataplane {

namespace {
// Bytes a class of weight 1 may send per round: above the largest frame, so that every visit sends something.
constexpr uint32_t kQuantum = 10'000;
}  // namespace

void EgressScheduler::configure(const EgressSettings& settings) {
  rate_ = settings.rate;
  overhead_ = settings.overhead;
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

uint64_t EgressScheduler::bytes() const {
  uint64_t sum = 0;
  for (const EgressQueue& queue : queues_) sum += queue.bytes();
  return sum;
}

unsigned EgressScheduler::schedule(Packet** out, unsigned room, Time now) {
  const bool limited = !rate_.is_unlimited();
  if (limited) {
    if (before(now, wire_free_at_)) return 0;
    // Also while there is nothing to send: after 106 days it would seem to lie ahead.
    wire_free_at_ = later_of(wire_free_at_, now - catch_up_);
  }
  unsigned n = 0;
  while (n < room && !idle()) {
    const unsigned tc = pick_class();
    const bool contested = !std::has_single_bit(static_cast<uint8_t>(backlog_ & ~paused_));
    EgressQueue& queue = queues_[tc];
    // One packet where classes compete, a run where this one is alone.
    do {
      Packet* packet = queue.pop();
      const uint32_t bytes = meta_of(packet).frame_bytes;
      out[n++] = packet;
      deficit_[tc] -= std::min(bytes, deficit_[tc]);
      if (limited) {
        wire_free_at_ += rate_.time_for(static_cast<uint64_t>(static_cast<int64_t>(bytes) + overhead_));
        if (before(now, wire_free_at_)) {
          room = n;
          break;
        }
      }
    } while (!contested && n < room && !queue.empty());
    if (queue.empty()) {
      backlog_ &= static_cast<uint8_t>(~(1U << tc));
      deficit_[tc] = 0;
      if (tc == turn_) in_turn_ = false;
    }
  }
  return n;
}

inline unsigned EgressScheduler::pick_class() {
  const auto open = static_cast<uint8_t>(backlog_ & ~paused_);
  if (const auto strict = static_cast<uint8_t>(open & strict_); strict != 0) {
    return static_cast<unsigned>(std::bit_width(strict)) - 1;  // the highest class first
  }
  if (std::has_single_bit(open)) return static_cast<unsigned>(std::countr_zero(open));  // nobody to share with
  return next_by_deficit(open);
}

unsigned EgressScheduler::next_by_deficit(uint8_t open) {
  const auto fits = [this](unsigned tc) { return deficit_[tc] >= meta_of(queues_[tc].front()).frame_bytes; };
  if (in_turn_) {
    const bool paused = ((open >> turn_) & 1U) == 0;
    if (!paused && fits(turn_)) return turn_;
    // Else a class that PFC pauses turn after turn would save up what it could not send, then shut out the others.
    if (paused) deficit_[turn_] = 0;
  }
  for (;;) {  // ends: a quantum exceeds every frame, and some class is open
    do turn_ = static_cast<uint8_t>((turn_ + 1U) % kTrafficClasses);
    while (((open >> turn_) & 1U) == 0);
    in_turn_ = true;
    deficit_[turn_] += quantum_[turn_];
    if (fits(turn_)) return turn_;
  }
}

}  // namespace heddle::dataplane
