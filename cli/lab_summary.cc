#include "cli/lab_summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "cli/tables.h"

namespace heddle::cli {

namespace {

bool comes_at_random(const Json& result) {
  const Json& workload = result.at("configuration").at("workload");
  return workload.is_object() && workload.contains("kind") && workload.at("kind") == "poisson";
}

// What `result` is judged by in the summary.
std::string cell(const Json& result) {
  const Json& value = result.at(comes_at_random(result) ? "utilization" : "efficiency");
  return value.is_null() ? "-" : fmt::format("{:.3f}", value.get<double>());
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

}  // namespace

std::string summary_table(const std::vector<Json>& results) {
  std::vector<std::string> workloads;
  std::vector<std::string> schemes;
  std::map<std::pair<std::string, std::string>, const Json*> of;
  for (const Json& result : results) {
    if (result.contains("sweep")) return "";
    const auto workload = result.at("workload").get<std::string>();
    const auto scheme = result.at("scheme").get<std::string>();
    add_once(workloads, workload);
    add_once(schemes, scheme);
    of[{workload, scheme}] = &result;
  }
  if (workloads.size() < 3) return "";
  Row title{"summary"};
  Row condition{""};
  Row measure{""};
  for (const std::string& workload : workloads) {
    const size_t slash = workload.find('/');
    title.push_back(workload.substr(0, slash));
    condition.push_back(slash == std::string::npos ? "" : workload.substr(slash + 1));
    const auto any = std::find_if(results.begin(), results.end(),
                                  [&](const Json& result) { return result.at("workload") == workload; });
    measure.push_back(comes_at_random(*any) ? "utilization" : "efficiency");
  }
  std::vector<Row> rows{title, condition, measure};
  for (const std::string& scheme : schemes) {
    Row row{scheme};
    for (const std::string& workload : workloads) {
      const auto at = of.find({workload, scheme});
      row.push_back(at == of.end() ? "" : cell(*at->second));
    }
    rows.push_back(row);
  }
  return "\n" + text_table(rows);
}

}  // namespace heddle::cli
