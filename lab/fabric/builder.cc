#include "lab/fabric/builder.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lab/fabric/credits.h"
#include "lab/fabric/lid_routes.h"
#include "lab/fabric/probe_plan.h"
#include "lab/host/infiniband.h"
#include "lab/ideal/fabric_capacity.h"
#include "lab/topology/base_path.h"
#include "lab/topology/routing.h"
#include "net/error.h"

namespace heddle::lab {

void HostLookup::lookup4(const uint32_t* destinations, dataplane::RouteId* routes, unsigned count) const {
  for (unsigned i = 0; i < count; ++i) {
    const uint32_t host = destinations[i] - kFirstHostAddress;
    const uint32_t of_switch = destinations[i] - kFirstSwitchAddress;
    routes[i] = host < hosts_ ? host : of_switch < switches_ ? hosts_ + of_switch : ~0U;
  }
}

void HostLookup::lookup6(const dataplane::Ipv6Address* /*destinations*/, dataplane::RouteId* routes,
                         unsigned count) const {
  std::fill_n(routes, count, ~0U);  // the lab's hosts speak IPv4
}

uint16_t header_room_for(const Topology& topology, const FabricSettings& settings) {
  if (!settings.switches.path_delay.enabled) return kHeaderRoom;
  return std::max(kHeaderRoom, static_cast<uint16_t>(telemetry::probe_frame_bytes(probe_hops(topology))));
}

namespace {

class Builder {
 public:
  Builder(const Topology& topology, const Workload& workload, const FabricSettings& settings)
      : topology_(topology),
        workload_(workload),
        settings_(settings),
        fabric_(std::make_unique<Fabric>(workload, settings, topology)) {
    if (settings.switches.control_scheduler) {
      lb::SchedulerOverrides overrides;
      overrides.of_control = settings.switches.control_scheduler;
      overrides_ = std::make_shared<const lb::SchedulerOverrides>(overrides);
    }
  }

  std::unique_ptr<Fabric> build() {
    check();
    if (settings_.switches.path_delay.enabled) probe_hops_ = probe_hops(topology_);
    set_window();
    make_wires();
    make_captures();
    make_first_subnet();
    make_hosts();
    connect_queue_pairs();
    make_switches();
    connect_inboxes();
    return std::move(fabric_);
  }

 private:
  void check() const;
  void set_window();
  void make_wires();
  void make_captures();
  void make_first_subnet();
  void make_hosts();
  void connect_queue_pairs();
  void make_switches();
  void connect_inboxes();
  void make_tables();

  bool is_infiniband() const { return settings_.hosts.link_layer == LinkLayer::kInfiniband; }
  bool logs_pauses() const { return is_infiniband() || settings_.switches.flow_control.pauses(); }
  // A lane may wait for every packet that it sends: too much to keep, unless it is asked for.
  bool keeps_all_pauses() const { return !is_infiniband() || settings_.run.timeline; }
  std::vector<SwitchRoutes> routes_over(const std::vector<bool>& link_up);
  HostLaneSettings host_lanes(HostId id) const;
  dataplane::Pipeline::Settings pipeline_settings(NodeId node) const;
  std::vector<LabSwitch::PortEvent> port_events(NodeId node) const;
  std::unique_ptr<dataplane::ForwardingTables> tables_of(NodeId node, SwitchRoutes&& routes,
                                                         const LinkStates& rates) const;
  void set_weights(NodeId node, const LinkStates& rates, lb::NextHopGroup& group) const;
  std::unique_ptr<SwitchProber> prober_of(NodeId node) const;
  static const lb::NextHopGroup* group_before(const dataplane::ForwardingTables& before,
                                              const dataplane::ForwardingTables& now);
  // Whether one of the two schedulers is such.
  template <typename Predicate>
  bool any_scheduler(const Predicate& is) const {
    const SwitchSettings& of = settings_.switches;
    return is(of.scheduler) || (of.control_scheduler && is(*of.control_scheduler));
  }

  bool is_a(LinkId link, NodeId node) const { return topology_.links[link].a == node; }
  Wire& wire_from(LinkId link, NodeId node) const { return *fabric_->wires[2 * link + (is_a(link, node) ? 0 : 1)]; }
  Wire& wire_to(LinkId link, NodeId node) const { return *fabric_->wires[2 * link + (is_a(link, node) ? 1 : 0)]; }
  // Streams of random numbers belong to a node or a link.
  uint64_t seed_of(uint64_t kind, uint64_t index) const { return mix64(settings_.run.seed * 8 + kind) + mix64(index); }

  const Topology& topology_;
  const Workload& workload_;
  const FabricSettings& settings_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<std::vector<LabSwitch::TableVersion>> versions_;  // by switch
  std::shared_ptr<const lb::SchedulerOverrides> overrides_;
  unsigned probe_hops_ = 0;  // with probes
};

void Builder::check() const {
  if (workload_.host_count > topology_.host_count) {
    throw_bad_input("workload: needs {} hosts; the topology has {}", workload_.host_count, topology_.host_count);
  }
  const HostSettings& nic = settings_.hosts;
  if (nic.mtu == 0 || nic.mtu > 4096) throw_bad_input("hosts.mtu: found {}; accepted: 1–4096", nic.mtu);
  if (nic.qps_per_connection == 0 || nic.qps_per_connection > 1024) {
    throw_bad_input("hosts.qps_per_connection: found {}; accepted: 1–1024", nic.qps_per_connection);
  }
  for (const LinkEvent& event : settings_.events) validate(topology_, event);
  check_link_layer(settings_);
}

void Builder::set_window() {
  const Duration lookahead = topology_.smallest_delay();
  fabric_->window = settings_.run.window == 0 ? lookahead : settings_.run.window;
  if (fabric_->window > lookahead) {
    throw_bad_input("run.window: found {} ps; accepted: up to the smallest link delay, {} ps", fabric_->window,
                    lookahead);
  }
  if (settings_.run.trigger_delay != 0 && settings_.run.trigger_delay < lookahead) {
    throw_bad_input("run.trigger_delay: found {} ps; accepted: at least the smallest link delay, {} ps",
                    settings_.run.trigger_delay, lookahead);
  }
}

void Builder::make_wires() {
  std::vector<std::array<std::vector<Wire::Change>, 2>> changes(topology_.links.size());
  std::vector<Wire::Change> now(2 * topology_.links.size());
  for (LinkId id = 0; id < topology_.links.size(); ++id)
    now[2 * id].loss = now[2 * id + 1].loss = topology_.links[id].loss;
  for (const LinkEvent& event : settings_.events) {
    if (settings_.run.until != 0 && event.at >= settings_.run.until) break;  // what is on its way then stays so
    for (unsigned way = 0; way < 2; ++way) {
      Wire::Change& state = now[2 * event.link + way];
      const bool this_way =
          event.direction == LinkDirection::kBoth || (event.direction == LinkDirection::kAToB) == (way == 0);
      switch (event.kind) {
        case LinkEvent::Kind::kDown:
          state.up = false;
          break;
        case LinkEvent::Kind::kUp:
          state.up = true;
          break;
        case LinkEvent::Kind::kLoss:
          state.loss = this_way ? event.loss : state.loss;
          break;
        case LinkEvent::Kind::kRate:
          continue;
      }
      state.at = event.at;
      changes[event.link][way].push_back(state);
    }
  }
  for (LinkId id = 0; id < topology_.links.size(); ++id) {
    const Link& link = topology_.links[id];
    for (unsigned way = 0; way < 2; ++way) {
      auto wire =
          std::make_unique<Wire>(link.delay, link.overhead, link.loss, link.bit_error, seed_of(0, 2 * id + way));
      wire->plan(std::move(changes[id][way]));
      fabric_->wires.push_back(std::move(wire));
    }
  }
}

void Builder::make_captures() {
  for (const CaptureSettings& settings : settings_.captures) {
    const auto [node, port] = settings.port;
    const LinkId link = topology_.ports[node][port];
    auto capture = std::make_unique<Capture>(settings.file, fmt::format("{}:{}", topology_.nodes[node].name, port),
                                             topology_.links[link].delay, settings_.hosts.link_layer);
    wire_from(link, node).capture_into(capture->outbound());
    wire_to(link, node).capture_into(capture->inbound());
    fabric_->captures.push_back(std::move(capture));
  }
}

void Builder::make_first_subnet() {
  if (!is_infiniband()) return;
  // Hosts have their addresses and service levels from the tables at the start.
  const InfinibandSettings& settings = settings_.switches.infiniband;
  fabric_->subnets.push_back(
      std::make_unique<const SubnetTables>(subnet_of(topology_, settings, LinkStates(topology_).up())));
  if (!settings.partitions.empty()) {
    fabric_->partitions = std::make_unique<const PartitionTables>(settings.partitions, topology_.host_count);
  }
}

HostLaneSettings Builder::host_lanes(HostId id) const {
  const SubnetTables& tables = *fabric_->subnets.front();
  const LinkId link = topology_.ports[id][0];
  HostLaneSettings lanes;
  lanes.tables = &tables;
  lanes.credits = credits_for(settings_.switches.infiniband, tables);
  lanes.link = credit_link(topology_.links[link], settings_.hosts.mtu);
  lanes.partitions = fabric_->partitions.get();
  if (!tables.host_vl_arbitration.empty()) lanes.arbitration = arbiter_settings(tables.host_vl_arbitration[id]);
  bool up = true;
  for (const LinkEvent& event : settings_.events) {
    if (event.link != link) continue;
    if (event.kind == LinkEvent::Kind::kUp && !up) lanes.link_ups.push_back(event.at);
    if (event.kind == LinkEvent::Kind::kDown) up = false;
    if (event.kind == LinkEvent::Kind::kUp) up = true;
  }
  return lanes;
}

void Builder::make_hosts() {
  HostSettings nic = settings_.hosts;
  if (nic.ccti) complete(*nic.ccti, topology_.host_count);
  for (HostId id = 0; id < topology_.host_count; ++id) {
    const LinkId link_id = topology_.ports[id][0];
    const Link& link = topology_.links[link_id];
    Host::Settings host;
    host.id = id;
    host.first_switch = topology_.leaf_of(id);
    host.rate = link.rate;
    host.overhead = link.overhead;
    host.link_delay = link.delay;
    host.trigger_delay = settings_.run.trigger_delay != 0 ? settings_.run.trigger_delay : topology_.smallest_delay();
    host.seed = seed_of(1, 0);
    host.nic = nic;
    if (!settings_.events.empty()) host.goodput_interval = settings_.switches.sample_interval;
    host.log_pauses = logs_pauses();
    host.keeps_all_pauses = keeps_all_pauses();
    if (is_infiniband()) host.lanes = host_lanes(id);
    for (const LinkEvent& event : settings_.events) {
      const bool ours =
          event.link == link_id && event.kind == LinkEvent::Kind::kRate &&
          (event.direction == LinkDirection::kBoth || (event.direction == LinkDirection::kAToB) == is_a(link_id, id));
      if (ours) host.rate_changes.push_back({event.at, event.rate});
    }
    fabric_->hosts.push_back(
        std::make_unique<Host>(host, fabric_->board, wire_from(link_id, id), wire_to(link_id, id)));
  }
}

// One connection per ordered pair of hosts that talk, or per message, in the order in which the workload mentions them.
void Builder::connect_queue_pairs() {
  std::map<std::pair<HostId, HostId>, uint32_t> first_send_queue;
  std::vector<uint32_t> receive_queues(topology_.host_count, 0);
  std::optional<BasePaths> paths;
  if (settings_.hosts.static_rate_of_path) paths.emplace(topology_);
  for (MessageId m = 0; m < workload_.messages.size(); ++m) {
    const Message& message = workload_.messages[m];
    Host& source = *fabric_->hosts[message.src];
    if (message.is_barrier()) {
      source.add_message(m, 0);
      continue;
    }
    const auto connect = [&] {
      uint32_t& next = receive_queues[message.dst];
      Rate static_rate;
      if (paths) static_rate = paths->bottleneck_rate(message.src, message.dst);
      const uint32_t first = source.add_send_queues(message.dst, next, static_rate);
      fabric_->hosts[message.dst]->add_receive_queues(message.src, first);
      next += settings_.hosts.qps_per_connection;
      return first;
    };
    if (settings_.hosts.connections == Connections::kPerMessage) {
      source.add_message(m, connect());
      continue;
    }
    const auto [at, fresh] = first_send_queue.try_emplace({message.src, message.dst}, 0);
    if (fresh) at->second = connect();
    source.add_message(m, at->second);
  }
}

void Builder::make_switches() {
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
                            logs_pauses(), keeps_all_pauses()},
        std::move(ports), std::move(versions_[node - topology_.host_count]), port_events(node), prober_of(node)));
  }
}

void Builder::connect_inboxes() {
  const bool alone = settings_.run.thread_count() == 1;
  for (NodeId node = 0; node < topology_.nodes.size(); ++node) {
    LiveNode& live = fabric_->node(node);
    for (PortIndex port = 0; port < topology_.ports[node].size(); ++port) {
      wire_to(topology_.ports[node][port], node).announce_by({live.inbox(), port, alone});
    }
  }
}

// Tables at the start, and those that routing arrives at some time after links went down or came up.
void Builder::make_tables() {
  versions_.resize(topology_.switch_count());
  const bool by_weight = any_scheduler([](const lb::Scheduler& s) { return s.choice == lb::Choice::kWeighted; });
  LinkStates states(topology_);
  LinkStates rates = states_at_start(topology_, settings_.events);  // what routing knows of them, for weights
  const auto add_version = [&](Time from) {
    std::vector<SwitchRoutes> routes = routes_over(states.up());
    std::vector<std::vector<ProbedGroup>> probed(topology_.switch_count());
    if (settings_.switches.path_delay.enabled && !is_infiniband()) probed = plan_probes(topology_, states.up(), routes);
    for (uint32_t i = 0; i < topology_.switch_count(); ++i) {
      versions_[i].push_back(
          {from, tables_of(topology_.host_count + i, std::move(routes[i]), rates), std::move(probed[i])});
    }
  };
  add_version(0);
  bool changes_routes = false;  // since the last version
  for (size_t i = 0; i < settings_.events.size(); ++i) {
    const LinkEvent& event = settings_.events[i];
    states.apply(event);
    changes_routes = changes_routes || event.kind == LinkEvent::Kind::kDown || event.kind == LinkEvent::Kind::kUp;
    if (event.kind == LinkEvent::Kind::kRate && event.at != 0) {
      rates.apply(event);
      changes_routes = changes_routes || by_weight;
    }
    const bool more_at_once = i + 1 < settings_.events.size() && settings_.events[i + 1].at == event.at;
    if (!changes_routes || more_at_once) continue;
    add_version(event.at + settings_.switches.convergence);
    changes_routes = false;
  }
}

// By host, or on InfiniBand links by LID.
std::vector<SwitchRoutes> Builder::routes_over(const std::vector<bool>& link_up) {
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

std::unique_ptr<dataplane::ForwardingTables> Builder::tables_of(NodeId node, SwitchRoutes&& routes,
                                                                const LinkStates& rates) const {
  auto tables = std::make_unique<dataplane::ForwardingTables>();
  const std::vector<LabSwitch::TableVersion>& versions = versions_[node - topology_.host_count];
  const dataplane::ForwardingTables* before = versions.empty() ? nullptr : versions.back().tables.get();
  tables->lookup = &fabric_->lookup;
  tables->group_of_route = std::move(routes.group_of_host);
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
std::unique_ptr<SwitchProber> Builder::prober_of(NodeId node) const {
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
void Builder::set_weights(NodeId node, const LinkStates& rates, lb::NextHopGroup& group) const {
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
const lb::NextHopGroup* Builder::group_before(const dataplane::ForwardingTables& before,
                                              const dataplane::ForwardingTables& now) {
  const auto host = std::find(now.group_of_route.begin(), now.group_of_route.end(), now.groups.size());
  if (host == now.group_of_route.end()) return nullptr;
  return before.group_for(static_cast<dataplane::RouteId>(host - now.group_of_route.begin()));
}

dataplane::Pipeline::Settings Builder::pipeline_settings(NodeId node) const {
  dataplane::Pipeline::Settings settings;
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
    port.egress.rate = link.rate;
    port.egress.overhead = link.overhead;
    for (dataplane::ClassSettings& of : port.egress.classes) of.limit_bytes = settings_.switches.queue_limit;
    // CNPs and network control, as a real switch has it: late, they make congestion worse.
    port.egress.classes[6].strict = port.egress.classes[7].strict = true;
    settings.ports.push_back(std::move(port));
    described.push_back({.rate = link.rate,
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

std::vector<LabSwitch::PortEvent> Builder::port_events(NodeId node) const {
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

}  // namespace

std::unique_ptr<Fabric> build_fabric(const Topology& topology, const Workload& workload,
                                     const FabricSettings& settings) {
  return Builder(topology, workload, settings).build();
}

}  // namespace heddle::lab
