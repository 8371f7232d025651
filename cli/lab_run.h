// What `heddle lab` and `heddle bench` have in common: options, the progress line, results as JSON and CSV.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "lab/bench.h"

namespace heddle::cli {

struct LabOptions {
  std::string scenario;
  std::vector<std::string> set;
  std::vector<std::string> sweep;
  std::vector<std::string> captures;
  std::optional<std::string> json;
  std::string flows;
  std::string timeline;
  std::optional<std::string> seed;  // as text, so that one reader says what a number is
  std::optional<std::string> threads;
};

// --set, --sweep, --seed, --threads, --json, --flows, --timeline.
void add_lab_options(CLI::App& command, LabOptions& options);

struct LabRun {
  std::vector<lab::BenchRun> runs;
  std::vector<lab::BenchOutcome> outcomes;
  bool interrupted = false;
  bool print = true;  // false: the results went to standard output as JSON

  // Of the runs that began.
  std::vector<nlohmann::ordered_json> results() const;
};

// Plans, runs with a progress line on a terminal, writes --flows, --timeline and --json. `compare`: under every scheme.
// Ctrl-C ends it early with what there is.
LabRun run_lab(const LabOptions& options, bool compare);

// After everything is printed: throws the error of a run that failed, or says that it was interrupted.
void throw_if_unfinished(const LabRun& run);

}  // namespace heddle::cli
