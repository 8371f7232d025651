#include "lab/host/queue_pair.h"

namespace heddle::lab {

void SendQueue::post(MessageId message, uint64_t bytes, uint32_t mtu) {
  const uint64_t packets = (bytes + mtu - 1) / mtu;
  if (parts_.empty()) first_end_ = end_ + packets;
  parts_.push_back({message, end_, end_ + packets, bytes});
  end_ += packets;
}

SendPacket SendQueue::take(uint32_t mtu) {
  if (repeat_next_ < repeat_end_) {
    SendPacket packet = packet_at(repeat_next_++, mtu);
    packet.repeated = true;
    skip_acknowledged();
    return packet;
  }
  SendPacket packet = packet_at(next_, mtu);
  packet.repeated = next_ < highest_;
  ++next_;
  highest_ = std::max(highest_, next_);
  return packet;
}

MessageId SendQueue::next_message() const {
  const uint64_t psn = repeat_next_ < repeat_end_ ? repeat_next_ : next_;
  size_t i = first_part_;
  while (parts_[i].end_psn <= psn) ++i;
  return parts_[i].message;
}

SendPacket SendQueue::packet_at(uint64_t psn, uint32_t mtu) const {
  size_t i = first_part_;
  while (parts_[i].end_psn <= psn) ++i;
  const Part& part = parts_[i];
  const uint64_t offset = psn - part.first_psn;
  SendPacket packet;
  packet.psn = psn;
  packet.message = part.message;
  packet.payload = static_cast<uint32_t>(std::min<uint64_t>(mtu, part.bytes - offset * mtu));
  packet.last = psn + 1 == part.end_psn;
  const bool first = offset == 0;
  packet.opcode = first ? (packet.last ? net::Opcode::kRcSendOnly : net::Opcode::kRcSendFirst)
                        : (packet.last ? net::Opcode::kRcSendLast : net::Opcode::kRcSendMiddle);
  return packet;
}

void SendQueue::go_back(uint64_t expected) {
  if (expected < una_ || expected >= highest_) return;
  next_ = std::min(next_, expected);
}

void SendQueue::repeat_gap(uint64_t expected, uint64_t got) {
  if (got < una_ || got >= highest_ || expected > got) return;
  acknowledged_.advance_to(una_);
  acknowledged_.insert(got);
  // Within one recovery every missing packet is repeated once (IRN: recovery ends when what had been sent at its
  // beginning is acknowledged).
  if (una_ >= recovery_end_) {
    recovery_end_ = highest_;
    repeat_next_ = una_;
    repeat_end_ = una_;
  }
  repeat_end_ = std::max(repeat_end_, got);
  skip_acknowledged();
}

void SendQueue::time_out(bool selective) {
  if (selective) {
    recovery_end_ = highest_;
    repeat_next_ = una_;
    repeat_end_ = next_;
    skip_acknowledged();
  } else {
    next_ = una_;
  }
}

void SendQueue::skip_acknowledged() {
  while (repeat_next_ < repeat_end_ && acknowledged_.contains(repeat_next_)) ++repeat_next_;
}

// RFC 4737 3.3: a packet is out of order if its number is below the next expected, one past the highest seen.
void ReceiveQueue::note_order(uint64_t psn, Receipt& receipt) {
  if (psn >= seen_) {
    if (order_ == nullptr && psn != expected_) order_ = std::make_unique<ArrivalOrder>();
    if (order_ != nullptr) order_->in_order(psn);
    return;
  }
  receipt.late_by = seen_ - 1 - psn;
  if (order_ != nullptr) receipt.extent = order_->late(psn);
}

}  // namespace heddle::lab
