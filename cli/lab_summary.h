// Several workloads under several schemes in one table.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace heddle::cli {

// A line for each scheme, a column for each workload: efficiency, or utilization where messages come at random times,
// so that the end of the last one says little. Empty for fewer than three workloads.
std::string summary_table(const std::vector<nlohmann::ordered_json>& results);

}  // namespace heddle::cli
