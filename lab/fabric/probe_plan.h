// What path probes need of a fabric's routes: switches have addresses too, and a switch has separate groups, hence
// separate weights, for every destination leaf of its pod and for every other pod.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/topology/routing.h"
#include "lab/topology/topology.h"
#include "net/ip_address.h"

namespace heddle::lab {

// Switch s (NodeId - host_count) is 10.128.0.1 + s.
inline constexpr uint32_t kFirstSwitchAddress = 0x0a800001;

// A group that is probed, and where it leads.
struct ProbedGroup {
  uint16_t group = 0;
  uint64_t label = 0;                     // destination_of_label tells what it stands for
  std::vector<net::IpAddress> addresses;  // of the leaves there
};

// Changes the routes of all switches: groups of several members lead to one destination each, and behind the routes to
// hosts come routes to switches, by number. Returns which groups are to be probed, by switch. `link_up` as for
// compute_routes.
std::vector<std::vector<ProbedGroup>> plan_probes(const Topology& topology, const std::vector<bool>& link_up,
                                                  std::vector<SwitchRoutes>& routes);

// "leaf3", or "pod2" where all leaves of another pod are one destination.
std::string destination_of_label(const Topology& topology, uint64_t label);

// Switches on the longest shortest way between two leaves, the last one not counted: what a probe meets on its way.
unsigned probe_hops(const Topology& topology);

}  // namespace heddle::lab
