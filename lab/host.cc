#include "lab/host.h"

#include <algorithm>
#include <functional>

#include "net/error.h"

namespace heddle::lab {

namespace {

// What the lab notes on a data packet beside its headers.
uint64_t owner_mark(const SendPacket& packet) { return uint64_t{packet.message} << 1U | (packet.repeated ? 1U : 0U); }
MessageId message_of(uint64_t mark) { return static_cast<MessageId>(mark >> 1U); }

}  // namespace

Host::Host(const Settings& settings, MessageBoard& board, Wire& out, Wire& in)
    : LiveNode(1),
      settings_(settings),
      board_(board),
      out_(out),
      in_(in),
      writer_(settings.id, settings.first_switch),
      random_(settings.seed, settings.id),
      window_packets_(
          settings.nic.window_bytes == 0 ? 0 : std::max<uint64_t>(1, settings.nic.window_bytes / settings.nic.mtu)) {
  // A sender that has used up its window asks for an ACK (AckReq in the BTH): it would wait for ever otherwise.
  if (window_packets_ != 0) {
    settings_.nic.ack_every = static_cast<uint32_t>(std::min<uint64_t>(settings_.nic.ack_every, window_packets_));
  }
}

void Host::run(const Window& window) {
  if (inbox_.take(0, window.parity) != 0) in_.collect(window.parity);
  for (;;) {
    const Time arrival = in_.next_arrival();
    const Time timer = timers_.empty() ? kNever : timers_.front().at;
    const Time departure = can_send() ? wire_free_at_ : kNever;
    const Time now = std::min({arrival, timer, departure});
    if (now >= window.end) return;
    if (arrival == now) {
      Packet* packet = in_.pop();
      if (!in_.empty()) prefetch_packet(in_.front());
      arrive(packet, now);
      window.packets->put(packet);
    } else if (timer == now) {
      std::pop_heap(timers_.begin(), timers_.end(), std::greater<>{});
      const Timer due = timers_.back();
      timers_.pop_back();
      expire(due, now);
    } else {
      depart(window, now);
    }
    if (can_send() && wire_free_at_ < now) wire_free_at_ = now;  // the port had nothing to send until now
  }
}

Time Host::next_event() const {
  const Time arrival = in_.next_arrival();
  const Time timer = timers_.empty() ? kNever : timers_.front().at;
  return std::min({arrival, timer, can_send() ? wire_free_at_ : kNever});
}

// --- receiving
// ---------------------------------------------------------------------------------------------------------

void Host::arrive(Packet* packet, Time now) {
  counters_.packets_received++;
  if (destination_of(packet) != settings_.id) throw_failed("host {} received a packet for another host", settings_.id);
  if (static_cast<net::Opcode>(bth_of(packet).opcode) == net::Opcode::kRcAck) {
    receive_ack(packet, now);
  } else {
    receive_data(packet, now);
  }
}

void Host::receive_data(Packet* packet, Time now) {
  const net::Bth& bth = bth_of(packet);
  const uint32_t index = (bth.dest_qp - receive_queue_number(0)) / 2;
  ReceiveQueue& queue = receive_queues_[index];
  const auto opcode = static_cast<net::Opcode>(bth.opcode);
  const bool last = opcode == net::Opcode::kRcSendLast || opcode == net::Opcode::kRcSendOnly;
  const uint64_t mark = meta_of(packet).owner;
  const auto done = [&](MessageId message) {
    if (board_.part_received(message, now)) fire(message, TriggerOn::kReceived, now);
  };
  const Receipt receipt = queue.receive(widen_psn(bth.psn, queue.expected()), last, message_of(mark), (mark & 1U) != 0,
                                        settings_.nic, done);
  if (receipt.late_by != 0) {
    counters_.out_of_order_packets++;
    counters_.out_of_order_degree = std::max(counters_.out_of_order_degree, receipt.late_by);
  }
  if (receipt.duplicate) counters_.duplicates++;
  if (!receipt.accepted) {
    // Not counted as received either: the books say where every packet ended.
    counters_.packets_received--;
    drops_[static_cast<size_t>(DropReason::kOutOfOrder)]++;
  }
  if (receipt.reply == Receipt::Reply::kNone) return;
  const bool nak = receipt.reply == Receipt::Reply::kNak;
  // A NAK of selective repeat names the packet that came, in the place of the message number.
  const bool selective = settings_.nic.out_of_order == OutOfOrder::kSelectiveRepeat;
  const auto msn = static_cast<uint32_t>(nak && selective ? static_cast<uint32_t>(bth.psn) : queue.completed_parts());
  control_.push_back({index, static_cast<uint32_t>(receipt.ack_psn), msn, nak});
}

void Host::receive_ack(Packet* packet, Time now) {
  const net::Bth& bth = bth_of(packet);
  const uint32_t index = (bth.dest_qp - send_queue_number(0)) / 2;
  SendQueue& queue = send_queues_[index];
  const uint64_t psn = widen_psn(bth.psn, queue.una());
  const auto done = [&](MessageId message) {
    if (!board_.part_sent(message, now)) return;
    counters_.messages_sent++;
    fire(message, TriggerOn::kSent, now);
  };
  if (aeth_of(packet).syndrome == kAethNakSequenceError) {
    counters_.naks++;
    if (psn > 0) queue.acknowledge(psn - 1, done);  // all before the expected one has arrived
    if (settings_.nic.out_of_order == OutOfOrder::kSelectiveRepeat) {
      queue.repeat_gap(psn, widen_psn(aeth_of(packet).msn, queue.una()));
    } else {
      queue.go_back(psn);
    }
  } else {
    queue.acknowledge(psn, done);
  }
  restart_timer(index, now);
  list(index);
}

// --- sending
// -----------------------------------------------------------------------------------------------------------

void Host::depart(const Window& window, Time now) {
  Packet* packet = control_head_ != control_.size() ? next_control(*window.packets) : next_data(*window.packets, now);
  if (packet != nullptr) send(packet, now, window);
}

Packet* Host::next_control(PacketArena::Cache& packets) {
  const Control control = control_[control_head_++];
  if (control_head_ == control_.size()) {
    control_.clear();
    control_head_ = 0;
  }
  const ReceiveQueue& queue = receive_queues_[control.receive_queue];
  Packet* packet = packets.take();
  writer_.write_ack(packet,
                    {.destination = queue.peer,
                     .source_port = queue.source_port,
                     .opcode = net::Opcode::kRcAck,
                     .dest_qp = queue.dest_qp,
                     .psn = control.psn},
                    control.nak ? kAethNakSequenceError : kAethAck, control.msn);
  return packet;
}

// Of the queue whose turn it is; null if none has a packet any more: while a queue waited to repeat something, an ACK
// may have said that there is no need.
Packet* Host::next_data(PacketArena::Cache& packets, Time now) {
  uint32_t index = turns_.pop();
  while (!send_queues_[index].has_packet(window_packets_)) {
    send_queues_[index].listed = false;
    if (turns_.empty()) return nullptr;
    index = turns_.pop();
  }
  SendQueue& queue = send_queues_[index];
  const SendPacket next = queue.take(settings_.nic.mtu);
  Packet* packet = packets.take();
  writer_.write_data(packet,
                     {.destination = queue.peer,
                      .source_port = source_port(queue),
                      .opcode = next.opcode,
                      .dest_qp = queue.dest_qp,
                      .psn = static_cast<uint32_t>(next.psn),
                      .ack_request = next.last || (next.psn + 1) % settings_.nic.ack_every == 0},
                     next.payload);
  meta_of(packet).owner = owner_mark(next);
  counters_.data_packets++;
  counters_.retransmitted += next.repeated ? 1 : 0;
  if (!queue.timer_armed) restart_timer(index, now);
  if (queue.has_packet(window_packets_)) {
    turns_.push(index);
  } else {
    queue.listed = false;
  }
  return packet;
}

void Host::send(Packet* packet, Time now, const Window& window) {
  counters_.packets_sent++;
  while (next_rate_change_ < settings_.rate_changes.size() && settings_.rate_changes[next_rate_change_].at <= now) {
    settings_.rate = settings_.rate_changes[next_rate_change_++].rate;
  }
  const Duration takes =
      settings_.rate.time_for(static_cast<uint64_t>(static_cast<int64_t>(packet->pkt_len) + settings_.overhead));
  wire_free_at_ = now + takes;
  const DropReason lost = out_.send(packet, now, wire_free_at_, window.parity);
  if (lost == DropReason::kNone) {
    window.note_sent(wire_free_at_ + settings_.link_delay);
    return;
  }
  drops_[static_cast<size_t>(lost)]++;
  window.packets->put(packet);
}

uint16_t Host::source_port(SendQueue& queue) {
  if (settings_.nic.entropy != Entropy::kPerPacket) return queue.source_port;
  // Round robin over the ports in an order XORed with a number that is drawn anew each time round (as UEC's oblivious
  // spraying does), so that queue pairs do not walk the same ports together.
  const uint32_t mask = settings_.nic.spray_ports - 1;
  if ((queue.spray & mask) == 0) queue.source_port = static_cast<uint16_t>(random_.next() & mask);
  return static_cast<uint16_t>(0xc000U | ((queue.spray++ ^ queue.source_port) & mask));
}

void Host::list(uint32_t index) {
  SendQueue& queue = send_queues_[index];
  if (queue.listed || !queue.has_packet(window_packets_)) return;
  queue.listed = true;
  turns_.push(index);
}

void Host::Turns::push(uint32_t queue) {
  if (tail_ - head_ == ring_.size()) {
    std::vector<uint32_t> wider(ring_.empty() ? 4 : ring_.size() * 2);
    for (uint64_t i = head_; i != tail_; ++i) wider[i & (wider.size() - 1)] = ring_[i & (ring_.size() - 1)];
    ring_ = std::move(wider);
  }
  ring_[tail_++ & (ring_.size() - 1)] = queue;
}

// --- timers
// ------------------------------------------------------------------------------------------------------------

void Host::set_timer(Time at, Timer::Kind kind, uint32_t id) {
  timers_.push_back({at, kind, id});
  std::push_heap(timers_.begin(), timers_.end(), std::greater<>{});
}

// One timer per queue: an ACK only moves the deadline, and the timer, when it comes, looks whether it is due.
void Host::restart_timer(uint32_t index, Time now) {
  SendQueue& queue = send_queues_[index];
  queue.deadline = now + settings_.nic.retransmit_timeout;
  if (queue.timer_armed) return;
  queue.timer_armed = true;
  set_timer(queue.deadline, Timer::Kind::kRetransmit, index);
}

void Host::expire(const Timer& timer, Time now) {
  switch (timer.kind) {
    case Timer::Kind::kTrigger:
      trigger(timer.id, now);
      return;
    case Timer::Kind::kRelease:
      release(timer.id, now);
      return;
    case Timer::Kind::kRetransmit:
      break;
  }
  SendQueue& queue = send_queues_[timer.id];
  queue.timer_armed = false;
  if (!queue.outstanding()) return;
  if (queue.deadline > now) {
    queue.timer_armed = true;
    set_timer(queue.deadline, Timer::Kind::kRetransmit, timer.id);
    return;
  }
  counters_.timeouts++;
  queue.time_out(settings_.nic.out_of_order == OutOfOrder::kSelectiveRepeat);
  restart_timer(timer.id, now);
  list(timer.id);
}

// --- the workload
// ------------------------------------------------------------------------------------------------------

uint32_t Host::add_send_queues(HostId peer, uint32_t first_receive_queue) {
  const auto first = static_cast<uint32_t>(send_queues_.size());
  for (uint32_t i = 0; i < settings_.nic.qps_per_connection; ++i) {
    SendQueue& queue = send_queues_.emplace_back();
    queue.peer = peer;
    queue.qp = send_queue_number(first + i);
    queue.dest_qp = receive_queue_number(first_receive_queue + i);
    queue.source_port =
        settings_.nic.entropy == Entropy::kNone ? uint16_t{0xc000} : source_port_of(queue.qp, queue.dest_qp);
  }
  return first;
}

uint32_t Host::add_receive_queues(HostId peer, uint32_t first_send_queue) {
  const auto first = static_cast<uint32_t>(receive_queues_.size());
  for (uint32_t i = 0; i < settings_.nic.qps_per_connection; ++i) {
    ReceiveQueue& queue = receive_queues_.emplace_back();
    queue.peer = peer;
    queue.qp = receive_queue_number(first + i);
    queue.dest_qp = send_queue_number(first_send_queue + i);
    queue.source_port =
        settings_.nic.entropy == Entropy::kNone ? uint16_t{0xc000} : source_port_of(queue.qp, queue.dest_qp);
  }
  return first;
}

void Host::add_message(MessageId message, uint32_t first_send_queue) {
  own_.push_back({message, first_send_queue});
  const Message& m = board_.message(message);
  if (m.pending != 0) return;
  Time at = m.start;
  if (settings_.nic.start_jitter && !m.is_barrier()) {
    const uint64_t bytes = settings_.nic.mtu + kDataFrameOverhead + static_cast<uint64_t>(settings_.overhead);
    at += static_cast<Time>(random_.uniform() * static_cast<double>(settings_.rate.time_for(bytes)));
  }
  set_timer(at, Timer::Kind::kRelease, message);
}

void Host::release(MessageId message, Time now) {
  board_.released(message, now);
  if (board_.message(message).is_barrier()) {
    board_.barrier_done(message, now);
    fire(message, TriggerOn::kReceived, now);
    fire(message, TriggerOn::kSent, now);
    return;
  }
  const auto own = std::lower_bound(own_.begin(), own_.end(), message,
                                    [](const OwnMessage& o, MessageId m) { return o.message < m; });
  for (uint32_t i = 0; i < board_.parts_of(message); ++i) {
    const uint32_t index = own->first_send_queue + i;
    send_queues_[index].post(message, board_.part_bytes(message, i), settings_.nic.mtu);
    list(index);
  }
}

void Host::trigger(MessageId message, Time now) {
  if (!board_.count_trigger(message)) return;
  const Duration wait = board_.message(message).start;
  if (wait == 0) {
    release(message, now);
  } else {
    set_timer(now + wait, Timer::Kind::kRelease, message);
  }
}

void Host::fire(MessageId cause, TriggerOn on, Time now) {
  for (const Trigger& effect : board_.workload().triggers_of(cause)) {
    if (effect.on != on) continue;
    const HostId host = board_.message(effect.to).src;
    if (host != settings_.id) {
      outgoing_.push_back({host, effect.to, now + effect.delay + settings_.trigger_delay});
    } else if (effect.delay == 0) {
      trigger(effect.to, now);
    } else {
      set_timer(now + effect.delay, Timer::Kind::kTrigger, effect.to);
    }
  }
}

}  // namespace heddle::lab
