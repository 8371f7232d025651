// How evenly the tables of a subnet use its links, from the tables alone: paths and flows counted per link.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/subnet/tables.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// Paths of all pairs of hosts over the links between switches, each direction for itself.
struct PathsPerLink {
  uint64_t links = 0;  // directions of links that are up
  uint64_t least = 0;
  uint64_t most = 0;
  double mean = 0;
};

// Shift s: every host sends to the one s places after it in an order. Contention is the most flows on any link, 1 where
// all hosts can send at line rate.
struct ShiftContention {
  uint64_t shifts = 0;  // looked at: all, or 1024 spread evenly over larger fabrics
  uint64_t free = 0;    // of them, with a contention of 1
  uint64_t most = 0;
  double mean = 0;
};

// Random permutations without fixed points. A flow's share is 1 over the most flows on any link of its path: what it
// gets when each link is divided equally, at least.
struct PermutationContention {
  uint64_t permutations = 0;
  double mean_most = 0;   // the most flows on a link, averaged over the permutations
  double mean_share = 0;  // of line rate, averaged over all flows
};

// All of a host's first LID. Paths that do not arrive count as far as they go.
PathsPerLink count_paths(const Topology& topology, const std::vector<bool>& link_up, const SubnetTables& tables);
// `order`: hosts; at least two.
ShiftContention shift_contention(const Topology& topology, const SubnetTables& tables,
                                 const std::vector<HostId>& order);
PermutationContention permutation_contention(const Topology& topology, const SubnetTables& tables, uint64_t seed,
                                             uint32_t permutations = 20);

// 0, 1, 2, …: the order of a topology's hosts.
std::vector<HostId> natural_order(const Topology& topology);

}  // namespace heddle::lab
