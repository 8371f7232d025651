// heddle bench: the same scenario under each scheme, side by side.
#include <filesystem>

#include <unistd.h>

#include "cli/commands.h"
#include "cli/lab_run.h"
#include "cli/lab_view.h"
#include "net/error.h"

namespace heddle::cli {

namespace {

// The shipped default scenario: in the source tree that holds the build folder or is the working directory, or where
// `install` put it.
std::string default_scenario() {
  namespace fs = std::filesystem;
  const fs::path name = fs::path("examples") / "lab" / "default.yaml";
  std::error_code ignored;
  std::vector<fs::path> candidates{name};
  fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int up = 0; up < 4; ++up, folder = folder.parent_path()) {
    candidates.push_back(folder / name);
    candidates.push_back(folder / "share" / "heddle" / name);
  }
  for (const fs::path& candidate : candidates) {
    if (fs::is_regular_file(candidate, ignored)) return candidate.string();
  }
  throw_bad_input("the shipped scenario {} is not here; name a scenario", name.string());
}

void run(LabOptions options) {
  if (options.scenario.empty()) options.scenario = default_scenario();
  const LabRun run = run_lab(options, true);
  if (run.print) fmt::print("{}", lab_tables(run.results(), isatty(STDOUT_FILENO) != 0));
  throw_if_unfinished(run);
}

}  // namespace

void add_bench(CLI::App& app) {
  struct Options {
    LabOptions lab;
    std::string schemes;
    std::string workloads;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bench", "The same scenario under each scheme, side by side");
  command->add_option("SCENARIO", options->lab.scenario, "Scenario (docs/scenarios.md); default: the shipped one");
  add_lab_options(*command, options->lab);
  command->add_option("--schemes", options->schemes, "Compare only these: ecmp,rps,… (docs/schemes.md)");
  command->add_option("--workloads", options->workloads,
                      "Compare these workloads of the scenario: permutation,permutation/slow-uplink,… or all");
  command->footer(
      "Example: heddle bench examples/lab/all-to-all-64.yaml --schemes ecmp,rps --sweep hosts.mtu=1024,4096");
  command->callback([options] {
    if (!options->schemes.empty()) options->lab.set.push_back("bench.schemes=[" + options->schemes + "]");
    if (!options->workloads.empty()) options->lab.set.push_back("bench.compare=[" + options->workloads + "]");
    run(options->lab);
  });
}

}  // namespace heddle::cli
