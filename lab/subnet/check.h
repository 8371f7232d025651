// Whether the tables of a subnet bring every packet to its host.
#pragma once

#include <cstdint>
#include <string>

#include "lab/subnet/tables.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// Pairs of a host and another host's LID; with LMC every LID counts.
struct SubnetCheck {
  uint64_t pairs = 0;
  uint64_t reachable = 0;
  uint64_t dropped = 0;    // somewhere on the way there is no entry, or a link that is down
  uint64_t looping = 0;    // the packet comes back to a switch where it has been
  uint64_t misled = 0;     // it arrives at another host
  uint32_t most_hops = 0;  // links on the longest path of a pair
  uint64_t all_hops = 0;   // links on the paths of all reachable pairs
  std::string first;       // the first path that does not arrive, in words; empty: all do

  bool all_reachable() const { return reachable == pairs; }
  double mean_hops() const {
    return reachable == 0 ? 0 : static_cast<double>(all_hops) / static_cast<double>(reachable);
  }
};

// Follows every host's LIDs from every leaf. Throws Error (bad input) where tables and topology do not belong together:
// other numbers of hosts or switches, ports that a switch does not have, LIDs given twice, or tables of lanes that have
// other sizes than the ports.
SubnetCheck check_subnet(const Topology& topology, const std::vector<bool>& link_up, const SubnetTables& tables);

// Throws Error (bad input) with the first path that fails, unless all arrive.
void require_reachable(const Topology& topology, const std::vector<bool>& link_up, const SubnetTables& tables);

}  // namespace heddle::lab
