// The effective scenario as JSON, in the words of a scenario.
#include <fmt/format.h>

#include "config/path_selection.h"
#include "lab/scenario/parts.h"

namespace heddle::lab {
namespace {

Json or_word(uint64_t value, std::string_view word, std::string (*print)(uint64_t)) {
  return value == 0 ? std::string(word) : print(value);
}

Json resequencer_json(const lb::ResequencerSettings& resequencer) {
  Json json{{"enabled", resequencer.enabled}};
  json.update(config::resequencer_json(resequencer));
  return json;
}

Json path_delay_json(const PathDelaySettings& settings) {
  return {{"enabled", settings.enabled},
          {"rate", settings.rate},
          {"base", config::print_duration(settings.base)},
          {"trace", settings.trace}};
}

Json fabric_json(const Scenario& scenario) {
  const SwitchSettings& switches = scenario.switches;
  const bool unlimited = switches.queue_limit == dataplane::EgressQueue::kUnlimited;
  Json json;
  put_infiniband(scenario, json);
  json["scheduler"] = config::scheduler_word(switches.scheduler);
  json["control_scheduler"] =
      switches.control_scheduler ? config::scheduler_word(*switches.control_scheduler) : "default";
  json["ars"] = config::ars_json(switches.ars);
  json["path_delay"] = path_delay_json(switches.path_delay);
  json["resequencer"] = resequencer_json(switches.resequencer);
  put_flow_control(switches.flow_control, json);
  json["queue_limit"] = unlimited ? "unlimited" : config::print_bytes(switches.queue_limit);
  json["convergence"] = config::print_duration(switches.convergence);
  json["sample_interval"] = config::print_duration(switches.sample_interval);
  return json;
}

Json run_json(const RunSettings& run) {
  return {{"seed", run.seed},
          {"until", or_word(run.until, "done", config::print_duration)},
          {"threads", run.threads == 0 ? Json("auto") : Json(run.threads)},
          {"window", or_word(run.window, "auto", config::print_duration)},
          {"trigger_delay", or_word(run.trigger_delay, "auto", config::print_duration)},
          {"warm_up", or_word(run.warm_up, "none", config::print_duration)}};
}

Json bench_json(const BenchSpec& bench) {
  Json json = Json::object();
  if (!bench.schemes.empty()) json["schemes"] = bench.schemes;
  for (const auto& [name, workload] : bench.workloads) json["workloads"][name] = workload_json(workload);
  for (const auto& [name, workload] : bench.further) json["further"][name] = workload_json(workload);
  for (const auto& [name, events] : bench.conditions) json["conditions"][name] = events_json(events);
  if (!bench.compare.empty()) json["compare"] = bench.compare;
  return json;
}

}  // namespace

Json to_json(const Scenario& scenario) {
  Json json{{"topology", topology_json(scenario.topology)},
            {"fabric", fabric_json(scenario)},
            {"hosts", hosts_json(scenario)},
            {"workload", workload_json(scenario.workload)},
            {"events", events_json(scenario.events)},
            {"run", run_json(scenario.run)}};
  if (Json bench = bench_json(scenario.bench); !bench.empty()) json["bench"] = std::move(bench);
  return json;
}

}  // namespace heddle::lab
