// From a scenario's workload to the messages a run takes.
#pragma once

#include <string>
#include <vector>

#include "lab/scenario/scenario.h"
#include "lab/topology/link_state.h"
#include "lab/topology/topology.h"
#include "lab/workload/workload.h"

namespace heddle::lab {

struct BuiltWorkload {
  Workload workload;
  std::vector<LinkEvent> failures;  // links that an imported file wants dead from the beginning
  std::vector<std::string> notes;
};

// Places the jobs of a resolved scenario and makes their messages. Jobs with `hosts` run there, whoever else does; the
// others, in their order, on hosts that no other job has. What `events` do at time 0 counts where a load is a share of
// a rate. Throws bad input that starts with the job's place.
BuiltWorkload build_workload(const Scenario& scenario, const Topology& topology, const std::vector<LinkEvent>& events);

}  // namespace heddle::lab
