// The two ends of a reliable connection (IBTA 9.7): the requester's send queue and the responder's receive side. Pure
// state machines: they know packet numbers and time, not packets, ports or timers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "lab/engine/fabric_settings.h"
#include "lab/host/arrival_order.h"
#include "lab/host/packet_set.h"
#include "lab/workload/workload.h"
#include "net/headers.h"
#include "net/time.h"

namespace heddle::lab {

// One packet that a send queue wants on the wire.
struct SendPacket {
  uint64_t psn = 0;
  uint32_t payload = 0;
  MessageId message = 0;
  net::Opcode opcode = net::Opcode::kRcSendOnly;
  bool last = false;
  bool repeated = false;
};

class SendQueue {
 public:
  // Addressing, read by the host that owns the queue.
  HostId peer = 0;
  uint32_t qp = 0;       // own queue pair number
  uint32_t dest_qp = 0;  // the responder's
  uint16_t source_port = 0;
  uint16_t spray = 0;   // counter of host spraying
  bool listed = false;  // waits for its turn at the NIC
  bool timer_armed = false;
  Time deadline = 0;        // of the retransmission timer
  Time sent_at = ~Time{0};  // when its last packet began; kNever: it has sent none

  // Appends a part of a message.
  void post(MessageId message, uint64_t bytes, uint32_t mtu);

  bool has_packet(uint64_t window_packets) const {
    return repeat_next_ < repeat_end_ || (next_ < end_ && (window_packets == 0 || next_ - una_ < window_packets));
  }
  bool outstanding() const { return una_ < highest_; }
  // The next packet to send, and before that whose it is; has_packet() holds.
  SendPacket take(uint32_t mtu);
  MessageId next_message() const;
  // Its payload, without taking it.
  uint32_t next_payload(uint32_t mtu) const {
    return packet_at(repeat_next_ < repeat_end_ ? repeat_next_ : next_, mtu).payload;
  }

  // A cumulative acknowledgement of everything up to and including `psn`. Calls `done(message)` for each part that is
  // thereby completed. False if it says nothing new.
  template <typename Done>
  bool acknowledge(uint64_t psn, const Done& done);
  // NAK, PSN sequence error: `expected` is what the responder waits for. Go back N.
  void go_back(uint64_t expected);
  // NAK of selective repeat: everything before `expected` is there, and so is `got`; what lies between is missing.
  void repeat_gap(uint64_t expected, uint64_t got);
  // The timer ran out: repeat from the oldest unacknowledged packet.
  void time_out(bool selective);

  uint64_t una() const { return una_; }
  uint64_t next() const { return next_; }

 private:
  struct Part {
    MessageId message;
    uint64_t first_psn;
    uint64_t end_psn;
    uint64_t bytes;
  };

  SendPacket packet_at(uint64_t psn, uint32_t mtu) const;
  void skip_acknowledged();

  uint64_t una_ = 0;          // oldest unacknowledged
  uint64_t next_ = 0;         // next in turn
  uint64_t highest_ = 0;      // one past the highest ever sent
  uint64_t end_ = 0;          // one past the last posted
  uint64_t repeat_next_ = 0;  // selective repeat: what to send again, [repeat_next_, repeat_end_) less the acknowledged
  uint64_t repeat_end_ = 0;
  uint64_t recovery_end_ = 0;
  PacketSet acknowledged_;   // beyond una_
  std::vector<Part> parts_;  // those before first_part_ are done; a deque would take 600 bytes empty
  size_t first_part_ = 0;
  uint64_t first_end_ = 0;  // its end
};

// What the responder makes of a data packet.
struct Receipt {
  enum class Reply : uint8_t { kNone, kAck, kNak };
  Reply reply = Reply::kNone;
  bool accepted = true;  // false: dropped, counted as out_of_order
  bool duplicate = false;
  uint64_t ack_psn = 0;  // kAck: cumulative; kNak: the expected one
  uint64_t late_by = 0;  // first copies out of order: highest PSN seen − its PSN; else 0
  uint64_t extent = 0;   // of those: RFC 4737 4.2.2
};

class ReceiveQueue {
 public:
  HostId peer = 0;
  uint32_t qp = 0;
  uint32_t dest_qp = 0;  // the requester's, for acknowledgements
  uint16_t source_port = 0;

  // A data packet arrived. Calls `done(message)` for each part that is now complete, in order.
  template <typename Done>
  Receipt receive(uint64_t psn, bool last, MessageId message, bool repeated, const HostSettings& settings,
                  const Done& done);

  uint64_t expected() const { return expected_; }
  uint64_t completed_parts() const { return completed_; }

 private:
  struct PendingLast {
    uint64_t psn;
    MessageId message;
  };

  void note_order(uint64_t psn, Receipt& receipt);
  template <typename Done>
  bool advance(const Done& done);

  uint64_t expected_ = 0;
  uint64_t seen_ = 0;       // one past the highest PSN seen
  uint64_t unacked_ = 0;    // packets taken since the last ACK
  uint64_t completed_ = 0;  // message sequence number (IBTA 9.7.5.1.5), parts completed
  bool nak_sent_ = false;
  std::unique_ptr<ArrivalOrder> order_;  // while there is a gap
  PacketSet beyond_;                     // taken out of order
  std::vector<PendingLast> lasts_;       // last packets of parts beyond the gap
};

// ---------------------------------------------------------------------------------------------------------------------

template <typename Done>
bool SendQueue::acknowledge(uint64_t psn, const Done& done) {
  if (psn < una_ || psn >= highest_) return false;
  una_ = psn + 1;
  if (next_ < una_) next_ = una_;  // a go-back that the ACK overtook
  if (!acknowledged_.empty()) acknowledged_.advance_to(una_);
  if (repeat_next_ < una_) repeat_next_ = una_;
  skip_acknowledged();
  if (una_ < first_end_) return true;  // most ACKs end no part
  while (first_part_ < parts_.size() && parts_[first_part_].end_psn <= una_) done(parts_[first_part_++].message);
  if (first_part_ == parts_.size()) {
    parts_.clear();
    first_part_ = 0;
  } else {
    first_end_ = parts_[first_part_].end_psn;
  }
  return true;
}

template <typename Done>
Receipt ReceiveQueue::receive(uint64_t psn, bool last, MessageId message, bool repeated, const HostSettings& settings,
                              const Done& done) {
  Receipt receipt;
  if (psn < expected_ || beyond_.contains(psn)) {  // IBTA 9.7.1: a duplicate request is acknowledged again
    receipt.duplicate = true;
    receipt.reply = expected_ == 0 ? Receipt::Reply::kNone : Receipt::Reply::kAck;
    receipt.ack_psn = expected_ - 1;
    return receipt;
  }
  if (!repeated) note_order(psn, receipt);
  seen_ = std::max(seen_, psn + 1);

  if (psn != expected_) {
    const OutOfOrder mode = settings.out_of_order;
    const bool full =
        mode == OutOfOrder::kInOrderPlacement && (psn - expected_) * settings.mtu > settings.reorder_bytes;
    if (mode == OutOfOrder::kGoBackN || full) {
      receipt.accepted = false;
    } else {
      beyond_.advance_to(expected_);
      beyond_.insert(psn);
      if (last) lasts_.push_back({psn, message});
    }
    const bool nak = mode == OutOfOrder::kSelectiveRepeat || (mode == OutOfOrder::kGoBackN && !nak_sent_);
    if (nak) {
      receipt.reply = Receipt::Reply::kNak;
      receipt.ack_psn = expected_;
      nak_sent_ = true;
    }
    return receipt;
  }

  nak_sent_ = false;
  ++expected_;
  ++unacked_;
  bool part_done = false;
  if (last) {
    ++completed_;
    part_done = true;
    done(message);
  }
  if (!beyond_.empty()) part_done = advance(done) || part_done;
  if (order_ != nullptr && expected_ == seen_) order_.reset();
  if (part_done || unacked_ >= settings.ack_every) {
    receipt.reply = Receipt::Reply::kAck;
    receipt.ack_psn = expected_ - 1;
    unacked_ = 0;
  }
  return receipt;
}

// The gap closed: everything behind it that is there becomes the past.
template <typename Done>
bool ReceiveQueue::advance(const Done& done) {
  while (beyond_.take(expected_)) {
    ++expected_;
    ++unacked_;
  }
  if (lasts_.empty()) return false;
  std::sort(lasts_.begin(), lasts_.end(), [](const auto& a, const auto& b) { return a.psn < b.psn; });
  size_t n = 0;
  while (n < lasts_.size() && lasts_[n].psn < expected_) ++n;
  for (size_t i = 0; i < n; ++i) {
    ++completed_;
    done(lasts_[i].message);
  }
  lasts_.erase(lasts_.begin(), lasts_.begin() + static_cast<std::ptrdiff_t>(n));
  return n != 0;
}

}  // namespace heddle::lab
