#include "lab/topology/topology.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "net/error.h"

namespace heddle::lab {

NodeId Topology::add_host(std::string name, uint32_t pod) {
  if (nodes.size() != host_count) {
    throw_failed("topology: host {} added after a switch", name);
  }
  if (host_count == kMaxHosts) {
    throw_bad_input("topology: more than {} hosts", kMaxHosts);
  }
  nodes.push_back({NodeKind::kHost, std::move(name), 0, pod});
  ports.emplace_back();
  return host_count++;
}

NodeId Topology::add_switch(std::string name, uint16_t tier, uint32_t pod) {
  if (switch_count() == kMaxSwitches) {
    throw_bad_input("topology: more than {} switches", kMaxSwitches);
  }
  nodes.push_back({NodeKind::kSwitch, std::move(name), tier, pod});
  ports.emplace_back();
  return static_cast<NodeId>(nodes.size() - 1);
}

LinkId Topology::connect(NodeId a, NodeId b, const LinkSettings& settings) {
  if (a == b) {
    throw_bad_input("topology: {} is linked to itself; accepted: a link between two nodes", nodes[a].name);
  }
  if (links.size() == kMaxLinks) {
    throw_bad_input("topology: more than {} links", kMaxLinks);
  }
  for (const NodeId end : {a, b}) {
    if (ports[end].size() == kMaxPorts) {
      throw_bad_input("topology: {} has more than {} ports", nodes[end].name, kMaxPorts);
    }
  }
  const auto link = static_cast<LinkId>(links.size());
  links.push_back({a, b, static_cast<PortIndex>(ports[a].size()), static_cast<PortIndex>(ports[b].size()),
                   settings.rate, settings.delay, settings.overhead, settings.loss, settings.bit_error});
  ports[a].push_back(link);
  ports[b].push_back(link);
  return link;
}

uint32_t Topology::pod_count() const {
  uint32_t count = 0;
  for (const Node& node : nodes) {
    count = node.pod == kNoPod ? count : std::max(count, node.pod + 1);
  }
  return count;
}

std::vector<PortIndex> Topology::uplinks(NodeId node) const {
  std::vector<PortIndex> up;
  for (size_t port = 0; port < ports[node].size(); ++port) {
    if (nodes[other_end(ports[node][port], node)].tier > nodes[node].tier) {
      up.push_back(static_cast<PortIndex>(port));
    }
  }
  return up;
}

std::vector<LinkId> Topology::links_between(NodeId x, NodeId y) const {
  std::vector<LinkId> found;
  for (const LinkId link : ports[x]) {
    if (other_end(link, x) == y) {
      found.push_back(link);
    }
  }
  return found;
}

Duration Topology::smallest_delay() const {
  Duration smallest = std::numeric_limits<Duration>::max();
  for (const Link& link : links) {
    smallest = std::min(smallest, link.delay);
  }
  return smallest;
}

std::string link_name(const Topology& topology, LinkId link) {
  const Link& l = topology.links[link];
  return fmt::format("{}:{}-{}:{}", topology.nodes[l.a].name, l.a_port, topology.nodes[l.b].name, l.b_port);
}

std::optional<NodeId> find_node(const Topology& topology, std::string_view name) {
  for (NodeId node = 0; node < topology.nodes.size(); ++node) {
    if (topology.nodes[node].name == name) {
      return node;
    }
  }
  return std::nullopt;
}

PortRef find_port(const Topology& topology, std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string_view name = text.substr(0, colon);
  const std::optional<NodeId> node = find_node(topology, name);
  if (!node) {
    throw_bad_input("'{}' is no port: there is no node '{}'; accepted: node:port with one of {}", text, name,
                    node_names(topology));
  }
  const std::string_view digits = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  const size_t count = topology.ports[*node].size();
  PortIndex port = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (status != std::errc{} || end != digits.data() + digits.size() || port >= count) {
    throw_bad_input("'{}' is no port; accepted: {}:0 to {}:{}", text, name, name, count - 1);
  }
  return {*node, port};
}

std::string node_names(const Topology& topology) {
  constexpr int kMostGroups = 12;
  const auto stem = [&](size_t node) {
    const std::string_view name = topology.nodes[node].name;
    return name.substr(0, name.find_last_not_of("0123456789") + 1);
  };
  std::string names;
  size_t first = 0;
  int groups = 0;
  for (size_t i = 1; i <= topology.nodes.size(); ++i) {
    if (i < topology.nodes.size() && stem(i) == stem(first)) {
      continue;
    }
    if (++groups > kMostGroups) {
      return names + ", …";
    }
    names += names.empty() ? "" : ", ";
    names += topology.nodes[first].name;
    names += i - first > 1 ? "…" + topology.nodes[i - 1].name : "";
    first = i;
  }
  return names;
}

}  // namespace heddle::lab
