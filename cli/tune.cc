// heddle tune: headroom, PFC and ECN settings for given ports, with the arithmetic shown.
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/tune_search.h"
#include "cli/tune_view.h"
#include "net/error.h"

namespace heddle::cli {

namespace {

struct Options {
  TuneOptions tune;
  std::optional<std::string> json;
  std::string search;
  std::vector<std::string> set;
};

void search(const Options& options) {
  LabOptions lab;
  lab.scenario = options.search;
  lab.set = options.set;
  lab.json = options.json;
  const LabRun run = search_ecn(lab);
  if (run.print) fmt::print("{}", trade_off_table(run.results()));
  throw_if_unfinished(run);
}

void run(const Options& options) {
  if (!options.search.empty()) {
    search(options);
    return;
  }
  if (!options.set.empty()) throw_bad_input("--set: found '{}'; accepted: with --search", options.set.front());
  const TuneAnswer settings = answer(options.tune);
  if (!options.json) {
    fmt::print("{}", page_of(settings));
    return;
  }
  const std::string text = json_of(settings).dump(2) + "\n";
  if (*options.json == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(*options.json);
  file << text;
  if (!file.flush()) throw_failed("cannot write {}", *options.json);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("tune", "Headroom, PFC and ECN settings for given ports");
  TuneOptions& tune = options->tune;
  command->add_option("--port", tune.port, "Rate of the ports")->capture_default_str();
  command->add_option("--cable", tune.cable, "Length of the longest cable")->capture_default_str();
  command->add_option("--mtu", tune.mtu, "IP bytes of the longest packet, 576-9600")->capture_default_str();
  command->add_option("--ports", tune.ports, "How many ports share the buffer")->capture_default_str();
  command->add_option("--buffer", tune.buffer, "Size of the shared buffer")->capture_default_str();
  command->add_option("--lossless", tune.lossless, "Lossless classes, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--poll", tune.poll, "Longest time between two looks at a port; 0 for an ASIC")
      ->capture_default_str();
  command->add_option("--burst", tune.burst, "Frames taken in at a look; 0 for an ASIC")->capture_default_str();
  command->add_option("--tx-ring", tune.tx_ring, "Frames with the device that a PFC frame cannot overtake")
      ->capture_default_str();
  command->add_option("--workers", tune.workers, "Worker lcores that share the buffer")->capture_default_str();
  command->add_option("--peer", tune.peer, "How long the peer takes to stop; default: by its rate, IEEE 802.1Qbb");
  command->add_option("--json", options->json, "As JSON into FILE (- or nothing: standard output)")
      ->expected(0, 1)
      ->default_str("-");
  command->add_option("--search", options->search, "Run this scenario under a grid of ECN settings instead");
  command->add_option("--set", options->set, "With --search: override one key of the scenario, section.key=value")
      ->allow_extra_args(false);
  command->footer("Example: heddle tune --port 100G --cable 30m --mtu 4200 --ports 32 --buffer 32MB --lossless 3");
  command->callback([options] { run(*options); });
}

}  // namespace heddle::cli
