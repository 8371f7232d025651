// A whole fabric under a virtual clock: the packet path of heddle's switches, RoCE hosts and the links between them.
//
// All nodes advance together through windows no longer than the smallest link delay. Within a window every node handles
// its own arrivals, timers and departures in exact time order, alone; what it sends arrives in a later window. So nodes
// run in parallel (oneTBB), and the result depends on neither the number of threads nor the length of the window.
#pragma once

#include <memory>

#include "lab/engine/fabric_settings.h"
#include "lab/engine/run_result.h"
#include "lab/topology/topology.h"
#include "lab/workload/workload.h"

namespace heddle::lab {

// Runs the workload to its end. Throws Error (bad input) where settings do not fit the topology, Error (failed) if a
// promise of the engine breaks (packets unaccounted for). References are kept only during the call.
RunResult run_fabric(const Topology& topology, const Workload& workload, const FabricSettings& settings);

// Bytes of memory the run will take at most: nodes, queue pairs, routes and packets in flight, as docs/lab.md explains.
uint64_t estimate_memory(const Topology& topology, const Workload& workload, const FabricSettings& settings);

}  // namespace heddle::lab
