// What holds the packets of a switch back, and where that begins: pauses and lanes without credit, for the log.
#include <algorithm>

#include "lab/fabric/lab_switch.h"
#include "lab/host/roce.h"

namespace heddle::lab {

namespace {

// Flow-control packets have the lane in the same four bits, after FCTBS (net/infiniband.h).
unsigned lane_of(const Packet* credit_packet) {
  const bool wide = credit_packet->pkt_len == sizeof(net::WideFlowControlPacket);
  const size_t at = wide ? offsetof(net::WideFlowControlPacket, vl_fccl) : offsetof(net::FlowControlPacket, vl_fccl);
  return (frame_of(credit_packet)[at] >> 4U) % kTrafficClasses;
}

}  // namespace

void LabSwitch::start_log(bool keeps_all) {
  pause_log_ = std::make_unique<PauseLog>(ports_.size(), keeps_all);
  heard_.resize(ports_.size() * kTrafficClasses);
  if (lanes_ == nullptr) return;
  lane_count_ = lanes_->port(0).credits.lanes();
  waiting_.resize(ports_.size() * lane_count_ * ports_.size());
}

// --- packets that arrive

void LabSwitch::hear_origin(const Packet* packet) {
  const PacketMeta& meta = meta_of(packet);
  PauseOrigin* heard = heard_at(meta.in_port);
  if (lanes_ == nullptr) {
    if (meta.l3 == L3::kNone) std::fill_n(heard, kTrafficClasses, PauseOrigin(meta.owner));
    return;
  }
  if (!dataplane::is_credit_packet(packet)) return;
  const unsigned vl = lane_of(packet);
  heard[vl] = PauseOrigin(meta.owner);
  pause_log_->correct_origin(static_cast<PortIndex>(meta.in_port), vl, heard[vl]);
}

// --- packets that leave

void LabSwitch::note_departure(PortId port, Packet* packet, Time now) {
  PacketMeta& meta = meta_of(packet);
  if (lanes_ == nullptr) {
    if (meta.l3 == L3::kNone) {
      meta.owner = origin_named_by(packet).mark();
      return;
    }
  } else if (dataplane::is_credit_packet(packet)) {
    meta.owner = origin_behind(port, lane_of(packet)).mark();
    return;
  } else if (dataplane::is_management_packet(packet)) {
    return;  // it waits for nobody
  } else {
    uint32_t& bytes = waiting(meta.in_port, meta.arrival_lane, port);
    bytes -= std::min(bytes, packet->pkt_len);
    note_stalls(port, now);
  }
  if (meta.owner != kNoOwner) {
    pause_log_->note_wait(port, meta.traffic_class, message_of(meta.owner), meta.arrival, now);
  } else {
    pause_log_->note_left(port, meta.traffic_class, meta.arrival);
  }
}

void LabSwitch::note_pauses(PortId port, Time now) {
  if (lanes_ != nullptr) {
    note_stalls(port, now);
  } else {
    pause_log_->note(port, pipeline_.pauses(port).paused(), *heard_at(port), now);
  }
}

// The port's queue has been dropped.
void LabSwitch::note_flush(PortId port, Time now) {
  for (size_t at = port; at < waiting_.size(); at += ports_.size()) waiting_[at] = 0;
  note_pauses(port, now);
}

void LabSwitch::close_pauses(Time now) {
  if (pause_log_ == nullptr) return;
  for (PortId port = 0; port < ports_.size(); ++port) {
    const uint8_t paused = pause_log_->paused(port);
    pause_log_->note(port, 0, PauseOrigin(), now);
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (((paused >> tc) & 1U) == 0) continue;
      const dataplane::EgressQueue& queue = pipeline_.port(port).queue(tc);
      for (uint32_t i = 0; i < queue.packets(); ++i) {
        const PacketMeta& meta = meta_of(queue.peek(i));
        if (meta.owner != kNoOwner) pause_log_->note_wait(port, tc, message_of(meta.owner), meta.arrival, now);
      }
    }
  }
}

// --- where the congestion is

// That a pause frame of ours comes from.
PauseOrigin LabSwitch::origin_named_by(const Packet* pause_frame) const {
  flowctl::PfcRequest request;
  if (flowctl::parse_mac_control(frame_of(pause_frame), pause_frame->data_len, request) != flowctl::MacControl::kPfc) {
    return {};
  }
  unsigned tc = 0;
  while (tc < kTrafficClasses && request.quanta[tc] == 0) ++tc;
  if (tc == kTrafficClasses) return {};  // nothing is paused by it
  PortId longest = 0;
  for (PortId port = 1; port < ports_.size(); ++port) {
    if (pipeline_.port(port).queue(tc).bytes() > pipeline_.port(longest).queue(tc).bytes()) longest = port;
  }
  return origin_at(longest, tc);
}

// That fills the buffer behind a port's lane: where most of it waits.
PauseOrigin LabSwitch::origin_behind(PortId in, unsigned vl) const {
  const uint32_t* held = waiting_at(in, vl);
  const auto most = std::max_element(held, held + port_count());
  if (*most == 0) return {};
  const auto out = static_cast<PortId>(most - held);
  const dataplane::EgressScheduler& port = pipeline_.port(out);
  unsigned lane = 0;
  for (unsigned other = 1; other < lane_count_; ++other) {
    if (port.queue(other).bytes() > port.queue(lane).bytes()) lane = other;
  }
  return origin_at(out, lane);
}

// A queue's own, or what holds it back.
PauseOrigin LabSwitch::origin_at(PortId out, unsigned tc) const {
  const dataplane::EgressQueue& queue = pipeline_.port(out).queue(tc);
  if (queue.empty()) return {};
  if (!pause_log_->has_origin(out, tc)) return {id_, out};  // the packet at its head need not be looked at
  const PauseOrigin passed_on = pause_log_->origin_since(out, tc, meta_of(queue.front()).arrival);
  return passed_on.is_known() ? passed_on : PauseOrigin(id_, out);
}

}  // namespace heddle::lab
