#include "lab/ideal/fabric_capacity.h"

#include <algorithm>

#include "lab/host/infiniband.h"
#include "lab/topology/base_path.h"

namespace heddle::lab {
namespace {

// Below these, every pair of hosts (leaves) is looked at in fabrics that need not be regular.
constexpr uint32_t kFewHosts = 512;
constexpr size_t kSampledLeaves = 64;

bool is_regular(const Topology& topology) { return topology.kind != "graph" && topology.kind != "file"; }

// Every link at the best rate it ever has, down only if it is never up.
LinkStates best_states(const Topology& topology, const std::vector<LinkEvent>& events) {
  LinkStates now(topology);
  const LinkStates at_start = states_at_start(topology, events);
  std::vector<bool> was_up = at_start.up();
  std::vector<Rate> best_out(topology.links.size());
  std::vector<Rate> best_in(topology.links.size());
  const auto keep_better = [](Rate& best, Rate rate) {
    if (rate.bits_per_second() > best.bits_per_second()) best = rate;
  };
  for (LinkId link = 0; link < topology.links.size(); ++link) {
    best_out[link] = at_start.rate(link, true);
    best_in[link] = at_start.rate(link, false);
  }
  for (const LinkEvent& event : events) {
    now.apply(event);
    if (event.at == 0) continue;
    if (now.is_up(event.link)) was_up[event.link] = true;
    keep_better(best_out[event.link], now.rate(event.link, true));
    keep_better(best_in[event.link], now.rate(event.link, false));
  }
  LinkStates best(topology);
  for (LinkId link = 0; link < topology.links.size(); ++link) {
    if (!was_up[link]) best.apply({.link = link, .kind = LinkEvent::Kind::kDown});
    using Kind = LinkEvent::Kind;
    best.apply({.link = link, .kind = Kind::kRate, .direction = LinkDirection::kAToB, .rate = best_out[link]});
    best.apply({.link = link, .kind = Kind::kRate, .direction = LinkDirection::kBToA, .rate = best_in[link]});
  }
  return best;
}

void keep_smaller(Duration& smallest, Duration d) {
  if (smallest == 0 || d < smallest) smallest = d;
}

// The smallest delays between hosts, with all links up and at full rate.
class Delays {
 public:
  Delays(const Topology& topology, uint32_t payload, LinkLayer layer, FabricCapacity& capacity)
      : topology_(topology),
        paths_(topology),
        frame_(payload + data_overhead(layer)),
        ack_frame_(ack_frame(layer)),
        capacity_(capacity) {}

  void measure() {
    if (!is_regular(topology_) && topology_.host_count <= kFewHosts) {
      for (HostId src = 0; src < topology_.host_count; ++src) measure_from(src, all_hosts());
      return;
    }
    const std::vector<HostId> hosts = hosts_of_leaves();
    const size_t sources = is_regular(topology_) ? 1 : std::min(hosts.size() / 2, kSampledLeaves);
    for (size_t i = 0; i < sources; ++i) measure_from(hosts[i * (hosts.size() / sources)], hosts);
  }

 private:
  std::vector<HostId> all_hosts() const {
    std::vector<HostId> hosts(topology_.host_count);
    for (HostId host = 0; host < hosts.size(); ++host) hosts[host] = host;
    return hosts;
  }

  // Two hosts of each leaf, or the only one.
  std::vector<HostId> hosts_of_leaves() const {
    std::vector<uint8_t> seen(topology_.switch_count());
    std::vector<HostId> hosts;
    for (HostId host = 0; host < topology_.host_count; ++host) {
      uint8_t& of_leaf = seen[topology_.leaf_of(host) - topology_.host_count];
      if (of_leaf == 2) continue;
      ++of_leaf;
      hosts.push_back(host);
    }
    return hosts;
  }

  void measure_from(HostId src, const std::vector<HostId>& destinations) {
    for (const HostId dst : destinations) {
      if (src == dst) continue;
      const Duration way = one_way(src, dst);
      if (topology_.leaf_of(src) == topology_.leaf_of(dst)) {
        keep_smaller(capacity_.one_way_in_leaf, way);
      } else if (topology_.pod_of(src) == topology_.pod_of(dst)) {
        keep_smaller(capacity_.one_way_in_pod, way);
      } else {
        keep_smaller(capacity_.base_one_way, way);
      }
      keep_smaller(capacity_.ack_one_way, paths_.one_way(src, dst, ack_frame_));
    }
  }

  // Without the packet's time on the slower of the first and last link, which the message's own time holds.
  Duration one_way(HostId src, HostId dst) const {
    const auto time_on = [&](HostId host) {
      const Link& link = topology_.links[topology_.ports[host][0]];
      return link.rate.time_for(frame_ + static_cast<uint64_t>(link.overhead));
    };
    return paths_.one_way(src, dst, frame_) - std::max(time_on(src), time_on(dst));
  }

  const Topology& topology_;
  BasePaths paths_;
  uint64_t frame_;
  uint64_t ack_frame_;
  FabricCapacity& capacity_;
};

void put_leaves(const Topology& topology, const LinkStates& states, FabricCapacity& capacity) {
  constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> leaf_of_switch(topology.switch_count(), none);
  for (HostId host = 0; host < topology.host_count; ++host) {
    leaf_of_switch[topology.leaf_of(host) - topology.host_count] = 0;
  }
  const std::vector<Capacity> capacities = switch_capacities(topology, states);
  uint32_t leaves = 0;
  for (uint32_t s = 0; s < leaf_of_switch.size(); ++s) {
    if (leaf_of_switch[s] == none) continue;
    leaf_of_switch[s] = leaves++;
    capacity.leaf_up_bps.push_back(static_cast<double>(capacities[s].out));
    capacity.leaf_down_bps.push_back(static_cast<double>(capacities[s].in));
  }
  for (HostId host = 0; host < topology.host_count; ++host) {
    capacity.leaf_of_host.push_back(leaf_of_switch[topology.leaf_of(host) - topology.host_count]);
  }
}

// Only where pods are not just the leaves again.
void put_pods(const Topology& topology, const LinkStates& states, FabricCapacity& capacity) {
  const uint32_t pods = topology.pod_count();
  if (pods < 2 || pods >= capacity.leaf_up_bps.size()) return;
  for (HostId host = 0; host < topology.host_count; ++host) {
    if (topology.pod_of(host) >= pods) {
      capacity.pod_of_host.clear();
      return;
    }
    capacity.pod_of_host.push_back(topology.pod_of(host));
  }
  for (const Capacity& c : pod_capacities(topology, states)) {
    capacity.pod_up_bps.push_back(static_cast<double>(c.out));
    capacity.pod_down_bps.push_back(static_cast<double>(c.in));
  }
}

}  // namespace

LinkStates states_at_start(const Topology& topology, const std::vector<LinkEvent>& events) {
  LinkStates states(topology);
  for (const LinkEvent& event : events) {
    if (event.at == 0) states.apply(event);
  }
  return states;
}

FabricCapacity capacity_of(const Topology& topology, const std::vector<LinkEvent>& events, const HostSettings& hosts,
                           Duration trigger_delay, uint64_t smallest_message) {
  FabricCapacity capacity;
  const LinkStates states = best_states(topology, events);
  int overhead = kMaxLinkOverhead;
  for (HostId host = 0; host < topology.host_count; ++host) {
    const LinkId id = topology.ports[host][0];
    const Rate out = states.rate(id, true);
    const Rate in = states.rate(id, false);
    capacity.host_rate.push_back(out.bits_per_second() > in.bits_per_second() ? out : in);
    overhead = std::min(overhead, topology.links[id].overhead);
  }
  capacity.payload_per_packet = hosts.mtu;
  capacity.header_bytes_per_packet = data_overhead(hosts.link_layer);
  capacity.overhead = overhead;
  capacity.trigger_delay = trigger_delay;
  put_leaves(topology, states, capacity);
  put_pods(topology, states, capacity);
  const auto payload = static_cast<uint32_t>(std::min<uint64_t>(hosts.mtu, smallest_message));
  Delays(topology, payload, hosts.link_layer, capacity).measure();
  // A fabric of one leaf, or one pod, has no way across.
  if (capacity.base_one_way == 0) capacity.base_one_way = std::max(capacity.one_way_in_leaf, capacity.one_way_in_pod);
  return capacity;
}

}  // namespace heddle::lab
