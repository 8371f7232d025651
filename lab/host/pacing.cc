// When a send queue's next packet may go: its turn, its static rate, and what congestion control says.
#include <algorithm>

#include "lab/host/host.h"

namespace heddle::lab {
namespace {

// Rate::time_for multiplies in 64 bits: at the slowest rates they do not hold the time of a long burst.
Duration burst_time(Rate rate, uint64_t bytes) {
  constexpr uint64_t kFitsAtAnyRate = uint64_t{1} << 20U;  // at 1 Mb/s, 2^20 × 8 us in 44.20 fixed point: below 2^63
  if (bytes <= kFitsAtAnyRate || rate.is_unlimited()) [[likely]] {
    return rate.time_for(bytes);
  }
  __extension__ using Uint128 = unsigned __int128;
  return static_cast<Duration>(Uint128{bytes} * (8 * kSecond) / rate.bits_per_second());
}

}  // namespace

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

// A packet of the queue has begun at `now`: when may the next one? In the midst of a burst it goes before all others.
void Host::requeue(uint32_t index, uint64_t wire_bytes, Time now) {
  SendQueue& queue = send_queues_[index];
  const bool more = queue.has_packet(window_packets_);
  if (!paced_.empty()) {
    note_sent(index, wire_bytes, now);
    if (more && paced_[index].burst_packets < burst_packets_) {
      turns_to(queue.peer).push_front(index);
      if (pause_log_ != nullptr) waiting_since_[index] = wire_free_at_;
      return;
    }
    pace(index, now);
  }
  if (more) {
    join_turns(index, wire_free_at_);
  } else {
    queue.listed = false;
  }
}

void Host::note_sent(uint32_t index, uint64_t wire_bytes, Time now) {
  Paced& paced = paced_[index];
  if (paced.burst_packets++ == 0) paced.burst_began = now;
  paced.burst_bytes += wire_bytes;
  if (!reaction_.empty()) reaction_[index].on_sent(wire_bytes, now);
}

// The burst is over. The slowest decides when the next may begin. A static rate is kept by waiting after each packet in
// proportion to its length (IBTA 9.11), or after each burst of several, as both kinds of congestion control do.
void Host::pace(uint32_t index, Time now) {
  Paced& paced = paced_[index];
  Duration gap = burst_time(paced.static_rate, paced.burst_bytes);  // 0 if unlimited
  if (!reaction_.empty()) {
    const Rate rate = reaction_[index].rate(now);
    if (reaction_[index].is_limited()) gap = std::max(gap, burst_time(rate, paced.burst_bytes));
  }
  if (!injection_.empty()) gap = std::max(gap, injection_gap(index, now));
  paced.eligible_at = paced.burst_began + gap;
  paced.burst_bytes = 0;
  paced.burst_packets = 0;
}

// How long congestion control has the queue pair wait; or, where it acts on service levels, all that send on that
// level.
Duration Host::injection_gap(uint32_t index, Time now) {
  const Paced& burst = paced_[index];
  const Duration wire_time = burst_time(settings_.rate, burst.burst_bytes);
  const unsigned level = lanes_->writer.level_to(send_queues_[index].peer);
  if (!settings_.nic.ccti->heeds(level)) return wire_time;
  if (gates_.empty()) return wire_time + injection_[index].delay_after(wire_time, now);
  gates_[level].opens_at = burst.burst_began + wire_time + injection_[level].delay_after(wire_time, now);
  return wire_time;
}

// Takes from the front of a lane's turns those whose service level must wait beyond the end of what is on the wire.
void Host::hold_back(GrowingRing<uint32_t>& turns, Time now) {
  while (!turns.empty()) {
    const unsigned level = lanes_->writer.level_to(send_queues_[turns.front()].peer);
    LevelGate& gate = gates_[level];
    if (gate.opens_at <= std::max(now, wire_free_at_)) return;
    gate.waiting.push(turns.pop());
    if (!gate.timed) set_timer(gate.opens_at, Timer::Kind::kLevel, level);
    gate.timed = true;
    drop_idle_turns(turns);
  }
}

// All come back, in their order: the first of them closes it again.
void Host::open_gate(uint32_t level, Time now) {
  LevelGate& gate = gates_[level];
  gate.timed = false;
  for (size_t left = gate.waiting.size(); left != 0; --left) take_turn(gate.waiting.pop(), now);
}

}  // namespace heddle::lab
