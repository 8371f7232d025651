// One direction of a link: what was sent and has not arrived.
//
// The sending and the receiving node may run on different threads in the same window. What is sent in one window
// arrives in a later one, so the sender fills one of two outboxes, by the window's parity, and the receiver empties the
// other. Packets in flight are linked through themselves: a wire is touched for a packet or two per window, and what it
// keeps elsewhere would cost a cache miss each time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lab/capture.h"
#include "lab/packet_arena.h"
#include "net/drop_reason.h"
#include "net/packet.h"
#include "net/random.h"
#include "net/time.h"

namespace heddle::lab {

// Packets in order of arrival, which is in their metadata.
class FlightList {
 public:
  bool empty() const { return head_ == nullptr; }
  Packet* front() const { return head_; }
  void push(Packet* packet) {
    set_next(packet, nullptr);
    if (head_ == nullptr) {
      head_ = packet;
    } else {
      set_next(tail_, packet);
    }
    tail_ = packet;
  }
  Packet* pop() {
    Packet* packet = head_;
    head_ = next_of(packet);
    return packet;
  }
  // Takes all of `other`, whose packets arrive later than ours.
  void append(FlightList& other) {
    if (other.empty()) return;
    if (head_ == nullptr) {
      head_ = other.head_;
    } else {
      set_next(tail_, other.head_);
    }
    tail_ = other.tail_;
    other.head_ = nullptr;
  }
  uint64_t count() const {
    uint64_t n = 0;
    for (const Packet* packet = head_; packet != nullptr; packet = next_of(packet)) ++n;
    return n;
  }

 private:
  // The lab's packets belong to no mempool; the field lies in the mbuf's first cache line.
  static Packet* next_of(const Packet* packet) { return reinterpret_cast<Packet*>(packet->pool); }
  static void set_next(Packet* packet, Packet* next) { packet->pool = reinterpret_cast<rte_mempool*>(next); }

  Packet* head_ = nullptr;
  Packet* tail_ = nullptr;  // meaningless while empty
};

class alignas(64) Wire {
 public:
  // Something that changes for packets whose transmission begins at or after `at`.
  struct Change {
    Time at = 0;
    bool up = true;
    double loss = 0;
  };

  Wire(Duration delay, int overhead, double loss, double bit_error, uint64_t seed)
      : delay_(delay),
        plain_(loss == 0 && bit_error == 0),
        perfect_(plain_),
        overhead_(overhead),
        loss_(loss),
        bit_error_(bit_error),
        random_(seed) {}

  // All that will ever happen to the link, ascending; both ends read it before it happens, which is how a packet
  // already on its way can be lost to a failure that comes.
  void plan(std::vector<Change> changes) {
    changes_ = std::move(changes);
    perfect_ = perfect_ && changes_.empty();
    plain_ = plain_ && perfect_;
  }

  // --- the sending node
  // -----------------------------------------------------------------------------------------------

  // Sends a packet whose transmission takes [start, end); returns why it will not arrive, or kNone. A lost packet stays
  // with the caller.
  DropReason send(Packet* packet, Time start, Time end, unsigned parity) {
    if (!plain_) [[unlikely]] {
      const DropReason fate = perfect_ ? DropReason::kNone : fate_of(packet, start, end + delay_);
      if (fate != DropReason::kNone) return fate;
      if (capture_ != nullptr) capture_->add(packet, end);
    }
    meta_of(packet).arrival = end + delay_;
    outbox_[parity].push(packet);
    packets_++;
    frame_bytes_ += packet->pkt_len;
    return DropReason::kNone;
  }
  // Keeps a copy of all that is sent from now on in `buffer`.
  void capture_into(CaptureBuffer& buffer) {
    capture_ = &buffer;
    plain_ = false;
  }
  uint64_t packets() const { return packets_; }
  uint64_t wire_bytes() const {
    return static_cast<uint64_t>(static_cast<int64_t>(frame_bytes_) + static_cast<int64_t>(packets_) * overhead_);
  }

  // --- the receiving node
  // ---------------------------------------------------------------------------------------------

  // Takes over what was sent in the window before.
  void collect(unsigned parity) { flights_.append(outbox_[1 - parity]); }
  bool empty() const { return flights_.empty(); }
  Time next_arrival() const { return flights_.empty() ? ~Time{0} : meta_of(flights_.front()).arrival; }
  Packet* pop() { return flights_.pop(); }
  // What the receiver may want prefetched before it pops.
  const Packet* front() const { return flights_.front(); }

  // Asks for the lines that the receiver (or the sender) is about to touch.
  void prefetch_for_receiver() const {
    rte_prefetch0(&outbox_);
    rte_prefetch0(&flights_);
  }
  void prefetch_for_sender() const { rte_prefetch0(&outbox_); }

  // --- between windows, nobody else running
  // ---------------------------------------------------------------------------

  uint64_t in_flight() const { return flights_.count() + outbox_[0].count() + outbox_[1].count(); }

 private:
  DropReason fate_of(const Packet* packet, Time start, Time arrival);

  std::array<FlightList, 2> outbox_;
  Duration delay_;
  uint64_t packets_ = 0;
  uint64_t frame_bytes_ = 0;
  bool plain_;  // nothing is ever lost, nobody listens
  alignas(64) FlightList flights_;
  bool perfect_;  // nothing is ever lost
  CaptureBuffer* capture_ = nullptr;
  int overhead_;
  double loss_;
  double bit_error_;
  bool up_ = true;
  size_t next_change_ = 0;
  Random random_;
  std::vector<Change> changes_;
};

}  // namespace heddle::lab
