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

// Rates are the best that a link has at any time of the run, so that the bound holds whatever happens. One-way delays
// are the smallest between any two hosts of a leaf, pod or the fabric, for a packet of `mtu` bytes, or of
// `smallest_message` if that is less; in graphs and imported fabrics of more than 512 hosts, between samples of them.
FabricCapacity capacity_of(const Topology& topology, const std::vector<LinkEvent>& events, const HostSettings& hosts,
                           Duration trigger_delay, uint64_t smallest_message);

}  // namespace heddle::lab
