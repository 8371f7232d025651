// Results of the lab for people: one run as a page, several as tables.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace heddle::cli {

// One result (lab/report/report.h), a line per topic.
std::string lab_page(const nlohmann::ordered_json& result);

// Results side by side: a table for each workload and, within it, for each point of a sweep. The best value of a column
// is marked with a `*`, on a terminal also in bold; the first row is the ideal.
std::string lab_tables(const std::vector<nlohmann::ordered_json>& results, bool terminal);

}  // namespace heddle::cli
