// A scenario made ready to run: everything built and checked, nothing started.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/engine/fabric_settings.h"
#include "lab/ideal/lower_bound.h"
#include "lab/scenario/scenario.h"
#include "lab/topology/topology.h"
#include "lab/workload/workload.h"

namespace heddle::lab {

struct Experiment {
  Scenario scenario;  // resolved
  Topology topology;
  Workload workload;
  FabricSettings settings;
  LowerBound bound;
  std::vector<std::string> notes;  // what importers left out, for the user to see
};

// A run that is asked to go on until all is done ends at this many times the lower bound: a scheme that bad will not
// get better, and a message that never arrives would keep it running for ever.
inline constexpr uint64_t kPatience = 50;

// Throws bad input, with the place in the scenario where there is one.
Experiment prepare(const Scenario& scenario);

// `leaf0:3=file`
CaptureSettings parse_capture(const Topology& topology, const std::string& text);

// Throws bad input, one line with the estimate, if runs that take `bytes` together do not fit this machine now.
void check_memory(uint64_t bytes);

}  // namespace heddle::lab
