#include "lab/fabric/probe_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "lab/topology/switch_graph.h"

namespace heddle::lab {

namespace {

constexpr uint64_t kPodLabel = uint64_t{1} << 32U;

// Leaves of the switch's own pod are told apart, those of another pod are one destination: what differs on the way
// there lies before the pod or at its door.
uint64_t label_of(const Topology& topology, NodeId from, NodeId leaf) {
  const uint32_t pod = topology.nodes[leaf].pod;
  if (pod == kNoPod || pod == topology.nodes[from].pod) return leaf;
  return kPodLabel | pod;
}

std::vector<ProbedGroup> split_by_destination(const Topology& topology, NodeId node, SwitchRoutes& routes) {
  std::vector<std::vector<PortIndex>> groups;
  std::map<std::pair<uint16_t, uint64_t>, uint16_t> split;  // old group and destination → new group
  std::map<uint16_t, ProbedGroup> probed;                   // by new group
  for (HostId host = 0; host < topology.host_count; ++host) {
    uint16_t& group = routes.group_of_host[host];
    if (group == kUnreachable) continue;
    const bool choice = routes.groups[group].size() > 1;
    const NodeId leaf = topology.leaf_of(host);
    const uint64_t label = choice ? label_of(topology, node, leaf) : 0;
    const auto [at, is_new] = split.try_emplace({group, label}, static_cast<uint16_t>(groups.size()));
    if (is_new) groups.push_back(routes.groups[group]);
    group = at->second;
    if (!choice) continue;
    ProbedGroup& of = probed[group];
    of.group = group;
    of.label = label;
    const net::IpAddress address = kFirstSwitchAddress + (leaf - topology.host_count);
    if (of.addresses.empty() || of.addresses.back() != address) of.addresses.push_back(address);
  }
  routes.groups = std::move(groups);
  std::vector<ProbedGroup> result;
  result.reserve(probed.size());
  for (auto& [group, of] : probed) result.push_back(std::move(of));
  return result;
}

// Leaves are reached as their hosts are, by the same groups and weights. To others, each set of ports once.
void add_switch_routes(const Topology& topology, const SwitchGraph& graph, std::vector<SwitchRoutes>& routes) {
  std::vector<HostId> host_of(graph.size(), topology.host_count);  // one of the switch's hosts
  for (HostId host = 0; host < topology.host_count; ++host) {
    host_of[topology.leaf_of(host) - topology.host_count] = host;
  }
  std::vector<std::map<std::vector<PortIndex>, uint16_t>> index(routes.size());
  std::vector<uint16_t> hops(graph.size());
  std::vector<PortIndex> members;
  for (uint32_t target = 0; target < graph.size(); ++target) {
    graph.distances_to(static_cast<uint16_t>(target), hops);
    for (uint32_t s = 0; s < graph.size(); ++s) {
      members.clear();
      for (const SwitchGraph::Edge edge : graph.edges(s)) {
        if (hops[s] != SwitchGraph::kFar && hops[edge.neighbor] < hops[s]) members.push_back(edge.port);
      }
      uint16_t group = kUnreachable;
      const HostId host = host_of[target];
      if (!members.empty() && host != topology.host_count && routes[s].group_of_host[host] != kUnreachable) {
        group = routes[s].group_of_host[host];
      } else if (!members.empty()) {
        const auto [at, is_new] = index[s].try_emplace(members, static_cast<uint16_t>(routes[s].groups.size()));
        if (is_new) routes[s].groups.push_back(members);
        group = at->second;
      }
      routes[s].group_of_host.push_back(group);
    }
  }
}

}  // namespace

std::vector<std::vector<ProbedGroup>> plan_probes(const Topology& topology, const std::vector<bool>& link_up,
                                                  std::vector<SwitchRoutes>& routes) {
  std::vector<std::vector<ProbedGroup>> probed;
  for (uint32_t s = 0; s < routes.size(); ++s) {
    probed.push_back(split_by_destination(topology, topology.host_count + s, routes[s]));
  }
  add_switch_routes(topology, SwitchGraph(topology, link_up), routes);
  return probed;
}

std::string destination_of_label(const Topology& topology, uint64_t label) {
  if ((label & kPodLabel) == 0) return topology.nodes[label].name;
  const auto pod = static_cast<uint32_t>(label);
  const auto of_pod = [&](const Node& node) { return node.tier == 1 && node.pod == pod; };
  // A pod with one leaf is that leaf.
  if (std::count_if(topology.nodes.begin(), topology.nodes.end(), of_pod) == 1) {
    return std::find_if(topology.nodes.begin(), topology.nodes.end(), of_pod)->name;
  }
  return fmt::format("pod{}", pod);
}

unsigned probe_hops(const Topology& topology) {
  const SwitchGraph graph(topology, std::vector<bool>(topology.links.size(), true));
  std::vector<uint16_t> hops(graph.size());
  unsigned most = 1;
  for (const uint16_t leaf : graph.leaves()) {
    graph.distances_to(leaf, hops);
    for (const uint16_t of : hops) most = std::max<unsigned>(most, of == SwitchGraph::kFar ? 0 : of);
  }
  return most;
}

}  // namespace heddle::lab
