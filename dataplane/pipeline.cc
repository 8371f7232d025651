// What a pipeline is made of, and the first of its three groups of stages: what depends on the packet alone.
#include "dataplane/pipeline.h"

#include <algorithm>
#include <bit>

#include <rte_prefetch.h>

#include "dataplane/parse.h"
#include "dataplane/plain_roce.h"
#include "dataplane/responder.h"
#include "dataplane/rewrite.h"
#include "dataplane/route.h"

namespace heddle::dataplane {

Pipeline::Pipeline(const PipelineSettings& settings, const PortStates& states, PacketSink& dropped, Handover* handover)
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
    has_addresses_ |= !port.ingress.addresses.empty();
    plain_roce_.emplace_back(port.ingress, plain_facts_of(port.ingress));
    const bool mine = settings.mine.empty() || settings.mine[i];
    const uint32_t max_frame = std::min(port.max_frame, Queued::kLongestFrame);
    max_frame_.push_back(mine ? max_frame : 0);
    max_frame_there_.push_back(max_frame);
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
  if (lanes_ != nullptr) lanes_->reach().begin_sweep();
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
  uint32_t answers = 0;  // bit = place among those kept
  static_assert(kBurst <= 32);
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
    } else if (has_addresses_ && may_be_request(packet) && answer(in, packet)) {
      answers |= 1U << kept;
      to.ipv6 += meta.l3 == L3::kIpv6 ? 1U : 0U;
      destination = 0;
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
  for (; answers != 0; answers &= answers - 1) meta_of(packets[std::countr_zero(answers)]).route = kAnswerRoute;
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
  reason = classify(frame, port, meta, stripped);
  if (reason != DropReason::kNone) return reason;
  reason = check_routable(frame, meta);
  if (reason != DropReason::kNone) return reason;
  if (stripped) forget_stripped_tag(packet);
  meta.flow_hash = hasher_.hash(frame, meta);
  return DropReason::kNone;
}

// What it is not stays as it was for `examine`, which fills in everything but where it came in.
bool Pipeline::answer(PortId in, Packet* packet) {
  meta_of(packet).in_port = in;
  if (ingress_[in].addresses.empty() || !respond(packet, ingress_[in])) return false;
  counters_.ports[in].answered.add(1);
  return true;
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
