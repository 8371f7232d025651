// What failures of links have cost a run, gathered from the nodes of a fabric.
#pragma once

#include "lab/fabric_builder.h"
#include "lab/run_result.h"

namespace heddle::lab {

void collect_recovery(const Fabric& fabric, RunResult& result);

}  // namespace heddle::lab
