// heddle subnet: the fabric of a scenario as an InfiniBand subnet, and the tables that a subnet manager computes for
// it.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/subnet_view.h"
#include "lab/scenario/build_topology.h"
#include "lab/scenario/scenario.h"
#include "lab/subnet/dumps.h"
#include "lab/subnet/manager.h"
#include "lab/subnet/opensm.h"
#include "net/error.h"

namespace heddle::cli {

namespace {

struct Options {
  std::string scenario;
  std::vector<std::string> set;
  std::string engine;
  std::string tables;
  unsigned lmc = 0;
  bool qos = false;
  std::vector<std::string> without;
  unsigned timeout = 120;
  std::optional<std::string> out;
  std::optional<std::string> json;
};

// Takes the links with these names down.
std::vector<bool> links_without(const lab::Topology& topology, const std::vector<std::string>& names) {
  std::vector<bool> up(topology.links.size(), true);
  for (const std::string& name : names) {
    lab::EventSpec event;
    event.link = name;
    event.place = "--without-link";
    for (const lab::LinkEvent& down : lab::build_events(topology, {event})) up[down.link] = false;
  }
  return up;
}

void print_result(const Options& options, const nlohmann::ordered_json& json) {
  if (!options.json) {
    fmt::print("{}", subnet_page(json));
    return;
  }
  const std::string text = json.dump(2) + "\n";
  if (*options.json == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(*options.json);
  if (!(file << text) || !file.flush()) throw_failed("cannot write {}", *options.json);
  fmt::print("{}", subnet_page(json));
}

void run(const Options& options) {
  const Signals signals;
  const lab::Scenario scenario = lab::load_scenario(options.scenario, options.set);
  const lab::Topology topology = lab::build_topology(scenario.topology);
  for (const std::string& note : topology.notes) say("note: {}", note);
  const std::vector<bool> up = links_without(topology, options.without);

  lab::SubnetRouting routing{options.engine, options.tables, static_cast<uint8_t>(options.lmc)};
  std::string note;
  if (routing.engine.empty()) {
    routing.engine = lab::opensm_installed() ? "minhop" : "shortest-path";
    if (!lab::opensm_installed()) {
      note = "OpenSM and ibsim are not installed (Debian: opensm, ibsim-utils): this is the built-in shortest path";
    }
  }
  lab::ManagerOptions manager;
  manager.qos = options.qos;
  manager.limit = std::chrono::seconds(options.timeout);
  manager.interrupted = [&signals] { return signals.wait(std::chrono::milliseconds(0)); };
  const lab::ManagedSubnet subnet = lab::manage_subnet(topology, up, routing, manager);

  const nlohmann::ordered_json json =
      subnet_json(topology, up, subnet, options.without, routing.directory.empty() ? note : "");
  if (options.out) lab::write_subnet_directory(topology, up, subnet.tables, subnet.host_order, *options.out);
  print_result(options, json);
  const auto& reach = json.at("reachability");
  if (reach.at("reachable") != reach.at("paths")) throw_failed("not all hosts reach each other with these tables");
}

}  // namespace

void add_subnet(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("subnet", "The fabric as an InfiniBand subnet: OpenSM's tables, checked and compared");
  command->add_option("SCENARIO", options->scenario, "Scenario (docs/scenarios.md)")->required();
  command->add_option("--set", options->set, "Override one key: section.key=value")->allow_extra_args(false);
  command->add_option("--engine", options->engine,
                      "Built in: shortest-path, up-down; OpenSM's: minhop, updn, dnup, ftree, dor, sssp, dfsssp, nue "
                      "(default: minhop)");
  command->add_option("--tables", options->tables, "Take the dumps in this directory instead (docs/formats.md)");
  command->add_option("--lmc", options->lmc, "2^LMC addresses per host")->check(CLI::Range(0, 7));
  command->add_flag("--qos", options->qos, "Have OpenSM set up SL to VL and VL arbitration too");
  command->add_option("--without-link", options->without, "Leave a link out, as if it failed: leaf0-spine1 or leaf0:3")
      ->allow_extra_args(false);
  command->add_option("--timeout", options->timeout, "Seconds that OpenSM may take")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->add_option("--out", options->out, "Write fabric.net (ibnetdiscover, ibsim) and the tables' dumps there");
  command->add_option("--json", options->json, "Results as JSON into FILE (- or nothing: standard output)")
      ->expected(0, 1)
      ->default_str("-");
  command->footer("Example: heddle subnet examples/lab/permutation-1024.yaml --engine ftree --out /tmp/subnet");
  command->callback([options] { run(*options); });
}

}  // namespace heddle::cli
