// heddle check: validates a file and prints what it means in full.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/say.h"
#include "config/words.h"
#include "config/yaml.h"
#include "control/switch_config.h"
#include "lab/bench.h"
#include "lab/fabric/credits.h"
#include "lab/fabric/lid_routes.h"
#include "lab/scenario/experiment.h"
#include "lab/subnet/loops.h"
#include "lab/subnet/tables.h"
#include "net/error.h"

namespace heddle::cli {

namespace {

struct Options {
  std::string file;
  std::vector<std::string> set;
};

// By the sections it has; one that is misspelt counts for what it was probably meant to be.
bool is_scenario(const Options& options) {
  const std::vector<std::string_view> of_switch{"switch", "ports", "groups", "routes", "classes", "buffer", "hash"};
  const auto& of_scenario = lab::scenario_sections();
  size_t switch_keys = 0;
  size_t scenario_keys = 0;
  const config::Document document = config::load_file(options.file, options.set);
  if (!document.root().is_map()) return false;
  for (const auto& [key, value] : document.root().entries()) {
    const std::string& name = key.scalar("");
    switch_keys += config::nearest(name, of_switch).empty() ? 0 : 1;
    scenario_keys += config::nearest(name, of_scenario).empty() ? 0 : 1;
  }
  return scenario_keys > switch_keys;
}

// The links that are up after all events of each time, first of all those of time 0.
std::vector<std::vector<bool>> link_states(const lab::Topology& topology, const std::vector<lab::LinkEvent>& events) {
  constexpr size_t kMost = 16;
  std::vector<std::vector<bool>> states{std::vector<bool>(topology.links.size(), true)};
  Time at = 0;
  for (const lab::LinkEvent& event : events) {
    const bool down = event.kind == lab::LinkEvent::Kind::kDown;
    if (!down && event.kind != lab::LinkEvent::Kind::kUp) continue;
    if (event.at != at && states.size() == kMost) break;
    if (event.at != at) states.push_back(states.back());
    at = event.at;
    states.back()[event.link] = !down;
  }
  return states;
}

// Tables of the InfiniBand kind have room for so many ports and addresses.
bool has_tables(const lab::Topology& topology) {
  const auto most = std::max_element(topology.ports.begin(), topology.ports.end(),
                                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return most->size() <= lab::kMaxSubnetPorts && topology.nodes.size() <= lab::kLastUnicastLid;
}

// Of the tables' paths, or of all that adaptive routing may take. Throws where the scenario would be refused.
lab::CreditLoops loops_on_credits(const lab::Topology& topology, const lab::SubnetTables& tables,
                                  const lab::FabricSettings& settings, const std::vector<bool>& up) {
  std::string note;
  const std::vector<lab::SwitchRoutes> routes = lab::routes_by_lid(topology, tables, settings, up, note);
  const uint16_t levels = lab::adaptive_levels(settings.switches);
  return lab::find_credit_loops(topology, tables, {levels == 0 ? nullptr : &routes, levels});
}

// Lossless classes wait for buffers as credits do: where paths close a loop of links, both can wait for ever. On
// InfiniBand links these are the tables' paths, or those that adaptive routing may take; on Ethernet one path of those
// that ECMP may take for each destination is looked at, so that what is found is there, but not all that may be.
void warn_of_loops(const lab::Scenario& scenario) {
  const bool credits = scenario.hosts.link_layer == lab::LinkLayer::kInfiniband;
  if (!credits && !scenario.switches.flow_control.pauses()) return;
  const lab::Experiment experiment = lab::prepare(scenario);
  const lab::Topology& topology = experiment.topology;
  constexpr uint64_t kMostEntries = 5'000'000;  // about a second
  if (uint64_t{topology.host_count} * topology.switch_count() > kMostEntries || !has_tables(topology)) return;
  for (const std::vector<bool>& up : link_states(topology, experiment.settings.events)) {
    const lab::SubnetTables tables =
        credits ? lab::subnet_of(topology, scenario.switches.infiniband, up) : lab::shortest_path_tables(topology, up);
    const lab::CreditLoops loops = credits ? loops_on_credits(topology, tables, experiment.settings, up)
                                           : lab::find_credit_loops(topology, tables);
    if (loops.shortest.empty()) continue;
    say("warning: {} can deadlock on {} paths that close a loop: {}", credits ? "credits" : "lossless classes",
        credits ? tables.engine : "shortest", lab::describe_loop(topology, loops.shortest, credits));
    return;
  }
}

void check_scenario(const Options& options) {
  // Everything that `heddle bench` would run is built, so that what does not fit together is found here too.
  lab::plan_bench(options.file, options.set, {}, false);
  const lab::Scenario scenario = lab::load_scenario(options.file, options.set);
  if (!scenario.bench.schemes.empty() || !scenario.bench.workloads.empty()) {
    lab::plan_bench(options.file, options.set, {}, true);
  }
  warn_of_loops(scenario);
  fmt::print("{}\n", lab::to_json(scenario).dump(2));
}

void check_switch(const Options& options) {
  const control::SwitchConfig config = control::load_switch_config(options.file, options.set);
  for (const std::string& warning : config.warnings) say("warning: {}", warning);
  fmt::print("{}\n", control::to_json(config).dump(2));
}

}  // namespace

void add_check(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("check", "Validate a configuration or scenario and print its effective form");
  command->add_option("FILE", options->file, "Switch configuration or scenario")->required();
  command->add_option("--set", options->set, "Override one key: section.key=value")->allow_extra_args(false);
  command->footer("Example: heddle check examples/run/leaf-pcap.yaml");
  command->callback([options] { is_scenario(*options) ? check_scenario(*options) : check_switch(*options); });
}

}  // namespace heddle::cli
