// What pauses, buffers and marks a run has left behind, gathered from the nodes of a fabric.
#pragma once

#include "lab/engine/run_result.h"
#include "lab/fabric/builder.h"

namespace heddle::lab {

// Adds the flow control part to the result of a run, which knows when it ended.
void collect_flow_control(const Fabric& fabric, RunResult& result);
// Ends all pauses with the run, and adds when they were and who waited.
void collect_pauses(const Fabric& fabric, RunResult& result);

}  // namespace heddle::lab
