#include "dataplane/pipeline.h"

#include <rte_prefetch.h>

#include "dataplane/parse.h"
#include "dataplane/rewrite.h"
#include "dataplane/route.h"

namespace heddle::dataplane {

Pipeline::Pipeline(const Settings& settings, const PortStates& states, PacketSink& dropped, Handover* handover)
    : states_(states),
      dropped_(dropped),
      handover_(handover),
      selector_(settings.hash, settings.seed),
      exits_(settings.ports.size()),
      egress_(settings.ports.size()) {
  for (size_t i = 0; i < settings.ports.size(); ++i) {
    const PortSettings& port = settings.ports[i];
    ingress_.push_back(port.ingress);
    exits_[i] = {port.max_frame, settings.mine.empty() || settings.mine[i]};
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
  const IngressPort& port = ingress_[in];
  telemetry::PortCounters& counters = counters_.ports[in];
  constexpr unsigned kAhead = 4;
  for (unsigned i = 0; i < count && i < kAhead; ++i) rte_prefetch0(frame_of(packets[i]));

  uint64_t bytes = 0;
  unsigned kept = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (i + kAhead < count) rte_prefetch0(frame_of(packets[i + kAhead]));
    Packet* packet = packets[i];
    bytes += packet->pkt_len;
    const DropReason reason = examine(port, packet, in, now);
    if (reason == DropReason::kNone) [[likely]] {
      packets[kept++] = packet;
    } else {
      drop(in, packet, reason);
    }
  }
  counters.rx_packets.add(count);
  counters.rx_bytes.add(bytes);
  if (kept != 0) route(*tables_->lookup, packets, kept);
  flush_drops();
  return kept;
}

inline DropReason Pipeline::examine(const IngressPort& port, Packet* packet, PortId in, Time now) const {
  PacketMeta& meta = meta_of(packet);
  meta.arrival = now;
  meta.in_port = in;
  const uint8_t* frame = frame_of(packet);
  const uint32_t readable = packet->data_len;
  if (readable < sizeof(net::EthernetHeader)) return DropReason::kTooShort;
  DropReason reason = accept(frame, port);
  if (reason != DropReason::kNone) return reason;
  const bool stripped = (packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
  reason = parse(frame, readable, packet->pkt_len, stripped ? packet->vlan_tci : uint16_t{0}, meta);
  if (reason != DropReason::kNone) return reason;
  reason = classify(frame, port, meta);
  if (reason != DropReason::kNone) return reason;
  return check_routable(frame, meta);
}

void Pipeline::forward(Packet* const* packets, unsigned count, Time /*now*/) {
  const ForwardingTables& tables = *tables_;
  for (unsigned i = 0; i < count; ++i) {
    Packet* packet = packets[i];
    const DropReason no_path = choose_path(tables, packet);
    if (no_path != DropReason::kNone) [[unlikely]] {
      drop(meta_of(packet).in_port, packet, no_path);
      continue;
    }
    const DropReason refused = admit(packet);
    if (refused != DropReason::kNone) [[unlikely]]
      drop(meta_of(packet).out_port, packet, refused);
  }
  flush_drops();
}

inline DropReason Pipeline::choose_path(const ForwardingTables& tables, Packet* packet) {
  PacketMeta& meta = meta_of(packet);
  const lb::NextHopGroup* group = tables.group_for(meta.route);
  if (group == nullptr) return DropReason::kNoRoute;
  const auto is_up = [this](PortId port) { return states_.is_up(port); };
  const unsigned pick = selector_.select(*group, group_states_[tables.index_of(group)], frame_of(packet), meta, is_up);
  if (pick == lb::PathSelector::kNone) return DropReason::kNoLiveNextHop;
  const lb::NextHop& next = group->members[pick];
  meta.rewrite = next.rewrite;
  meta.out_port = next.port;
  meta.frame_bytes = packet->pkt_len - meta.l3_offset + ethernet_bytes(next.rewrite);
  telemetry::PathCounters& path = counters_.paths[next.counter];
  path.packets.add(1);
  path.bytes.add(meta.frame_bytes);
  return DropReason::kNone;
}

inline DropReason Pipeline::admit(Packet* packet) {
  const PacketMeta& meta = meta_of(packet);
  const Exit exit = exits_[meta.out_port];
  if (meta.frame_bytes > exit.max_frame) [[unlikely]]
    return DropReason::kFrameTooLong;
  if (!exit.mine) [[unlikely]] {
    return handover_->offer(packet) ? DropReason::kNone : DropReason::kHandoverFull;
  }
  return egress_[meta.out_port].enqueue(packet) ? DropReason::kNone : DropReason::kQueueFull;
}

void Pipeline::accept_handover(Packet* packet) {
  const PortId out = meta_of(packet).out_port;
  if (egress_[out].enqueue(packet)) return;
  drop(out, packet, DropReason::kQueueFull);
  flush_drops();
}

unsigned Pipeline::egress(PortId out, Packet** packets, unsigned room, Time now) {
  const unsigned n = egress_[out].schedule(packets, room, now);
  if (n == 0) return 0;
  uint64_t bytes = 0;
  for (unsigned i = 0; i < n; ++i) {
    rewrite(packets[i]);
    bytes += packets[i]->pkt_len;
  }
  counters_.ports[out].tx_packets.add(n);
  counters_.ports[out].tx_bytes.add(bytes);
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

inline void Pipeline::drop(PortId charged, Packet* packet, DropReason reason) {
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
