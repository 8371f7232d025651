// What a topology offers a workload at best: the input of the lower bound (lower_bound.h).
#pragma once

#include <vector>

#include "lab/engine/fabric_settings.h"
#include "lab/ideal/fabric_load.h"
#include "lab/topology/link_state.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// Rates are the best that a link has at any time of the run, and ways the shortest at these rates, so that the bound
// holds whatever happens (shortest_ways.h says where they are measured).
FabricCapacity capacity_of(const Topology& topology, const std::vector<LinkEvent>& events, const HostSettings& hosts,
                           Duration trigger_delay);

}  // namespace heddle::lab
