#include "cli/lab_run.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/signals.h"
#include "config/units.h"
#include "lab/report/report.h"
#include "lab/scenario/build_topology.h"
#include "lab/scenario/experiment.h"
#include "net/error.h"

namespace heddle::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

std::vector<std::string> overlays_of(const LabOptions& options);
void check_outputs(const LabOptions& options);
Json results_json(const LabRun& run);
void write_csv(const LabRun& run, const std::string& path, const std::string& header,
               std::string lab::BenchOutcome::*lines);
std::ofstream open_output(const std::string& path);

// One line on standard error, rewritten in place, if that is a terminal.
class ProgressLine {
 public:
  void show(const lab::BenchProgress& progress) {
    const auto now = SteadyClock::now();
    if (isatty(STDERR_FILENO) == 0 || now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    fmt::print(stderr, "\r\x1b[K{}", text(progress, std::chrono::duration<double>(now - began_).count()));
    std::fflush(stderr);
    visible_ = true;
  }
  void clear() {
    if (visible_) fmt::print(stderr, "\r\x1b[K");
    visible_ = false;
  }

 private:
  static std::string text(const lab::BenchProgress& progress, double elapsed_s) {
    std::string line = fmt::format("{:.0f} % done", progress.share * 100);
    if (progress.runs > 1) line = fmt::format("{} of {} runs, ", progress.done, progress.runs) + line;
    if (progress.share > 0.005) {
      const double left_s = elapsed_s * (1 - progress.share) / progress.share;
      line += fmt::format(", about {}:{:02} left", static_cast<int>(left_s) / 60, static_cast<int>(left_s) % 60);
    }
    return line + "  (Ctrl-C: stop and show what there is)";
  }

  SteadyClock::time_point began_ = SteadyClock::now();
  SteadyClock::time_point shown_;
  bool visible_ = false;
};

}  // namespace

void add_lab_options(CLI::App& command, LabOptions& options) {
  command.add_option("--set", options.set, "Override one key: section.key=value")->allow_extra_args(false);
  command
      .add_option("--sweep", options.sweep, "Run for each value: section.key=value,value,… (several: all combinations)")
      ->allow_extra_args(false);
  command.add_option("--seed", options.seed, "As --set run.seed=N");
  command.add_option("--threads", options.threads, "As --set run.threads=N");
  command.add_option("--json", options.json, "Results as JSON into FILE (- or nothing: standard output)")
      ->expected(0, 1)
      ->default_str("-");
  command.add_option("--flows", options.flows, "Every flow's times as CSV into this file");
  command.add_option("--timeline", options.timeline, "Every port's pauses as CSV into this file");
}

LabRun run_lab(const LabOptions& options, bool compare) {
  const Signals signals;
  check_outputs(options);
  std::vector<lab::SweepAxis> axes;
  for (const std::string& text : options.sweep) axes.push_back(lab::parse_sweep(text));
  LabRun run;
  run.runs = lab::plan_bench(options.scenario, overlays_of(options), axes, compare);

  lab::BenchOptions bench;
  bench.flows = !options.flows.empty();
  bench.pauses = !options.timeline.empty();
  for (const std::string& capture : options.captures) {
    if (run.runs.size() > 1) throw_bad_input("--capture: found several runs; accepted: one run, without --sweep");
    bench.captures.push_back(lab::parse_capture(lab::build_topology(run.runs.front().scenario.topology), capture));
  }
  ProgressLine line;
  bench.on_progress = [&](const lab::BenchProgress& progress) {
    line.show(progress);
    run.interrupted = run.interrupted || signals.wait(std::chrono::milliseconds(0));
    return !run.interrupted;
  };
  run.outcomes = lab::run_bench(run.runs, bench);
  line.clear();

  // A run that failed has nothing to say, and leaves alone what an earlier one said.
  if (run.results().empty()) {
    run.print = false;
    return run;
  }
  if (!options.flows.empty()) write_csv(run, options.flows, lab::flows_csv_header(), &lab::BenchOutcome::flows);
  if (bench.pauses) write_csv(run, options.timeline, lab::pauses_csv_header(), &lab::BenchOutcome::pauses);
  if (options.json) {
    const std::string text = results_json(run).dump(2) + "\n";
    if (*options.json == "-") {
      fmt::print("{}", text);
      run.print = false;
    } else {
      std::ofstream file = open_output(*options.json);
      file << text;
      if (!file.flush()) throw_failed("cannot write {}", *options.json);
    }
  }
  return run;
}

std::vector<Json> LabRun::results() const {
  std::vector<Json> results;
  for (const lab::BenchOutcome& outcome : outcomes) {
    if (!outcome.result.is_null()) results.push_back(outcome.result);
  }
  return results;
}

void throw_if_unfinished(const LabRun& run) {
  std::exception_ptr first;
  for (const lab::BenchOutcome& outcome : run.outcomes) {
    if (outcome.failure && !first) first = outcome.failure;
  }
  if (first) std::rethrow_exception(first);
  if (run.interrupted) throw_failed("interrupted; the results are partial");
}

namespace {

std::vector<std::string> overlays_of(const LabOptions& options) {
  std::vector<std::string> overlays = options.set;
  const auto number = [&](const char* option, const char* key, const std::string& text) {
    const std::optional<uint64_t> value = config::parse_integer(text);
    if (!value) throw_bad_input("{}: found '{}'; accepted: a whole number, 0 or above", option, text);
    overlays.push_back(fmt::format("{}={}", key, *value));
  };
  if (options.seed) number("--seed", "run.seed", *options.seed);
  if (options.threads) number("--threads", "run.threads", *options.threads);
  return overlays;
}

bool is_scenario_name(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

struct Output {
  std::string option;
  std::string path;
};

// All files that a run will write; each port is captured once.
std::vector<Output> outputs_of(const LabOptions& options) {
  std::vector<Output> outputs;
  if (options.json && *options.json != "-") outputs.push_back({"--json", *options.json});
  if (!options.flows.empty()) outputs.push_back({"--flows", options.flows});
  if (!options.timeline.empty()) outputs.push_back({"--timeline", options.timeline});
  std::set<std::string> ports;
  for (const std::string& capture : options.captures) {
    const size_t end = capture.find('=');
    if (end == std::string::npos) continue;  // parse_capture says so
    if (!ports.insert(capture.substr(0, end)).second) {
      throw_bad_input("--capture: found '{}' a second time; accepted: each port once", capture.substr(0, end));
    }
    outputs.push_back({"--capture", capture.substr(end + 1)});
  }
  return outputs;
}

void check_writable(const Output& output) {
  const bool was_there = access(output.path.c_str(), F_OK) == 0;
  if (!std::ofstream(output.path, std::ios::app)) {
    throw_failed("{}: cannot write {}: {}", output.option, output.path, std::strerror(errno));
  }
  if (!was_there) std::remove(output.path.c_str());
}

// Before the run: that each output has a file of its own, which can be written and is no scenario. `--json s.yaml` is
// how a scenario is lost that was meant to be run.
void check_outputs(const LabOptions& options) {
  const std::vector<Output> outputs = outputs_of(options);
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    const auto& [option, path] = *output;
    if (path.empty() || path == "-" || is_scenario_name(path)) {
      throw_bad_input("{}: found '{}'; accepted: a file for results{}", option, path,
                      option == "--json" ? " (the scenario goes before --json)" : "");
    }
    const auto same =
        std::find_if(outputs.begin(), output, [&](const Output& other) { return other.path == output->path; });
    if (same != output) {
      throw_bad_input("{}: found '{}', where {} goes, too; accepted: a file of its own", option, path, same->option);
    }
    check_writable(*output);
  }
}

// One run: its result. Several: a list of those that began.
Json results_json(const LabRun& run) {
  if (run.outcomes.size() == 1) return run.outcomes.front().result;
  return {{"version", HEDDLE_VERSION}, {"runs", run.runs.size()}, {"results", run.results()}};
}

void write_csv(const LabRun& run, const std::string& path, const std::string& header,
               std::string lab::BenchOutcome::*lines) {
  std::ofstream file = open_output(path);
  file << header << '\n';
  for (const lab::BenchOutcome& outcome : run.outcomes) file << outcome.*lines;
  if (!file.flush()) throw_failed("cannot write {}", path);
}

std::ofstream open_output(const std::string& path) {
  std::ofstream file(path);
  if (!file) throw_failed("cannot write {}", path);
  return file;
}

}  // namespace
}  // namespace heddle::cli
