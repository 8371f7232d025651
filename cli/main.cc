// heddle's command line: picks the subcommand, turns every error into one line and an exit status
// (0 fine, 1 ran and failed, 2 bad input).
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "cli/commands.h"
#include "cli/say.h"
#include "net/error.h"

namespace {

// What is wrong with the command line, in one line.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (argc < 2) return "no command; see heddle --help";
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string accepted;
  for (const CLI::App* command : commands) {
    const std::string& name = command->get_name();
    if (command->parsed()) return fmt::format("{}; see heddle {} --help", error.what(), name);
    accepted += (accepted.empty() ? "" : ", ") + name;
  }
  return fmt::format("found '{}'; accepted: a command ({}), --help or --version", argv[1], accepted);
}

int run(int argc, char** argv) {
  CLI::App app{"heddle: a user-space switch and fabric lab for RoCEv2 (RDMA) networks", "heddle"};
  app.set_version_flag("--version", "heddle " HEDDLE_VERSION);
  app.require_subcommand(1);
  app.footer("heddle COMMAND --help shows a command's options and an example.");
  heddle::cli::add_run(app);
  heddle::cli::add_check(app);
  heddle::cli::add_show(app);
  heddle::cli::add_top(app);
  heddle::cli::add_lab(app);
  heddle::cli::add_bench(app);
  heddle::cli::add_tune(app);
  heddle::cli::add_subnet(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    heddle::cli::say("{}", explain(app, error, argc, argv));
    return static_cast<int>(heddle::Error::Kind::kBadInput);
  }
  // What was printed may still wait in the buffer, and the disk be full.
  if (std::fflush(stdout) != 0) heddle::throw_failed("cannot write standard output: {}", std::strerror(errno));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const heddle::Error& error) {
    heddle::cli::say("{}", error.what());
    return error.exit_status();
  } catch (const std::exception& error) {
    heddle::cli::say("{}", error.what());
    return static_cast<int>(heddle::Error::Kind::kFailed);
  }
}
