// heddle run: a switch on DPDK ports until it is interrupted.
#include <chrono>
#include <fstream>
#include <optional>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/signals.h"
#include "cli/tables.h"
#include "control/preflight.h"
#include "control/running_switch.h"
#include "control/server.h"
#include "control/switch_config.h"
#include "control/views.h"
#include "net/error.h"

namespace heddle::cli {

namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

struct Options {
  std::string config;
  std::vector<std::string> set;
  std::optional<std::string> json;
  std::string run_for;
  std::string until_idle;
  bool quiet = false;
};

// Returns when a signal came, the time is over, or nothing has arrived for long enough.
void wait_for_end(const Signals& signals, control::RunningSwitch& running, const Options& options) {
  const auto limit = duration_option("--for", options.run_for);
  const auto idle = duration_option("--until-idle", options.until_idle);
  const auto began = SteadyClock::now();
  auto last_packet = began;
  uint64_t received = 0;
  milliseconds tick(100);
  if (limit) tick = std::min(tick, std::max(*limit, milliseconds(1)));
  if (idle) tick = std::min(tick, std::max(*idle / 4, milliseconds(1)));
  while (!signals.wait(tick)) {
    running.tick();
    const auto now = SteadyClock::now();
    if (limit && now - began >= *limit) return;
    if (const uint64_t n = running.received(); n != received) {
      received = n;
      last_packet = now;
    }
    if (idle && now - last_packet >= *idle) return;
  }
}

void print_result(control::RunningSwitch& running, const Options& options) {
  const Json totals = control::totals_view(running);
  if (options.json) {
    if (*options.json == "-") {
      fmt::print("{}\n", totals.dump(2));
      return;
    }
    std::ofstream file(*options.json);
    file << totals.dump(2) << "\n";
    if (!file) throw_failed("cannot write {}", *options.json);
  }
  fmt::print("{}", table_of("ports", totals));
  const Json drops = control::drops_view(running);
  if (!drops["drops"].empty()) fmt::print("\n{}", table_of("drops", drops));
}

void run(const Options& options) {
  const control::SwitchConfig config = control::load_switch_config(options.config, options.set);
  duration_option("--for", options.run_for);
  duration_option("--until-idle", options.until_idle);
  for (const std::string& warning : config.warnings) say("warning: {}", warning);
  control::check_machine(config);
  signal(SIGPIPE, SIG_IGN);  // whoever read our remarks or asked a question may go at any time
  const Signals signals;
  control::RunningSwitch running(config, [&](const std::string& line) {
    if (!options.quiet) say("{}", line);
  });
  std::optional<control::Server> server;
  if (!config.control_socket.empty()) server.emplace(running, config.control_socket);
  say("switch {} is forwarding", config.name);
  wait_for_end(signals, running, options);
  running.stop(milliseconds(1000));
  server.reset();  // after the packets, which do not wait for whoever talks to the socket
  print_result(running, options);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "A switch on DPDK ports until interrupted");
  command->add_option("CONFIG", options->config, "Switch configuration (docs/configuration.md)")->required();
  command->add_option("--set", options->set, "Override one key: section.key=value")->allow_extra_args(false);
  command->add_option("--for", options->run_for, "Stop after this time, e.g. 10s");
  command->add_option("--until-idle", options->until_idle, "Stop when nothing has arrived for this long, e.g. 500ms");
  command->add_option("--json", options->json, "Final counters as JSON into FILE (- or nothing: standard output)")
      ->expected(0, 1)
      ->default_str("-");
  command->add_flag("--quiet", options->quiet, "No remarks about ports and links");
  command->footer("Example: heddle run examples/run/leaf-veth.yaml --set ports.up0.rate=25G");
  command->callback([options] { run(*options); });
}

}  // namespace heddle::cli
