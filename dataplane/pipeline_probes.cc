// The pipeline's part in path probes (telemetry/int_probe.h): what is done to them on their way, and at its end.
#include "dataplane/pipeline.h"
#include "dataplane/rewrite.h"
#include "dataplane/route.h"
#include "net/ip_address.h"
#include "telemetry/int_probe.h"

namespace heddle::dataplane {

namespace {

std::span<uint8_t> bytes_of(Packet* packet) { return {frame_of(packet), packet->data_len}; }

constexpr L3 l3_of(net::IpFamily family) { return family == net::IpFamily::kIpv4 ? L3::kIpv4 : L3::kIpv6; }

std::optional<telemetry::ProbeView> probe_in(Packet* packet) {
  const PacketMeta& meta = meta_of(packet);
  return telemetry::find_probe(bytes_of(packet), meta.l3_offset, meta.l4_offset);
}

}  // namespace

void Pipeline::use_probes(const ProbeSettings& settings) {
  has_probes_ = true;
  careful_ = true;
  probes_ = settings;
  probe_bytes_.resize(egress_.size());
}

bool Pipeline::is_to_us(const Packet* packet) const {
  const PacketMeta& meta = meta_of(packet);
  return meta.l3 == l3_of(probes_.address.family) &&
         net::is_destination(probes_.address, frame_of(packet) + meta.l3_offset);
}

// Those that end here have a route that no table has.
void Pipeline::hide_own_probes(Packet* const* packets, unsigned count) const {
  for (unsigned i = 0; i < count; ++i) {
    if (may_be_probe(packets[i]) && is_to_us(packets[i])) meta_of(packets[i]).route = kHereRoute;
  }
}

// What we send ourselves goes by the DSCP that we gave it, whatever the port trusts of others and whatever tag is to
// come.
uint8_t Pipeline::class_of_own(const Packet* packet) const {
  const PacketMeta& meta = meta_of(packet);
  return ingress_[meta.in_port].class_of_dscp[dscp_of(frame_of(packet), meta)];
}

// Turned round; `to` is the way back.
void Pipeline::send_back(Packet* packet, const telemetry::ProbeView& probe, Towards& to) {
  PacketMeta& meta = meta_of(packet);
  telemetry::turn_round(bytes_of(packet), probe, probes_.return_dscp, meta.arrival);
  turned_round_.add(1);
  meta.traffic_class = class_of_own(packet);
  meta.flow_hash = hasher_.hash(frame_of(packet), meta);
  Destinations back;
  back.ipv6 = meta.l3 == L3::kIpv6 ? 1 : 0;
  back.ipv4[0] = net::header_at<net::Ipv4Header>(frame_of(packet), meta.l3_offset)->destination;  // if it is one
  route(*tables_->lookup, back, &packet, 1);
  to = towards(meta.route);
}

// A packet to the probes' port; false: it is no probe, or one for us that was damaged on its way. A probe that goes on
// takes the member that its hash names, even if the group sprays: it speaks for one path.
bool Pipeline::meet_probe(Packet* packet, Towards to, Time now) {
  PacketMeta& meta = meta_of(packet);
  const std::optional<telemetry::ProbeView> probe = probe_in(packet);
  if (!probe) return false;
  bool by_weight = false;
  if (to.state == nullptr && is_to_us(packet)) {
    if (!telemetry::is_intact(bytes_of(packet), *probe)) return false;
    if (telemetry::body_of(bytes_of(packet), *probe).kind == telemetry::ProbeKind::kReturned) {
      if (probes_.receiver != nullptr) probes_.receiver->receive_probe(bytes_of(packet), *probe, now);
      consume(packet);
      return true;
    }
    send_back(packet, *probe, to);
    by_weight = to.group.measured && to.group.table != nullptr;
  }
  const Ports ports{*this, now};
  unsigned pick = lb::PathSelector::kNone;
  // An answer goes by what we know of the ways back: one that is bad would be held against the way there.
  if (by_weight) pick = to.group.table->member(meta.flow_hash);
  if (to.group.size != 0 && (!by_weight || !ports.is_up(to.group.members[pick].port))) {
    pick = lb::PathSelector::select_by_hash(to.group, meta.flow_hash, ports);
  }
  if (pick == lb::PathSelector::kNone) {
    drop(meta.in_port, packet, to.state == nullptr ? DropReason::kNoRoute : DropReason::kNoLiveNextHop);
  } else {
    send_over(packet, to.group.members[pick]);
  }
  return true;
}

// Probes are not a path's traffic: probe_bytes_ counts them.
void Pipeline::send_over(Packet* packet, const lb::NextHop& next) {
  meta_of(packet).out_port = next.port;
  rewrite(packet, next.rewrite);
  admit_in_turn(packet);
}

void Pipeline::send_probe(Packet* packet, const lb::NextHop& next, Time now) {
  PacketMeta& meta = meta_of(packet);
  static_cast<HeaderFacts&>(meta) = {};
  const net::IpFamily family = probes_.address.family;
  meta.l3 = l3_of(family);
  meta.kind = PacketKind::kTcpUdp;
  meta.protocol = net::kProtocolUdp;
  meta.l3_offset = sizeof(net::EthernetHeader);
  meta.l4_offset = static_cast<uint16_t>(meta.l3_offset + net::layout_of(family).header_bytes);
  meta.in_port = next.port;  // as if it had come in where it leaves: the buffer charges it there
  meta.arrival = now;
  meta.traffic_class = class_of_own(packet);
  meta.flow_hash = hasher_.hash(frame_of(packet), meta);
  send_over(packet, next);
  if (crossing_count_ != 0) send_across();
  if (buffer_.has_changed()) follow_buffer(now);
  flush_drops();
}

// As Pipeline::egress does it without probes, which must not pay for them.
unsigned Pipeline::schedule_with_probes(PortId out, Packet** packets, unsigned room, Time now) {
  PortControl& control = controls_[out];
  const unsigned n = egress_[out].schedule(packets, room, now, [&](Packet* packet, uint64_t left) {
    if (left > control.mark_above[meta_of(packet).traffic_class]) [[unlikely]]
      mark(packet, left);
    if (may_be_probe(packet)) [[unlikely]]
      stamp_probe(packet, left, now);
  });
  settle_sent(packets, n, now);
  return n;
}

// Only on the way there: the way back is not measured.
void Pipeline::stamp_probe(Packet* packet, uint64_t left, Time now) {
  const PacketMeta& meta = meta_of(packet);
  const std::optional<telemetry::ProbeView> probe = probe_in(packet);
  if (!probe) return;
  probe_bytes_[meta.out_port].add(packet->pkt_len + kEthernetOverhead);
  if (telemetry::body_of(bytes_of(packet), *probe).kind != telemetry::ProbeKind::kForward) return;
  telemetry::push_hop(bytes_of(packet), *probe,
                      {.node_id = probes_.node_id,
                       .ingress_port = meta.in_port,
                       .egress_port = meta.out_port,
                       .queue_id = meta.traffic_class,
                       .queue_bytes = left,
                       .arrival = meta.arrival,
                       .departure = now,
                       .rate = egress_[meta.out_port].rate()});
}

}  // namespace heddle::dataplane
