#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "lab/topology/topology.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

void check_counts(const Topology& topology) {
  if (topology.host_count == 0 || topology.switch_count() == 0) {
    throw_bad_input("topology: {} hosts and {} switches; accepted: at least one of each", topology.host_count,
                    topology.switch_count());
  }
  if (topology.hosts_per_server == 0 || topology.host_count % topology.hosts_per_server != 0) {
    throw_bad_input("topology: {} hosts do not make whole servers of {} each", topology.host_count,
                    topology.hosts_per_server);
  }
}

void check_names(const Topology& topology) {
  std::vector<std::string_view> names;
  for (const Node& node : topology.nodes) {
    names.push_back(node.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw_bad_input("topology: two nodes are called '{}'; accepted: unique names", *twice);
  }
  if (names.front().empty()) {
    throw_bad_input("topology: a node without a name");
  }
}

// NaN fails both comparisons.
bool is_probability(double p) { return p >= 0 && p < 1; }

void check_link(const Topology& topology, LinkId id) {
  const Link& link = topology.links[id];
  if (link.rate.bits_per_second() < kMinLinkRate.bits_per_second() ||
      link.rate.bits_per_second() > kMaxLinkRate.bits_per_second()) {
    throw_bad_input("topology: link {} has a rate of {} Gb/s; accepted: {} to {}", link_name(topology, id),
                    link.rate.gbps(), kMinLinkRate.gbps(), kMaxLinkRate.gbps());
  }
  if (link.delay < kMinLinkDelay || link.delay > kMaxLinkDelay) {
    throw_bad_input("topology: link {} has a delay of {} us; accepted: {} to {}", link_name(topology, id),
                    to_microseconds(link.delay), to_microseconds(kMinLinkDelay), to_microseconds(kMaxLinkDelay));
  }
  if (link.overhead < kMinLinkOverhead || link.overhead > kMaxLinkOverhead) {
    throw_bad_input("topology: link {} has an overhead of {} bytes; accepted: {} to {}", link_name(topology, id),
                    link.overhead, kMinLinkOverhead, kMaxLinkOverhead);
  }
  if (!is_probability(link.loss) || !is_probability(link.bit_error)) {
    throw_bad_input("topology: link {} has loss {} and bit error {}; accepted: from 0 to below 1",
                    link_name(topology, id), link.loss, link.bit_error);
  }
}

// Ports and links must name each other: everything downstream indexes by them without looking again.
void check_ports(const Topology& topology) {
  size_t ends = 0;
  for (NodeId node = 0; node < topology.nodes.size(); ++node) {
    const std::vector<LinkId>& ports = topology.ports[node];
    ends += ports.size();
    for (size_t port = 0; port < ports.size(); ++port) {
      const Link& link = topology.links.at(ports[port]);
      if (!((link.a == node && link.a_port == port) || (link.b == node && link.b_port == port))) {
        throw_failed("topology: port {} of {} and its link disagree", port, topology.nodes[node].name);
      }
    }
    if (ports.empty()) {
      throw_bad_input("topology: {} has no link", topology.nodes[node].name);
    }
  }
  if (ends != 2 * topology.links.size()) {
    throw_failed("topology: {} links but {} link ends", topology.links.size(), ends);
  }
}

void check_hosts(const Topology& topology) {
  for (HostId host = 0; host < topology.host_count; ++host) {
    if (topology.ports[host].size() != 1) {
      throw_bad_input("topology: {} has {} links; accepted: one (a server with N NICs is N hosts)",
                      topology.nodes[host].name, topology.ports[host].size());
    }
    if (topology.is_host(topology.leaf_of(host))) {
      throw_bad_input("topology: {} and {} are linked directly; accepted: hosts linked to switches",
                      topology.nodes[host].name, topology.nodes[topology.leaf_of(host)].name);
    }
  }
}

void check_connected(const Topology& topology) {
  std::vector<bool> reached(topology.nodes.size());
  std::vector<NodeId> queue = {topology.leaf_of(0)};
  reached[queue[0]] = true;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const LinkId link : topology.ports[queue[i]]) {
      const NodeId next = topology.other_end(link, queue[i]);
      if (!reached[next]) {
        reached[next] = true;
        queue.push_back(next);
      }
    }
  }
  for (HostId host = 0; host < topology.host_count; ++host) {
    if (!reached[host]) {
      throw_bad_input("topology: there is no path from {} to {}", topology.nodes[0].name, topology.nodes[host].name);
    }
  }
}

}  // namespace

void validate(const Topology& topology) {
  check_counts(topology);
  check_names(topology);
  check_ports(topology);
  for (LinkId link = 0; link < topology.links.size(); ++link) {
    check_link(topology, link);
  }
  check_hosts(topology);
  check_connected(topology);
}

}  // namespace heddle::lab
