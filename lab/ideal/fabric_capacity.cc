#include "lab/ideal/fabric_capacity.h"

#include <algorithm>

#include "lab/host/infiniband.h"
#include "lab/ideal/shortest_ways.h"

namespace heddle::lab {
namespace {

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

// What a packet's ways are between two sizes: their smallest is concave in the size, as that of straight lines, so that
// a straight line from the smallest packet to a full one stays below it.
void put_ways(const Topology& topology, const LinkStates& states, LinkLayer layer, FabricCapacity& capacity) {
  const ShortestWays full = shortest_ways(topology, states, capacity.payload_per_packet + data_overhead(layer));
  const ShortestWays least = shortest_ways(topology, states, 1 + data_overhead(layer));
  const ShortestWays ack = shortest_ways(topology, states, ack_frame(layer));
  const double less = std::max(1.0, capacity.payload_per_packet - 1.0);
  // Where pods count for nothing, all that leave the leaf go across.
  const bool has_pods = !capacity.pod_of_host.empty();
  const auto at = [&](const ShortestWays& times, WayTier tier, WayWithout without) {
    const bool all = tier == WayTier::kAcross && !has_pods;
    return std::min(times.at(tier, without), all ? times.at(WayTier::kPod, without) : ShortestWays::kNoWay);
  };
  const auto way = [&](WayTier tier, WayWithout without) {
    const Duration most = at(full, tier, without);
    if (most == ShortestWays::kNoWay) return Way();
    return Way{most, static_cast<double>(most - at(least, tier, without)) / less};
  };
  const auto ways = [&](WayTier tier) {
    return Ways{way(tier, WayWithout::kHost), way(tier, WayWithout::kLeaf), way(tier, WayWithout::kPod)};
  };
  capacity.in_leaf = ways(WayTier::kLeaf);
  capacity.in_pod = ways(WayTier::kPod);
  capacity.across = ways(WayTier::kAcross);
  capacity.ack_one_way = ShortestWays::kNoWay;
  for (const WayTier tier : {WayTier::kLeaf, WayTier::kPod, WayTier::kAcross}) {
    capacity.ack_one_way = std::min(capacity.ack_one_way, ack.at(tier, WayWithout::kNone));
  }
  if (capacity.ack_one_way == ShortestWays::kNoWay) capacity.ack_one_way = 0;
  // A fabric of one leaf has no way across.
  if (capacity.across.host.full == 0) capacity.across = capacity.in_leaf;
}

}  // namespace

FabricCapacity capacity_of(const Topology& topology, const std::vector<LinkEvent>& events, const HostSettings& hosts,
                           Duration trigger_delay) {
  FabricCapacity capacity;
  const LinkStates states = best_states(topology, events);
  for (HostId host = 0; host < topology.host_count; ++host) {
    const LinkId id = topology.ports[host][0];
    const Rate out = states.rate(id, true);
    const Rate in = states.rate(id, false);
    capacity.host_rate.push_back(out.bits_per_second() > in.bits_per_second() ? out : in);
  }
  capacity.overhead = kMaxLinkOverhead;
  for (const Link& link : topology.links) capacity.overhead = std::min(capacity.overhead, link.overhead);
  capacity.payload_per_packet = hosts.mtu;
  capacity.parts_per_message = hosts.qps_per_connection;
  capacity.header_bytes_per_packet = data_overhead(hosts.link_layer);
  capacity.trigger_delay = trigger_delay;
  put_leaves(topology, states, capacity);
  put_pods(topology, states, capacity);
  put_ways(topology, states, hosts.link_layer, capacity);
  return capacity;
}

}  // namespace heddle::lab
