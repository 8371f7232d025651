#include "lab/fabric/builder.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "lab/fabric/credits.h"
#include "lab/fabric/fabric_parts.h"
#include "lab/fabric/probe_plan.h"
#include "lab/fabric/switch_builder.h"
#include "lab/host/infiniband.h"
#include "lab/topology/base_path.h"
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
  if (!settings.switches.path_delay.enabled) {
    const bool small = settings.hosts.link_layer == LinkLayer::kEthernet && !settings.hosts.dcqcn;  // no CNPs
    return small ? kHeaderRoomInMbuf : kHeaderRoom;
  }
  return std::max(kHeaderRoom, static_cast<uint16_t>(telemetry::probe_frame_bytes(probe_hops(topology))));
}

namespace {

class Builder : private FabricParts {
 public:
  Builder(const Topology& topology, const Workload& workload, const FabricSettings& settings, Fabric& fabric)
      : FabricParts(topology, settings, fabric), workload_(workload) {}

  void build() {
    check();
    set_window();
    make_wires();
    make_captures();
    make_first_subnet();
    make_hosts();
    connect_queue_pairs();
    SwitchBuilder(topology_, settings_, *fabric_).make_switches();
    line_up_nodes();
    connect_inboxes();
  }

 private:
  void check() const;
  void set_window();
  void make_wires();
  void make_captures();
  void make_first_subnet();
  void make_hosts();
  HostLaneSettings host_lanes(HostId id) const;
  void connect_queue_pairs();
  void line_up_nodes();
  void connect_inboxes();

  const Workload& workload_;
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
  fabric_->wires.reserve(2 * topology_.links.size());
  for (LinkId id = 0; id < topology_.links.size(); ++id) {
    const Link& link = topology_.links[id];
    for (unsigned way = 0; way < 2; ++way) {
      fabric_->wires.emplace_back(link.delay, link.overhead, link.loss, link.bit_error, seed_of(0, 2 * id + way));
      fabric_->wires.back().plan(std::move(changes[id][way]));
    }
  }
  for (const LinkEvent& event : settings_.events) {
    if (event.kind != LinkEvent::Kind::kRate) continue;
    for (unsigned way = 0; way < 2; ++way) fabric_->wires[2 * event.link + way].measure_busy();
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
  fabric_->subnets.push_back(std::make_unique<const SubnetTables>(subnet_of(topology_, settings, at_start_.up())));
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
  const Duration smallest_delay = topology_.smallest_delay();
  for (HostId id = 0; id < topology_.host_count; ++id) {
    const LinkId link_id = topology_.ports[id][0];
    const Link& link = topology_.links[link_id];
    Host::Settings host;
    host.id = id;
    host.first_switch = topology_.leaf_of(id);
    host.rate = rate_at_start(link_id, id);
    host.overhead = link.overhead;
    host.link_delay = link.delay;
    host.trigger_delay = settings_.run.trigger_delay != 0 ? settings_.run.trigger_delay : smallest_delay;
    host.seed = seed_of(1, 0);
    host.nic = nic;
    if (!settings_.events.empty()) host.goodput_interval = settings_.switches.sample_interval;
    host.log_pauses = logs_pauses();
    host.keeps_all_pauses = keeps_all_pauses();
    if (is_infiniband()) host.lanes = host_lanes(id);
    for (const LinkEvent& event : settings_.events) {
      const bool ours =
          event.at != 0 && event.link == link_id && event.kind == LinkEvent::Kind::kRate &&
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
  if (settings_.hosts.static_rate_of_path) paths.emplace(topology_, at_start_);
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

// Pod by pod, since most packets stay near: what a node has just sent is still in the cache, or in that of its thread,
// when the one that it went to runs.
void Builder::line_up_nodes() {
  std::vector<NodeId>& order = fabric_->order;
  order.resize(topology_.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [this](NodeId a, NodeId b) { return topology_.nodes[a].pod < topology_.nodes[b].pod; });
}

// Inboxes lie in the order of the nodes: all are looked at in every window, and senders write into those near them.
void Builder::connect_inboxes() {
  size_t words = 0;
  for (const NodeId node : fabric_->order) words += 2 * fabric_->node(node).inbox().words();
  fabric_->inbox_words = std::vector<Inbox::Word>(words);
  Inbox::Word* at = fabric_->inbox_words.data();
  for (const NodeId node : fabric_->order) {
    Inbox& inbox = fabric_->node(node).inbox();
    inbox.move_to(at);
    at += 2 * inbox.words();
  }
  const bool alone = settings_.run.thread_count() == 1;
  for (NodeId node = 0; node < topology_.nodes.size(); ++node) {
    LiveNode& live = fabric_->node(node);
    for (PortIndex port = 0; port < topology_.ports[node].size(); ++port) {
      wire_to(topology_.ports[node][port], node).announce_by({live.inbox(), port, alone});
    }
  }
}

}  // namespace

std::unique_ptr<Fabric> build_fabric(const Topology& topology, const Workload& workload,
                                     const FabricSettings& settings) {
  auto fabric = std::make_unique<Fabric>(workload, settings, topology);
  Builder(topology, workload, settings, *fabric).build();
  return fabric;
}

}  // namespace heddle::lab
