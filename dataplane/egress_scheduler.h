// Stage 6: which queue of a port sends next, and when. Strict priority for control classes, deficit round robin
// (Shreedhar and Varghese 1995; 802.1Q 8.6.8) for the rest, all under the port's rate.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/egress_queue.h"
#include "net/packet.h"
#include "net/rate.h"

namespace heddle::dataplane {

struct ClassSettings {
  bool strict = false;
  uint16_t weight = 1;  // share among the classes that are not strict, 1–100
  uint64_t limit_bytes = EgressQueue::kUnlimited;
};

struct EgressSettings {
  Rate rate;                         // 0 = unlimited
  int overhead = kEthernetOverhead;  // wire bytes a frame costs beyond its own
  Duration catch_up = 0;             // how far behind `now` the port may send: what a late poll may make up for
  uint32_t limit_packets = ~0U;      // per queue
  std::array<ClassSettings, kTrafficClasses> classes;
};

class EgressScheduler {
 public:
  void configure(const EgressSettings& settings);
  // Allocates every queue's slots for `packets`, so that nothing is allocated later.
  void reserve(uint32_t packets);

  // False if the class's queue is full; the caller keeps the packet. Its frame_bytes is set.
  bool enqueue(Packet* packet) {
    const PacketMeta& meta = meta_of(packet);
    if (!queues_[meta.traffic_class].push(packet, meta.frame_bytes)) return false;
    backlog_ |= static_cast<uint8_t>(1U << meta.traffic_class);
    return true;
  }

  // Takes up to `room` packets that may start on the wire at or before `now`.
  unsigned schedule(Packet** out, unsigned room, Time now);

  bool idle() const { return (backlog_ & ~paused_) == 0; }
  bool empty() const { return backlog_ == 0; }
  // When the wire is free for the next packet; meaningless on an unlimited port.
  Time wire_free_at() const { return wire_free_at_; }

  // Classes that must not send now (bit = class): pause or missing credit.
  void set_paused(uint8_t classes) { paused_ = classes; }
  uint8_t paused() const { return paused_; }

  void set_rate(Rate rate) { rate_ = rate; }
  Rate rate() const { return rate_; }
  const EgressQueue& queue(unsigned traffic_class) const { return queues_[traffic_class]; }
  uint64_t bytes() const;

 private:
  unsigned pick_class();
  unsigned next_by_deficit(uint8_t open);

  // Hot first: what every call reads.
  uint8_t backlog_ = 0;
  uint8_t paused_ = 0;
  uint8_t strict_ = 0;
  uint8_t turn_ = 0;  // class whose round it is
  bool in_turn_ = false;
  int32_t overhead_ = kEthernetOverhead;
  Time wire_free_at_ = 0;
  Rate rate_;
  Duration catch_up_ = 0;
  std::array<EgressQueue, kTrafficClasses> queues_;
  std::array<uint32_t, kTrafficClasses> quantum_{};
  std::array<uint32_t, kTrafficClasses> deficit_{};
};

}  // namespace heddle::dataplane
