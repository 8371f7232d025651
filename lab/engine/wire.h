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

#include "lab/engine/capture.h"
#include "lab/engine/packet_arena.h"
#include "lab/engine/port_set.h"
#include "net/drop_reason.h"
#include "net/packet.h"
#include "net/random.h"
#include "net/time.h"

namespace heddle::lab {

// When a packet that is under way arrives. The lab's packets have no bus address, and the field lies in the mbuf's
// first cache line: sending a packet that has waited for long fetches no other.
inline Time arrival_of(const Packet* packet) { return packet->buf_iova; }
inline void set_arrival(Packet* packet, Time at) { packet->buf_iova = at; }

// Packets in order of arrival.
class FlightList {
 public:
  bool empty() const { return head_ == nullptr; }
  Packet* front() const { return head_; }
  Packet* pop() {
    Packet* packet = head_;
    head_ = next_of(packet);
    return packet;
  }
  // Takes packets that are linked from `head` to `tail` and arrive later than ours.
  void append(Packet* head, Packet* tail) {
    if (head_ == nullptr) {
      head_ = head;
    } else {
      set_next(tail_, head);
    }
    tail_ = tail;
  }
  uint64_t count() const { return count_from(head_); }

  // The lab's packets belong to no mempool; the field lies in the mbuf's first cache line.
  static Packet* next_of(const Packet* packet) { return reinterpret_cast<Packet*>(packet->pool); }
  static void set_next(Packet* packet, Packet* next) { packet->pool = reinterpret_cast<rte_mempool*>(next); }
  static uint64_t count_from(const Packet* packet) {
    uint64_t n = 0;
    for (; packet != nullptr; packet = next_of(packet)) ++n;
    return n;
  }

 private:
  Packet* head_ = nullptr;
  Packet* tail_ = nullptr;  // meaningless while empty
};

// What is sent in one window, a cache line. The first few packets are named, so that the receiver can ask for all their
// cache lines at once instead of following the links.
class alignas(64) Outbox {
 public:
  static constexpr unsigned kNamed = 7;

  bool empty() const { return first_[0] == nullptr; }
  const std::array<Packet*, kNamed>& first() const { return first_; }
  void push(Packet* packet) {
    FlightList::set_next(packet, nullptr);
    if (!empty()) FlightList::set_next(tail_, packet);
    tail_ = packet;
    for (Packet*& named : first_) {
      if (named != nullptr) continue;
      named = packet;
      return;
    }
  }
  void move_to(FlightList& list) {
    if (empty()) return;
    list.append(first_[0], tail_);
    first_ = {};
  }
  uint64_t count() const { return FlightList::count_from(first_[0]); }

 private:
  std::array<Packet*, kNamed> first_{};  // null where there are fewer
  Packet* tail_ = nullptr;               // meaningless while empty
};

class alignas(128) Wire {
 public:
  // Something that changes for packets whose transmission begins at or after `at`.
  struct Change {
    Time at = 0;
    bool up = true;
    double loss = 0;
  };

  Wire(Duration delay, int overhead, double loss, double bit_error, uint64_t seed)
      : sent_{.delay = delay, .plain = loss == 0 && bit_error == 0 ? 1U : 0U, .bell = {}},
        perfect_(loss == 0 && bit_error == 0),
        overhead_(overhead),
        loss_(loss),
        bit_error_(bit_error),
        random_(seed) {}

  // All that will ever happen to the link, ascending; both ends read it before it happens, which is how a packet
  // already on its way can be lost to a failure that comes.
  void plan(std::vector<Change> changes) {
    changes_ = std::move(changes);
    perfect_ = perfect_ && changes_.empty();
    if (!perfect_) sent_.plain = 0;
  }

  // --- the sending node
  // -----------------------------------------------------------------------------------------------

  // Sends a packet whose transmission takes [start, end); returns why it will not arrive, or kNone. A lost packet stays
  // with the caller.
  DropReason send(Packet* packet, Time start, Time end, unsigned parity) {
    if (sent_.plain == 0) [[unlikely]] {
      const DropReason fate = perfect_ ? DropReason::kNone : fate_of(packet, start, end + sent_.delay);
      if (fate != DropReason::kNone) return fate;
      if (capture_ != nullptr) capture_->add(packet, end);
    }
    set_arrival(packet, end + sent_.delay);
    if (outbox_[parity].empty()) sent_.bell.ring(parity);
    outbox_[parity].push(packet);
    sent_.packets++;
    sent_.frame_bytes += packet->pkt_len;
    return DropReason::kNone;
  }
  // Whom to tell of the first packet sent in a window; nobody by default.
  void announce_by(Inbox::Bell bell) { sent_.bell = bell; }
  // Keeps a copy of all that is sent from now on in `buffer`.
  void capture_into(CaptureBuffer& buffer) {
    capture_ = &buffer;
    sent_.plain = 0;
  }
  uint64_t packets() const { return sent_.packets; }
  uint64_t wire_bytes() const {
    return static_cast<uint64_t>(static_cast<int64_t>(sent_.frame_bytes) +
                                 static_cast<int64_t>(sent_.packets) * overhead_);
  }

  // --- the receiving node
  // ---------------------------------------------------------------------------------------------

  // Takes over what was sent in the window before.
  void collect(unsigned parity) { outbox_[1 - parity].move_to(flights_); }
  bool empty() const { return flights_.empty(); }
  Time next_arrival() const { return flights_.empty() ? ~Time{0} : arrival_of(flights_.front()); }
  Packet* pop() { return flights_.pop(); }
  // What the receiver may want prefetched before it pops.
  const Packet* front() const { return flights_.front(); }
  // Asks for the lines that the receiver (or the sender) is about to touch.
  void prefetch_for_receiver(unsigned parity) const {
    rte_prefetch0(&outbox_[1 - parity]);
    rte_prefetch0(&flights_);
  }
  void prefetch_for_sender(unsigned parity) const {
    rte_prefetch0(&outbox_[parity]);
    rte_prefetch0(&sent_);
  }
  // Once that has come: asks for what tells the receiver.
  void prefetch_bell(unsigned parity) const { sent_.bell.prefetch(parity); }
  // Before `collect`: asks for the packets that it will find.
  void prefetch_packets(unsigned parity, const PacketArena::Cache& packets) const {
    if (!flights_.empty()) packets.prefetch(flights_.front());
    for (const Packet* packet : outbox_[1 - parity].first()) {
      if (packet == nullptr) return;
      packets.prefetch(packet);
    }
  }

  // --- between windows, nobody else running
  // ---------------------------------------------------------------------------

  uint64_t in_flight() const { return flights_.count() + outbox_[0].count() + outbox_[1].count(); }

 private:
  DropReason fate_of(const Packet* packet, Time start, Time arrival);

  std::array<Outbox, 2> outbox_;  // by the parity of the window in which it is filled
  struct Sent {                   // the sender's
    uint64_t delay : 63;
    uint64_t plain : 1;  // nothing is ever lost, nobody listens
    uint64_t packets = 0;
    uint64_t frame_bytes = 0;
    Inbox::Bell bell;
  };
  alignas(64) Sent sent_;
  alignas(64) FlightList flights_;  // the receiver's, and what neither needs on a perfect link
  bool perfect_;                    // nothing is ever lost
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
