#include "lab/fabric/credits.h"

#include <algorithm>

#include "lab/fabric/lid_routes.h"
#include "lab/host/infiniband.h"
#include "lab/subnet/manager.h"
#include "net/error.h"

namespace heddle::lab {

SubnetTables subnet_of(const Topology& topology, const InfinibandSettings& settings, const std::vector<bool>& link_up) {
  return manage_subnet(topology, link_up, {settings.routing, settings.tables, settings.lmc}).tables;
}

void check_link_layer(const FabricSettings& settings) {
  if (settings.hosts.link_layer != LinkLayer::kInfiniband) {
    if (settings.hosts.ccti) {
      throw_bad_input("hosts.congestion_control: found infiniband on Ethernet links; accepted: none, dcqcn");
    }
    return;
  }
  if (settings.hosts.dcqcn) {
    throw_bad_input("hosts.congestion_control: found dcqcn on InfiniBand links; accepted: none, infiniband");
  }
}

flowctl::CreditLink credit_link(const Link& link, uint32_t mtu) {
  return {.rate = link.rate, .delay = link.delay, .packet = infiniband_data_frame(mtu), .overhead = link.overhead};
}

flowctl::CreditSettings credits_for(const InfinibandSettings& settings, const SubnetTables& tables) {
  flowctl::CreditSettings credits = settings.credits;
  credits.lanes = std::max(credits.lanes, tables.lanes());
  if (credits.lanes > flowctl::LinkCredits::kMaxLanes) {
    throw_bad_input("subnet: {} uses {} virtual lanes; accepted: up to {}", tables.engine, credits.lanes,
                    flowctl::LinkCredits::kMaxLanes);
  }
  return credits;
}

std::vector<std::vector<uint16_t>> keys_at(const Topology& topology, NodeId node, const PartitionTables& partitions) {
  std::vector<std::vector<uint16_t>> keys(topology.ports[node].size());
  for (PortIndex port = 0; port < keys.size(); ++port) {
    const NodeId peer = topology.neighbor(node, port);
    if (topology.is_host(peer)) keys[port] = partitions.keys_of(peer);
  }
  return keys;
}

void set_lane_classes(const FabricSettings& settings, dataplane::PortSettings& port) {
  const InfinibandSettings& of = settings.switches.infiniband;
  port.resequence = false;
  for (dataplane::ClassSettings& lane : port.egress.classes) {
    lane = {};
    if (settings.hosts.ccti) lane.mark = of.fecn.curve(of.credits.buffer);
  }
}

void complete(flowctl::CctiSettings& settings, uint32_t hosts) {
  if (settings.table.empty()) settings.table = flowctl::quadratic_cct(settings.limit, std::max(hosts, 2U) - 1);
}

flowctl::VlArbiterSettings arbiter_settings(const VlArbitration& tables) {
  flowctl::VlArbiterSettings settings;
  settings.high_limit = tables.high_limit;
  settings.high.reserve(tables.high.size());
  settings.low.reserve(tables.low.size());
  for (const VlArbitrationEntry& entry : tables.high) settings.high.push_back({entry.vl, entry.weight});
  for (const VlArbitrationEntry& entry : tables.low) settings.low.push_back({entry.vl, entry.weight});
  return settings;
}

namespace {

dataplane::ReachSettings reach_of(const Topology& topology, uint32_t s, const FabricSettings& settings,
                                  const SubnetTables& tables) {
  const InfinibandSettings& infiniband = settings.switches.infiniband;
  dataplane::ReachSettings reach;
  reach.notify = infiniband.self_healing == SelfHealing::kNotify && may_fail(settings.events);
  reach.lid = tables.switches[s].lid;
  reach.buffer = infiniband.management_buffer;
  reach.repeats = infiniband.notice_repeats;
  const NodeId node = topology.host_count + s;
  for (PortIndex port = 0; port < topology.ports[node].size(); ++port) {
    reach.peers.push_back(!topology.is_host(topology.neighbor(node, port)));
  }
  return reach;
}

}  // namespace

dataplane::LaneSettings lanes_of(const Topology& topology, uint32_t s, const FabricSettings& settings,
                                 const SubnetTables& tables) {
  dataplane::LaneSettings lanes;
  lanes.credits = credits_for(settings.switches.infiniband, tables);
  const std::vector<LinkId>& ports = topology.ports[topology.host_count + s];
  for (const LinkId id : ports) lanes.links.push_back(credit_link(topology.links[id], settings.hosts.mtu));
  const flowctl::FecnSettings& fecn = settings.switches.infiniband.fecn;
  lanes.fecn_packet_size = fecn.packet_size;
  for (PortIndex port = 0; port < ports.size(); ++port) {
    const bool to_host = topology.is_host(topology.neighbor(topology.host_count + s, port));
    lanes.marks_victims.push_back(fecn.victim_mask == flowctl::VictimMask::kAll ||
                                  (fecn.victim_mask == flowctl::VictimMask::kHosts && to_host));
  }
  lanes.adaptive_levels = adaptive_levels(settings.switches);
  lanes.fails_over = settings.switches.infiniband.self_healing != SelfHealing::kNone;
  lanes.reach = reach_of(topology, s, settings, tables);
  // Entry 0 is port 0's.
  const std::vector<VlArbitration>& arbitration = tables.switches[s].vl_arbitration;
  lanes.arbitration.reserve(arbitration.size());
  for (size_t port = 1; port < arbitration.size(); ++port) {
    lanes.arbitration.push_back(arbiter_settings(arbitration[port]));
  }
  if (tables.switches[s].sl_to_vl.empty()) return lanes;
  for (size_t in = 0; in < ports.size(); ++in) {
    for (size_t out = 0; out < ports.size(); ++out) {
      dataplane::LaneMap& map = lanes.lane_maps.emplace_back();
      for (uint8_t sl = 0; sl < map.size(); ++sl) {
        map[sl] = tables.vl(s, static_cast<uint8_t>(in + 1), static_cast<uint8_t>(out + 1), sl);
      }
    }
  }
  return lanes;
}

namespace {

void collect_port(const dataplane::Lanes::Port& port, NodeId node, PortIndex index, RunResult& result) {
  result.credit_violations += port.violations;
  for (uint8_t vl = 0; vl < port.credits.lanes(); ++vl) {
    LaneUse& lane = result.lanes[vl];
    const Duration stalled = port.stall_time(vl, result.ended_at);
    lane.stalled += stalled;
    lane.buffer = port.credits.capacity_bytes(vl);
    lane.peak = std::max(lane.peak, port.credits.peak_bytes(vl));
    if (stalled != 0) result.stalls.push_back({node, index, vl, stalled, port.credits.peak_bytes(vl)});
  }
}

void collect_healing(const dataplane::Pipeline& pipeline, RunResult& result) {
  const dataplane::Lanes& lanes = *pipeline.lanes();
  for (PortId port = 0; port < lanes.size(); ++port) {
    result.healing.failovers += lanes.port(port).failovers;
    result.healing.notices_sent += lanes.port(port).management_sent;
    result.healing.notices_received += lanes.port(port).management_received;
  }
}

}  // namespace

void collect_credits(const Fabric& fabric, RunResult& result) {
  if (fabric.subnets.empty()) return;
  result.notes = fabric.notes;
  result.lanes.resize(fabric.hosts.front()->lanes()->port.credits.lanes());
  for (HostId id = 0; id < fabric.hosts.size(); ++id) {
    const HostLanes& lanes = *fabric.hosts[id]->lanes();
    result.control_frames += lanes.credit_packets_sent;
    result.control_frames_ended += lanes.credit_packets_received;
    collect_port(lanes.port, id, 0, result);
  }
  for (size_t i = 0; i < fabric.switches.size(); ++i) {
    collect_healing(fabric.switches[i]->pipeline(), result);
    const dataplane::Lanes& lanes = *fabric.switches[i]->pipeline().lanes();
    for (PortId port = 0; port < lanes.size(); ++port) {
      collect_port(lanes.port(port), static_cast<NodeId>(fabric.hosts.size() + i), port, result);
    }
  }
}

void check_credits(const RunResult& result) {
  if (result.credit_violations == 0) return;
  throw_failed("{} packets came without credit or to a full buffer; this is a bug in heddle", result.credit_violations);
}

}  // namespace heddle::lab
