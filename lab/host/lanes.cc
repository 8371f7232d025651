// A host at an InfiniBand port: the same queue pairs, and credits that decide who may send.
#include "lab/host/host.h"
#include "net/error.h"

namespace heddle::lab {

// --- receiving

// The host takes every packet at once, so that its buffer is free again when the packet is there.
void Host::arrive_by_lane(Packet* packet, Time now) {
  flowctl::LinkCredits& credits = lanes_->port.credits;
  if (dataplane::is_credit_packet(packet)) {
    lanes_->credit_packets_received++;
    flowctl::CreditMessage message;
    if (flowctl::parse_credit_packet(frame_of(packet), packet->data_len, credits.format(), message) &&
        credits.knows(message.vl)) {
      credits.heard(message);
      if (pause_log_ != nullptr) hear_origin(packet, message.vl);
    }
    return;
  }
  const unsigned vl = net::virtual_lane(lrh_of(packet)) % flowctl::LinkCredits::kMaxLanes;
  const uint32_t blocks = credits.blocks_of(packet->pkt_len);
  if (!credits.received(vl, blocks)) ++lanes_->port.violations;
  credits.released(vl, blocks);
  keep_period(now);
  if (!lanes_->port.may_receive(bth_in(packet).pkey)) {
    drops_[static_cast<size_t>(DropReason::kPartition)]++;
    return;
  }
  if (!lanes_->writer.is_ours(lrh_of(packet).destination)) {
    throw_failed("host {} received a packet for LID {}", settings_.id, uint16_t{lrh_of(packet).destination});
  }
  counters_.packets_received++;
  const uint8_t opcode = bth_in(packet).opcode;
  if (opcode == static_cast<uint8_t>(net::Opcode::kRcAck)) {
    receive_ack(packet, now);
  } else if (opcode == kInfinibandCnp) {
    notice_becn((bth_in(packet).dest_qp - send_queue_number(0)) / 2, now);
  } else {
    receive_data(packet, now);
  }
}

// --- the marks of congestion control (IBTA A10.3)

void Host::mark_becn(Packet* packet) {
  net::header_at<net::Bth>(frame_of(packet), sizeof(net::Lrh))->congestion |= net::kBthBecn;
  counters_.cnps_sent++;
}

// True: it was sent back by itself; else an ACK is to bring it.
bool Host::return_mark(uint32_t index) {
  if (!settings_.nic.ccti || settings_.nic.ccti->carrier != flowctl::BecnCarrier::kCnp) return false;
  lanes_->cnps[lanes_->writer.lane_to(receive_queues_[index].peer)].push(index);
  return true;
}

Packet* Host::next_cnp_of_lane(unsigned vl, PacketArena::Cache& packets) {
  const ReceiveQueue& queue = receive_queues_[lanes_->cnps[vl].pop()];
  Packet* packet = packets.take();
  lanes_->writer.write_cnp(packet,
                           {.destination = queue.peer, .source_port = queue.source_port, .dest_qp = queue.dest_qp});
  meta_of(packet).owner = kNoOwner;
  counters_.cnps_sent++;
  return packet;
}

void Host::notice_becn(uint32_t index, Time now) {
  counters_.cnps_received++;
  const unsigned level = lanes_->writer.level_to(send_queues_[index].peer);
  if (injection_.empty() || !settings_.nic.ccti->heeds(level)) return;
  injection_[gates_.empty() ? index : level].on_becn(now);
}

// --- sending

// What has credit now, and what waits for it; after everything that happens.
void Host::review_lanes(Time now) {
  flowctl::LinkCredits& credits = lanes_->port.credits;
  lanes_->ack_ready = lanes_->data_ready = 0;
  for (unsigned vl = 0; vl < credits.lanes(); ++vl) {
    const auto bit = static_cast<uint8_t>(1U << vl);
    GrowingRing<uint32_t>& turns = lanes_->turns[vl];
    if (!turns.empty()) drop_idle_turns(turns);
    if (!gates_.empty()) hold_back(turns, now);
    const bool cnps = !lanes_->cnps[vl].empty();
    const bool acks = cnps || !lanes_->acks[vl].empty();
    const bool data = !turns.empty();
    if (acks && credits.may_send(vl, credits.blocks_of(cnps ? kInfinibandCnpFrame : kInfinibandAckFrame))) {
      lanes_->ack_ready |= bit;
    }
    if (data && credits.may_send(vl, lanes_->longest)) {
      lanes_->data_ready |= bit;
    } else if (data) {
      const uint32_t payload = send_queues_[turns.front()].next_payload(settings_.nic.mtu);
      if (credits.may_send(vl, credits.blocks_of(infiniband_data_frame(payload)))) lanes_->data_ready |= bit;
    }
    const bool ready = ((lanes_->ack_ready | lanes_->data_ready) & bit) != 0;
    lanes_->port.set_stalled(vl, (acks || data) && !ready, now);
  }
  if (pause_log_ != nullptr) note_stalls(now);
}

// Arbitration picks the lane (IBTA 7.6.9), whatever is in it; within a lane notifications go before acknowledgements,
// and those before data.
void Host::depart_by_lane(const Window& window, Time now) {
  PacketArena::Cache& packets = *window.packets;
  flowctl::LinkCredits& credits = lanes_->port.credits;
  if (credits.due() != 0) {
    send_credits(window, now);
    return;
  }
  if (lanes_->ready() != 0) {
    const unsigned vl = lanes_->pick_lane();
    if (((lanes_->ack_ready >> vl) & 1U) != 0) {
      Packet* packet =
          lanes_->cnps[vl].empty() ? next_ack(lanes_->acks[vl].pop(), packets) : next_cnp_of_lane(vl, packets);
      send_in_lane(packet, vl, window, now);
    } else {
      const uint32_t index = lanes_->turns[vl].pop();
      Packet* packet = next_data(index, packets, now);
      const uint64_t wire_bytes = wire_bytes_of(packet);
      send_in_lane(packet, vl, window, now);
      requeue(index, wire_bytes, now);
    }
  }
  keep_period(now);
}

void Host::send_in_lane(Packet* packet, unsigned vl, const Window& window, Time now) {
  flowctl::LinkCredits& credits = lanes_->port.credits;
  credits.sent(vl, credits.blocks_of(packet->pkt_len));
  if (lanes_->port.arbitrated) lanes_->port.arbiter.sent(packet->pkt_len);
  send(packet, now, window);
}

void Host::send_credits(const Window& window, Time now) {
  flowctl::LinkCredits& credits = lanes_->port.credits;
  const uint32_t bytes = flowctl::credit_packet_bytes(credits.format());
  Packet* packet = window.packets->take();
  packet->data_off = 0;
  packet->ol_flags = 0;
  packet->data_len = static_cast<uint16_t>(bytes);
  packet->pkt_len = bytes;
  flowctl::write_credit_packet(frame_of(packet), credits.format(), credits.take());
  meta_of(packet).owner = PauseOrigin().mark();  // nothing stays in a host
  lanes_->credit_packets_sent++;
  transmit(packet, now, window);
}

// --- time

void Host::keep_period(Time now) {
  if (lanes_->period_kept || !lanes_->port.credits.is_restless()) return;
  lanes_->period_kept = true;
  set_timer(flowctl::period_end(now, lanes_->period), Timer::Kind::kCreditPeriod, 0);
}

void Host::end_period(Time now) {
  lanes_->period_kept = false;
  lanes_->port.credits.tick();
  keep_period(now);
}

void Host::restart_link(Time now) {
  lanes_->port.credits.restart();
  keep_period(now);
}

}  // namespace heddle::lab
