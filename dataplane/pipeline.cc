#include "dataplane/pipeline.h"

#include <rte_prefetch.h>

#include "dataplane/parse.h"
#include "dataplane/plain_roce.h"
#include "dataplane/rewrite.h"
#include "dataplane/route.h"

namespace heddle::dataplane {

Pipeline::Pipeline(const Settings& settings, const PortStates& states, PacketSink& dropped, Handover* handover)
    : port_is_up_(states.flags()),
      dropped_(dropped),
      handover_(handover),
      hasher_(settings.hash),
      selector_(settings.seed),
      egress_(settings.ports.size()) {
  for (size_t i = 0; i < settings.ports.size(); ++i) {
    const PortSettings& port = settings.ports[i];
    ingress_.push_back(port.ingress);
    plain_roce_.emplace_back(port.ingress, static_cast<PortId>(i));
    const bool mine = settings.mine.empty() || settings.mine[i];
    max_frame_.push_back(mine ? port.max_frame : 0);
    max_frame_there_.push_back(port.max_frame);
    egress_[i].configure(port.egress);
  }
  counters_.ports.resize(settings.ports.size());
  counters_.paths.resize(settings.paths);
}

void Pipeline::use_tables(const ForwardingTables* tables) {
  tables_ = tables;
  if (group_states_.size() < tables->groups.size()) group_states_.resize(tables->groups.size());
}

unsigned Pipeline::ingress(PortId in, Packet** packets, unsigned count, Time now) {
  constexpr unsigned kAhead = 4;
  const unsigned prefetched = std::min(count, kAhead);
  for (unsigned i = 0; i < prefetched; ++i) rte_prefetch0(frame_of(packets[i]));

  const PlainRoce& plain = plain_roce_[in];
  Destinations to;
  uint64_t bytes = 0;
  unsigned kept = 0;
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
      meta.flow_hash = hasher_.hash(frame, PlainRoce::shape());
      destination = net::load<uint32_t>(frame + PlainRoce::shape().l3_offset + 16);
    } else {
      const DropReason reason = examine(in, packet);
      if (reason != DropReason::kNone) {
        drop(in, packet, reason);
        continue;
      }
      to.ipv6 += meta.l3 == L3::kIpv6 ? 1U : 0U;
      // Read for IPv6 too, where it is harmless: the 40-byte header is at hand, and the result is not used.
      destination = net::load<uint32_t>(frame + meta.l3_offset + 16);
    }
    to.ipv4[kept] = __builtin_bswap32(destination);
    packets[kept++] = packet;
  }
  counters_.ports[in].rx_packets.add(count);
  counters_.ports[in].rx_bytes.add(bytes);
  if (kept != 0) route(*tables_->lookup, to, packets, kept);
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
  if (readable < sizeof(net::EthernetHeader)) return DropReason::kTooShort;
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

void Pipeline::forward(Packet* const* packets, unsigned count, Time /*now*/) {
  Towards to;
  for (unsigned i = 0; i < count; ++i) {
    Packet* packet = packets[i];
    PacketMeta& meta = meta_of(packet);
    if (meta.route != to.route) to = towards(meta.route);
    const lb::NextHop* next = choose_path(to, meta.flow_hash);
    if (next == nullptr) [[unlikely]] {
      drop(meta.in_port, packet, to.state == nullptr ? DropReason::kNoRoute : DropReason::kNoLiveNextHop);
      continue;
    }
    const uint32_t frame_bytes = packet->pkt_len - meta.l3_offset + ethernet_bytes(next->rewrite);
    const PortId out = next->port;
    meta.rewrite = next->rewrite;
    meta.out_port = out;
    meta.frame_bytes = frame_bytes;
    counters_.paths[next->counter].add(frame_bytes);
    const DropReason refused = admit(packet, out, frame_bytes);
    if (refused != DropReason::kNone) [[unlikely]]
      drop(out, packet, refused);
  }
  flush_drops();
}

inline Pipeline::Towards Pipeline::towards(RouteId route) {
  Towards to{.route = route};
  if (const lb::NextHopGroup* group = tables_->group_for(route); group != nullptr) {
    to.group = *group;
    to.state = &group_states_[tables_->index_of(group)];
  }
  return to;
}

inline const lb::NextHop* Pipeline::choose_path(const Towards& to, uint32_t flow_hash) {
  if (to.state == nullptr) [[unlikely]]
    return nullptr;
  const auto is_up = [this](PortId port) { return port_is_up_[port].load(std::memory_order_relaxed) != 0; };
  const unsigned pick = selector_.select(to.group, *to.state, flow_hash, is_up);
  return pick == lb::PathSelector::kNone ? nullptr : to.group.members + pick;
}

inline DropReason Pipeline::admit(Packet* packet, PortId out, uint32_t frame_bytes) {
  if (frame_bytes > max_frame_[out]) [[unlikely]]
    return hand_over(packet, out, frame_bytes);
  return egress_[out].enqueue(packet) ? DropReason::kNone : DropReason::kQueueFull;
}

// The port is another lcore's, or the frame is too long for it.
DropReason Pipeline::hand_over(Packet* packet, PortId out, uint32_t frame_bytes) {
  if (frame_bytes > max_frame_there_[out]) return DropReason::kFrameTooLong;
  return handover_->offer(packet) ? DropReason::kNone : DropReason::kHandoverFull;
}

void Pipeline::accept_handover(Packet* packet) {
  const PortId out = meta_of(packet).out_port;
  if (egress_[out].enqueue(packet)) return;
  drop(out, packet, DropReason::kQueueFull);
  flush_drops();
}

unsigned Pipeline::egress(PortId out, Packet** packets, unsigned room, Time now) {
  EgressScheduler& port = egress_[out];
  const uint64_t bytes_before = port.scheduled_bytes();
  const unsigned n = port.schedule(packets, room, now, rewrite);
  if (n == 0) return 0;
  counters_.ports[out].tx_packets.add(n);
  counters_.ports[out].tx_bytes.add(port.scheduled_bytes() - bytes_before);
  return n;
}

void Pipeline::count_unsent(PortId out, Packet* const* packets, unsigned count, DropReason reason) {
  for (unsigned i = 0; i < count; ++i) {
    counters_.ports[out].tx_packets.subtract(1);
    counters_.ports[out].tx_bytes.subtract(packets[i]->pkt_len);
    drop(out, packets[i], reason);
  }
  flush_drops();
}

void Pipeline::flush(PortId out, DropReason reason) {
  EgressScheduler& port = egress_[out];
  const Rate rate = port.rate();
  port.set_rate(Rate::unlimited());
  port.set_paused(0);
  Packet* packets[kBurst];
  while (const unsigned n = port.schedule(packets, kBurst, 0)) {
    for (unsigned i = 0; i < n; ++i) drop(out, packets[i], reason);
    flush_drops();
  }
  port.set_rate(rate);
}

void Pipeline::drop(PortId charged, Packet* packet, DropReason reason) {
  counters_.ports[charged].drop(reason).add(1);
  dead_[dead_count_++] = packet;
  if (dead_count_ == dead_.size()) flush_drops();
}

inline void Pipeline::flush_drops() {
  if (dead_count_ == 0) return;
  dropped_.take(dead_.data(), dead_count_);
  dead_count_ = 0;
}

}  // namespace heddle::dataplane
