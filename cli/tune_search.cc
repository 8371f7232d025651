#include "cli/tune_search.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/tables.h"
#include "lab/scenario/build_topology.h"
#include "lab/scenario/scenario.h"
#include "net/error.h"

namespace heddle::cli {

namespace {

constexpr std::string_view kSweptKey = "fabric.ecn";

// What a setting is judged by; all are better when smaller.
std::array<double, 3> costs_of(const Json& result) {
  const auto number = [](const Json& value) { return value.is_null() ? 0.0 : value.get<double>(); };
  const bool complete = result.at("completed") == result.at("flows");
  constexpr double kNeverDone = 1e18;
  return {complete ? number(result.at("slowdown").at("p99")) : kNeverDone,
          complete ? number(result.at("makespan_us")) : kNeverDone, number(result.at("pause_time_us"))};
}

bool beats(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

std::string cell(const Json& value) {
  if (value.is_null()) return "-";
  return value.is_number_float() ? fmt::format("{:.2f}", value.get<double>()) : short_number(value.get<double>());
}

std::string part(const Json& result, const char* field, const char* inner) {
  const Json& value = result.at(field);
  return value.is_null() ? "-" : cell(value.at(inner));
}

}  // namespace

std::string ecn_sweep(Rate host_rate) {
  std::string sweep = std::string(kSweptKey) + "=";
  const auto kmax_at_one = static_cast<uint64_t>(host_rate.gbps() * 16'000);
  for (const unsigned sixteenths : {1U, 2U, 4U, 8U, 16U, 32U}) {
    const uint64_t kmax = kmax_at_one * sixteenths / 16;
    for (const char* pmax : {"1%", "20%", "100%"}) {
      sweep += fmt::format("{}{{kmin: {}, kmax: {}, pmax: {}}}", sweep.back() == '=' ? "" : ",", kmax / 4, kmax, pmax);
    }
  }
  return sweep;
}

LabRun search_ecn(const LabOptions& options) {
  const lab::Scenario scenario = lab::load_scenario(options.scenario, options.set);
  if (!scenario.hosts.dcqcn) {
    throw_bad_input("{}: found hosts.congestion_control none; accepted: dcqcn, or ECN marks would change nothing",
                    options.scenario);
  }
  const lab::Topology topology = lab::build_topology(scenario.topology);
  LabOptions grid = options;
  grid.sweep.push_back(ecn_sweep(topology.links[topology.ports[0][0]].rate));
  return run_lab(grid, false);
}

std::string trade_off_table(const std::vector<Json>& results) {
  std::vector<const Json*> order;
  order.reserve(results.size());
  for (const Json& result : results) order.push_back(&result);
  std::stable_sort(order.begin(), order.end(),
                   [](const Json* a, const Json* b) { return costs_of(*a) < costs_of(*b); });
  std::vector<Row> rows{{"ecn", "slowdown mean", "slowdown p99", "FCT p99 us", "makespan us", "peak queue", "marked",
                         "CNPs", "pauses", "pause us", "drops", "best"}};
  for (const Json* result : order) {
    const auto costs = costs_of(*result);
    const bool beaten =
        std::any_of(order.begin(), order.end(), [&](const Json* other) { return beats(costs_of(*other), costs); });
    uint64_t drops = 0;
    for (const auto& [reason, count] : result->at("drops").items()) drops += count.get<uint64_t>();
    const Json& swept = result->at("sweep").at(std::string(kSweptKey));
    rows.push_back({swept.is_string() ? swept.get<std::string>() : swept.dump(), part(*result, "slowdown", "mean"),
                    part(*result, "slowdown", "p99"), part(*result, "fct_us", "p99"), cell(result->at("makespan_us")),
                    cell(result->at("peak_queue_bytes")), cell(result->at("ecn_marked")), cell(result->at("cnps")),
                    cell(result->at("pauses_sent")), cell(result->at("pause_time_us")), std::to_string(drops),
                    beaten ? "" : "*"});
  }
  return text_table(rows) +
         "\nBy p99 slowdown. * no other setting is as good in p99 slowdown, makespan and pause time and better in "
         "one.\n";
}

}  // namespace heddle::cli
