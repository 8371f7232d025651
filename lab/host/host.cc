#include "lab/host/host.h"

#include <algorithm>
#include <functional>

#include "dataplane/classify.h"
#include "net/error.h"

namespace heddle::lab {

namespace {

// What the lab notes on a data packet beside its headers.
uint64_t owner_mark(const SendPacket& packet) { return uint64_t{packet.message} << 1U | (packet.repeated ? 1U : 0U); }

// Data is ECN-capable if somebody heeds the marks (RFC 3168 5: ECT(0)).
RoceTos tos_of(const HostSettings& nic) {
  constexpr unsigned kEct0 = 2;
  return {.data = static_cast<uint8_t>(kDataDscp << 2U | (nic.dcqcn ? kEct0 : 0U)),
          .ack = static_cast<uint8_t>(nic.ack_dscp << 2U)};
}

}  // namespace

Host::Host(const Settings& settings, MessageBoard& board, Wire& out, Wire& in)
    : LiveNode(1),
      board_(board),
      out_(out),
      in_(in),
      window_packets_(
          settings.nic.window_bytes == 0 ? 0 : std::max<uint64_t>(1, settings.nic.window_bytes / settings.nic.mtu)),
      burst_packets_(static_cast<uint32_t>(std::max<uint64_t>(1, settings.nic.burst_bytes / settings.nic.mtu))),
      ack_class_(dataplane::IngressPort::default_dscp_map()[settings.nic.ack_dscp]),
      pause_log_(settings.log_pauses ? std::make_unique<PauseLog>(1, settings.keeps_all_pauses) : nullptr),
      controls_congestion_(settings.nic.dcqcn.has_value()),
      writer_(settings.id, settings.first_switch, tos_of(settings.nic)),
      random_(settings.seed, settings.id),
      settings_(settings),
      dcqcn_(settings.nic.dcqcn ? settings.nic.dcqcn->at(settings.rate) : flowctl::DcqcnSettings()) {
  // A sender that has used up its window asks for an ACK (AckReq in the BTH): it would wait for ever otherwise.
  if (window_packets_ != 0) {
    settings_.nic.ack_every = static_cast<uint32_t>(std::min<uint64_t>(settings_.nic.ack_every, window_packets_));
  }
  if (!settings.lanes) return;
  lanes_ = std::make_unique<HostLanes>(settings.id, *settings.lanes);
  if (settings_.nic.ccti && settings_.nic.ccti->scope == flowctl::CctiScope::kServiceLevel) {
    gates_.resize(kServiceLevels);
    injection_.resize(kServiceLevels, flowctl::InjectionPoint(*settings_.nic.ccti));
  }
  for (const Time at : settings.lanes->link_ups) set_timer(at, Timer::Kind::kLinkUp, 0);
}

void Host::run(const Window& window) {
  std::vector<Flight>& flights = window.scratch->flights;
  flights.clear();
  in_.receive(inbox_.take(0, window.parity) != 0, window.parity, window.end, [&](Packet* packet, Time at) {
    flights.push_back({packet, at});
  });
  for (size_t arrived = 0;;) {
    const Time arrival = arrived < flights.size() ? flights[arrived].arrival : kNever;
    const Time timer = timers_.empty() ? kNever : timers_.front().at;
    const Time departure = next_departure();
    const Time now = std::min({arrival, timer, departure});
    if (now >= window.end) return;
    const uint8_t was_paused = pause_.paused();
    const Time expiry = pause_.next_expiry();
    if (pause_.expire(now) != was_paused && pause_log_ != nullptr) note_pauses(pause_.paused(), expiry);
    if (arrival == now) {
      Packet* packet = flights[arrived++].packet;
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
    if (lanes_ != nullptr) review_lanes(now);
    if (can_send() && wire_free_at_ < now) wire_free_at_ = now;  // the port had nothing to send until now
  }
}

// What packets are likely to ask for: most hosts talk to few others at a time.
void Host::fetch_queues() const {
  if (!receive_queues_.empty()) prefetch_all(&receive_queues_[last_received_]);
  if (!send_queues_.empty()) prefetch_all(&send_queues_[last_acknowledged_]);
  acks_.prefetch();
  turns_.prefetch();
  if (!timers_.empty()) rte_prefetch0(timers_.data());
}

Time Host::next_event() const {
  const Time arrival = in_.next_arrival();
  const Time timer = timers_.empty() ? kNever : timers_.front().at;
  return std::min({arrival, timer, next_departure()});
}

// --- receiving
// ---------------------------------------------------------------------------------------------------------

void Host::arrive(Packet* packet, Time now) {
  if (lanes_ != nullptr) return arrive_by_lane(packet, now);
  if (is_mac_control(packet)) [[unlikely]] {
    receive_mac_control(packet, now);
    return;
  }
  counters_.packets_received++;
  if (destination_of(packet) != settings_.id) throw_failed("host {} received a packet for another host", settings_.id);
  switch (static_cast<net::Opcode>(bth_in(packet).opcode)) {
    case net::Opcode::kRcAck:
      return receive_ack(packet, now);
    case net::Opcode::kCnp:
      return receive_cnp(packet, now);
    default:
      return receive_data(packet, now);
  }
}

void Host::receive_data(Packet* packet, Time now) {
  const net::Bth& bth = bth_in(packet);
  const uint32_t index = (bth.dest_qp - receive_queue_number(0)) / 2;
  last_received_ = index;
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
    counters_.out_of_order_extent = std::max(counters_.out_of_order_extent, receipt.extent);
  }
  if (receipt.duplicate) counters_.duplicates++;
  if (settings_.goodput_interval != 0 && receipt.accepted && !receipt.duplicate) {
    note_first_copy(payload_of(packet), (mark & 1U) != 0, now);
  }
  if (receipt.accepted && !receipt.duplicate) counters_.payload_received += payload_of(packet);
  if (!receipt.accepted) {
    // Not counted as received either: the books say where every packet ended.
    counters_.packets_received--;
    drops_[static_cast<size_t>(DropReason::kOutOfOrder)]++;
  }
  const bool fecn = lanes_ != nullptr && (bth.congestion & net::kBthFecn) != 0;
  if (fecn) counters_.ce_packets++;
  const bool becn = fecn && !return_mark(index);
  if (lanes_ == nullptr && is_marked(packet)) notice_congestion(index, now);
  if (receipt.reply == Receipt::Reply::kNone) {
    // What is marked is acknowledged at once, asked for or not: the mark must not wait (IBTA A10.3.1).
    if (becn && queue.expected() != 0) {
      acks_to(queue.peer)
          .push({index, static_cast<uint32_t>(queue.expected() - 1), static_cast<uint32_t>(queue.completed_parts()),
                 false, true});
    }
    return;
  }
  const bool nak = receipt.reply == Receipt::Reply::kNak;
  // A NAK of selective repeat names the packet that came, in the place of the message number.
  const bool selective = settings_.nic.out_of_order == OutOfOrder::kSelectiveRepeat;
  const auto msn = static_cast<uint32_t>(nak && selective ? static_cast<uint32_t>(bth.psn) : queue.completed_parts());
  acks_to(queue.peer).push({index, static_cast<uint32_t>(receipt.ack_psn), msn, nak, becn});
}

void Host::note_first_copy(uint32_t payload, bool repeated, Time now) {
  const size_t interval = now / settings_.goodput_interval;
  if (goodput_.size() <= interval) goodput_.resize(interval + 1);
  goodput_[interval] += payload;
  if (repeated) last_repair_ = now;
}

void Host::receive_ack(Packet* packet, Time now) {
  const net::Bth& bth = bth_in(packet);
  const uint32_t index = (bth.dest_qp - send_queue_number(0)) / 2;
  last_acknowledged_ = index;
  SendQueue& queue = send_queues_[index];
  const uint64_t psn = widen_psn(bth.psn, queue.una());
  if (lanes_ != nullptr && (bth.congestion & net::kBthBecn) != 0) notice_becn(index, now);
  const auto done = [&](MessageId message) {
    if (!board_.part_sent(message, now)) return;
    counters_.messages_sent++;
    counters_.last_message_sent = now;
    fire(message, TriggerOn::kSent, now);
  };
  if (aeth_in(packet).syndrome == kAethNakSequenceError) {
    counters_.naks++;
    if (psn > 0) queue.acknowledge(psn - 1, done);  // all before the expected one has arrived
    if (settings_.nic.out_of_order == OutOfOrder::kSelectiveRepeat) {
      queue.repeat_gap(psn, widen_psn(aeth_in(packet).msn, queue.una()));
    } else {
      queue.go_back(psn);
    }
  } else {
    queue.acknowledge(psn, done);
  }
  restart_timer(index, now);
  list(index, now);
}

void Host::notice_congestion(uint32_t index, Time now) {
  counters_.ce_packets++;
  if (controls_congestion_ && notification_[index].on_marked(now, dcqcn_.cnp_interval)) cnps_.push(index);
}

void Host::receive_cnp(const Packet* packet, Time now) {
  counters_.cnps_received++;
  const uint32_t index = (bth_in(packet).dest_qp - send_queue_number(0)) / 2;
  if (controls_congestion_) reaction_[index].on_cnp(now);
}

// A frame that is being sent is sent to its end; what is paused begins no other.
void Host::receive_mac_control(const Packet* packet, Time now) {
  flowctl::PfcRequest request;
  if (flowctl::parse_mac_control(frame_of(packet), packet->data_len, request) != flowctl::MacControl::kPfc) {
    counters_.control_ignored++;
    return;
  }
  counters_.pfc_frames++;
  apply_rate_changes(now);
  pause_.receive(request, settings_.rate, now);
  if (pause_log_ == nullptr) return;
  heard_.fill(PauseOrigin(meta_of(packet).owner));
  note_pauses(pause_.paused(), now);
}

// --- sending
// -----------------------------------------------------------------------------------------------------------

void Host::depart(const Window& window, Time now) {
  if (lanes_ != nullptr) return depart_by_lane(window, now);
  PacketArena::Cache& packets = *window.packets;
  if (!cnps_.empty() && may_send(kCnpClass)) {
    send(next_cnp(packets), now, window);
  } else if (!acks_.empty() && may_send(ack_class_)) {
    send(next_ack(acks_.pop(), packets), now, window);
  } else if (uint32_t index = 0; may_send(kDataClass) && next_turn(index)) {
    Packet* packet = next_data(index, packets, now);
    const uint64_t wire_bytes = wire_bytes_of(packet);
    send(packet, now, window);
    requeue(index, wire_bytes, now);
  }
}

Packet* Host::next_cnp(PacketArena::Cache& packets) {
  const ReceiveQueue& queue = receive_queues_[cnps_.pop()];
  Packet* packet = packets.take();
  writer_.write_cnp(packet, {.destination = queue.peer, .source_port = queue.source_port, .dest_qp = queue.dest_qp});
  meta_of(packet).owner = kNoOwner;
  counters_.cnps_sent++;
  return packet;
}

Packet* Host::next_ack(const WaitingAck& ack, PacketArena::Cache& packets) {
  const ReceiveQueue& queue = receive_queues_[ack.receive_queue];
  Packet* packet = packets.take();
  const RoceFields fields{.destination = queue.peer,
                          .source_port = queue.source_port,
                          .opcode = net::Opcode::kRcAck,
                          .dest_qp = queue.dest_qp,
                          .psn = ack.psn};
  const uint8_t syndrome = ack.nak ? kAethNakSequenceError : kAethAck;
  if (lanes_ != nullptr) {
    lanes_->writer.write_ack(packet, fields, syndrome, ack.msn);
    if (ack.becn) mark_becn(packet);
  } else {
    writer_.write_ack(packet, fields, syndrome, ack.msn);
  }
  meta_of(packet).owner = kNoOwner;
  return packet;
}

// The queue whose turn it is; false if none has a packet any more: while a queue waited to repeat something, an ACK may
// have said that there is no need.
bool Host::next_turn(uint32_t& index) {
  drop_idle_turns(turns_);
  if (turns_.empty()) return false;
  index = turns_.pop();
  return true;
}

void Host::drop_idle_turns(GrowingRing<uint32_t>& turns) {
  while (!turns.empty() && !send_queues_[turns.front()].has_packet(window_packets_)) {
    send_queues_[turns.pop()].listed = false;
  }
}

Packet* Host::next_data(uint32_t index, PacketArena::Cache& packets, Time now) {
  SendQueue& queue = send_queues_[index];
  const bool was_idle = !queue.outstanding();
  const SendPacket next = queue.take(settings_.nic.mtu);
  Packet* packet = packets.take();
  const RoceFields fields{.destination = queue.peer,
                          .source_port = source_port(queue),
                          .opcode = next.opcode,
                          .dest_qp = queue.dest_qp,
                          .psn = static_cast<uint32_t>(next.psn),
                          .ack_request = next.last || (next.psn + 1) % settings_.nic.ack_every == 0};
  if (lanes_ != nullptr) {
    lanes_->writer.write_data(packet, fields, next.payload);
  } else {
    writer_.write_data(packet, fields, next.payload);
  }
  meta_of(packet).owner = owner_mark(next);
  if (pause_log_ != nullptr) note_turn(index, next.message, now);
  counters_.data_packets++;
  if (next.repeated) {
    counters_.retransmitted++;
    counters_.retransmitted_bytes += next.payload;
  }
  if (queue.sent_at != kNever) counters_.gaps.note(now - queue.sent_at);
  queue.sent_at = now;
  // After a pause the timer of what was acknowledged long ago may still be armed: its deadline is not this packet's.
  if (was_idle || !queue.timer_armed) restart_timer(index, now);
  return packet;
}

void Host::send(Packet* packet, Time now, const Window& window) {
  counters_.packets_sent++;
  transmit(packet, now, window);
}

void Host::transmit(Packet* packet, Time now, const Window& window) {
  apply_rate_changes(now);
  wire_free_at_ = now + settings_.rate.time_for(wire_bytes_of(packet));
  const DropReason lost = out_.send(packet, packet->pkt_len, now, wire_free_at_, window.parity);
  if (lost == DropReason::kNone) {
    window.note_sent(wire_free_at_ + settings_.link_delay);
    return;
  }
  drops_[static_cast<size_t>(lost)]++;
  note_loss(now);
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

void Host::apply_rate_changes(Time now) {
  while (next_rate_change_ < settings_.rate_changes.size() && settings_.rate_changes[next_rate_change_].at <= now) {
    settings_.rate = settings_.rate_changes[next_rate_change_++].rate;
  }
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
    case Timer::Kind::kPace:
      take_turn(timer.id, now);
      return;
    case Timer::Kind::kLevel:
      open_gate(timer.id, now);
      return;
    case Timer::Kind::kCreditPeriod:
      end_period(now);
      return;
    case Timer::Kind::kLinkUp:
      restart_link(now);
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
  list(timer.id, now);
}

}  // namespace heddle::lab
