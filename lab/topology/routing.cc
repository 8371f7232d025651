#include "lab/topology/routing.h"

#include <map>
#include <span>
#include <utility>

#include <tbb/parallel_for.h>

#include "lab/topology/switch_graph.h"

namespace heddle::lab {
namespace {

// Hops from every leaf to every switch, a row per leaf. All hosts of a leaf share a row: they differ only in the last
// hop. A k = 40 fat-tree has 800 leaves for 16,000 hosts.
class DistanceTable {
 public:
  explicit DistanceTable(const SwitchGraph& graph) : width_(graph.size()), hops_(graph.leaves().size() * width_) {
    tbb::parallel_for(size_t{0}, graph.leaves().size(),
                      [&](size_t leaf) { graph.distances_to(graph.leaves()[leaf], row(leaf)); });
  }

  std::span<const uint16_t> to_leaf(size_t leaf) const { return {hops_.data() + leaf * width_, width_}; }

 private:
  std::span<uint16_t> row(size_t leaf) { return {hops_.data() + leaf * width_, width_}; }

  size_t width_;
  std::vector<uint16_t> hops_;
};

// Collects the groups of one switch, each set of ports once.
class GroupSet {
 public:
  explicit GroupSet(SwitchRoutes& routes) : routes_(routes) {}

  uint16_t add(const std::vector<PortIndex>& members) {
    if (members.empty()) {
      return kUnreachable;
    }
    const auto [place, is_new] = index_.try_emplace(members, static_cast<uint16_t>(routes_.groups.size()));
    if (is_new) {
      routes_.groups.push_back(members);
    }
    return place->second;
  }

 private:
  SwitchRoutes& routes_;
  std::map<std::vector<PortIndex>, uint16_t> index_;
};

// The ports of switch `s` whose far end is one hop nearer to the leaf.
void members_towards(const SwitchGraph& graph, std::span<const uint16_t> hops, uint32_t s,
                     std::vector<PortIndex>& members) {
  members.clear();
  if (hops[s] == SwitchGraph::kFar) {
    return;
  }
  for (const SwitchGraph::Edge edge : graph.edges(s)) {
    if (hops[edge.neighbor] < hops[s]) {
      members.push_back(edge.port);
    }
  }
}

SwitchRoutes routes_of_switch(const Topology& topology, const SwitchGraph& graph, const DistanceTable& distances,
                              const std::vector<bool>& link_up, uint32_t s) {
  constexpr uint16_t kUnknown = kUnreachable - 1;  // more than kMaxPorts + kMaxSwitches, so never a group
  static_assert(kUnknown >= kMaxPorts + kMaxSwitches);
  SwitchRoutes routes;
  routes.group_of_host.reserve(topology.host_count);
  GroupSet groups(routes);
  std::vector<uint16_t> group_of_leaf(graph.leaves().size(), kUnknown);
  std::vector<PortIndex> members;
  for (HostId host = 0; host < topology.host_count; ++host) {
    const LinkId last_hop = topology.ports[host][0];
    if (!link_up[last_hop]) {
      routes.group_of_host.push_back(kUnreachable);
      continue;
    }
    const uint16_t leaf = graph.leaf_of(host);
    if (graph.leaves()[leaf] == s) {
      const Link& link = topology.links[last_hop];
      routes.group_of_host.push_back(groups.add({link.a == host ? link.b_port : link.a_port}));
      continue;
    }
    if (group_of_leaf[leaf] == kUnknown) {
      members_towards(graph, distances.to_leaf(leaf), s, members);
      group_of_leaf[leaf] = groups.add(members);
    }
    routes.group_of_host.push_back(group_of_leaf[leaf]);
  }
  return routes;
}

}  // namespace

std::vector<SwitchRoutes> compute_routes(const Topology& topology, const std::vector<bool>& link_up) {
  const SwitchGraph graph(topology, link_up);
  const DistanceTable distances(graph);
  std::vector<SwitchRoutes> routes(graph.size());
  tbb::parallel_for(size_t{0}, routes.size(), [&](size_t s) {
    routes[s] = routes_of_switch(topology, graph, distances, link_up, static_cast<uint32_t>(s));
  });
  return routes;
}

size_t routes_bytes(const Topology& topology) {
  return size_t{topology.switch_count()} * (topology.host_count * sizeof(uint16_t) + sizeof(SwitchRoutes));
}

}  // namespace heddle::lab
