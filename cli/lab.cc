// heddle lab: one fabric run in virtual time.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/lab_run.h"
#include "cli/lab_view.h"

namespace heddle::cli {

namespace {

void run(const LabOptions& options) {
  const LabRun run = run_lab(options, false);
  if (run.print) {
    const std::vector<nlohmann::ordered_json> results = run.results();
    if (run.outcomes.size() > 1) {
      fmt::print("{}", lab_tables(results, isatty(STDOUT_FILENO) != 0));
    } else if (!results.empty()) {
      fmt::print("{}", lab_page(results.front()));
    }
  }
  throw_if_unfinished(run);
}

}  // namespace

void add_lab(CLI::App& app) {
  auto options = std::make_shared<LabOptions>();
  CLI::App* command = app.add_subcommand("lab", "One run of a whole fabric in virtual time");
  command->add_option("SCENARIO", options->scenario, "Scenario (docs/scenarios.md)")->required();
  add_lab_options(*command, *options);
  command
      ->add_option("--capture", options->captures,
                   "Packets of a port as pcapng (InfiniBand: or .erf): leaf0:3=leaf0.pcapng")
      ->allow_extra_args(false);
  command->footer("Example: heddle lab examples/lab/permutation-1024.yaml --set fabric.scheduler=rps");
  command->callback([options] { run(*options); });
}

}  // namespace heddle::cli
