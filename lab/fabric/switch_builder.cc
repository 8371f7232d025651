#include "lab/fabric/switch_builder.h"

#include <algorithm>

#include "lab/fabric/credits.h"
#include "lab/fabric/lid_routes.h"
#include "lab/fabric/probe_plan.h"
#include "lab/host/roce.h"
#include "net/error.h"

namespace heddle::lab {

SwitchBuilder::SwitchBuilder(const Topology& topology, const FabricSettings& settings, Fabric& fabric)
    : FabricParts(topology, settings, fabric) {
  if (settings.switches.control_scheduler) {
    lb::SchedulerOverrides overrides;
    overrides.of_control = settings.switches.control_scheduler;
    overrides_ = std::make_shared<const lb::SchedulerOverrides>(overrides);
  }
  if (settings.switches.path_delay.enabled) probe_hops_ = probe_hops(topology);
}

void SwitchBuilder::make_switches() {
  make_tables();
  for (NodeId node = topology_.host_count; node < topology_.nodes.size(); ++node) {
    std::vector<LabSwitch::Port> ports;
    for (const LinkId link : topology_.ports[node]) {
      ports.push_back({&wire_from(link, node), &wire_to(link, node), topology_.links[link].delay, false});
    }
    for (const PortIndex port : topology_.uplinks(node)) ports[port].is_uplink = true;
    fabric_->switches.push_back(std::make_unique<LabSwitch>(
        node,
        LabSwitch::Settings{pipeline_settings(node), settings_.switches.sample_interval,
                            settings_.switches.in_time_order || any_scheduler([](const lb::Scheduler& s) {
                              return s.choice == lb::Choice::kQuality;  // looks at the queues of all ports
                            }),
                            logs_pauses(), keeps_all_pauses(), settings_.switches.infiniband.notice_interval},
        std::move(ports), std::move(versions_[node - topology_.host_count]), port_events(node), prober_of(node)));
  }
}

// Tables at the start, and those that routing arrives at some time after links went down or came up.
void SwitchBuilder::make_tables() {
  versions_.resize(topology_.switch_count());
  const bool by_weight = any_scheduler([](const lb::Scheduler& s) { return s.choice == lb::Choice::kWeighted; });
  LinkStates states = at_start_;  // rates are what routing knows of them, for weights
  const auto add_version = [&](Time from) {
    std::vector<SwitchRoutes> routes = routes_over(states.up());
    std::vector<std::vector<ProbedGroup>> probed(topology_.switch_count());
    if (settings_.switches.path_delay.enabled && !is_infiniband()) probed = plan_probes(topology_, states.up(), routes);
    for (uint32_t i = 0; i < topology_.switch_count(); ++i) {
      versions_[i].push_back({from, tables_of(topology_.host_count + i, routes[i], states), std::move(probed[i])});
    }
  };
  add_version(0);
  bool changes_routes = false;  // since the last version
  for (size_t i = 0; i < settings_.events.size(); ++i) {
    const LinkEvent& event = settings_.events[i];
    if (event.at == 0) continue;  // the first version knows
    states.apply(event);
    changes_routes = changes_routes || event.kind == LinkEvent::Kind::kDown || event.kind == LinkEvent::Kind::kUp ||
                     (event.kind == LinkEvent::Kind::kRate && by_weight);
    const bool more_at_once = i + 1 < settings_.events.size() && settings_.events[i + 1].at == event.at;
    if (!changes_routes || more_at_once) continue;
    add_version(event.at + settings_.switches.convergence);
    changes_routes = false;
  }
}

// By host, or on InfiniBand links by LID.
std::vector<SwitchRoutes> SwitchBuilder::routes_over(const std::vector<bool>& link_up) {
  if (!is_infiniband()) return compute_routes(topology_, link_up);
  fabric_->subnets.push_back(
      std::make_unique<const SubnetTables>(subnet_of(topology_, settings_.switches.infiniband, link_up)));
  const SubnetTables& tables = *fabric_->subnets.back();
  std::string note;
  std::vector<SwitchRoutes> routes = routes_by_lid(topology_, tables, settings_, link_up, note);
  std::vector<std::string>& notes = fabric_->notes;
  if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  return routes;
}

std::unique_ptr<dataplane::ForwardingTables> SwitchBuilder::tables_of(NodeId node, const SwitchRoutes& routes,
                                                                      const LinkStates& rates) const {
  auto tables = std::make_unique<dataplane::ForwardingTables>();
  const std::vector<LabSwitch::TableVersion>& versions = versions_[node - topology_.host_count];
  const dataplane::ForwardingTables* before = versions.empty() ? nullptr : versions.back().tables.get();
  tables->lookup = &fabric_->lookup;
  tables->group_of_route = routes.group_of_host;
  for (const std::vector<PortIndex>& ports : routes.groups) {
    lb::NextHopGroup group;
    group.scheduler = settings_.switches.scheduler;
    group.overrides = overrides_;
    for (const PortIndex port : ports) {
      lb::NextHop hop;
      hop.port = port;
      hop.counter = port;
      hop.rewrite.source = mac_of(node);
      hop.rewrite.destination = mac_of(topology_.neighbor(node, port));
      group.members.push_back(hop);
    }
    if (!routes.table_member.empty()) group.table_member = routes.table_member[tables->groups.size()];
    set_weights(node, rates, group);
    if (group.members.size() > lb::kMaxMembers) {
      throw_bad_input("topology: {} has {} equal-cost ports; accepted: at most {}", topology_.nodes[node].name,
                      group.members.size(), lb::kMaxMembers);
    }
    const lb::NextHopGroup* of_before = before == nullptr ? nullptr : group_before(*before, *tables);
    group.make_table(of_before == nullptr ? nullptr : of_before->table.get());
    tables->groups.push_back(std::move(group));
  }
  tables->note_schedulers();
  return tables;
}

// Null without probes.
std::unique_ptr<SwitchProber> SwitchBuilder::prober_of(NodeId node) const {
  const PathDelaySettings& settings = settings_.switches.path_delay;
  if (!settings.enabled) return nullptr;
  telemetry::ProberSettings of;
  of.address = kFirstSwitchAddress + (node - topology_.host_count);
  of.dscp = kDataDscp;
  of.hops = probe_hops_;
  of.share = settings.rate / telemetry::kProbesOnALink;
  of.seed = seed_of(4, node);
  of.paths.base = settings.base;
  of.paths.timeout = kMillisecond;
  // Behind an uplink of a switch that has others above it lie many paths, of which one probe sees one.
  of.paths.capacity_shift = probe_hops_ > 2 ? 3 : 1;
  of.keep_trace = settings.trace;
  for (const LinkId id : topology_.ports[node]) of.rates.push_back(topology_.links[id].rate);
  if (!topology_.ports[node].empty()) of.overhead = topology_.links[topology_.ports[node].front()].overhead;
  return std::make_unique<SwitchProber>(of, static_cast<PortId>(topology_.ports[node].size()));
}

// Members count in proportion to their links' rates: 1000 for the fastest.
void SwitchBuilder::set_weights(NodeId node, const LinkStates& rates, lb::NextHopGroup& group) const {
  const auto rate_of = [&](const lb::NextHop& hop) {
    const LinkId link = topology_.ports[node][hop.port];
    return rates.rate(link, is_a(link, node)).bits_per_second();
  };
  uint64_t most = 0;
  for (const lb::NextHop& hop : group.members) most = std::max(most, rate_of(hop));
  for (lb::NextHop& hop : group.members) {
    hop.weight = static_cast<uint16_t>(std::max<uint64_t>(1, rate_of(hop) / std::max<uint64_t>(1, most / 1000)));
  }
}

// The group that led, in the tables before, to a host of the group that comes next in `now`.
const lb::NextHopGroup* SwitchBuilder::group_before(const dataplane::ForwardingTables& before,
                                                    const dataplane::ForwardingTables& now) {
  for (dataplane::RouteId host = 0; host < now.group_of_route.size(); ++host) {
    if (now.group_of_route[host] == now.groups.size()) return before.group_for(host);
  }
  return nullptr;
}

dataplane::PipelineSettings SwitchBuilder::pipeline_settings(NodeId node) const {
  dataplane::PipelineSettings settings;
  settings.seed = seed_of(2, node);
  settings.hash.seed = seed_of(3, node);
  settings.paths = topology_.ports[node].size();
  settings.ars = settings_.switches.ars;
  settings.resequencer = settings_.switches.resequencer;
  settings.flowlets = any_scheduler([](const lb::Scheduler& s) { return s.granularity == lb::Granularity::kFlowlet; });
  std::vector<FlowControlPort> described;
  for (const LinkId id : topology_.ports[node]) {
    const Link& link = topology_.links[id];
    dataplane::PortSettings port;
    port.ingress.macs = {mac_of(node)};
    port.resequence = topology_.is_host(link.a) || topology_.is_host(link.b);
    port.max_frame = 16'384;
    port.egress.rate = rate_at_start(id, node);
    port.egress.overhead = link.overhead;
    for (dataplane::ClassSettings& of : port.egress.classes) of.limit_bytes = settings_.switches.queue_limit;
    // CNPs and network control, as a real switch has it: late, they make congestion worse.
    port.egress.classes[6].strict = port.egress.classes[7].strict = true;
    settings.ports.push_back(std::move(port));
    described.push_back({.rate = rate_at_start(id, node),
                         .peer_rate = rate_at_start(id, topology_.other_end(id, node)),
                         .delay = link.delay,
                         .frame = settings_.hosts.mtu + kDataFrameOverhead,
                         .overhead = link.overhead,
                         .mac = mac_of(node)});
  }
  if (is_infiniband()) {
    for (dataplane::PortSettings& port : settings.ports) {
      set_lane_classes(settings_, port);
    }
    settings.lanes = lanes_of(topology_, node - topology_.host_count, settings_, *fabric_->subnets.front());
    if (fabric_->partitions != nullptr) settings.lanes->partitions = keys_at(topology_, node, *fabric_->partitions);
    return settings;
  }
  add_flow_control(settings_.switches.flow_control, described, topology_.nodes[node].name, settings);
  return settings;
}

std::vector<LabSwitch::PortEvent> SwitchBuilder::port_events(NodeId node) const {
  std::vector<LabSwitch::PortEvent> events;
  std::vector<LabSwitch::PortEvent> now;
  for (PortIndex port = 0; port < topology_.ports[node].size(); ++port) {
    now.push_back({0, port, true, topology_.links[topology_.ports[node][port]].rate});
  }
  for (const LinkEvent& event : settings_.events) {
    const Link& link = topology_.links[event.link];
    if ((link.a != node && link.b != node) || event.kind == LinkEvent::Kind::kLoss) continue;
    LabSwitch::PortEvent& state = now[link.a == node ? link.a_port : link.b_port];
    const bool ours =
        event.direction == LinkDirection::kBoth || (event.direction == LinkDirection::kAToB) == (link.a == node);
    if (event.kind == LinkEvent::Kind::kDown) state.up = false;
    if (event.kind == LinkEvent::Kind::kUp) state.up = true;
    if (event.kind == LinkEvent::Kind::kRate && ours) state.rate = event.rate;
    state.at = event.at;
    events.push_back(state);
  }
  return events;
}

}  // namespace heddle::lab
