#include "lab/topology/base_path.h"

#include <algorithm>
#include <utility>

namespace heddle::lab {

BasePaths::BasePaths(const Topology& topology, LinkStates states)
    : topology_(topology),
      states_(std::move(states)),
      graph_(topology, states_.up()),
      trees_(std::make_unique<Tree[]>(graph_.leaves().size())) {}

std::vector<LinkId> BasePaths::path(HostId src, HostId dst) const {
  std::vector<LinkId> links;
  const LinkId first = topology_.ports[src][0];
  const LinkId last = topology_.ports[dst][0];
  if (src == dst || !states_.is_up(first) || !states_.is_up(last)) {
    return links;
  }
  links.push_back(first);
  const Tree& tree = tree_to(graph_.leaf_of(dst));
  NodeId node = topology_.leaf_of(src);
  while (node != topology_.leaf_of(dst)) {
    const PortIndex port = tree.next[node - topology_.host_count];
    if (port == kNoPort) {
      return {};
    }
    links.push_back(topology_.ports[node][port]);
    node = topology_.neighbor(node, port);
  }
  links.push_back(last);
  return links;
}

Rate BasePaths::bottleneck_rate(HostId src, HostId dst) const {
  Rate slowest = Rate::unlimited();
  NodeId node = src;
  for (const LinkId link : path(src, dst)) {
    const Rate rate = rate_from(link, node);
    if (slowest.is_unlimited() || rate.bits_per_second() < slowest.bits_per_second()) {
      slowest = rate;
    }
    node = topology_.other_end(link, node);
  }
  return slowest;
}

Duration BasePaths::delay(HostId src, HostId dst) const {
  Duration sum = 0;
  for (const LinkId link : path(src, dst)) {
    sum += topology_.links[link].delay;
  }
  return sum;
}

Duration BasePaths::one_way(HostId src, HostId dst, uint64_t frame_bytes) const {
  Duration sum = 0;
  NodeId node = src;
  for (const LinkId id : path(src, dst)) {
    const Link& link = topology_.links[id];
    sum += link.delay + rate_from(id, node).time_for(frame_bytes + static_cast<uint64_t>(link.overhead));
    node = topology_.other_end(id, node);
  }
  return sum;
}

const BasePaths::Tree& BasePaths::tree_to(uint16_t leaf) const {
  Tree& tree = trees_[leaf];
  std::call_once(tree.made, [&] { fill(tree, graph_.leaves()[leaf]); });
  return tree;
}

// Nearest switches first, so that every neighbour one hop nearer knows the width and delay of its own way already.
void BasePaths::fill(Tree& tree, uint16_t target) const {
  struct Way {
    uint64_t width = 0;  // bits per second
    Duration delay = 0;
  };
  std::vector<uint16_t> hops(graph_.size());
  const std::vector<uint16_t> reached = graph_.distances_to(target, hops);
  std::vector<Way> ways(graph_.size());
  ways[target].width = UINT64_MAX;
  tree.next.assign(graph_.size(), kNoPort);
  for (const uint16_t s : reached) {
    const NodeId node = topology_.host_count + s;
    for (const SwitchGraph::Edge edge : graph_.edges(s)) {
      if (hops[edge.neighbor] >= hops[s]) {
        continue;
      }
      const LinkId link = topology_.ports[node][edge.port];
      const Way way = {std::min(rate_from(link, node).bits_per_second(), ways[edge.neighbor].width),
                       topology_.links[link].delay + ways[edge.neighbor].delay};
      const bool better = way.width != ways[s].width ? way.width > ways[s].width : way.delay < ways[s].delay;
      if (tree.next[s] == kNoPort || better) {
        tree.next[s] = edge.port;
        ways[s] = way;
      }
    }
  }
}

Rate BasePaths::rate_from(LinkId link, NodeId sender) const {
  return states_.rate(link, topology_.links[link].a == sender);
}

}  // namespace heddle::lab
