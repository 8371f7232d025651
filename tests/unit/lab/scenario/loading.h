// Scenarios from text, and their parts by kind.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lab/scenario/scenario.h"

namespace heddle::lab {

inline Scenario load(const std::string& yaml, const std::vector<std::string>& overlays = {}) {
  return load_scenario_text(yaml, "x.yaml", overlays);
}

template <typename T>
const T& shape(const Scenario& scenario) {
  return std::get<T>(scenario.topology.shape);
}
template <typename T>
const T& pattern(const Scenario& scenario, size_t job = 0) {
  return std::get<T>(scenario.workload.jobs.at(job).pattern);
}

}  // namespace heddle::lab
