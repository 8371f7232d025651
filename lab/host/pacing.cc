// When a send queue's next packet may go: its turn, its static rate, and what congestion control says.
#include <algorithm>

#include "lab/host/host.h"

namespace heddle::lab {

void Host::list(uint32_t index, Time now) {
  SendQueue& queue = send_queues_[index];
  if (queue.listed || !queue.has_packet(window_packets_)) return;
  queue.listed = true;
  join_turns(index, now);
}

// At once if it may send by `now`, otherwise when it may.
void Host::join_turns(uint32_t index, Time now) {
  if (!paced_.empty() && paced_[index].eligible_at > now) {
    set_timer(paced_[index].eligible_at, Timer::Kind::kPace, index);
  } else {
    take_turn(index, now);
  }
}

void Host::take_turn(uint32_t index, Time now) {
  turns_to(send_queues_[index].peer).push(index);
  if (pause_log_ != nullptr) waiting_since_[index] = now;
}

// A packet of the queue has begun at `now`: when may the next one?
void Host::requeue(uint32_t index, uint64_t wire_bytes, Time now) {
  if (!paced_.empty()) pace(index, wire_bytes, now);
  if (send_queues_[index].has_packet(window_packets_)) {
    join_turns(index, wire_free_at_);
  } else {
    send_queues_[index].listed = false;
  }
}

// The slowest of them decides. A static rate is kept by waiting after each packet in proportion to its length (IBTA
// 9.11), as both kinds of congestion control do.
void Host::pace(uint32_t index, uint64_t wire_bytes, Time now) {
  Paced& paced = paced_[index];
  Duration gap = paced.static_rate.time_for(wire_bytes);  // 0 if unlimited
  if (!reaction_.empty()) {
    flowctl::ReactionPoint& point = reaction_[index];
    point.on_sent(wire_bytes, now);
    const Rate rate = point.rate(now);
    if (point.is_limited()) gap = std::max(gap, rate.time_for(wire_bytes));
  }
  if (!injection_.empty()) {
    const Duration packet_time = settings_.rate.time_for(wire_bytes);
    gap = std::max(gap, packet_time + injection_[index].delay_after(packet_time, now));
  }
  paced.eligible_at = now + gap;
}

}  // namespace heddle::lab
