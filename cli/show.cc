// heddle show: asks a running switch over its control socket.
#include <filesystem>

#include <httplib.h>
#include <sys/socket.h>

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

// The socket to ask: the one named, or the only one in the default place.
std::string find_socket(const std::string& named) {
  if (!named.empty()) return named;
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/run/heddle", ignored)) {
    if (entry.is_socket(ignored)) found.push_back(entry.path());
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) throw_bad_input("no switch found in /run/heddle; name its control socket with --socket");
  throw_bad_input("{} switches found in /run/heddle; choose one with --socket, e.g. {}", found.size(), found.front());
}

void show(const Options& options) {
  const std::string socket = find_socket(options.socket);
  httplib::Client client(socket);
  client.set_address_family(AF_UNIX);
  client.set_read_timeout(5);
  const auto answer = client.Get("/" + options.what + (options.all ? "?all=1" : ""));
  if (!answer) throw_failed("no switch answers at {}", socket);
  const Json view = Json::parse(answer->body, nullptr, false);
  if (answer->status != 200 || view.is_discarded()) throw_failed("{} answered: {}", socket, answer->body);
  fmt::print("{}", options.json ? view.dump(2) + "\n" : table_of(options.what, view));
}

}  // namespace

void add_show(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("show", "Ask a running switch");
  command->add_option("WHAT", options->what, "ports, routes, paths, queues or drops")
      ->required()
      ->check(CLI::IsMember({"ports", "routes", "paths", "queues", "drops"}));
  command->add_option("--socket", options->socket, "Control socket; default: the only one in /run/heddle");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--all", options->all, "Queues: also those never used");
  command->footer("Example: heddle show paths --socket /run/heddle/leaf0.sock");
  command->callback([options] { show(*options); });
}

}  // namespace heddle::cli
