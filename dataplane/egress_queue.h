// One traffic class of one egress port: packets in order, limited in bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "net/packet.h"

namespace heddle::dataplane {

class EgressQueue {
 public:
  static constexpr uint64_t kUnlimited = ~uint64_t{0};

  // At most `limit_bytes` of frames and `limit_packets` packets. A real switch allocates all slots up front
  // (`reserve`); the lab's unlimited queues grow by doubling.
  void configure(uint64_t limit_bytes, uint32_t limit_packets) {
    limit_bytes_ = limit_bytes;
    limit_packets_ = limit_packets;
    room_ = std::min(static_cast<uint32_t>(slots_.size()), limit_packets_);
  }
  void reserve(uint32_t packets) { grow(std::bit_ceil(packets)); }

  bool empty() const { return head_ == tail_; }
  uint32_t packets() const { return tail_ - head_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t peak_bytes() const { return peak_bytes_; }
  uint64_t limit_bytes() const { return limit_bytes_; }

  // False if the packet does not fit; the caller keeps it.
  bool push(Packet* packet, uint32_t frame_bytes) {
    const uint64_t bytes = bytes_ + frame_bytes;
    if (bytes > limit_bytes_ || packets() >= room_) [[unlikely]] {
      if (bytes > limit_bytes_ || packets() >= limit_packets_) return false;
      grow(slots_.empty() ? 16 : static_cast<uint32_t>(slots_.size()) * 2);
    }
    slots_[tail_++ & mask_] = packet;
    bytes_ = bytes;
    peak_bytes_ = bytes > peak_bytes_ ? bytes : peak_bytes_;
    return true;
  }

  // The queue is not empty.
  Packet* front() const { return slots_[head_ & mask_]; }
  Packet* pop() {
    Packet* packet = slots_[head_++ & mask_];
    bytes_ -= meta_of(packet).frame_bytes;
    return packet;
  }

 private:
  void grow(uint32_t slots);

  std::vector<Packet*> slots_;  // a power of two; indices run freely and are masked
  uint32_t room_ = 0;           // packets that fit before the slots or the limit end
  uint32_t mask_ = 0;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint32_t limit_packets_ = ~0U;
  uint64_t bytes_ = 0;
  uint64_t limit_bytes_ = kUnlimited;
  uint64_t peak_bytes_ = 0;
};

}  // namespace heddle::dataplane
