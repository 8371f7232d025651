// One scenario under several schemes, workloads and settings, side by side: what `heddle bench` runs, and `heddle lab`
// with a sweep.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lab/scenario/scenario.h"
#include "lab/scenario/sweep.h"

namespace heddle::lab {

// Names of schemes: a scheduler's preset, or `host-spray` (ECMP in the fabric, hosts that change the UDP source port
// with every packet); with `+gbn` (go-back-N) or `+sr` (selective repeat) for hosts that expect packets in order, where
// the scheme reorders them; with `+reseq` for such hosts (go-back-N) behind switches that put packets in order again.
//
// All there are; without the rows for strict hosts if the scenario says itself what hosts do.
std::vector<std::string> all_schemes(const Scenario& scenario);

// The scenario under that scheme. Throws bad input, beginning with `place`, that lists the names.
Scenario with_scheme(const Scenario& scenario, const std::string& scheme, const std::string& place = "");

// One run of a bench.
struct BenchRun {
  std::string workload;  // its name
  SweepPoint point;
  Scenario scenario;           // resolved
  uint64_t memory_bytes = 0;   // estimate
  uint64_t expected_hops = 0;  // if nothing is sent twice
};

// Every workload × point × scheme (in that order, schemes running fastest) of a scenario file; all of it built once to
// find what does not fit and how much memory it takes. `compare` false: the scenario's own workload and scheme alone.
// Throws bad input.
std::vector<BenchRun> plan_bench(const std::string& path, const std::vector<std::string>& overlays,
                                 const std::vector<SweepAxis>& axes, bool compare);

// How far all runs have come.
struct BenchProgress {
  size_t done = 0;
  size_t runs = 0;
  double share = 0;  // 0 … 1 of the work, as far as one can know
};

struct BenchOptions {
  std::vector<CaptureSettings> captures;                  // of every run
  bool flows = false;                                     // keep the CSV of flows
  bool pauses = false;                                    // keep the CSV of pauses
  std::function<bool(const BenchProgress&)> on_progress;  // from any thread, one at a time; false: stop
};

struct BenchOutcome {
  nlohmann::ordered_json result;  // of lab/report/report.h, with `workload` and `sweep`; null if the run never began
  std::string flows;              // CSV lines without a header
  std::string pauses;             // likewise
  std::exception_ptr failure;     // why the run failed, if it did
};

// As many runs at a time as there are threads and memory for, in the order of `runs`. Several at a time share the
// threads that `run.threads` allows them together; runs that ask for different numbers of threads go one after another.
// Throws bad input if one of them does not fit into memory alone.
std::vector<BenchOutcome> run_bench(const std::vector<BenchRun>& runs, const BenchOptions& options);

}  // namespace heddle::lab
