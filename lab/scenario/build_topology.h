// From a scenario's topology and events to the ones a run takes.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "lab/scenario/scenario.h"
#include "lab/topology/link_state.h"
#include "lab/topology/topology.h"
#include "net/error.h"

namespace heddle::lab {

// Throws bad input that starts with the section's place.
Topology build_topology(const TopologySpec& spec);

// In the order of time; those of one time as written.
std::vector<LinkEvent> build_events(const Topology& topology, const std::vector<EventSpec>& specs);

// Runs `build`; an error gets the place in front of it, unless it already names a place in a file of its own.
template <typename Build>
auto at_place(const std::string& place, const std::string& own_file, const Build& build) {
  try {
    return build();
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool has_place = !own_file.empty() && text.starts_with(own_file);
    if (error.kind() != Error::Kind::kBadInput || has_place || place.empty()) throw;
    throw Error(error.kind(), place + ": " + text);
  }
}

}  // namespace heddle::lab
