// heddle show: asks a running switch over its control socket.
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/tables.h"
#include "net/error.h"

namespace heddle::cli {

namespace {

struct Options {
  std::string what;
  std::string socket;
  bool json = false;
  bool all = false;
};

void show(const Options& options) {
  const bool has_peaks = options.what == "queues" || options.what == "buffer";
  const std::string query = has_peaks ? options.all ? "?read=1&all=1" : "?read=1" : "";
  const Json view = Client(options.socket).get("/" + options.what + query);
  fmt::print("{}", options.json ? view.dump(2) + "\n" : table_of(options.what, view));
}

}  // namespace

void add_show(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("show", "Ask a running switch");
  command->add_option("WHAT", options->what, "ports, routes, paths, queues, buffer, pfc, watchdog, ecn or drops")
      ->required()
      ->check(CLI::IsMember({"ports", "routes", "paths", "queues", "buffer", "pfc", "watchdog", "ecn", "drops"}));
  command->add_option("--socket", options->socket, "Control socket; default: the only one in /run/heddle");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--all", options->all, "Queues and buffer: also those never used");
  command->footer("Example: heddle show paths --socket /run/heddle/leaf0.sock");
  command->callback([options] { show(*options); });
}

}  // namespace heddle::cli
