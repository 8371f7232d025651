// The last of the pipeline's three groups of stages: what may leave a port, marked; and what is left behind there.
#include <bit>

#include "dataplane/pipeline.h"

namespace heddle::dataplane {

unsigned Pipeline::egress(PortId out, Packet** packets, unsigned room, Time now) {
  if (lanes_ != nullptr) [[unlikely]]
    return egress_lanes(out, packets, room, now);
  EgressScheduler& port = egress_[out];
  const unsigned controls = has_pfc_ && controls_[out].sender.is_due(now) ? send_control(out, packets, room, now) : 0;
  packets += controls;
  room -= controls;
  const uint64_t bytes_before = port.scheduled_bytes();
  unsigned n = 0;
  if (has_probes_) {
    n = schedule_with_probes(out, packets, room, now);
  } else if (careful_) {
    n = may_mark(out) ? schedule_and_mark(out, packets, room, now) : port.schedule(packets, room, now);
    settle_sent(packets, n, now);
  } else {
    n = port.schedule(packets, room, now);
  }
  if (n == 0) return controls;
  counters_.ports[out].tx_packets.add(n);
  counters_.ports[out].tx_bytes.add(port.scheduled_bytes() - bytes_before);
  return n + controls;
}

// Whether a queue is so long that what leaves it could be marked.
inline bool Pipeline::may_mark(PortId out) const {
  const EgressScheduler& port = egress_[out];
  const PortControl& control = controls_[out];
  for (unsigned left = port.backlog(); left != 0; left &= left - 1) {
    const auto tc = static_cast<unsigned>(std::countr_zero(left));
    if (port.queue(tc).bytes() > control.mark_above[tc]) return true;
  }
  return false;
}

unsigned Pipeline::schedule_and_mark(PortId out, Packet** packets, unsigned room, Time now) {
  const PortControl& control = controls_[out];
  return egress_[out].schedule(packets, room, now, [this, &control](Packet* packet, uint64_t left) {
    if (left > control.mark_above[meta_of(packet).traffic_class]) [[unlikely]]
      mark(packet, left);
  });
}

// The buffer's books on packets that have left.
void Pipeline::settle_sent(Packet* const* packets, unsigned count, Time now) {
  if (buffered_) buffer_.release(packets, count);
  if (buffer_.has_changed()) [[unlikely]]
    follow_buffer(now);
}

// ECN at dequeue, by the queue that is left behind: what a receiver hears of is the congestion of this moment, not of
// the time the packet came.
void Pipeline::mark(Packet* packet, uint64_t queued) {
  const PacketMeta& meta = meta_of(packet);
  uint8_t* ip = frame_of(packet) + meta.l3_offset;
  if (!flowctl::is_capable(flowctl::ecn_of(ip, meta.l3))) return;
  if (is_marked_by_lot(meta, queued)) flowctl::mark_ce(ip, meta.l3);
}

bool Pipeline::is_marked_by_lot(const PacketMeta& meta, uint64_t queued) {
  PortControl& control = controls_[meta.out_port];
  telemetry::FlowControlCounters& counters = counters_.flow_control[meta.out_port];
  counters.ecn_eligible[meta.traffic_class].add(1);
  if (!control.mark[meta.traffic_class].strikes(queued, control.random)) return false;
  counters.ecn_marked[meta.traffic_class].add(1);
  return true;
}

void Pipeline::count_unsent(PortId out, Packet* const* packets, unsigned count, DropReason reason) {
  for (unsigned i = 0; i < count; ++i) {
    if (has_pfc_ && is_control(packets[i])) {
      counters_.flow_control[out].tx_frames.subtract(1);
      drop(out, packets[i], reason);
      continue;
    }
    counters_.ports[out].tx_packets.subtract(1);
    counters_.ports[out].tx_bytes.subtract(packets[i]->pkt_len);
    drop(out, packets[i], reason);
  }
  flush_drops();
}

void Pipeline::flush(PortId out, DropReason reason, Time now) {
  controls_[out].pauses.clear(now);
  controls_[out].sender.forget();
  drop_queued(out, 0xff, reason);
  egress_[out].set_paused(0);
  if (lanes_ != nullptr) {
    flush_management(out, reason);
    for (unsigned vl = 0; vl < lanes_->port(out).credits.lanes(); ++vl) gate(out, vl, now);
    return;
  }
  if (buffer_.has_changed()) follow_buffer(now);
  find_attention(now);
}

// Drops what the queues of those classes hold, and gives their bytes back; leaves the others paused.
void Pipeline::drop_queued(PortId out, uint8_t classes, DropReason reason) {
  EgressScheduler& port = egress_[out];
  const Rate rate = port.rate();
  port.set_rate(Rate::unlimited());
  port.set_paused(static_cast<uint8_t>(~classes));
  Packet* packets[kBurst];
  while (const unsigned n = port.schedule(packets, kBurst, 0)) {
    for (unsigned i = 0; i < n; ++i) {
      const PacketMeta& meta = meta_of(packets[i]);
      if (buffered_) buffer_.release(meta.in_port, meta.traffic_class, packets[i]->pkt_len);
      if (reason == DropReason::kPfcStorm) note_drop_in_storm(packets[i]);
      if (lanes_ != nullptr) release_lane(packets[i]);
      drop(out, packets[i], reason);
    }
    flush_drops();
  }
  port.set_rate(rate);
}

}  // namespace heddle::dataplane
