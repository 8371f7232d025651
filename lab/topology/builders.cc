#include "lab/topology/builders.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "net/error.h"

namespace heddle::lab {
namespace {

// The two-tier part that leaf-spine and rail share.
struct Uplinks {
  uint32_t spines = 0;
  uint32_t links_per_pair = 0;
  LinkSettings link;
};

void require_positive(std::string_view kind, std::string_view what, uint32_t value) {
  if (value == 0) {
    throw_bad_input("{}: {} is 0; accepted: 1 or more", kind, what);
  }
}

// Before anything is allocated, so that a typo of a few digits is an error and not an hour of paging.
void require_size(std::string_view kind, uint64_t hosts, uint64_t switches) {
  if (hosts > kMaxHosts || switches > kMaxSwitches) {
    throw_bad_input("{}: {} hosts and {} switches; accepted: up to {} and {}", kind, hosts, switches, kMaxHosts,
                    kMaxSwitches);
  }
}

// Solves oversubscription = down / (spines × links per pair × uplink rate) for what is left out.
template <typename Settings>
Uplinks derive_uplinks(std::string_view kind, const Settings& settings, uint64_t hosts_per_leaf) {
  require_positive(kind, "links_per_pair", settings.links_per_pair);
  double ratio = settings.oversubscription;
  if (!(ratio >= 0) || !std::isfinite(ratio)) {
    throw_bad_input("{}: oversubscription is {}; accepted: above 0", kind, ratio);
  }
  if (settings.host_link.rate.is_unlimited()) {
    throw_bad_input("{}: the host links have no rate; accepted: {} to {} Gb/s", kind, kMinLinkRate.gbps(),
                    kMaxLinkRate.gbps());
  }
  Uplinks up = {settings.spines, settings.links_per_pair, settings.uplink};
  const double down = static_cast<double>(hosts_per_leaf) * settings.host_link.rate.gbps();
  const bool rate_given = !up.link.rate.is_unlimited();
  if (up.spines == 0) {
    up.link.rate = rate_given ? up.link.rate : settings.host_link.rate;
    ratio = ratio == 0 ? 1 : ratio;
    const double spines = down / (ratio * up.links_per_pair * up.link.rate.gbps());
    up.spines = static_cast<uint32_t>(std::lround(std::min(spines, 1e9)));
    if (up.spines == 0 || std::abs(spines - up.spines) > 1e-6 * spines) {
      throw_bad_input(
          "{}: oversubscription {} with {} hosts a leaf needs {:.3f} spines; accepted: a whole number, or "
          "set spines and leave out the uplink rate",
          kind, ratio, hosts_per_leaf, spines);
    }
    return up;
  }
  const double pairs = static_cast<double>(up.spines) * up.links_per_pair;
  if (!rate_given) {
    up.link.rate = ratio == 0 ? settings.host_link.rate
                              : Rate(static_cast<uint64_t>(std::llround(std::min(down / (ratio * pairs), 1e6) * 1e9)));
  } else if (ratio != 0 && std::abs(down / (pairs * up.link.rate.gbps()) - ratio) > 1e-6 * ratio) {
    throw_bad_input(
        "{}: oversubscription is {}, but {} hosts a leaf, {} spines and uplinks of {} Gb/s make {:.3f}; "
        "leave one of the three out",
        kind, ratio, hosts_per_leaf, up.spines, up.link.rate.gbps(), down / (pairs * up.link.rate.gbps()));
  }
  return up;
}

// Spines and their links, once hosts and leaves are there. `first_leaf` and those after it are the leaves.
void add_spines(Topology& topology, NodeId first_leaf, const Uplinks& up) {
  const auto first_spine = static_cast<NodeId>(topology.nodes.size());
  for (uint32_t spine = 0; spine < up.spines; ++spine) {
    topology.add_switch(fmt::format("spine{}", spine), 2, kNoPod);
  }
  for (NodeId leaf = first_leaf; leaf < first_spine; ++leaf) {
    for (uint32_t spine = 0; spine < up.spines; ++spine) {
      for (uint32_t i = 0; i < up.links_per_pair; ++i) {
        topology.connect(leaf, first_spine + spine, up.link);
      }
    }
  }
}

}  // namespace

Topology build_leaf_spine(const LeafSpineSettings& settings) {
  require_positive("leaf-spine", "hosts", settings.hosts);
  require_positive("leaf-spine", "leaves", settings.leaves);
  if (settings.hosts % settings.leaves != 0) {
    throw_bad_input("leaf-spine: {} hosts do not spread evenly over {} leaves; accepted: a multiple of {}",
                    settings.hosts, settings.leaves, settings.leaves);
  }
  const uint32_t hosts_per_leaf = settings.hosts / settings.leaves;
  const Uplinks up = derive_uplinks("leaf-spine", settings, hosts_per_leaf);
  require_size("leaf-spine", settings.hosts, uint64_t{settings.leaves} + up.spines);
  Topology topology;
  topology.kind = "leaf-spine";
  for (HostId host = 0; host < settings.hosts; ++host) {
    topology.add_host(fmt::format("host{}", host), host / hosts_per_leaf);
  }
  for (uint32_t leaf = 0; leaf < settings.leaves; ++leaf) {
    topology.add_switch(fmt::format("leaf{}", leaf), 1, leaf);
  }
  for (HostId host = 0; host < settings.hosts; ++host) {
    topology.connect(host, settings.hosts + host / hosts_per_leaf, settings.host_link);
  }
  add_spines(topology, settings.hosts, up);
  validate(topology);
  return topology;
}

Topology build_rail(const RailSettings& settings) {
  require_positive("rail", "hosts", settings.hosts);
  require_positive("rail", "nics_per_server", settings.nics_per_server);
  const uint32_t rails = settings.nics_per_server;
  const uint32_t servers = settings.hosts / rails;
  if (settings.hosts % rails != 0) {
    throw_bad_input("rail: {} hosts are no whole number of servers with {} NICs; accepted: a multiple of {}",
                    settings.hosts, rails, rails);
  }
  const uint32_t per_group = settings.servers_per_group == 0 ? servers : settings.servers_per_group;
  if (servers % per_group != 0) {
    throw_bad_input("rail: {} servers do not make whole groups of {}; accepted: a divisor of {}", servers, per_group,
                    servers);
  }
  const uint32_t groups = servers / per_group;
  const Uplinks up = derive_uplinks("rail", settings, per_group);
  require_size("rail", settings.hosts, uint64_t{groups} * rails + up.spines);
  Topology topology;
  topology.kind = "rail";
  topology.hosts_per_server = rails;
  for (HostId host = 0; host < settings.hosts; ++host) {
    topology.add_host(fmt::format("host{}", host), host / rails / per_group);
  }
  for (uint32_t leaf = 0; leaf < groups * rails; ++leaf) {
    topology.add_switch(fmt::format("leaf{}", leaf), 1, leaf / rails);
  }
  for (HostId host = 0; host < settings.hosts; ++host) {
    const uint32_t leaf = topology.pod_of(host) * rails + host % rails;
    topology.connect(host, settings.hosts + leaf, settings.host_link);
  }
  add_spines(topology, settings.hosts, up);
  validate(topology);
  return topology;
}

Topology build_single_switch(const SingleSwitchSettings& settings) {
  require_positive("single-switch", "hosts", settings.hosts);
  if (settings.hosts > kMaxPorts) {
    throw_bad_input("single-switch: {} hosts; accepted: up to {}", settings.hosts, kMaxPorts);
  }
  Topology topology;
  topology.kind = "single-switch";
  for (HostId host = 0; host < settings.hosts; ++host) {
    topology.add_host(fmt::format("host{}", host), 0);
  }
  const NodeId hub = topology.add_switch("switch0", 1, 0);
  for (HostId host = 0; host < settings.hosts; ++host) {
    topology.connect(host, hub, settings.link);
  }
  validate(topology);
  return topology;
}

}  // namespace heddle::lab
