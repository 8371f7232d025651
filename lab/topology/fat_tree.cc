#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "lab/topology/builders.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr uint32_t kSmallestK = 4;
constexpr uint32_t kLargestK = 64;

// `part` of a switch's ports as a whole number, or an error that names them.
uint32_t whole_ports(double part, const char* which, const FatTreeSettings& settings) {
  const double rounded = std::round(part);
  if (!(part >= 1) || part > kMaxPorts || std::abs(part - rounded) > 1e-6) {
    throw_bad_input(
        "fat-tree: oversubscription {} gives an edge switch {:.3f} {}; accepted: a value for which that is "
        "a whole number",
        settings.oversubscription, part, which);
  }
  return static_cast<uint32_t>(rounded);
}

double hosts_of_k(uint32_t k, double oversubscription) { return k * k * k / 4.0 * oversubscription; }

// "16, 54, 128, …, 1024", up to the first that is not below `hosts`.
std::string accepted_hosts(uint32_t hosts, double oversubscription) {
  std::string list;
  for (uint32_t k = kSmallestK; k <= kLargestK; k += 2) {
    const double size = hosts_of_k(k, oversubscription);
    list += fmt::format("{}{:g}", list.empty() ? "" : ", ", size);
    if (size > hosts) {
      return list + ", …";
    }
  }
  return list;
}

// The smallest even k whose fabric holds `hosts`, if it holds exactly that many.
uint32_t k_of_hosts(uint32_t hosts, double oversubscription) {
  for (uint32_t k = kSmallestK; k <= kLargestK; k += 2) {
    const double size = hosts_of_k(k, oversubscription);
    if (size > hosts - 0.5) {
      if (size < hosts + 0.5) {
        return k;
      }
      break;
    }
  }
  throw_bad_input("fat-tree: there is none with {} hosts; accepted: {}", hosts,
                  accepted_hosts(hosts, oversubscription));
}

FatTreeShape shape_of_k(uint32_t k, const FatTreeSettings& settings) {
  if (k < kSmallestK || k > kLargestK || k % 2 != 0) {
    throw_bad_input("fat-tree: k is {}; accepted: an even number from {} to {}", k, kSmallestK, kLargestK);
  }
  const uint32_t half = k / 2;
  return {.pods = k,
          .edges_per_pod = half,
          .hosts_per_edge = whole_ports(half * settings.oversubscription, "hosts", settings),
          .aggregations_per_pod = half,
          .cores_per_aggregation = half};
}

FatTreeShape shape_of_radix(const FatTreeSettings& settings) {
  const uint32_t radix = settings.radix;
  if (radix < kSmallestK || radix > 1024 || radix % 2 != 0) {
    throw_bad_input("fat-tree: radix is {}; accepted: an even number from {} to 1024", radix, kSmallestK);
  }
  const uint32_t pods = settings.pods == 0 ? radix : settings.pods;
  if (pods > radix) {
    throw_bad_input("fat-tree: {} pods, but a core has only {} ports; accepted: up to {}", pods, radix, radix);
  }
  const uint32_t up = whole_ports(radix / (1 + settings.oversubscription), "uplinks", settings);
  return {.pods = pods,
          .edges_per_pod = radix / 2,
          .hosts_per_edge = radix - up,
          .aggregations_per_pod = up,
          .cores_per_aggregation = radix / 2};
}

void check_shape(const FatTreeShape& s) {
  const uint32_t smallest =
      std::min({s.pods, s.edges_per_pod, s.hosts_per_edge, s.aggregations_per_pod, s.links_per_edge_aggregation,
                s.cores_per_aggregation, s.links_per_aggregation_core});
  if (smallest == 0) {
    throw_bad_input(
        "fat-tree: {} pods of {} edge switches with {} hosts, {} aggregation switches with {} cores; "
        "accepted: at least one of each, and at least one link between them",
        s.pods, s.edges_per_pod, s.hosts_per_edge, s.aggregations_per_pod, s.cores_per_aggregation);
  }
  // In doubles: products of four 32-bit numbers, of which only the size matters here.
  const double hosts = double{1} * s.pods * s.edges_per_pod * s.hosts_per_edge;
  const double switches = double{1} * s.pods * s.edges_per_pod + double{1} * s.pods * s.aggregations_per_pod +
                          double{1} * s.aggregations_per_pod * s.cores_per_aggregation;
  if (hosts > kMaxHosts || switches > kMaxSwitches) {
    throw_bad_input("fat-tree: {} hosts and {} switches; accepted: up to {} and {}", hosts, switches, kMaxHosts,
                    kMaxSwitches);
  }
}

// Node numbers of a fabric of a given shape.
struct Layout {
  NodeId first_edge;
  NodeId first_aggregation;
  NodeId first_core;
};

Layout add_nodes(Topology& topology, const FatTreeShape& shape) {
  const uint32_t edges = shape.pods * shape.edges_per_pod;
  const uint32_t aggregations = shape.pods * shape.aggregations_per_pod;
  const uint32_t hosts = edges * shape.hosts_per_edge;
  for (HostId host = 0; host < hosts; ++host) {
    topology.add_host(fmt::format("host{}", host), host / shape.hosts_per_edge / shape.edges_per_pod);
  }
  for (uint32_t edge = 0; edge < edges; ++edge) {
    topology.add_switch(fmt::format("edge{}", edge), 1, edge / shape.edges_per_pod);
  }
  for (uint32_t agg = 0; agg < aggregations; ++agg) {
    topology.add_switch(fmt::format("agg{}", agg), 2, agg / shape.aggregations_per_pod);
  }
  for (uint32_t core = 0; core < shape.aggregations_per_pod * shape.cores_per_aggregation; ++core) {
    topology.add_switch(fmt::format("core{}", core), 3, kNoPod);
  }
  return {hosts, hosts + edges, hosts + edges + aggregations};
}

void connect_many(Topology& topology, NodeId a, NodeId b, const LinkSettings& link, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    topology.connect(a, b, link);
  }
}

void connect_cores(Topology& topology, const FatTreeShape& shape, const Layout& layout, const LinkSettings& link) {
  for (uint32_t agg = 0; agg < shape.pods * shape.aggregations_per_pod; ++agg) {
    const uint32_t first_core = agg % shape.aggregations_per_pod * shape.cores_per_aggregation;
    for (uint32_t i = 0; i < shape.cores_per_aggregation; ++i) {
      connect_many(topology, layout.first_aggregation + agg, layout.first_core + first_core + i, link,
                   shape.links_per_aggregation_core);
    }
  }
}

}  // namespace

FatTreeShape fat_tree_shape(const FatTreeSettings& settings) {
  if (!(settings.oversubscription > 0) || !std::isfinite(settings.oversubscription)) {
    throw_bad_input("fat-tree: oversubscription is {}; accepted: above 0", settings.oversubscription);
  }
  if (settings.radix != 0 && (settings.k != 0 || settings.hosts != 0)) {
    throw_bad_input("fat-tree: radix {} beside k or hosts; accepted: k, hosts, or radix with pods", settings.radix);
  }
  if (settings.pods != 0 && settings.radix == 0) {
    throw_bad_input("fat-tree: pods {} without radix; accepted: k, hosts, or radix with pods", settings.pods);
  }
  if (settings.radix != 0) {
    return shape_of_radix(settings);
  }
  if (settings.k == 0) {
    constexpr uint32_t kDefaultHosts = 1024;
    const uint32_t hosts = settings.hosts == 0 ? kDefaultHosts : settings.hosts;
    return shape_of_k(k_of_hosts(hosts, settings.oversubscription), settings);
  }
  const FatTreeShape shape = shape_of_k(settings.k, settings);
  const uint32_t hosts = shape.pods * shape.edges_per_pod * shape.hosts_per_edge;
  if (settings.hosts != 0 && settings.hosts != hosts) {
    throw_bad_input("fat-tree: k {} has {} hosts, not {}; leave one of the two out", settings.k, hosts, settings.hosts);
  }
  return shape;
}

Topology build_fat_tree(const FatTreeSettings& settings) {
  FatTreeLinks links = {settings.host_link, settings.aggregation_link, settings.core_link};
  if (links.aggregation.rate.is_unlimited()) {
    links.aggregation.rate = links.host.rate;
  }
  if (links.core.rate.is_unlimited()) {
    links.core.rate = links.aggregation.rate;
  }
  return build_fat_tree(fat_tree_shape(settings), links);
}

Topology build_fat_tree(const FatTreeShape& shape, const FatTreeLinks& links) {
  check_shape(shape);
  Topology topology;
  topology.kind = "fat-tree";
  const Layout layout = add_nodes(topology, shape);
  for (HostId host = 0; host < topology.host_count; ++host) {
    topology.connect(host, layout.first_edge + host / shape.hosts_per_edge, links.host);
  }
  for (uint32_t edge = 0; edge < shape.pods * shape.edges_per_pod; ++edge) {
    const uint32_t first = edge / shape.edges_per_pod * shape.aggregations_per_pod;
    for (uint32_t i = 0; i < shape.aggregations_per_pod; ++i) {
      connect_many(topology, layout.first_edge + edge, layout.first_aggregation + first + i, links.aggregation,
                   shape.links_per_edge_aggregation);
    }
  }
  connect_cores(topology, shape, layout, links.core);
  validate(topology);
  return topology;
}

}  // namespace heddle::lab
