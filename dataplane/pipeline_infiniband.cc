// The pipeline of a switch whose links are InfiniBand: the same stages with a local route header in the place of
// Ethernet and IP, and credits in the place of buffer thresholds and pauses.
#include "dataplane/pipeline.h"

namespace heddle::dataplane {

namespace {

// Not routes that any table has: of flow-control packets, and of those of VL15.
constexpr uint32_t kOfThisLink = ~0U;
constexpr uint32_t kManagement = ~1U;

// What tells flows apart where a choice goes by flow: both ends and the queue pair.
uint32_t flow_hash_of(const net::Lrh& lrh, const net::Bth& bth) {
  const uint64_t ends = uint64_t{lrh.source} << 16U | lrh.destination;
  return static_cast<uint32_t>(mix64(ends << 24U | bth.dest_qp));
}

}  // namespace

// --- arrivals

unsigned Pipeline::ingress_lanes(PortId in, Packet** packets, unsigned count, Time now) {
  uint64_t bytes = 0;
  unsigned kept = 0;
  unsigned controls = 0;
  for (unsigned i = 0; i < count; ++i) {
    Packet* packet = packets[i];
    PacketMeta& meta = meta_of(packet);
    static_cast<HeaderFacts&>(meta) = {};
    meta.arrival = now;
    meta.in_port = in;
    if (is_credit_packet(packet)) {
      meta.route = kOfThisLink;
      ++controls;
    } else {
      bytes += packet->pkt_len;
      if (packet->data_len < sizeof(net::Lrh) + sizeof(net::Bth)) {
        drop(in, packet, DropReason::kTooShort);
        continue;
      }
      const auto* lrh = net::header_at<net::Lrh>(frame_of(packet), 0);
      if (net::virtual_lane(*lrh) == net::kManagementLane) [[unlikely]] {
        meta.route = kManagement;
        bytes -= packet->pkt_len;
        ++controls;
        packets[kept++] = packet;
        continue;
      }
      meta.route = lrh->destination;
      meta.flow_hash = flow_hash_of(*lrh, *net::header_at<net::Bth>(frame_of(packet), sizeof(net::Lrh)));
    }
    packets[kept++] = packet;
  }
  counters_.ports[in].rx_packets.add(count - controls);
  counters_.ports[in].rx_bytes.add(bytes);
  flush_drops();
  return kept;
}

void Pipeline::forward_lanes(Packet* const* packets, unsigned count, Time now) {
  for (unsigned i = 0; i < count; ++i) {
    Packet* packet = packets[i];
    if (meta_of(packet).route >= kManagement) {
      if (meta_of(packet).route == kOfThisLink) {
        receive_credits(packet, now);
      } else {
        receive_management(packet);
      }
      continue;
    }
    take_into_lane(packet);
    const DropReason refused = send_to_lane(packet, now);
    if (refused == DropReason::kNone) [[likely]]
      continue;
    release_lane(packet);
    drop(meta_of(packet).in_port, packet, refused);
  }
  keep_period(now);
  flush_drops();
}

// Into the buffer of the lane it came by. There is room, or credits are broken.
void Pipeline::take_into_lane(Packet* packet) {
  PacketMeta& meta = meta_of(packet);
  const unsigned vl = net::virtual_lane(*net::header_at<net::Lrh>(frame_of(packet), 0)) % kTrafficClasses;
  meta.arrival_lane = static_cast<uint8_t>(vl);
  Lanes::Port& port = lanes_->port(meta.in_port);
  const uint8_t due = port.credits.due();
  if (!port.credits.received(vl, port.credits.blocks_of(packet->pkt_len))) [[unlikely]]
    ++port.violations;
  if (port.credits.due() != due) awaken(meta.in_port);
}

DropReason Pipeline::send_to_lane(Packet* packet, Time now) {
  PacketMeta& meta = meta_of(packet);
  const lb::NextHopGroup* group = tables_->group_for(meta.route);
  if (group == nullptr) return DropReason::kNoRoute;
  const unsigned sl = net::service_level(*net::header_at<net::Lrh>(frame_of(packet), 0));
  const unsigned pick = choose_member(*group, packet, sl, now);
  if (pick == lb::PathSelector::kNone) return DropReason::kNoLiveNextHop;
  const lb::NextHop& next = group->members[pick];
  const PortId out = next.port;
  const uint8_t vl = lanes_->lane(meta.in_port, out, sl);
  if (!lanes_->port(out).credits.knows(vl)) return DropReason::kNoLane;
  const uint16_t key = net::header_at<net::Bth>(frame_of(packet), sizeof(net::Lrh))->pkey;
  if (!lanes_->port(meta.in_port).may_send(key) || !lanes_->port(out).may_receive(key)) [[unlikely]]
    return DropReason::kPartition;
  meta.out_port = out;
  meta.traffic_class = vl;
  net::header_at<net::Lrh>(frame_of(packet), 0)->vl_version = static_cast<uint8_t>(vl << 4U);  // while it is at hand
  counters_.paths[next.counter].add(packet->pkt_len);
  const bool first = egress_[out].queue(vl).empty();
  if (!egress_[out].enqueue(packet)) return DropReason::kQueueFull;
  if (first) gate(out, vl, now);
  return DropReason::kNone;
}

// As the group's scheduler says where the service level is routed adaptively; or else what the forwarding table says,
// and while that is dead, for each flow another member, if the group has one.
unsigned Pipeline::choose_member(const lb::NextHopGroup& group, const Packet* packet, unsigned sl, Time now) {
  const PacketMeta& meta = meta_of(packet);
  const Reach& reach = lanes_->reach();
  const LanePorts ports{*this, now, reach.has_losses() ? &reach : nullptr, meta.route};
  if (lanes_->is_adaptive(sl)) {
    lb::GroupState& state = group_states_[tables_->index_of(&group)].of(packet->pkt_len);
    return selector_.select(group, state, meta.flow_hash, now, ports);
  }
  if (ports.is_up(group.members[group.table_member].port)) [[likely]]
    return group.table_member;
  if (!lanes_->fails_over()) return lb::PathSelector::kNone;
  const unsigned pick = lb::PathSelector::select_by_hash(group, meta.flow_hash, ports);
  if (pick != lb::PathSelector::kNone) ++lanes_->port(meta.in_port).failovers;
  return pick;
}

// What waits here, and what the peer is short of: a lane whose credit runs out is congested further on.
Duration Pipeline::LanePorts::drain_time(PortId port) const {
  const flowctl::LinkCredits& credits = pipeline.lanes_->port(port).credits;
  uint64_t short_of = 0;
  for (unsigned vl = 0; vl < credits.lanes(); ++vl) short_of += credits.shortfall(vl);
  const EgressScheduler& out = pipeline.egress_[port];
  const Duration here = out.drain_time(now);
  return short_of == 0 ? here : here + out.rate().time_for(short_of * credits.format().block);
}

// --- credits

void Pipeline::release_lane(const Packet* packet) {
  const PacketMeta& meta = meta_of(packet);
  flowctl::LinkCredits& credits = lanes_->port(meta.in_port).credits;
  const uint8_t due = credits.due();
  credits.released(meta.arrival_lane, credits.blocks_of(packet->pkt_len));
  if (credits.due() != due) awaken(meta.in_port);
}

// Opens or closes a lane for its next packet.
void Pipeline::gate(PortId out, unsigned vl, Time now) {
  Lanes::Port& port = lanes_->port(out);
  const EgressQueue& queue = egress_[out].queue(vl);
  const bool stalled = !queue.empty() && !port.credits.may_send(vl, port.credits.blocks_of(queue.front_bytes()));
  port.set_stalled(vl, stalled, now);
  egress_[out].set_paused(port.stalled);
}

void Pipeline::receive_credits(Packet* packet, Time now) {
  const PortId in = meta_of(packet).in_port;
  Lanes::Port& port = lanes_->port(in);
  counters_.flow_control[in].rx_frames.add(1);
  flowctl::CreditMessage message;
  if (flowctl::parse_credit_packet(frame_of(packet), packet->data_len, port.credits.format(), message) &&
      port.credits.knows(message.vl)) {
    const unsigned before = unsigned{port.stalled} << 8U | port.credits.due();
    port.credits.heard(message);
    gate(in, message.vl, now);
    if ((unsigned{port.stalled} << 8U | port.credits.due()) != before) awaken(in);
  } else {
    counters_.flow_control[in].rx_malformed.add(1);
  }
  consume(packet);
}

// Management before flow-control packets, those before all data, then what has credit (IBTA 7.6.9, 7.9.4.1).
unsigned Pipeline::egress_lanes(PortId out, Packet** packets, unsigned room, Time now) {
  Lanes::Port& lanes = lanes_->port(out);
  unsigned n = 0;
  if (!states_.is_up(out)) [[unlikely]]  // nor are credits told to nobody
    return 0;
  for (; n < room; ++n) {
    if (!lanes.management.empty()) [[unlikely]] {
      packets[n] = send_management(out, now);
      if (packets[n] == nullptr) break;
      continue;
    }
    if (lanes.credits.due() != 0 && send_credits(out, packets + n, now)) continue;
    if (!schedule_lane(out, packets + n, now)) break;
    Packet* packet = packets[n];
    const PacketMeta& meta = meta_of(packet);
    lanes.credits.sent(meta.traffic_class, lanes.credits.blocks_of(packet->pkt_len));
    release_lane(packet);
    lanes.starved &= static_cast<uint8_t>(~(1U << meta.traffic_class));
    gate(out, meta.traffic_class, now);
    counters_.ports[out].tx_packets.add(1);
    counters_.ports[out].tx_bytes.add(packet->pkt_len);
  }
  if (n != 0) keep_period(now);
  return n;
}

// One packet: of the lane that arbitration picks; of lanes in turn where it names none.
bool Pipeline::schedule_lane(PortId out, Packet** packet, Time now) {
  EgressScheduler& port = egress_[out];
  Lanes::Port& lanes = lanes_->port(out);
  const unsigned vl = lanes.arbitrated && port.may_send_at(now)
                          ? lanes.arbiter.pick(static_cast<uint16_t>(port.backlog() & ~port.paused()))
                          : flowctl::VlArbiter::kNone;
  const auto each = [this, out](Packet* leaving, uint64_t left) {
    if (careful_ && left > controls_[out].mark_above[meta_of(leaving).traffic_class]) [[unlikely]]
      mark_fecn(leaving, left);
  };
  if (vl == flowctl::VlArbiter::kNone) return port.schedule(packet, 1, now, each) != 0;
  const uint8_t paused = port.paused();
  port.set_paused(static_cast<uint8_t>(~(1U << vl)));
  const bool sent = port.schedule(packet, 1, now, each) != 0;
  port.set_paused(paused);
  if (sent) lanes.arbiter.sent((*packet)->pkt_len);
  return sent;
}

// As ECN at dequeue. A port whose lane has waited for credit while the packet was in its queue is not where the
// congestion begins (IBTA A10.2.1.1: a victim, not a root).
void Pipeline::mark_fecn(Packet* packet, uint64_t queued) {
  const PacketMeta& meta = meta_of(packet);
  const Lanes::Port& port = lanes_->port(meta.out_port);
  if (packet->pkt_len < lanes_->fecn_packet_size()) return;
  const bool is_victim =
      ((port.starved >> meta.traffic_class) & 1U) != 0 || before(meta.arrival, port.since[meta.traffic_class]);
  if (is_victim && !port.marks_victims) return;
  if (is_marked_by_lot(meta, queued)) {
    flowctl::mark_fecn(*net::header_at<net::Bth>(frame_of(packet), sizeof(net::Lrh)));
  }
}

bool Pipeline::send_credits(PortId out, Packet** packets, Time now) {
  if (source_ == nullptr || !egress_[out].may_send_at(now)) return false;
  Packet* packet = source_->make();
  if (packet == nullptr) return false;  // next time
  flowctl::LinkCredits& credits = lanes_->port(out).credits;
  const uint32_t bytes = flowctl::credit_packet_bytes(credits.format());
  flowctl::write_credit_packet(frame_of(packet), credits.format(), credits.take());
  packet->data_len = static_cast<uint16_t>(bytes);
  packet->pkt_len = bytes;
  PacketMeta& meta = meta_of(packet);
  static_cast<HeaderFacts&>(meta) = {};
  meta.out_port = out;
  egress_[out].take_wire(bytes, now);
  counters_.flow_control[out].tx_frames.add(1);
  *packets = packet;
  return true;
}

void Pipeline::restart_link(PortId id, Time now) {
  if (lanes_ == nullptr) return;
  lanes_->port(id).credits.restart();
  awaken(id);
  if (Reach& reach = lanes_->reach(); reach.notifies() && reach.is_peer(id)) {
    reach.forget(id);
    for (const net::ReachNotice& notice : reach.all_losses(*tables_)) tell(id, notice);
    flush_drops();
  }
  keep_period(now);
}

// --- time

void Pipeline::start_period(Time now) {
  attention_ = true;
  attention_at_ = flowctl::period_end(now, lanes_->period());
}

void Pipeline::attend_lanes(Time now) {
  attention_ = false;
  for (PortId id = 0; id < lanes_->size(); ++id) {
    flowctl::LinkCredits& credits = lanes_->port(id).credits;
    if (!credits.is_restless()) continue;
    if (credits.tick()) attention_ = true;
    awaken(id);
  }
  if (attention_) attention_at_ = now + lanes_->period();
}

}  // namespace heddle::dataplane
