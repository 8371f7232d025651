// Which ports of each switch lead to each host on a shortest path: the lab's routing protocol, converged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/topology/topology.h"

namespace heddle::lab {

inline constexpr uint16_t kUnreachable = UINT16_MAX;

// The routes of one switch.
struct SwitchRoutes {
  std::vector<uint16_t> group_of_host;         // by HostId: index into groups, or kUnreachable
  std::vector<std::vector<PortIndex>> groups;  // next-hop groups, each only once; members ascending, never none
  // By group, where a forwarding table prefers one member: its index. Empty: there are no such tables.
  std::vector<uint8_t> table_member{};
};

// The routes of every switch, by NodeId - host_count. Shortest means fewest hops over live links, whatever their rate;
// all ports that begin a shortest path are members, parallel links each on their own. A host whose own link is down is
// unreachable from everywhere. `link_up` is indexed by LinkId. Runs on all oneTBB threads; the result depends on
// nothing but the arguments, groups being numbered in the order of the first host that uses them.
std::vector<SwitchRoutes> compute_routes(const Topology& topology, const std::vector<bool>& link_up);

// What compute_routes will hold when done, in bytes, to within the groups: two bytes per switch and host.
size_t routes_bytes(const Topology& topology);

}  // namespace heddle::lab
