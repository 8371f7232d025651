// What the switches' probers leave in the result.
#pragma once

#include "lab/engine/run_result.h"
#include "lab/fabric/lab_switch.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// The switch has a prober.
void collect_probes(const Topology& topology, const LabSwitch& of_switch, RunResult& result);

}  // namespace heddle::lab
