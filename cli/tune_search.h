// `heddle tune --search`: which ECN settings serve a workload best, by running it in the lab under a grid of them.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/lab_run.h"
#include "net/rate.h"

namespace heddle::cli {

// ECN settings as `--sweep` takes them: HPCC's Kmin and Kmax at that rate × 1/16 … 2, each with Pmax 1 %, 20 % and
// 100 %.
std::string ecn_sweep(Rate host_rate);

// Runs the grid on all threads, in any order. Throws bad input if the scenario's hosts would not heed the marks.
LabRun search_ecn(const LabOptions& options);

// One line per setting, by the 99th percentile of slowdown. A setting is marked if no other is at least as good in p99
// slowdown, makespan and pause time and better in one of them.
std::string trade_off_table(const std::vector<nlohmann::ordered_json>& results);

}  // namespace heddle::cli
