#include "dataplane/pipeline.h"

#include <rte_prefetch.h>

#include "dataplane/parse.h"
#include "dataplane/plain_roce.h"
#include "dataplane/rewrite.h"
#include "dataplane/route.h"

namespace heddle::dataplane {

Pipeline::Pipeline(const Settings& settings, const PortStates& states, PacketSink& dropped, Handover* handover)
    : states_(states),
      port_is_up_(states.flags()),
      dropped_(dropped),
      handover_(handover),
      hasher_(settings.hash),
      selector_({.seed = settings.seed,
                 .ars = settings.ars,
                 .ports = settings.ports.size(),
                 .flowlets = settings.flowlets,
                 .resident = settings.flowlets_resident}),
      egress_(settings.ports.size()),
      buffered_(settings.buffer.is_on()),
      careful_(buffered_),
      controls_(settings.ports.size()),
      drops_early_(settings.ports.size()),
      is_awakened_(settings.ports.size()) {
  for (size_t i = 0; i < settings.ports.size(); ++i) {
    const PortSettings& port = settings.ports[i];
    ingress_.push_back(port.ingress);
    plain_roce_.emplace_back(port.ingress, plain_facts_of(port.ingress));
    const bool mine = settings.mine.empty() || settings.mine[i];
    max_frame_.push_back(mine ? port.max_frame : 0);
    max_frame_there_.push_back(port.max_frame);
    egress_[i].configure(port.egress);
    configure_control(static_cast<PortId>(i), port);
    controls_[i].random = Random(settings.seed, i + 1);
    resequence_.push_back(mine && port.resequence && settings.resequencer.enabled ? 1 : 0);
  }
  if (std::find(resequence_.begin(), resequence_.end(), 1) != resequence_.end()) {
    resequencer_ = std::make_unique<lb::Resequencer>(settings.resequencer);
    careful_ = true;
  }
  if (buffered_) buffer_.configure(settings.buffer, settings.mine, settings.ledgers, settings.self);
  configure_watchdog();
  if (settings.lanes) lanes_ = std::make_unique<Lanes>(*settings.lanes);
  awakened_.reserve(settings.ports.size());
  counters_.flow_control.resize(settings.ports.size());
  counters_.ports.resize(settings.ports.size());
  counters_.paths.resize(settings.paths);
}

const PlainRoce::Facts* Pipeline::plain_facts_of(const IngressPort& port) {
  auto facts = std::make_unique<const PlainRoce::Facts>(PlainRoce::facts_of(port));
  for (const auto& known : plain_facts_) {
    if (*known == *facts) return known.get();
  }
  plain_facts_.push_back(std::move(facts));
  return plain_facts_.back().get();
}

void Pipeline::use_tables(const ForwardingTables* tables) {
  tables_ = tables;
  if (group_states_.size() < tables->groups.size()) group_states_.resize(tables->groups.size());
  flowlets_in_use_ = tables->flowlets;
  quality_in_use_ = tables->quality;
}

unsigned Pipeline::ingress(PortId in, Packet** packets, unsigned count, Time now) {
  if (lanes_ != nullptr) [[unlikely]]
    return ingress_lanes(in, packets, count, now);
  constexpr unsigned kAhead = 4;
  const unsigned prefetched = std::min(count, kAhead);
  for (unsigned i = 0; i < prefetched; ++i) rte_prefetch0(frame_of(packets[i]));

  const PlainRoce& plain = plain_roce_[in];
  Destinations to;
  uint64_t bytes = 0;
  unsigned kept = 0;
  unsigned controls = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (i < count - prefetched) rte_prefetch0(frame_of(packets[i + kAhead]));
    Packet* packet = packets[i];
    PacketMeta& meta = meta_of(packet);
    const uint8_t* frame = frame_of(packet);
    bytes += packet->pkt_len;
    meta.arrival = now;
    uint32_t destination;
    if (plain.matches(packet, frame)) [[likely]] {
      static_cast<HeaderFacts&>(meta) = plain.facts(frame);
      meta.in_port = in;
      meta.flow_hash = hasher_.hash(frame, PlainRoce::shape());
      destination = net::load<uint32_t>(frame + PlainRoce::shape().l3_offset + 16);
    } else {
      const DropReason reason = examine(in, packet);
      if (reason != DropReason::kNone) {
        if (has_pfc_ && keep_control(in, packet)) {
          ++controls;
          bytes -= packet->pkt_len;
          to.ipv4[kept] = 0;
          packets[kept++] = packet;
        } else {
          drop(in, packet, reason);
        }
        continue;
      }
      to.ipv6 += meta.l3 == L3::kIpv6 ? 1U : 0U;
      // Read for IPv6 too, where it is harmless: the 40-byte header is at hand, and the result is not used.
      destination = net::load<uint32_t>(frame + meta.l3_offset + 16);
    }
    to.ipv4[kept] = __builtin_bswap32(destination);
    packets[kept++] = packet;
  }
  counters_.ports[in].rx_packets.add(count - controls);
  counters_.ports[in].rx_bytes.add(bytes);
  if (kept != 0) route(*tables_->lookup, to, packets, kept);
  if (controls != 0) [[unlikely]]
    hide_from_routing(packets, kept);
  if (has_probes_) [[unlikely]]
    hide_own_probes(packets, kept);
  flush_drops();
  return kept;
}

// The stages one by one.
DropReason Pipeline::examine(PortId in, Packet* packet) const {
  const IngressPort& port = ingress_[in];
  PacketMeta& meta = meta_of(packet);
  const uint8_t* frame = frame_of(packet);
  meta.in_port = in;
  const uint32_t readable = packet->data_len;
  if (readable < sizeof(net::EthernetHeader)) {
    return packet->pkt_len < sizeof(net::EthernetHeader) ? DropReason::kTooShort : DropReason::kHeaderSplit;
  }
  DropReason reason = accept(frame, port);
  if (reason != DropReason::kNone) return reason;
  const bool stripped = (packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
  reason = parse(frame, readable, packet->pkt_len, stripped ? packet->vlan_tci : uint16_t{0}, meta);
  if (reason != DropReason::kNone) return reason;
  reason = classify(frame, port, meta);
  if (reason != DropReason::kNone) return reason;
  reason = check_routable(frame, meta);
  if (reason != DropReason::kNone) return reason;
  meta.flow_hash = hasher_.hash(frame, meta);
  return DropReason::kNone;
}

void Pipeline::forward(Packet* const* packets, unsigned count, Time now) {
  if (flowlets_in_use_ || quality_in_use_) prepare_choices(packets, count, now);
  if (lanes_ != nullptr) [[unlikely]]
    return forward_lanes(packets, count, now);
  if (careful_ || has_pfc_) {
    forward_as<true>(packets, count, now);
  } else {
    forward_as<false>(packets, count, now);
  }
}

// Run by run of packets that have one route; a burst is often one. `kCareful`: with a buffer, early drops or PFC.
// Without, nothing of it costs an instruction.
template <bool kCareful>
void Pipeline::forward_as(Packet* const* packets, unsigned count, Time now) {
  for (unsigned i = 0; i < count;) {
    const Towards to = towards(meta_of(packets[i]).route);
    if (to.state != nullptr && to.group.is_hashed()) [[likely]] {
      i += forward_run<kCareful, true>(packets + i, count - i, to, now);
    } else {
      i += forward_run<kCareful, false>(packets + i, count - i, to, now);
    }
  }
  if (crossing_count_ != 0) send_across();
  if (kCareful && buffer_.has_changed()) [[unlikely]]
    follow_buffer(now);
  flush_drops();
}

// The packets from the first on that have its route; how many they are. `kHashed`: their group goes by the hash alone.
template <bool kCareful, bool kHashed>
inline unsigned Pipeline::forward_run(Packet* const* packets, unsigned count, const Towards& to, Time now) {
  const lb::GroupView group = to.group;
  const uint32_t route = meta_of(packets[0]).route;
  unsigned i = 0;
  do {
    Packet* packet = packets[i];
    if (kCareful && has_probes_ && may_be_probe(packet)) [[unlikely]] {
      if (meet_probe(packet, to, now)) continue;
    }
    const lb::NextHop* next = nullptr;
    if constexpr (kHashed) {
      const unsigned pick = lb::PathSelector::select_by_hash(group, meta_of(packet).flow_hash, Ports{*this, now});
      if (pick != lb::PathSelector::kNone) [[likely]]
        next = group.members + pick;
    } else {
      next = choose_path(to, packet, now);
    }
    if (next == nullptr) [[unlikely]] {
      keep_here<kCareful>(packet, to, now);
    } else {
      admit_as<kCareful>(packet, take_path(packet, *next), now);
    }
  } while (++i < count && meta_of(packets[i]).route == route);
  return i;
}

inline PortId Pipeline::take_path(Packet* packet, const lb::NextHop& next) {
  const PortId out = next.port;
  telemetry::PathCounters& counters = counters_.paths[next.counter];
  meta_of(packet).out_port = out;
  rewrite(packet, next.rewrite);
  counters.add(packet->pkt_len);
  return out;
}

template <bool kCareful>
inline void Pipeline::admit_as(Packet* packet, PortId out, Time now) {
  if (kCareful && resequence_[out] != 0 && meta_of(packet).kind == PacketKind::kRoce) {
    resequence(packet, now);
    return;
  }
  const DropReason refused = kCareful ? admit_carefully(packet, out) : enqueue(packet, out);
  if (refused != DropReason::kNone) [[unlikely]]
    drop(out, packet, refused);
}

// A packet that has no path: one for us, or one to drop.
template <bool kCareful>
void Pipeline::keep_here(Packet* packet, const Towards& to, Time now) {
  const PacketMeta& meta = meta_of(packet);
  if (kCareful && meta.l3 == L3::kNone) {
    receive_control(packet, now);
  } else {
    drop(meta.in_port, packet, to.state == nullptr ? DropReason::kNoRoute : DropReason::kNoLiveNextHop);
  }
}

bool Pipeline::choose(Packet* packet, Time now) {
  const Towards to = towards(meta_of(packet).route);
  const lb::NextHop* next = choose_path(to, packet, now);
  if (next != nullptr) [[likely]] {
    take_path(packet, *next);
    return true;
  }
  keep_here<false>(packet, to, now);
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
  rte_prefetch0(group->members.data());
  rte_prefetch0(&group_states_[tables_->index_of(group)]);
}

inline Pipeline::Towards Pipeline::towards(RouteId route) {
  Towards to;
  if (const lb::NextHopGroup* group = tables_->group_for(route); group != nullptr) {
    to.group = *group;
    to.state = &group_states_[tables_->index_of(group)];
  }
  return to;
}

inline const lb::NextHop* Pipeline::choose_path(const Towards& to, const Packet* packet, Time now) {
  if (to.state == nullptr) [[unlikely]]
    return nullptr;
  const uint32_t flow_hash = meta_of(packet).flow_hash;
  const Ports ports{*this, now};
  unsigned pick;
  if (to.group.overrides == nullptr) [[likely]] {
    pick = selector_.select(to.group, *to.state, flow_hash, now, ports);
  } else {
    lb::GroupView group = to.group;
    group.scheduler = scheduler_for(packet, group);
    pick = selector_.select(group, *to.state, flow_hash, now, ports);
  }
  return pick == lb::PathSelector::kNone ? nullptr : to.group.members + pick;
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
        now, [this](PortId port) { return egress_[port].scheduled_bytes(); },
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

inline DropReason Pipeline::admit_carefully(Packet* packet, PortId out) {
  const PacketMeta& meta = meta_of(packet);
  const uint32_t frame_bytes = packet->pkt_len;
  const bool ours = frame_bytes <= max_frame_[out];
  if (ours) {
    const DropReason reason = refusal_of_queue(packet, out, frame_bytes);
    if (reason != DropReason::kNone) [[unlikely]]
      return count_refusal(packet, reason);
  }
  if (buffered_) {
    const DropReason reason = buffer_.charge(meta.in_port, meta.traffic_class, frame_bytes);
    if (reason != DropReason::kNone) [[unlikely]]
      return count_refusal(packet, reason);
  }
  DropReason reason = DropReason::kNone;
  if (ours) {
    if (!egress_[out].enqueue(packet)) reason = DropReason::kQueueFull;
  } else {
    reason = hand_over(packet, out);
  }
  if (reason == DropReason::kNone) [[likely]]
    return reason;
  if (buffered_) buffer_.release(meta.in_port, meta.traffic_class, frame_bytes);
  return count_refusal(packet, reason);
}

// What an egress queue says to a packet before the buffer is asked. Lossless classes are limited where they come in,
// and are never refused here.
inline DropReason Pipeline::refusal_of_queue(const Packet* packet, PortId out, uint32_t frame_bytes) {
  const PacketMeta& meta = meta_of(packet);
  const unsigned tc = meta.traffic_class;
  const uint64_t queued = egress_[out].queue(tc).bytes();
  if (((drops_early_[out] >> tc) & 1U) != 0) [[unlikely]] {
    const DropReason reason = early_refusal(out, tc, queued);
    if (reason != DropReason::kNone) return reason;
  }
  if (buffered_ && !buffer_.is_lossless(meta.in_port, tc) && !buffer_.admits(out, tc, queued, frame_bytes))
    return DropReason::kBufferFull;
  return DropReason::kNone;
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
    resequencer_->receive(packet, now, [this](Packet* next) { accept_in_turn(next); });
    find_attention_to_held();
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

// On its way to a host: admitted when its turn has come, and with it those that waited for it.
void Pipeline::resequence(Packet* packet, Time now) {
  resequencer_->receive(packet, now, [this](Packet* next) { admit_in_turn(next); });
  find_attention_to_held();
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
  resequencer_->flush([&](Packet* packet) { drop(meta_of(packet).out_port, packet, reason); });
  flush_drops();
}

void Pipeline::drop(PortId charged, Packet* packet, DropReason reason) {
  counters_.ports[charged].drop(reason).add(1);
  dead_[dead_count_++] = packet;
  if (dead_count_ == dead_.size()) flush_drops();
}

void Pipeline::flush_drops() {
  if (dead_count_ == 0) return;
  dropped_.take(dead_.data(), dead_count_);
  dead_count_ = 0;
}

}  // namespace heddle::dataplane
