#include "lab/topology/switch_graph.h"

#include <algorithm>

namespace heddle::lab {

SwitchGraph::SwitchGraph(const Topology& topology, const std::vector<bool>& link_up) {
  const uint32_t count = topology.switch_count();
  first_.reserve(count + 1);
  std::vector<uint16_t> index_of_leaf(count);
  for (uint32_t s = 0; s < count; ++s) {
    const NodeId node = topology.host_count + s;
    first_.push_back(static_cast<uint32_t>(edges_.size()));
    bool has_host = false;
    for (size_t port = 0; port < topology.ports[node].size(); ++port) {
      const LinkId link = topology.ports[node][port];
      const NodeId other = topology.other_end(link, node);
      has_host |= topology.is_host(other);
      if (!topology.is_host(other) && link_up[link]) {
        edges_.push_back({static_cast<PortIndex>(port), static_cast<uint16_t>(other - topology.host_count)});
      }
    }
    if (has_host) {
      index_of_leaf[s] = static_cast<uint16_t>(leaves_.size());
      leaves_.push_back(static_cast<uint16_t>(s));
    }
  }
  first_.push_back(static_cast<uint32_t>(edges_.size()));
  leaf_of_host_.reserve(topology.host_count);
  for (HostId host = 0; host < topology.host_count; ++host) {
    leaf_of_host_.push_back(index_of_leaf[topology.leaf_of(host) - topology.host_count]);
  }
}

std::vector<uint16_t> SwitchGraph::distances_to(uint16_t target, std::span<uint16_t> distances) const {
  std::fill(distances.begin(), distances.end(), kFar);
  std::vector<uint16_t> reached = {target};
  reached.reserve(size());
  distances[target] = 0;
  for (size_t i = 0; i < reached.size(); ++i) {
    const auto next = static_cast<uint16_t>(distances[reached[i]] + 1);
    for (const Edge edge : edges(reached[i])) {
      if (distances[edge.neighbor] == kFar) {
        distances[edge.neighbor] = next;
        reached.push_back(edge.neighbor);
      }
    }
  }
  return reached;
}

}  // namespace heddle::lab
