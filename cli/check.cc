// heddle check: validates a file and prints what it means in full.
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "control/switch_config.h"
#include "net/error.h"

namespace heddle::cli {

void add_check(CLI::App& app) {
  struct Options {
    std::string file;
    std::vector<std::string> set;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("check", "Validate a configuration and print its effective form");
  command->add_option("FILE", options->file, "Switch configuration")->required();
  command->add_option("--set", options->set, "Override one key: section.key=value")->allow_extra_args(false);
  command->footer("Example: heddle check examples/run/leaf-pcap.yaml");
  command->callback([options] {
    const control::SwitchConfig config = control::load_switch_config(options->file, options->set);
    for (const std::string& warning : config.warnings) fmt::print(stderr, "heddle: warning: {}\n", warning);
    fmt::print("{}\n", control::to_json(config).dump(2));
  });
}

}  // namespace heddle::cli
