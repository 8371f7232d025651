#include "lab/scenario/scenario.h"

#include <filesystem>

#include <fmt/format.h>

#include "config/path_selection.h"
#include "config/words.h"
#include "lab/scenario/parts.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

using config::Document;
using config::integer;
using config::Map;
using config::Value;

constexpr size_t kMaxEvents = 100'000;
constexpr size_t kMaxBenchWorkloads = 64;

config::OverlayOptions overlay_options();
Scenario read(const Document& document);
void read_fabric(const Map& section, Scenario& scenario);
void read_path_delay(const Map& section, PathDelaySettings& settings);
void read_run(const Map& section, RunSettings& run);
void read_bench(const Map& section, BenchSpec& bench);

}  // namespace

const std::vector<std::string_view>& scenario_sections() {
  static const std::vector<std::string_view> sections{"topology", "fabric", "hosts", "workload",
                                                      "events",   "run",    "bench"};
  return sections;
}

Scenario load_scenario(const std::string& path, const std::vector<std::string>& overlays) {
  return read(config::load_file(path, overlays, overlay_options()));
}

Scenario load_scenario_text(std::string_view text, const std::string& name, const std::vector<std::string>& overlays) {
  return read(config::load_text(text, name, overlays, overlay_options()));
}

namespace {
bool is_bounded(const Scenario& scenario) {
  return scenario.hosts.link_layer == LinkLayer::kInfiniband &&
         scenario.switches.infiniband.adaptive.mode == AdaptiveMode::kBounded;
}
}  // namespace

bool reorders(const Scenario& scenario) {
  return (scenario.switches.scheduler.granularity == lb::Granularity::kPacket && !is_bounded(scenario)) ||
         scenario.hosts.entropy == Entropy::kPerPacket;
}

void resolve(Scenario& scenario) {
  const bool hosts_see_it = reorders(scenario) && !scenario.switches.resequencer.enabled;
  const OutOfOrder by_scheme = hosts_see_it ? OutOfOrder::kAnyOrderPlacement : scenario.loss_recovery;
  scenario.out_of_order = scenario.hosts.out_of_order = scenario.out_of_order.value_or(by_scheme);
  // Jobs of one scenario must not draw the same numbers.
  constexpr uint64_t stride = 1'000'003;
  for (size_t i = 0; i < scenario.workload.jobs.size(); ++i) {
    JobSpec& job = scenario.workload.jobs[i];
    job.seed = job.seed.value_or(scenario.run.seed + stride * i);
  }
}

std::string scheme_name(const Scenario& scenario) {
  const lb::Scheduler& scheduler = scenario.switches.scheduler;
  std::string name(lb::name_of(scheduler));
  if (scenario.hosts.link_layer == LinkLayer::kInfiniband) name = name == "ecmp" ? "ib" : "ib-" + name;
  if (is_bounded(scenario)) name += "-bounded";
  if (scenario.hosts.entropy == Entropy::kPerPacket) name = name == "ecmp" ? "host-spray" : name + "+host-spray";
  if (scenario.switches.resequencer.enabled) {
    name += "+reseq";
  } else if (reorders(scenario)) {
    if (scenario.hosts.out_of_order == OutOfOrder::kGoBackN) name += "+gbn";
    if (scenario.hosts.out_of_order == OutOfOrder::kSelectiveRepeat) name += "+sr";
  }
  return name;
}

std::string read_file_name(const Value& value) {
  std::filesystem::path path = config::text(4096)(value);
  if (!value.place().is_overlay()) path = std::filesystem::path(*value.place().source).parent_path() / path;
  return std::filesystem::absolute(path).lexically_normal().string();
}

namespace {

config::OverlayOptions overlay_options() {
  return {
      .new_kind_drops_keys = true,
      .default_kinds = {{"topology", std::string(kDefaultTopologyKind)}, {"workload", std::string(kDefaultJobKind)}}};
}

Scenario read(const Document& document) {
  Scenario scenario;
  const Map root = document.root().map(scenario_sections());
  scenario.place = root.place().text();
  scenario.topology = read_topology(root);
  read_fabric(root.section("fabric", {"link_layer",
                                      "routing",
                                      "tables",
                                      "lmc",
                                      "partitions",
                                      "credits",
                                      "fecn",
                                      "adaptive_routing",
                                      "self_healing",
                                      "management_buffer",
                                      "notice_repeats",
                                      "notice_interval",
                                      "scheduler",
                                      "control_scheduler",
                                      "ars",
                                      "path_delay",
                                      "resequencer",
                                      "buffer",
                                      "port_buffer",
                                      "queue_limit",
                                      "lossless",
                                      "pfc",
                                      "watchdog",
                                      "ecn",
                                      "convergence",
                                      "sample_interval"}),
              scenario);
  read_hosts(root, scenario);
  scenario.workload = read_workload(root.at("workload"));
  scenario.events = read_events(root.list("events", 0, kMaxEvents));
  read_run(root.section("run", {"seed", "until", "threads", "window", "trigger_delay", "warm_up"}), scenario.run);
  read_bench(root.section("bench", {"schemes", "workloads", "further", "conditions", "compare"}), scenario.bench);
  return scenario;
}

void read_fabric(const Map& section, Scenario& scenario) {
  SwitchSettings& switches = scenario.switches;
  read_infiniband(section, scenario);
  switches.scheduler = section.optional("scheduler", lb::Scheduler(), config::read_scheduler);
  if (const Value control = section.at("control_scheduler"); !control.is_missing() && !control.is_word("default")) {
    switches.control_scheduler = config::read_scheduler(control);
  }
  switches.ars = config::read_ars(section.section("ars", config::ars_keys()));
  read_path_delay(section.section("path_delay", {"enabled", "rate", "base", "trace"}), switches.path_delay);
  std::vector<std::string_view> keys{"enabled"};
  keys.insert(keys.end(), config::resequencer_keys().begin(), config::resequencer_keys().end());
  const Map resequencer = section.section("resequencer", keys);
  switches.resequencer = config::read_resequencer(resequencer);
  switches.resequencer.enabled = resequencer.optional("enabled", false, config::boolean());
  read_flow_control(section, switches.flow_control);
  const Value limit = section.at("queue_limit");
  if (!limit.is_missing() && !limit.is_word("unlimited")) {
    constexpr std::string_view accepted = "unlimited, or a size such as 64KiB or 2MB, from 10kB to 1GB";
    const auto bytes = config::parse_bytes(limit.scalar(accepted));
    if (!bytes || *bytes < 10'000 || *bytes > 1'000'000'000) limit.refuse(accepted);
    switches.queue_limit = *bytes;
  }
  switches.convergence = section.optional("convergence", switches.convergence, config::duration(0, kMaxDelay));
  switches.sample_interval =
      section.optional("sample_interval", switches.sample_interval, config::duration(kMicrosecond, kMaxDelay));
}

void read_path_delay(const Map& section, PathDelaySettings& settings) {
  settings.enabled = section.optional("enabled", settings.enabled, config::boolean());
  settings.rate = section.optional("rate", settings.rate, config::read_probe_rate);
  settings.base = section.optional("base", settings.base, config::duration(100 * kNanosecond, kSecond));
  settings.trace = section.optional("trace", settings.trace, config::boolean());
}

// A duration, or a word that stands for "what the lab would choose", which is 0.
Duration read_duration_or(const Value& value, std::string_view word) {
  if (value.is_missing() || value.is_word(word)) return 0;
  const std::string accepted =
      fmt::format("{}, or {}, up to {}", word, config::kDurationForms, config::print_duration(kMaxDelay));
  const auto duration = config::parse_duration(value.scalar(accepted));
  if (!duration || *duration == 0 || *duration > kMaxDelay) value.refuse(accepted);
  return *duration;
}

void read_run(const Map& section, RunSettings& run) {
  run.seed = section.optional("seed", run.seed, integer<uint64_t>(0, UINT64_MAX));
  run.until = read_duration_or(section.at("until"), "done");
  run.threads = section.optional("threads", 0U, [](const Value& value) {
    if (value.is_word("auto")) return 0U;
    const auto threads = config::parse_integer(value.scalar("auto, or a whole number from 1 to 1024"));
    if (!threads || *threads < 1 || *threads > 1024) value.refuse("auto, or a whole number from 1 to 1024");
    return static_cast<unsigned>(*threads);
  });
  run.window = read_duration_or(section.at("window"), "auto");
  run.trigger_delay = read_duration_or(section.at("trigger_delay"), "auto");
  run.warm_up = read_duration_or(section.at("warm_up"), "none");
}

void read_bench(const Map& section, BenchSpec& bench) {
  if (section.has("schemes")) {
    bench.schemes = config::list_of(config::text(64), 1, 64)(section.at("schemes"));
  }
  bench.workloads_place = section.at("workloads").place().text();
  const auto read_named = [&section](std::string_view list, const auto& read_one) {
    const Value named = section.at(list);
    const auto entries = named.entries();
    if (entries.size() > kMaxBenchWorkloads) {
      named.refuse_found(fmt::format("{} {}", entries.size(), list), fmt::format("up to {}", kMaxBenchWorkloads));
    }
    for (const auto& [key, value] : entries) read_one(config::name_text(64)(key), value);
  };
  read_named("workloads", [&](const std::string& name, const Value& value) {
    bench.workloads.emplace_back(name, read_workload(value));
  });
  read_named("further", [&](const std::string& name, const Value& value) {
    bench.further.emplace_back(name, read_workload(value));
  });
  read_named("conditions", [&](const std::string& name, const Value& value) {
    bench.conditions.emplace_back(name, read_condition(value.list(1, kMaxEvents)));
  });
  if (section.has("compare")) bench.compare = config::list_of(config::text(140), 1, 64)(section.at("compare"));
}

}  // namespace
}  // namespace heddle::lab
