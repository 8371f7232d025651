// The second of the pipeline's three groups of stages: which path a packet takes, and whether its queue may have it.
#include <algorithm>

#include <rte_prefetch.h>

#include "dataplane/pipeline.h"
#include "dataplane/rewrite.h"
#include "net/prefetch.h"

namespace heddle::dataplane {

void Pipeline::forward(Packet* const* packets, unsigned count, Time now) {
  if (flowlets_in_use_ || quality_in_use_) prepare_choices(packets, count, now);
  if (lanes_ != nullptr) [[unlikely]]
    return forward_lanes(packets, count, now);
  switch (admission_of(packets, count)) {
    case Admission::kPlain:
      return forward_as<Admission::kPlain>(packets, count, now);
    case Admission::kFits:
      return forward_as<Admission::kFits>(packets, count, now);
    case Admission::kCareful:
      return forward_as<Admission::kCareful>(packets, count, now);
  }
}

// A burst of one lossless class from one port is the common one, and nearly always there is room for all of it: what
// the buffer would have said packet by packet, it then says once. Lossless classes ask nothing of their egress queue.
inline Pipeline::Admission Pipeline::admission_of(Packet* const* packets, unsigned count) {
  if (!careful_ && !has_pfc_) [[likely]]
    return Admission::kPlain;
  if (!buffered_ || count == 0 || has_probes_ || resequencer_ != nullptr || stormed_ != 0) return Admission::kCareful;
  const uint64_t facts = group_facts(meta_of(packets[0]));
  uint64_t others = 0;
  uint64_t charge = 0;
  for (unsigned i = 0; i < count; ++i) {
    others |= group_facts(meta_of(packets[i])) ^ facts;
    charge += buffer_.charge_of(packets[i]->pkt_len);
  }
  const PacketMeta& first = meta_of(packets[0]);
  const uint64_t growth = count * uint64_t{kShortestFrame};  // a tag that comes, or zeros up to the shortest frame
  if (others != 0 || first.l3 == L3::kNone || ((has_wred_drops_ >> first.traffic_class) & 1U) != 0 ||
      !buffer_.fits(first.in_port, first.traffic_class, charge + growth)) {
    return Admission::kCareful;
  }
  burst_charge_ = charge;
  return Admission::kFits;
}

// Once it is known what of the burst was admitted.
inline void Pipeline::charge_burst(const Packet* first) {
  const PacketMeta& meta = meta_of(first);
  buffer_.charge_fitting(meta.in_port, meta.traffic_class, burst_charge_);
}

// Run by run of packets that have one route; a burst is often one. Without a buffer, early drops or PFC, nothing of
// them costs an instruction.
template <Pipeline::Admission kAdmission>
void Pipeline::forward_as(Packet* const* packets, unsigned count, Time now) {
  for (unsigned i = 0; i < count;) {
    const Towards to = towards(meta_of(packets[i]).route);
    if (to.state != nullptr && to.group.is_hashed()) [[likely]] {
      i += forward_run<kAdmission, true>(packets + i, count - i, to, now);
    } else {
      i += forward_run<kAdmission, false>(packets + i, count - i, to, now);
    }
  }
  if constexpr (kAdmission == Admission::kFits) charge_burst(packets[0]);
  if (crossing_count_ != 0) send_across();
  if (kAdmission == Admission::kCareful && buffer_.has_changed()) [[unlikely]]
    follow_buffer(now);
  flush_drops();
}

// The packets from the first on that have its route; how many they are. `kHashed`: their group goes by the hash alone.
template <Pipeline::Admission kAdmission, bool kHashed>
inline unsigned Pipeline::forward_run(Packet* const* packets, unsigned count, const Towards& to, Time now) {
  const lb::GroupView group = to.group;
  const uint32_t route = meta_of(packets[0]).route;
  // A loop for each way to choose, so that none pays for another.
  const auto run = [&](const auto& choose) {
    unsigned i = 0;
    do {
      Packet* packet = packets[i];
      if (kAdmission == Admission::kCareful && has_probes_ && may_be_probe(packet)) [[unlikely]] {
        if (meet_probe(packet, to, now)) continue;
      }
      const lb::NextHop* next = choose(packet);
      if (next == nullptr) [[unlikely]] {
        keep_here<kAdmission>(packet, to, now);
      } else {
        const uint32_t before = packet->pkt_len;
        const PortId out = take_path(packet, *next);
        if (kAdmission == Admission::kFits && packet->pkt_len != before) [[unlikely]]
          burst_charge_ += buffer_.charge_of(packet->pkt_len) - uint64_t{buffer_.charge_of(before)};
        admit_as<kAdmission>(packet, out, now);
      }
    } while (++i < count && meta_of(packets[i]).route == route);
    return i;
  };
  if constexpr (kHashed) {
    return run([&](const Packet* packet) { return hashed_path(group, packet, now); });
  }
  if (quality_in_use_ && read_loads(packets, count, group, now)) {
    return run([&](const Packet* packet) -> const lb::NextHop* {
      const unsigned pick = selector_.select_by_loads(group, packet->pkt_len, Ports{*this, now});
      return pick == lb::PathSelector::kNone ? nullptr : group.members + pick;
    });
  }
  return run([&](const Packet* packet) { return choose_path(to, packet, now); });
}

inline PortId Pipeline::take_path(Packet* packet, const lb::NextHop& next) {
  const PortId out = next.port;
  telemetry::PathCounters& counters = counters_.paths[next.counter];
  meta_of(packet).out_port = out;
  rewrite(packet, next.rewrite);
  counters.add(packet->pkt_len);
  return out;
}

template <Pipeline::Admission kAdmission>
inline void Pipeline::admit_as(Packet* packet, PortId out, Time now) {
  if constexpr (kAdmission == Admission::kCareful) {
    if (resequence_[out] != 0 && meta_of(packet).kind == PacketKind::kRoce) return resequence(packet, false, now);
    const DropReason refused = admit_carefully(packet, out);
    if (refused != DropReason::kNone) [[unlikely]]
      drop(out, packet, refused);
  } else {
    const DropReason refused = enqueue(packet, out);
    if (refused == DropReason::kNone) [[likely]]
      return;
    if constexpr (kAdmission == Admission::kFits) {
      burst_charge_ -= buffer_.charge_of(packet->pkt_len);
      count_refusal(packet, refused);
    }
    drop(out, packet, refused);
  }
}

// A packet that has no path: an answer of ours, which goes back the way it came, one for us, or one to drop.
template <Pipeline::Admission kAdmission>
void Pipeline::keep_here(Packet* packet, const Towards& to, Time now) {
  const PacketMeta& meta = meta_of(packet);
  if (meta.route == kAnswerRoute) return admit_as<kAdmission>(packet, meta.out_port, now);
  if (kAdmission == Admission::kCareful && meta.l3 == L3::kNone) {
    receive_control(packet, now);
    return;
  }
  if constexpr (kAdmission == Admission::kFits) burst_charge_ -= buffer_.charge_of(packet->pkt_len);
  drop(meta.in_port, packet, to.state == nullptr ? DropReason::kNoRoute : DropReason::kNoLiveNextHop);
}

bool Pipeline::choose(Packet* packet, Time now) {
  const lb::NextHopGroup* group = tables_->group_for(meta_of(packet).route);
  const lb::NextHop* next = nullptr;
  if (group != nullptr && group->size() == 1) {  // most ways down
    if (port_is_up_[group->members[0].port].load(std::memory_order_relaxed) != 0) next = group->members.data();
  } else if (group != nullptr && lb::GroupView(*group).is_hashed()) [[likely]] {
    next = hashed_path(*group, packet, now);
  } else {
    next = choose_path(towards(meta_of(packet).route), packet, now);
  }
  if (next != nullptr) [[likely]] {
    take_path(packet, *next);
    return true;
  }
  keep_here<Admission::kPlain>(packet, towards(meta_of(packet).route), now);
  flush_drops();
  return false;
}

bool Pipeline::admit(Packet* packet, Time /*now*/) {
  const PacketMeta& meta = meta_of(packet);
  const DropReason refused = enqueue(packet, meta.out_port);
  if (refused == DropReason::kNone) [[likely]]
    return true;
  drop(meta.out_port, packet, refused);
  flush_drops();
  return false;
}

void Pipeline::prefetch_members(const Packet* packet) const {
  const lb::NextHopGroup* group = tables_->group_for(meta_of(packet).route);
  if (group == nullptr) return;
  rte_prefetch0(group->members.data() + lb::PathSelector::by_hash(*group, meta_of(packet).flow_hash));
  if (group->scheduler.choice != lb::Choice::kHash)
    rte_prefetch0(&group_states_[tables_->index_of(group)].of(packet->pkt_len));
}

void Pipeline::prefetch_port_tables() const {
  prefetch_all(port_is_up_, port_count());
  prefetch_all(plain_roce_.data(), port_count());
  prefetch_all(max_frame_.data(), port_count());
  prefetch_all(counters_.paths.data(), counters_.paths.size());
  tables_->group_of_route.prefetch();
}

// Of a group that goes by the hash alone.
inline const lb::NextHop* Pipeline::hashed_path(const lb::GroupView& group, const Packet* packet, Time now) const {
  const unsigned pick = lb::PathSelector::select_by_hash(group, meta_of(packet).flow_hash, Ports{*this, now});
  return pick == lb::PathSelector::kNone ? nullptr : group.members + pick;
}

inline const lb::NextHop* Pipeline::choose_path(const Towards& to, const Packet* packet, Time now) {
  if (to.state == nullptr) [[unlikely]]
    return nullptr;
  const uint32_t flow_hash = meta_of(packet).flow_hash;
  lb::GroupState& state = to.state->of(packet->pkt_len);
  const Ports ports{*this, now};
  unsigned pick;
  if (to.group.overrides == nullptr) [[likely]] {
    pick = selector_.select(to.group, state, flow_hash, now, ports);
  } else {
    lb::GroupView group = to.group;
    group.scheduler = scheduler_for(packet, group);
    pick = selector_.select(group, state, flow_hash, now, ports);
  }
  return pick == lb::PathSelector::kNone ? nullptr : to.group.members + pick;
}

// Whether the members' loads, by which the packets from the first on choose, are read for all of them at once: worth it
// where the run is not much shorter than the group.
bool Pipeline::read_loads(Packet* const* packets, unsigned count, const lb::GroupView& group, Time now) {
  const unsigned enough = std::max(2U, group.size / 2);
  if (count < enough || !selector_.goes_by_loads(group)) return false;
  const uint32_t route = meta_of(packets[0]).route;
  for (unsigned i = 1; i < enough; ++i) {
    if (meta_of(packets[i]).route != route) return false;
  }
  selector_.read_loads(group, Ports{*this, now});
  return true;
}

// Of a group whose scheduler is not the same for all packets.
lb::Scheduler Pipeline::scheduler_for(const Packet* packet, const lb::GroupView& group) {
  const PacketMeta& meta = meta_of(packet);
  if (group.overrides->of_control && meta.kind == PacketKind::kRoce) {
    const uint8_t opcode = frame_of(packet)[meta.l4_offset + sizeof(net::UdpHeader)];
    if (net::is_roce_control(opcode)) return *group.overrides->of_control;
  }
  return group.overrides->of_class[meta.traffic_class].value_or(group.scheduler);
}

// What choices by flowlet and by quality need before a burst of them.
void Pipeline::prepare_choices(Packet* const* packets, unsigned count, Time now) {
  if (flowlets_in_use_) {
    for (unsigned i = 0; i < count; ++i) selector_.prefetch(meta_of(packets[i]).flow_hash);
  }
  if (quality_in_use_ && selector_.quality().is_due(now)) {
    selector_.quality().sample(
        now,
        [this](PortId port) {  // another lcore's as it last told
          return max_frame_[port] == 0 ? states_.scheduled_bytes(port) : egress_[port].scheduled_bytes();
        },
        [this](PortId port) { return egress_[port].rate(); });
  }
}

// A port of ours as it is at this moment; another lcore's as that lcore last published it.
inline Duration Pipeline::Ports::drain_time(PortId port) const {
  if (pipeline.max_frame_[port] == 0) [[unlikely]]
    return pipeline.states_.drain_time(port);
  return pipeline.egress_[port].drain_time(now);
}

inline DropReason Pipeline::enqueue(Packet* packet, PortId out) {
  if (packet->pkt_len > max_frame_[out]) [[unlikely]]
    return hand_over(packet, out);
  return egress_[out].enqueue(packet) ? DropReason::kNone : DropReason::kQueueFull;
}

// The port is another lcore's, or the frame is too long for it.
DropReason Pipeline::hand_over(Packet* packet, PortId out) {
  if (packet->pkt_len > max_frame_there_[out]) return DropReason::kFrameTooLong;
  crossing_[crossing_count_++] = packet;
  return DropReason::kNone;
}

// Once per burst: every write to a ring's ends takes a cache line from the lcore that reads them.
void Pipeline::send_across() {
  const unsigned refused = handover_->offer(crossing_.data(), crossing_count_);
  crossing_count_ = 0;
  for (unsigned i = 0; i < refused; ++i) {
    Packet* packet = crossing_[i];
    const PacketMeta& meta = meta_of(packet);
    if (buffered_) buffer_.release(meta.in_port, meta.traffic_class, packet->pkt_len);
    drop(meta.out_port, packet, count_refusal(packet, DropReason::kHandoverFull));
  }
}

// Whoever may refuse the packet is asked before it is charged: what is not let in leaves no trace in the buffer.
inline DropReason Pipeline::admit_carefully(Packet* packet, PortId out) {
  const PacketMeta& meta = meta_of(packet);
  const uint32_t frame_bytes = packet->pkt_len;
  const bool ours = frame_bytes <= max_frame_[out];
  DropReason reason = DropReason::kNone;
  if (ours) {
    reason = refusal_of_queue(packet, out, frame_bytes);
  } else if (frame_bytes > max_frame_there_[out]) {
    reason = DropReason::kFrameTooLong;
  }
  if (reason == DropReason::kNone && buffered_) {
    reason = buffer_.charge(meta.in_port, meta.traffic_class, frame_bytes);
  }
  if (reason != DropReason::kNone) [[unlikely]]
    return count_refusal(packet, reason);
  if (ours) {
    egress_[out].enqueue(packet);
  } else {
    hand_over(packet, out);
  }
  return DropReason::kNone;
}

// What an egress queue says to a packet before the buffer is asked. Lossless classes are limited where they come in;
// here only the number of their packets is.
inline DropReason Pipeline::refusal_of_queue(const Packet* packet, PortId out, uint32_t frame_bytes) {
  const PacketMeta& meta = meta_of(packet);
  const unsigned tc = meta.traffic_class;
  const EgressQueue& queue = egress_[out].queue(tc);
  if (((drops_early_[out] >> tc) & 1U) != 0) [[unlikely]] {
    const DropReason reason = early_refusal(out, tc, queue.bytes());
    if (reason != DropReason::kNone) return reason;
  }
  if (buffered_ && !buffer_.is_lossless(meta.in_port, tc) && !buffer_.admits(out, tc, queue.bytes(), frame_bytes))
    return DropReason::kBufferFull;
  return queue.has_room(frame_bytes) ? DropReason::kNone : DropReason::kQueueFull;
}

DropReason Pipeline::count_refusal(const Packet* packet, DropReason reason) {
  const PacketMeta& meta = meta_of(packet);
  if (reason == DropReason::kPfcStorm) {
    note_drop_in_storm(packet);
    return reason;
  }
  const bool lossless = buffered_ && buffer_.is_lossless(meta.in_port, meta.traffic_class);
  if (lossless && reason != DropReason::kFrameTooLong) {
    counters_.flow_control[meta.in_port].lossless_violations[meta.traffic_class].add(1);
  }
  return reason;
}

void Pipeline::accept_handover(Packet* packet, Time now) {
  const PacketMeta& meta = meta_of(packet);
  const PortId out = meta.out_port;
  if (resequence_[out] != 0 && meta.kind == PacketKind::kRoce) {
    resequence(packet, true, now);
    if (buffer_.has_changed()) follow_buffer(now);
  } else {
    accept_in_turn(packet);
  }
  flush_drops();
}

void Pipeline::accept_in_turn(Packet* packet) {
  const PacketMeta& meta = meta_of(packet);
  const PortId out = meta.out_port;
  DropReason reason = careful_ ? refusal_of_queue(packet, out, packet->pkt_len) : DropReason::kNone;
  if (reason == DropReason::kNone) {
    if (egress_[out].enqueue(packet)) [[likely]]
      return;
    reason = DropReason::kQueueFull;
  }
  if (buffered_) buffer_.release(meta.in_port, meta.traffic_class, packet->pkt_len);
  drop(out, packet, count_refusal(packet, reason));
}

// On its way to a host: queued when its turn has come, and with it those that waited for it, whoever brought them here.
// `is_charged`: the buffer has let it in already, where it arrived.
void Pipeline::resequence(Packet* packet, bool is_charged, Time now) {
  meta_of(packet).is_charged = is_charged;
  resequencer_->receive(packet, now, [this](Packet* next) { send_on_in_turn(next); });
  find_attention_to_held();
}

void Pipeline::send_on_in_turn(Packet* packet) {
  if (!meta_of(packet).is_charged) return admit_in_turn(packet);
  awaken(meta_of(packet).out_port);
  accept_in_turn(packet);
}

void Pipeline::admit_in_turn(Packet* packet) {
  const PacketMeta& meta = meta_of(packet);
  const PortId out = meta.out_port;
  awaken(out);
  const DropReason refused = admit_carefully(packet, out);
  if (refused != DropReason::kNone) [[unlikely]]
    drop(out, packet, refused);
}

void Pipeline::drop_held(DropReason reason) {
  if (resequencer_ == nullptr) return;
  resequencer_->flush([&](Packet* packet) {
    const PacketMeta& meta = meta_of(packet);
    if (meta.is_charged && buffered_) buffer_.release(meta.in_port, meta.traffic_class, packet->pkt_len);
    drop(meta.out_port, packet, reason);
  });
  flush_drops();
}

}  // namespace heddle::dataplane
