// Packets for queue and scheduler tests: a class, a size and a serial number, no frame.
#pragma once

#include <deque>
#include <vector>

#include "dataplane/egress_scheduler.h"
#include "tests/support/packets.h"

namespace heddle::support {

// Makes packets, keeps them, and can have them back to use again.
class Stock {
 public:
  // The next packet in the order of making; its serial number is meta.owner.
  Packet* make(uint8_t traffic_class, uint32_t frame_bytes) {
    if (free_.empty()) {
      all_.push_back(make_queued(0, 0));
      free_.push_back(all_.back().get());
    }
    Packet* packet = free_.front();
    free_.pop_front();
    meta_of(packet).traffic_class = traffic_class;
    packet->pkt_len = frame_bytes;
    meta_of(packet).owner = next_++;
    return packet;
  }
  void take_back(Packet* packet) { free_.push_back(packet); }

 private:
  std::vector<OwnedPacket> all_;
  std::deque<Packet*> free_;
  uint64_t next_ = 0;
};

inline unsigned class_of(const Packet* packet) { return meta_of(packet).traffic_class; }
inline uint32_t bytes_of(const Packet* packet) { return packet->pkt_len; }
inline uint64_t serial_of(const Packet* packet) { return meta_of(packet).owner; }

// The one packet that may leave at `now`, or nullptr.
inline Packet* next_from(dataplane::EgressScheduler& scheduler, Time now = 0) {
  Packet* packet = nullptr;
  return scheduler.schedule(&packet, 1, now) == 1 ? packet : nullptr;
}

}  // namespace heddle::support
