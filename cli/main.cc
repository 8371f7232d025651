// heddle's command line: picks the subcommand, turns every error into one line and an exit status
// (0 fine, 1 ran and failed, 2 bad input).
#include <cstdio>
#include <exception>

#include "cli/commands.h"
#include "net/error.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"heddle: a user-space switch and fabric lab for RoCEv2 (RDMA) networks"};
  app.set_version_flag("--version", "heddle " HEDDLE_VERSION);
  app.require_subcommand(1);
  app.footer("heddle COMMAND --help shows a command's options and an example.");
  heddle::cli::add_run(app);
  heddle::cli::add_check(app);
  heddle::cli::add_show(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "heddle: {}; see heddle --help\n", error.what());
    return static_cast<int>(heddle::Error::Kind::kBadInput);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "heddle: {}\n", error.what());
    return error.exit_status();
  } catch (const std::exception& error) {
    fmt::print(stderr, "heddle: {}\n", error.what());
    return static_cast<int>(heddle::Error::Kind::kFailed);
  }
}
