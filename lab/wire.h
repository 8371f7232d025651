// One direction of a link: what was sent and has not arrived.
//
// The sending and the receiving node may run on different threads in the same window. What is sent in one window
// arrives in a later one, so the sender writes one of two outboxes, by the window's parity, and the receiver empties
// the other.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "net/drop_reason.h"
#include "net/packet.h"
#include "net/random.h"
#include "net/rate.h"
#include "net/time.h"

namespace heddle::lab {

struct Flight {
  Time arrival;  // of the last bit
  Packet* packet;
};

class Wire {
 public:
  // Something that changes for packets whose transmission begins at or after `at`.
  struct Change {
    Time at = 0;
    bool up = true;
    double loss = 0;
  };

  Wire(Duration delay, int overhead, double loss, double bit_error, uint64_t seed)
      : delay_(delay), overhead_(overhead), loss_(loss), bit_error_(bit_error), random_(seed) {}

  // All that will ever happen to the link, ascending; both ends read it before it happens, which is how a packet
  // already on its way can be lost to a failure that comes.
  void plan(std::vector<Change> changes) { changes_ = std::move(changes); }

  // --- the sending node
  // -----------------------------------------------------------------------------------------------

  // Sends a packet whose transmission takes [start, end); returns why it will not arrive, or kNone. A lost packet stays
  // with the caller.
  DropReason send(Packet* packet, Time start, Time end, unsigned parity) {
    if (next_change_ < changes_.size() || !up_ || loss_ > 0 || bit_error_ > 0) [[unlikely]] {
      const DropReason fate = fate_of(packet, start, end + delay_);
      if (fate != DropReason::kNone) return fate;
    }
    outbox_[parity].push_back({end + delay_, packet});
    packets_++;
    frame_bytes_ += packet->pkt_len;
    return DropReason::kNone;
  }
  uint64_t packets() const { return packets_; }
  uint64_t wire_bytes() const {
    return static_cast<uint64_t>(static_cast<int64_t>(frame_bytes_) + static_cast<int64_t>(packets_) * overhead_);
  }

  // --- the receiving node
  // ---------------------------------------------------------------------------------------------

  // Takes over what was sent in the window before.
  void collect(unsigned parity) {
    std::vector<Flight>& sent = outbox_[1 - parity];
    if (sent.empty()) return;
    if (head_ == flights_.size()) {
      flights_.clear();
      head_ = 0;
    } else if (head_ > 1024) {
      flights_.erase(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    flights_.insert(flights_.end(), sent.begin(), sent.end());
    sent.clear();
  }
  bool empty() const { return head_ == flights_.size(); }
  const Flight& front() const { return flights_[head_]; }
  void pop() { ++head_; }

  // --- between windows, nobody else running
  // ---------------------------------------------------------------------------

  // Arrival of the first packet sent in the window just over; kNever if there is none.
  Time first_sent(unsigned parity) const {
    return outbox_[parity].empty() ? ~Time{0} : outbox_[parity].front().arrival;
  }
  uint64_t in_flight() const { return flights_.size() - head_ + outbox_[0].size() + outbox_[1].size(); }

 private:
  DropReason fate_of(const Packet* packet, Time start, Time arrival);

  Duration delay_;
  int overhead_;
  double loss_;
  double bit_error_;
  bool up_ = true;
  size_t next_change_ = 0;
  uint64_t packets_ = 0;
  uint64_t frame_bytes_ = 0;
  Random random_;
  std::vector<Change> changes_;
  std::array<std::vector<Flight>, 2> outbox_;
  alignas(64) std::vector<Flight> flights_;
  size_t head_ = 0;
};

}  // namespace heddle::lab
