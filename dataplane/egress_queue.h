// One traffic class of one egress port: packets in order, limited in bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include <rte_prefetch.h>

#include "net/packet.h"

namespace heddle::dataplane {

// A packet that waits, and the length of its frame. A packet that has waited for long lies in memory: whoever only
// sends it on need not look at it.
class Queued {
 public:
  static constexpr uint32_t kLongestFrame = 0xffff;

  Queued() = default;
  // `frame_bytes` ≤ kLongestFrame.
  Queued(Packet* packet, uint32_t frame_bytes) : bits_(reinterpret_cast<uintptr_t>(packet) << 16U | frame_bytes) {}

  Packet* packet() const {
    return reinterpret_cast<Packet*>(bits_ >> 16U);  // NOLINT(performance-no-int-to-ptr): what it was made from
  }
  uint32_t frame_bytes() const { return bits_ & kLongestFrame; }
  explicit operator bool() const { return bits_ != 0; }

 private:
  uint64_t bits_ = 0;  // user-space addresses have 47 bits
};
static_assert(sizeof(Queued) == 8);

// One cache line: the packet path touches it twice per packet, and a port has eight of them.
class alignas(64) EgressQueue {
 public:
  static constexpr uint64_t kUnlimited = ~uint64_t{0};

  // At most `limit_bytes` of frames and `limit_packets` packets. A real switch allocates all slots up front
  // (`reserve`); the lab's unlimited queues grow by doubling. Before the first packet.
  void configure(uint64_t limit_bytes, uint32_t limit_packets) {
    limit_bytes_ = limit_bytes;
    limit_packets_ = limit_packets;
    find_end();
  }
  // What `push` sets in the scheduler's backlog.
  void set_class(unsigned traffic_class) { bit_ = static_cast<uint8_t>(1U << traffic_class); }
  uint8_t bit() const { return bit_; }
  void reserve(uint32_t packets) { grow(std::bit_ceil(packets)); }

  bool empty() const { return head_ == tail_; }
  uint32_t packets() const { return tail_ - head_; }
  uint64_t bytes() const { return bytes_; }
  // Most bytes it has held since reset_peak.
  uint64_t peak_bytes() const { return std::max(peak_bytes_, bytes_); }
  void reset_peak() { peak_bytes_ = bytes_; }
  uint64_t limit_bytes() const { return limit_bytes_; }

  // Whether a frame of that length fits.
  bool has_room(uint32_t frame_bytes) const {
    return bytes_ + frame_bytes <= limit_bytes_ && packets() < limit_packets_;
  }
  // False if the packet does not fit; the caller keeps it. Its frame is not longer than Queued::kLongestFrame, nor does
  // its length change while it is here.
  bool push(Packet* packet) {
    const uint32_t frame_bytes = packet->pkt_len;
    const uint64_t bytes = bytes_ + frame_bytes;
    if (bytes > limit_bytes_) [[unlikely]]
      return false;
    if (tail_ == end_) [[unlikely]] {
      if (packets() >= limit_packets_) return false;
      grow(slots_ == nullptr ? 16 : slot_count() * 2);
    }
    slots_[tail_++ & mask_] = Queued(packet, frame_bytes);
    bytes_ = bytes;
    return true;
  }

  // Asks for the slot that the next packet will take.
  void prefetch_tail() const { rte_prefetch0(slots_.get() + (tail_ & mask_)); }
  // Asks for the slots of the packets next to leave.
  void prefetch_slots() const { rte_prefetch0(&slots_[head_ & mask_]); }
  // The packet that leaves `behind` others; null if there is none.
  const Packet* peek(uint32_t behind) const {
    return behind < packets() ? slots_[(head_ + behind) & mask_].packet() : nullptr;
  }

  // The queue is not empty.
  Packet* front() const { return next().packet(); }
  uint32_t front_bytes() const { return next().frame_bytes(); }
  Queued pop() {
    return pop([](Packet*, uint64_t) {});
  }
  // Pops one and calls `each` as below.
  template <typename Each>
  Queued pop(const Each& each) {
    peak_bytes_ = peak_bytes();
    const Queued first = next();
    bytes_ -= first.frame_bytes();
    each(first.packet(), bytes_);
    leave(1);
    return first;
  }
  // Pops up to `room` packets into `out`, calls `each(packet, left)` for every one, where `left` is how many bytes the
  // queue still holds behind it; returns how many.
  template <typename Each>
  unsigned pop(Packet** out, unsigned room, const Each& each) {
    peak_bytes_ = peak_bytes();  // between two pops the queue only grows
    const unsigned n = std::min(room, packets());
    const Queued* const slots = slots_.get();
    const uint32_t mask = mask_;
    const uint32_t first = head_;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < n; ++i) {
      const Queued queued = slots[(first + i) & mask];
      bytes += queued.frame_bytes();
      out[i] = queued.packet();
      each(out[i], bytes_ - bytes);
    }
    bytes_ -= bytes;
    leave(n);
    return n;
  }

 private:
  Queued next() const { return slots_[head_ & mask_]; }
  // The first `n` are gone.
  void leave(uint32_t n) {
    head_ += n;
    end_ += n;
    if (head_ != tail_) return;
    end_ -= head_;
    head_ = tail_ = 0;  // a short queue stays in few cache lines
  }
  void find_end() { end_ = head_ + std::min(slot_count(), limit_packets_); }
  uint32_t slot_count() const { return slots_ == nullptr ? 0 : mask_ + 1; }
  void grow(uint32_t slots);

  std::unique_ptr<Queued[]> slots_;  // a power of two; indices run freely and are masked
  uint32_t mask_ = 0;
  uint32_t end_ = 0;  // what the tail may not pass: there the slots or the limit end
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  uint64_t bytes_ = 0;
  uint64_t limit_bytes_ = kUnlimited;
  uint64_t peak_bytes_ = 0;  // when the queue was last popped
  uint32_t limit_packets_ = ~0U;
  uint8_t bit_ = 0;
};
static_assert(sizeof(EgressQueue) == 64);

}  // namespace heddle::dataplane
