#include "lab/bench.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "config/words.h"
#include "lab/fabric/fabric.h"
#include "lab/ideal/alone_time.h"
#include "lab/report/report.h"
#include "lab/scenario/experiment.h"
#include "lab/scenario/machine_memory.h"
#include "lab/topology/link_state.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr std::string_view kHostSpray = "host-spray";
constexpr std::string_view kInfiniband = "ib";
constexpr std::string_view kInfinibandAdaptive = "ib-adaptive";
constexpr std::string_view kInfinibandBounded = "ib-adaptive-bounded";

// Runs of a plan, taken by several threads.
class Runner {
 public:
  Runner(const std::vector<BenchRun>& runs, const BenchOptions& options);

  std::vector<BenchOutcome> run();

 private:
  void work();
  BenchOutcome run_one(size_t index);
  bool note_progress(size_t index, const Progress& progress, Time until);
  void note_done(size_t index);

  const std::vector<BenchRun>& runs_;
  const BenchOptions& options_;
  std::vector<BenchOutcome> outcomes_;
  std::vector<size_t> order_;
  unsigned workers_ = 1;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};

  std::mutex mutex_;           // of what follows
  std::vector<double> share_;  // by run: how much of it is done
  size_t done_ = 0;
};

std::vector<std::string> base_schemes() {
  std::vector<std::string> names(lb::kSchedulerNames.begin(), lb::kSchedulerNames.end());
  names.emplace_back(kHostSpray);
  return names;
}

unsigned threads_of(const BenchRun& run) {
  return run.scenario.run.threads != 0 ? run.scenario.run.threads : std::max(1U, std::thread::hardware_concurrency());
}

bool is_infiniband(const std::string& scheme) { return scheme.starts_with(kInfiniband); }

// The same hosts and links, as InfiniBand has them: no congestion control but its own, nothing put in order on the way.
void put_on_infiniband(Scenario& scenario, std::string_view scheme) {
  scenario.hosts.link_layer = LinkLayer::kInfiniband;
  scenario.hosts.dcqcn.reset();
  scenario.switches.scheduler = *lb::scheduler_named(scheme == kInfiniband ? "ecmp" : "adaptive");
  scenario.switches.infiniband.adaptive.mode =
      scheme == kInfinibandBounded ? AdaptiveMode::kBounded : AdaptiveMode::kFree;
  scenario.switches.control_scheduler.reset();
  scenario.switches.resequencer.enabled = false;
}

// Beside InfiniBand: lossless as well, with the same bytes for each port and class; unless the scenario says what
// buffers there are.
void make_equal(Scenario& scenario) {
  FlowControlSettings& flow_control = scenario.switches.flow_control;
  if (scenario.hosts.link_layer == LinkLayer::kInfiniband || flow_control.is_limited()) return;
  flow_control.port_buffer = scenario.switches.infiniband.credits.buffer;
  flow_control.lossless = 1U << 3U;  // data and ACKs
  flow_control.pfc = true;
}

bool is_strict(const std::string& scheme) {
  return scheme.find("+gbn") != std::string::npos || scheme.find("+sr") != std::string::npos;
}

}  // namespace

std::vector<std::string> all_schemes(const Scenario& scenario) {
  std::vector<std::string> names = base_schemes();
  if (scenario.out_of_order) return names;
  for (const std::string& name : base_schemes()) {
    if (reorders(with_scheme(scenario, name))) names.push_back(name + "+reseq");
  }
  for (const std::string& name : base_schemes()) {
    if (reorders(with_scheme(scenario, name))) names.push_back(name + "+gbn");
  }
  return names;
}

Scenario with_scheme(const Scenario& scenario, const std::string& scheme, const std::string& place) {
  const auto refuse = [&] {
    throw_bad_input(
        "{}found scheme {}; accepted: {}, {}, {}, {}, and after those that reorder packets +gbn, +sr or (Ethernet) "
        "+reseq",
        place.empty() ? "" : place + ": ", config::quote(scheme), fmt::join(base_schemes(), ", "), kInfiniband,
        kInfinibandAdaptive, kInfinibandBounded);
  };
  Scenario result = scenario;
  result.hosts.link_layer = LinkLayer::kEthernet;
  const std::optional<flowctl::CctiSettings> ccti = std::exchange(result.hosts.ccti, std::nullopt);
  const size_t plus = scheme.find('+');
  const std::string base = scheme.substr(0, plus);
  if (base == kHostSpray) {
    result.switches.scheduler = *lb::scheduler_named("ecmp");
    result.hosts.entropy = Entropy::kPerPacket;
  } else if (base == kInfiniband || base == kInfinibandAdaptive || base == kInfinibandBounded) {
    put_on_infiniband(result, base);
    result.hosts.ccti = ccti;
  } else if (const auto scheduler = lb::scheduler_named(base)) {
    result.switches.scheduler = *scheduler;
  } else {
    refuse();
  }
  if (plus == std::string::npos) return result;
  const std::string strict = scheme.substr(plus + 1);
  if (!reorders(result) || (strict != "gbn" && strict != "sr" && strict != "reseq")) refuse();
  if (strict == "reseq") {
    if (result.hosts.link_layer == LinkLayer::kInfiniband) refuse();
    result.switches.resequencer.enabled = true;
    result.out_of_order = result.loss_recovery;
    return result;
  }
  result.out_of_order = strict == "gbn" ? OutOfOrder::kGoBackN : OutOfOrder::kSelectiveRepeat;
  return result;
}

namespace {

// A workload, with what happens beside it.
struct NamedWorkload {
  std::string name;
  WorkloadSpec workload;
  std::vector<EventSpec> events;
};

std::string name_of(const WorkloadSpec& workload) {
  std::string name = workload.file ? workload.file->file.substr(workload.file->file.rfind('/') + 1) : "";
  for (const JobSpec& job : workload.jobs) name += (name.empty() ? "" : "+") + job.name;
  return name;
}

// All there are in a bench: each workload alone and under every condition.
std::vector<NamedWorkload> all_workloads_of(const Scenario& scenario) {
  const BenchSpec& bench = scenario.bench;
  std::vector<std::pair<std::string, WorkloadSpec>> named = bench.workloads;
  if (named.empty()) named.emplace_back(name_of(scenario.workload), scenario.workload);
  named.insert(named.end(), bench.further.begin(), bench.further.end());
  std::vector<NamedWorkload> all;
  for (const auto& [name, workload] : named) {
    all.push_back({name, workload, {}});
    for (const auto& [condition, events] : bench.conditions) {
      all.push_back({fmt::format("{}/{}", name, condition), workload, events});
    }
  }
  return all;
}

// What the workloads that are to run are called and consist of.
std::vector<NamedWorkload> workloads_of(const Scenario& scenario, bool compare) {
  const BenchSpec& bench = scenario.bench;
  if (!compare || (bench.compare.empty() && bench.workloads.empty())) {
    return {{name_of(scenario.workload), scenario.workload, {}}};
  }
  std::vector<NamedWorkload> chosen;
  if (bench.compare.empty()) {
    for (const auto& [name, workload] : bench.workloads) chosen.push_back({name, workload, {}});
    return chosen;
  }
  std::vector<NamedWorkload> all = all_workloads_of(scenario);
  if (bench.compare == std::vector<std::string>{"all"}) return all;
  for (const std::string& name : bench.compare) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const NamedWorkload& of) { return of.name == name; });
    if (at == all.end()) {
      std::vector<std::string_view> names{"all"};
      for (const NamedWorkload& of : all) names.push_back(of.name);
      throw_bad_input("{}: found workload {}; accepted: {}", scenario.place, config::quote(name),
                      config::listed(names));
    }
    chosen.push_back(*at);
  }
  return chosen;
}

// The scenario with a condition's events, whose times may be shares of the workload's lower bound.
Scenario with_condition(const Scenario& scenario, const NamedWorkload& of) {
  Scenario result = scenario;
  result.workload = of.workload;
  result.bench = {};
  const bool shares = std::any_of(of.events.begin(), of.events.end(),
                                  [](const EventSpec& event) { return event.at_share.has_value(); });
  const Duration bound = shares ? prepare(result).bound.makespan : 0;
  for (EventSpec event : of.events) {
    if (event.at_share) event.at = static_cast<Time>(*event.at_share * static_cast<double>(bound));
    event.at_share.reset();
    result.events.push_back(event);
  }
  return result;
}

void check_overlays(const Scenario& scenario, const std::vector<std::string>& overlays) {
  for (const std::string& overlay : overlays) {
    if (overlay.starts_with("fabric.scheduler")) {
      throw_bad_input("--set {}: found a scheduler where schemes are compared; accepted: bench.schemes=[…]", overlay);
    }
    if (overlay.starts_with("workload") && !scenario.bench.workloads.empty()) {
      throw_bad_input("--set {}: found workload, but {} compares bench.workloads; accepted: bench.workloads.{}.…",
                      overlay, scenario.bench.workloads_place, scenario.bench.workloads.front().first);
    }
  }
}

// Workloads in the order in which they were written, and the points of one together.
void group_by_workload(std::vector<BenchRun>& runs) {
  std::vector<std::string> names;
  for (const BenchRun& run : runs) {
    if (std::find(names.begin(), names.end(), run.workload) == names.end()) names.push_back(run.workload);
  }
  const auto place = [&](const BenchRun& run) { return std::find(names.begin(), names.end(), run.workload); };
  std::stable_sort(runs.begin(), runs.end(), [&](const auto& x, const auto& y) { return place(x) < place(y); });
}

}  // namespace

std::vector<BenchRun> plan_bench(const std::string& path, const std::vector<std::string>& overlays,
                                 const std::vector<SweepAxis>& axes, bool compare) {
  std::vector<BenchRun> runs;
  for (const SweepPoint& point : sweep_points(axes)) {
    std::vector<std::string> all = overlays;
    const std::vector<std::string> of_point = overlays_of(point);
    all.insert(all.end(), of_point.begin(), of_point.end());
    const Scenario scenario = load_scenario(path, all);
    if (compare) check_overlays(scenario, all);
    std::vector<std::string> schemes = scenario.bench.schemes.empty() ? all_schemes(scenario) : scenario.bench.schemes;
    if (!compare) schemes = {""};
    const bool beside_infiniband = std::any_of(schemes.begin(), schemes.end(), is_infiniband);
    for (const NamedWorkload& of : workloads_of(scenario, compare)) {
      const size_t first = runs.size();
      const Scenario base = with_condition(scenario, of);
      for (const std::string& scheme : schemes) {
        BenchRun run{of.name, point, compare ? with_scheme(base, scheme, path) : base};
        if (compare && beside_infiniband) make_equal(run.scenario);
        resolve(run.scenario);
        runs.push_back(std::move(run));
      }
      // Schemes do not change what is built, so that one experiment speaks for all.
      const Experiment experiment = prepare(runs[first].scenario);
      const uint64_t memory = estimate_memory(experiment.topology, experiment.workload, experiment.settings);
      const uint64_t hops =
          AloneTimes(experiment.topology, states_at_start(experiment.topology, experiment.settings.events),
                     experiment.settings.hosts)
              .expected_hops(experiment.workload);
      for (size_t i = first; i < runs.size(); ++i) {
        runs[i].memory_bytes = memory;
        runs[i].expected_hops = hops;
      }
    }
  }
  if (!axes.empty()) group_by_workload(runs);
  return runs;
}

std::vector<BenchOutcome> run_bench(const std::vector<BenchRun>& runs, const BenchOptions& options) {
  return Runner(runs, options).run();
}

namespace {

Runner::Runner(const std::vector<BenchRun>& runs, const BenchOptions& options)
    : runs_(runs), options_(options), outcomes_(runs.size()), share_(runs.size()) {
  uint64_t largest = 1;
  for (const BenchRun& run : runs) largest = std::max(largest, run.memory_bytes);
  check_memory(largest);
  const uint64_t fit = std::max<uint64_t>(1, available_memory().value_or(UINT64_MAX) / largest);
  const unsigned threads = runs.empty() ? 1 : threads_of(runs.front());
  const bool same = std::all_of(runs.begin(), runs.end(), [&](const auto& run) { return threads_of(run) == threads; });
  if (same) workers_ = static_cast<unsigned>(std::min<uint64_t>({threads, fit, std::max<size_t>(1, runs.size())}));
  // Hosts that go back N under a scheme that reorders take longest: first, so that nobody waits for them at the end.
  for (size_t i = 0; i < runs.size(); ++i) order_.push_back(i);
  std::stable_partition(order_.begin(), order_.end(),
                        [&](size_t i) { return is_strict(scheme_name(runs[i].scenario)); });
}

std::vector<BenchOutcome> Runner::run() {
  std::vector<std::thread> others;
  for (unsigned i = 1; i < workers_; ++i) others.emplace_back([this] { work(); });
  work();
  for (std::thread& thread : others) thread.join();
  return std::move(outcomes_);
}

void Runner::work() {
  for (size_t taken = next_++; taken < order_.size() && !stop_; taken = next_++) {
    const size_t index = order_[taken];
    try {
      outcomes_[index] = run_one(index);
    } catch (...) {
      outcomes_[index].failure = std::current_exception();
    }
    note_done(index);
  }
}

BenchOutcome Runner::run_one(size_t index) {
  const BenchRun& run = runs_[index];
  Experiment experiment = prepare(run.scenario);
  experiment.settings.run.threads = std::max(1U, threads_of(run) / workers_);
  experiment.settings.captures = options_.captures;
  const Time until = experiment.settings.run.until;
  experiment.settings.run.timeline = options_.pauses;
  experiment.settings.on_progress = [&](const Progress& progress) { return note_progress(index, progress, until); };
  const RunResult result = run_fabric(experiment.topology, experiment.workload, experiment.settings);

  const Report report(experiment, result);
  BenchOutcome outcome;
  outcome.result["workload"] = run.workload;
  if (!run.point.empty()) {
    for (const auto& [key, value] : run.point) outcome.result["sweep"][key] = value;
  }
  outcome.result.update(report.to_json());
  const std::string prefix = fmt::format("{},{},{},", index, run.workload, scheme_name(run.scenario));
  if (options_.flows) outcome.flows = report.flows_csv(prefix);
  if (options_.pauses) outcome.pauses = report.pauses_csv(prefix);
  return outcome;
}

bool Runner::note_progress(size_t index, const Progress& progress, Time until) {
  // By work done; by time where packets are sent again and again.
  const double by_hops = static_cast<double>(progress.packet_hops) /
                         static_cast<double>(std::max<uint64_t>(1, runs_[index].expected_hops));
  const double by_time = static_cast<double>(progress.now) / static_cast<double>(std::max<Time>(1, until));
  const std::lock_guard lock(mutex_);
  share_[index] = std::max(std::min(by_hops, 0.9), std::min(by_time, 1.0));
  if (options_.on_progress && !stop_) {
    double sum = 0;
    for (const double share : share_) sum += share;
    if (!options_.on_progress({done_, runs_.size(), sum / static_cast<double>(runs_.size())})) stop_ = true;
  }
  return !stop_;
}

void Runner::note_done(size_t index) {
  const std::lock_guard lock(mutex_);
  share_[index] = 1;
  ++done_;
}

}  // namespace
}  // namespace heddle::lab
