#include <algorithm>
#include <string>
#include <unordered_map>

#include <fmt/format.h>

#include "lab/topology/builders.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

uint64_t count_hosts(const GraphSettings& settings) {
  uint64_t hosts = settings.hosts.size();
  for (const GraphSwitch& s : settings.switches) {
    hosts += s.hosts;
  }
  if (hosts > kMaxHosts) {
    throw_bad_input("graph: {} hosts; accepted: up to {}", hosts, kMaxHosts);
  }
  return hosts;
}

// Names to nodes, for the links.
class NodeIndex {
 public:
  explicit NodeIndex(const Topology& topology) : topology_(topology) {
    for (NodeId node = 0; node < topology.nodes.size(); ++node) {
      nodes_.emplace(topology.nodes[node].name, node);
    }
  }

  NodeId at(const std::string& name) const {
    const auto place = nodes_.find(name);
    if (place == nodes_.end()) {
      throw_bad_input("graph: a link names '{}', which is no node; accepted: {}", name, node_names(topology_));
    }
    return place->second;
  }

 private:
  const Topology& topology_;
  std::unordered_map<std::string, NodeId> nodes_;
};

void add_nodes(Topology& topology, const GraphSettings& settings) {
  const uint64_t hosts = count_hosts(settings);
  for (const std::string& name : settings.hosts) {
    topology.add_host(name, kNoPod);
  }
  for (HostId host = topology.host_count; host < hosts; ++host) {
    topology.add_host(fmt::format("host{}", host), kNoPod);
  }
  for (const GraphSwitch& s : settings.switches) {
    topology.add_switch(s.name, s.tier, kNoPod);
  }
}

// Hops from every node to the nearest host; kNoPod where there is none.
std::vector<uint32_t> hops_from_hosts(const Topology& topology) {
  std::vector<uint32_t> hops(topology.nodes.size(), kNoPod);
  std::vector<NodeId> queue;
  for (HostId host = 0; host < topology.host_count; ++host) {
    hops[host] = 0;
    queue.push_back(host);
  }
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const LinkId link : topology.ports[queue[i]]) {
      const NodeId next = topology.other_end(link, queue[i]);
      if (hops[next] == kNoPod) {
        hops[next] = hops[queue[i]] + 1;
        queue.push_back(next);
      }
    }
  }
  return hops;
}

// Puts `start` and all that it reaches over switches below tier `top` into `pod`.
void flood_pod(Topology& topology, NodeId start, uint16_t top, uint32_t pod) {
  std::vector<NodeId> queue = {start};
  topology.nodes[start].pod = pod;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const LinkId link : topology.ports[queue[i]]) {
      const NodeId next = topology.other_end(link, queue[i]);
      Node& node = topology.nodes[next];
      if (node.kind == NodeKind::kSwitch && node.tier < top && node.pod == kNoPod) {
        node.pod = pod;
        queue.push_back(next);
      }
    }
  }
}

}  // namespace

void derive_tiers_and_pods(Topology& topology) {
  const std::vector<uint32_t> hops = hops_from_hosts(topology);
  uint16_t top = 0;
  for (NodeId node = topology.host_count; node < topology.nodes.size(); ++node) {
    uint16_t& tier = topology.nodes[node].tier;
    if (tier == 0) {
      tier = static_cast<uint16_t>(std::min<uint32_t>(hops[node], UINT16_MAX));
    }
    top = std::max(top, tier);
  }
  uint32_t pods = 0;
  for (HostId host = 0; host < topology.host_count; ++host) {
    if (topology.ports[host].empty()) {
      continue;  // refused by validate
    }
    Node& leaf = topology.nodes[topology.leaf_of(host)];
    if (leaf.kind == NodeKind::kSwitch && leaf.pod == kNoPod) {
      if (top >= 3) {
        flood_pod(topology, topology.leaf_of(host), top, pods++);
      } else {
        leaf.pod = pods++;
      }
    }
    topology.nodes[host].pod = leaf.pod;
  }
}

Topology build_graph(const GraphSettings& settings) {
  Topology topology;
  topology.kind = "graph";
  topology.hosts_per_server = settings.hosts_per_server;
  add_nodes(topology, settings);
  auto host = static_cast<HostId>(settings.hosts.size());
  for (uint32_t s = 0; s < settings.switches.size(); ++s) {
    for (uint32_t i = 0; i < settings.switches[s].hosts; ++i) {
      topology.connect(host++, topology.host_count + s, settings.switches[s].host_link);
    }
  }
  const NodeIndex index(topology);
  for (const GraphLink& link : settings.links) {
    if (link.count == 0) {
      throw_bad_input("graph: 0 links between {} and {}; accepted: 1 or more", link.a, link.b);
    }
    for (uint32_t i = 0; i < link.count; ++i) {
      topology.connect(index.at(link.a), index.at(link.b), link.link);
    }
  }
  derive_tiers_and_pods(topology);
  validate(topology);
  return topology;
}

}  // namespace heddle::lab
