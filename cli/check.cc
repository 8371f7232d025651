// heddle check: validates a file and prints what it means in full.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "config/words.h"
#include "config/yaml.h"
#include "control/switch_config.h"
#include "lab/bench.h"
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

void check_scenario(const Options& options) {
  // Everything that `heddle bench` would run is built, so that what does not fit together is found here too.
  lab::plan_bench(options.file, options.set, {}, false);
  const lab::Scenario scenario = lab::load_scenario(options.file, options.set);
  if (!scenario.bench.schemes.empty() || !scenario.bench.workloads.empty()) {
    lab::plan_bench(options.file, options.set, {}, true);
  }
  fmt::print("{}\n", lab::to_json(scenario).dump(2));
}

void check_switch(const Options& options) {
  const control::SwitchConfig config = control::load_switch_config(options.file, options.set);
  for (const std::string& warning : config.warnings) fmt::print(stderr, "heddle: warning: {}\n", warning);
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
