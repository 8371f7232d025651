// What a topology offers a workload at best: the input of the lower bound (lower_bound.h).
#pragma once

#include <vector>

#include "lab/engine/fabric_settings.h"
#include "lab/ideal/fabric_load.h"
#include "lab/topology/link_state.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// The links' states when a run begins: with the events of time 0.
LinkStates states_at_start(const Topology& topology, const std::vector<LinkEvent>& events);

// Rates are the best that a link has at any time of the run, and ways the shortest at these rates, so that the bound
// holds whatever happens (shortest_ways.h says where they are measured).
FabricCapacity capacity_of(const Topology& topology, const std::vector<LinkEvent>& events, const HostSettings& hosts,
                           Duration trigger_delay);

// The same. The packets' sizes follow from the workload itself (FabricLoad).
inline FabricCapacity capacity_of(const Topology& topology, const std::vector<LinkEvent>& events,
                                  const HostSettings& hosts, Duration trigger_delay, uint64_t /*smallest_message*/) {
  return capacity_of(topology, events, hosts, trigger_delay);
}

}  // namespace heddle::lab
