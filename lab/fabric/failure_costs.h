// What failures of links have cost a run, gathered from the nodes of a fabric.
#pragma once

#include "lab/engine/run_result.h"
#include "lab/fabric/builder.h"

namespace heddle::lab {

void collect_recovery(const Fabric& fabric, RunResult& result);

}  // namespace heddle::lab
