// Stage 6: which queue of a port sends next, and when. Strict priority for control classes, deficit round robin
// (Shreedhar and Varghese 1995; 802.1Q 8.6.8) for the rest, all under the port's rate.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include <rte_prefetch.h>

#include "dataplane/egress_queue.h"
#include "flowctl/ecn.h"
#include "net/packet.h"
#include "net/rate.h"

namespace heddle::dataplane {

struct ClassSettings {
  bool strict = false;
  uint16_t weight = 1;  // share among the classes that are not strict, 1–100
  uint64_t limit_bytes = EgressQueue::kUnlimited;
  flowctl::WredCurve mark;  // of ECN-capable packets, as they leave, by the bytes that stay behind
  flowctl::WredCurve drop;  // of any packet, as it comes, by the bytes it finds
};

struct EgressSettings {
  Rate rate;                         // 0 = unlimited
  int overhead = kEthernetOverhead;  // wire bytes a frame costs beyond its own; within 16 bits
  Duration catch_up = 0;             // how far behind `now` the port may send: what a late poll may make up for
  uint32_t limit_packets = ~0U;      // per queue
  std::array<ClassSettings, kTrafficClasses> classes;
};

class EgressScheduler {
 public:
  EgressScheduler();
  // Before the first packet.
  void configure(const EgressSettings& settings);
  // Allocates every queue's slots for `packets`, so that nothing is allocated later.
  void reserve(uint32_t packets);

  // False if the class's queue is full; the caller keeps the packet.
  bool enqueue(Packet* packet) { return enqueue(packet, meta_of(packet).traffic_class); }
  bool enqueue(Packet* packet, unsigned traffic_class) {
    const uint32_t frame_bytes = packet->pkt_len;
    EgressQueue& queue = queues_[traffic_class];
    if (!queue.push(packet)) return false;
    backlog_ |= queue.bit();
    enqueued_bytes_ += frame_bytes;
    return true;
  }

  // How long what waits here would keep the port's wire busy, what is on it included (an unlimited port: as if at
  // 100 Gb/s). What path choice by quality goes by.
  Duration drain_time(Time now) const {
    __extension__ using Uint128 = unsigned __int128;
    const uint64_t bytes = enqueued_bytes_ - scheduled_bytes_;
    return static_cast<Duration>((static_cast<Uint128>(bytes) * drain_scale_) >> kDrainBits) +
           elapsed(wire_free_at_, now);
  }

  // What 1,024 bytes more add to it.
  Duration drain_time_of_kibibyte() const { return drain_scale_ >> (kDrainBits - 10U); }

  // Takes up to `room` packets that may start on the wire at or before `now`; calls `each(packet, left)` for every one,
  // while it is at hand; `left` bytes are behind it in its queue.
  template <typename Each>
  unsigned schedule(Packet** out, unsigned room, Time now, const Each& each);
  unsigned schedule(Packet** out, unsigned room, Time now) {
    return schedule(out, room, now, [](Packet*, uint64_t) {});
  }
  // The same with room for one, which is not looked at: nothing if nothing may start.
  Queued schedule_one(Time now) {
    if (!has_turn(now) || idle()) return {};
    return take_one(pick_class(), [](Packet*, uint64_t) {});
  }
  // Whether the wire is free at `now` for a frame that no queue holds, and its time on the wire, which the next packet
  // waits for.
  bool may_send_at(Time now) const { return rate_.is_unlimited() || !before(now, wire_free_at_); }
  void take_wire(uint32_t frame_bytes, Time now);
  // Frame bytes that `schedule` has ever given out.
  uint64_t scheduled_bytes() const { return scheduled_bytes_; }

  bool idle() const { return (backlog_ & ~paused_) == 0; }
  bool empty() const { return backlog_ == 0; }
  // When the wire is free for the next packet; meaningless on an unlimited port.
  Time wire_free_at() const { return wire_free_at_; }

  // Asks for the cache lines that a packet of this class will need; then for those of the packets next to leave.
  void prefetch(unsigned traffic_class) const {
    rte_prefetch0(this);
    rte_prefetch0(&queues_[traffic_class]);
  }
  // Bit = class that has packets.
  uint8_t backlog() const { return backlog_; }

  // Classes that must not send now (bit = class): pause or missing credit.
  void set_paused(uint8_t classes) { paused_ = classes; }
  uint8_t paused() const { return paused_; }

  void set_rate(Rate rate) {
    rate_ = rate;
    const Rate of_drain = rate.is_unlimited() ? Rate::gbps(100) : rate;
    drain_scale_ = of_drain.time_for(uint64_t{1} << kDrainBits);
  }
  Rate rate() const { return rate_; }
  const EgressQueue& queue(unsigned traffic_class) const { return queues_[traffic_class]; }
  uint64_t bytes() const;
  void reset_peaks() {
    for (EgressQueue& queue : queues_) queue.reset_peak();
  }

 private:
  static constexpr unsigned kDrainBits = 20;

  // Whether the wire is free at `now`. Once it was, it is not in arrears by more than the port may catch up.
  bool has_turn(Time now) {
    if (rate_.is_unlimited()) return true;
    if (before(now, wire_free_at_)) return false;
    // Also while there is nothing to send: after 106 days it would seem to lie ahead.
    wire_free_at_ = later_of(wire_free_at_, now - catch_up_);
    return true;
  }

  template <typename Each>
  Queued take_one(unsigned traffic_class, const Each& each);
  template <typename Each>
  unsigned take_run(unsigned traffic_class, Packet** out, unsigned most, Time now, const Each& each);
  template <typename Each>
  unsigned take_paced(EgressQueue& queue, Packet** out, unsigned most, Time now, const Each& each);
  void settle(unsigned traffic_class, uint64_t sent_bytes);
  bool is_contested() const { return !std::has_single_bit(static_cast<uint8_t>(backlog_ & ~paused_)); }
  unsigned pick_class();
  unsigned next_by_deficit(uint8_t open);

  // The first cache line is what every call reads.
  uint8_t backlog_ = 0;
  uint8_t paused_ = 0;
  uint8_t strict_ = 0;
  uint8_t turn_ = 0;  // class whose round it is
  bool in_turn_ = false;
  uint8_t in_credit_ = 0;  // classes whose deficit may not be 0: while one class has the port alone, none
  int16_t overhead_ = kEthernetOverhead;
  Duration catch_up_ = 0;
  uint64_t scheduled_bytes_ = 0;
  uint64_t enqueued_bytes_ = 0;
  uint64_t drain_scale_ = 0;  // time of 2^kDrainBits bytes
  Time wire_free_at_ = 0;
  Rate rate_;
  std::array<EgressQueue, kTrafficClasses> queues_;
  std::array<uint32_t, kTrafficClasses> quantum_{};
  std::array<uint32_t, kTrafficClasses> deficit_{};
};

// ---------------------------------------------------------------------------------------------------------------------

template <typename Each>
unsigned EgressScheduler::schedule(Packet** out, unsigned room, Time now, const Each& each) {
  const bool paced = !rate_.is_unlimited();
  if (!has_turn(now)) return 0;
  unsigned n = 0;
  while (n < room && !idle() && !(paced && before(now, wire_free_at_))) {
    // One packet where classes compete, a run where one is alone.
    if (room - n == 1 || is_contested()) {
      out[n++] = take_one(pick_class(), each).packet();
    } else {
      n += take_run(pick_class(), out + n, room - n, now, each);
    }
  }
  return n;
}

template <typename Each>
inline Queued EgressScheduler::take_one(unsigned tc, const Each& each) {
  const Queued taken = queues_[tc].pop(each);
  wire_free_at_ += rate_.time_for(static_cast<uint64_t>(int64_t{taken.frame_bytes()} + overhead_));  // 0 if unlimited
  settle(tc, taken.frame_bytes());
  return taken;
}

template <typename Each>
unsigned EgressScheduler::take_run(unsigned tc, Packet** out, unsigned most, Time now, const Each& each) {
  EgressQueue& queue = queues_[tc];
  const uint64_t held = queue.bytes();
  const unsigned n = rate_.is_unlimited() ? queue.pop(out, most, each) : take_paced(queue, out, most, now, each);
  settle(tc, held - queue.bytes());
  return n;
}

// Up to `most` ≥ 1 packets whose turn on the wire comes at or before `now`; the first one's has come.
template <typename Each>
unsigned EgressScheduler::take_paced(EgressQueue& queue, Packet** out, unsigned most, Time now, const Each& each) {
  unsigned n = 0;
  do {
    const Queued taken = queue.pop(each);
    out[n++] = taken.packet();
    wire_free_at_ += rate_.time_for(static_cast<uint64_t>(int64_t{taken.frame_bytes()} + overhead_));
  } while (n < most && !queue.empty() && !before(now, wire_free_at_));
  return n;
}

// The books of a class that has just sent.
inline void EgressScheduler::settle(unsigned tc, uint64_t sent_bytes) {
  scheduled_bytes_ += sent_bytes;
  const auto bit = static_cast<uint8_t>(1U << tc);
  if ((in_credit_ & bit) != 0) {
    deficit_[tc] -= static_cast<uint32_t>(std::min<uint64_t>(sent_bytes, deficit_[tc]));
  }
  if (!queues_[tc].empty()) return;
  backlog_ &= static_cast<uint8_t>(~bit);
  if ((in_credit_ & bit) != 0) deficit_[tc] = 0;
  in_credit_ &= static_cast<uint8_t>(~bit);
  if (tc == turn_) in_turn_ = false;
}

inline unsigned EgressScheduler::pick_class() {
  const auto open = static_cast<uint8_t>(backlog_ & ~paused_);
  if (const auto strict = static_cast<uint8_t>(open & strict_); strict != 0) {
    return static_cast<unsigned>(std::bit_width(strict)) - 1;  // the highest class first
  }
  if (std::has_single_bit(open)) return static_cast<unsigned>(std::countr_zero(open));  // nobody to share with
  return next_by_deficit(open);
}

}  // namespace heddle::dataplane
