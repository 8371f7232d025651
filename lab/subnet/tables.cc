#include "lab/subnet/tables.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include <tbb/parallel_for.h>

#include "lab/topology/switch_graph.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr uint16_t kFar = SwitchGraph::kFar;

// The equally good ports of each switch on the way to one leaf; none where there is no way.
using WaysToLeaf = std::vector<std::vector<PortIndex>>;
// Fills the ways to the leaf that is switch `leaf`.
using FindWays = std::function<void(const SwitchGraph& graph, uint16_t leaf, WaysToLeaf& ways)>;

// d of the header: by tier, the product of the uplinks of the tiers below it.
std::vector<uint64_t> divisors_by_tier(const Topology& topology) {
  uint16_t top = 1;
  for (const Node& node : topology.nodes) top = std::max(top, node.tier);
  std::vector<uint64_t> uplinks(top + 1U, 1);
  for (NodeId node = topology.host_count; node < topology.nodes.size(); ++node) {
    uint64_t& most = uplinks[topology.nodes[node].tier];
    most = std::max<uint64_t>(most, topology.uplinks(node).size());
  }
  std::vector<uint64_t> divisors(top + 1U, 1);
  // More than the hosts there can be chooses the first port anyway.
  for (uint16_t tier = 2; tier <= top; ++tier) {
    divisors[tier] = std::min<uint64_t>(divisors[tier - 1] * uplinks[tier - 1], kMaxHosts);
  }
  return divisors;
}

std::vector<std::vector<HostId>> hosts_by_leaf(const Topology& topology, const SwitchGraph& graph) {
  std::vector<std::vector<HostId>> hosts(graph.leaves().size());
  for (HostId host = 0; host < topology.host_count; ++host) hosts[graph.leaf_of(host)].push_back(host);
  return hosts;
}

PortIndex port_to_host(const Topology& topology, HostId host) {
  const Link& link = topology.links[topology.ports[host][0]];
  return link.a == host ? link.b_port : link.a_port;
}

// Enters one host's LIDs everywhere.
void fill_host(const Topology& topology, const WaysToLeaf& ways, const std::vector<uint64_t>& divisors, HostId host,
               uint32_t leaf, SubnetTables& tables) {
  for (uint32_t s = 0; s < tables.switches.size(); ++s) {
    const uint64_t divisor = divisors[topology.nodes[topology.host_count + s].tier];
    for (uint32_t path = 0; path < tables.paths_per_host(); ++path) {
      uint8_t& entry = tables.switches[s].lft[tables.host_lids[host] + path];
      if (s == leaf) {
        entry = static_cast<uint8_t>(port_to_host(topology, host) + 1);
      } else if (!ways[s].empty()) {
        entry = static_cast<uint8_t>(ways[s][(host + path) / divisor % ways[s].size()] + 1);
      }
    }
  }
}

// Enters the LIDs of all switches: the subnet manager's own packets go there.
void fill_switches(const SwitchGraph& graph, const FindWays& find_ways, SubnetTables& tables) {
  tbb::parallel_for(uint32_t{0}, graph.size(), [&](uint32_t target) {
    WaysToLeaf ways(graph.size());
    find_ways(graph, static_cast<uint16_t>(target), ways);
    for (uint32_t s = 0; s < graph.size(); ++s) {
      uint8_t& entry = tables.switches[s].lft[tables.switches[target].lid];
      if (s == target) {
        entry = kLftSelf;
      } else if (!ways[s].empty()) {
        entry = static_cast<uint8_t>(ways[s][target % ways[s].size()] + 1);
      }
    }
  });
}

SubnetTables fill_tables(const Topology& topology, const std::vector<bool>& link_up, uint8_t lmc, const char* engine,
                         const FindWays& find_ways) {
  SubnetTables tables = number_subnet(topology, lmc);
  tables.engine = engine;
  const SwitchGraph graph(topology, link_up);
  const std::vector<uint64_t> divisors = divisors_by_tier(topology);
  const std::vector<std::vector<HostId>> hosts = hosts_by_leaf(topology, graph);
  // Leaves write entries of different LIDs, bytes of their own.
  tbb::parallel_for(size_t{0}, hosts.size(), [&](size_t leaf) {
    WaysToLeaf ways(graph.size());
    find_ways(graph, graph.leaves()[leaf], ways);
    for (const HostId host : hosts[leaf]) {
      if (link_up[topology.ports[host][0]]) {
        fill_host(topology, ways, divisors, host, graph.leaves()[leaf], tables);
      }
    }
  });
  fill_switches(graph, find_ways, tables);
  return tables;
}

void find_shortest(const SwitchGraph& graph, uint16_t leaf, WaysToLeaf& ways) {
  std::vector<uint16_t> hops(graph.size());
  graph.distances_to(leaf, hops);
  for (uint32_t s = 0; s < graph.size(); ++s) {
    for (const SwitchGraph::Edge edge : graph.edges(s)) {
      if (hops[edge.neighbor] != kFar && hops[edge.neighbor] < hops[s]) ways[s].push_back(edge.port);
    }
  }
}

// The order in which "up" leads: nearer to a root, and between equals to the switch that comes first.
class UpDown {
 public:
  UpDown(const SwitchGraph& graph, std::vector<uint16_t> ranks) : ranks_(std::move(ranks)), from_root_(graph.size()) {
    std::iota(from_root_.begin(), from_root_.end(), uint16_t{0});
    std::sort(from_root_.begin(), from_root_.end(), [this](uint16_t a, uint16_t b) { return above(a, b); });
  }

  // A switch from which the leaf can be reached by going down alone must go down: the packet may have come down to it.
  // All others go up by the port from which the rest is shortest.
  void find_ways(const SwitchGraph& graph, uint16_t leaf, WaysToLeaf& ways) const {
    std::vector<uint16_t> down(graph.size(), kFar);
    down[leaf] = 0;
    for (size_t i = from_root_.size(); i-- > 0;) extend(graph, from_root_[i], false, down, down);
    std::vector<uint16_t> hops = down;
    for (const uint16_t s : from_root_) {
      if (down[s] == kFar) extend(graph, s, true, hops, hops);
    }
    for (uint32_t s = 0; s < graph.size(); ++s) {
      if (s == leaf || hops[s] == kFar) continue;
      const bool go_up = down[s] == kFar;
      const std::vector<uint16_t>& left = go_up ? hops : down;
      for (const SwitchGraph::Edge edge : graph.edges(s)) {
        if (above(edge.neighbor, static_cast<uint16_t>(s)) == go_up && left[edge.neighbor] + 1 == hops[s]) {
          ways[s].push_back(edge.port);
        }
      }
    }
  }

 private:
  bool above(uint16_t a, uint16_t b) const { return ranks_[a] != ranks_[b] ? ranks_[a] < ranks_[b] : a < b; }

  // `to[s]` becomes one more than the best of `from` among the neighbours above or below.
  void extend(const SwitchGraph& graph, uint16_t s, bool up, const std::vector<uint16_t>& from,
              std::vector<uint16_t>& to) const {
    for (const SwitchGraph::Edge edge : graph.edges(s)) {
      if (above(edge.neighbor, s) == up && from[edge.neighbor] != kFar) {
        to[s] = std::min<uint16_t>(to[s], static_cast<uint16_t>(from[edge.neighbor] + 1));
      }
    }
  }

  std::vector<uint16_t> ranks_;
  std::vector<uint16_t> from_root_;
};

// The highest tier where there are several, or else the first switch in the middle.
std::vector<uint16_t> roots_of(const Topology& topology, const SwitchGraph& graph) {
  uint16_t lowest = UINT16_MAX;
  uint16_t highest = 0;
  for (NodeId node = topology.host_count; node < topology.nodes.size(); ++node) {
    lowest = std::min(lowest, topology.nodes[node].tier);
    highest = std::max(highest, topology.nodes[node].tier);
  }
  std::vector<uint16_t> roots;
  if (lowest != highest) {
    for (uint32_t s = 0; s < graph.size(); ++s) {
      if (topology.nodes[topology.host_count + s].tier == highest) roots.push_back(static_cast<uint16_t>(s));
    }
    return roots;
  }
  uint16_t best = kFar;
  std::vector<uint16_t> hops(graph.size());
  for (uint32_t s = 0; s < graph.size(); ++s) {
    graph.distances_to(static_cast<uint16_t>(s), hops);
    const uint16_t farthest = *std::max_element(hops.begin(), hops.end());
    if (roots.empty() || farthest < best) {
      best = farthest;
      roots = {static_cast<uint16_t>(s)};
    }
  }
  return roots;
}

std::vector<uint16_t> ranks_from(const SwitchGraph& graph, std::vector<uint16_t> queue) {
  std::vector<uint16_t> ranks(graph.size(), kFar);
  for (const uint16_t root : queue) ranks[root] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const SwitchGraph::Edge edge : graph.edges(queue[i])) {
      if (ranks[edge.neighbor] == kFar) {
        ranks[edge.neighbor] = static_cast<uint16_t>(ranks[queue[i]] + 1);
        queue.push_back(edge.neighbor);
      }
    }
  }
  return ranks;
}

// Whether leaves that have a way to each other have one that goes up first and then down.
bool connects_leaves(const SwitchGraph& graph, const std::vector<uint16_t>& ranks) {
  const UpDown order(graph, ranks);
  std::vector<uint16_t> hops(graph.size());
  for (const uint16_t leaf : graph.leaves()) {
    WaysToLeaf ways(graph.size());
    order.find_ways(graph, leaf, ways);
    graph.distances_to(leaf, hops);
    for (const uint16_t other : graph.leaves()) {
      if (other != leaf && hops[other] != kFar && ways[other].empty()) return false;
    }
  }
  return true;
}

// With several roots, failures can leave leaves without a root in common; a single root is above all that it reaches.
std::vector<uint16_t> ranks_of(const Topology& topology, const SwitchGraph& graph) {
  const std::vector<uint16_t> roots = roots_of(topology, graph);
  std::vector<uint16_t> ranks = ranks_from(graph, roots);
  if (roots.size() == 1 || connects_leaves(graph, ranks)) return ranks;
  size_t most = 0;
  std::vector<uint16_t> hops(graph.size());
  for (const uint16_t root : roots) {
    const size_t reached = graph.distances_to(root, hops).size();
    if (reached > most) {
      most = reached;
      ranks = ranks_from(graph, {root});
    }
  }
  return ranks;
}

}  // namespace

uint32_t SubnetTables::lanes() const {
  std::array<bool, kServiceLevels> used{};
  used[0] = true;
  for (const uint8_t level : path_sl) used[level % kServiceLevels] = true;
  uint32_t lanes = 1;
  const auto look_at = [&](const std::vector<SlToVl>& maps) {
    for (const SlToVl& map : maps) {
      for (uint32_t level = 0; level < kServiceLevels; ++level) {
        if (used[level] && map[level] < kDataLanes) lanes = std::max(lanes, map[level] + 1U);
      }
    }
  };
  for (const SwitchTables& at : switches) look_at(at.sl_to_vl);
  look_at(host_sl_to_vl);
  return lanes;
}

SubnetTables number_subnet(const Topology& topology, uint8_t lmc) {
  if (lmc > kMaxLmc) throw_bad_input("subnet: LMC is {}; accepted: 0 to {}", lmc, kMaxLmc);
  for (NodeId node = topology.host_count; node < topology.nodes.size(); ++node) {
    if (topology.ports[node].size() > kMaxSubnetPorts) {
      throw_bad_input("subnet: {} has {} ports; accepted: up to {}", topology.nodes[node].name,
                      topology.ports[node].size(), kMaxSubnetPorts);
    }
  }
  SubnetTables tables;
  tables.lmc = lmc;
  const uint64_t first_switch = uint64_t{topology.host_count + 1} << lmc;
  const uint64_t last = first_switch + topology.switch_count() - 1;
  if (last > kLastUnicastLid) {
    throw_bad_input("subnet: {} hosts with {} LIDs each and {} switches need {} LIDs; accepted: up to {}",
                    topology.host_count, 1U << lmc, topology.switch_count(), last, kLastUnicastLid);
  }
  tables.host_lids.reserve(topology.host_count);
  for (HostId host = 0; host < topology.host_count; ++host) {
    tables.host_lids.push_back(static_cast<Lid>((host + 1U) << lmc));
  }
  tables.switches.resize(topology.switch_count());
  for (uint32_t s = 0; s < topology.switch_count(); ++s) {
    tables.switches[s].lid = static_cast<Lid>(first_switch + s);
    tables.switches[s].ports = static_cast<uint32_t>(topology.ports[topology.host_count + s].size());
    tables.switches[s].lft.assign(last + 1, kLftUnreachable);
  }
  return tables;
}

SubnetTables shortest_path_tables(const Topology& topology, const std::vector<bool>& link_up, uint8_t lmc) {
  return fill_tables(topology, link_up, lmc, "shortest-path", find_shortest);
}

SubnetTables up_down_tables(const Topology& topology, const std::vector<bool>& link_up, uint8_t lmc) {
  const SwitchGraph graph(topology, link_up);
  const UpDown order(graph, ranks_of(topology, graph));
  return fill_tables(
      topology, link_up, lmc, "up-down",
      [&order](const SwitchGraph& g, uint16_t leaf, WaysToLeaf& ways) { order.find_ways(g, leaf, ways); });
}

std::vector<uint16_t> up_down_ranks(const Topology& topology, const std::vector<bool>& link_up) {
  return ranks_of(topology, SwitchGraph(topology, link_up));
}

}  // namespace heddle::lab
