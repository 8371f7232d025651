// The subcommands of `heddle`, a file each. Every function adds one to the command line; running it happens in the
// callback that it leaves there.
#pragma once

#include <CLI/CLI.hpp>

namespace heddle::cli {

void add_run(CLI::App& app);
void add_check(CLI::App& app);
void add_show(CLI::App& app);
void add_top(CLI::App& app);
void add_lab(CLI::App& app);
void add_bench(CLI::App& app);
void add_tune(CLI::App& app);
void add_subnet(CLI::App& app);

}  // namespace heddle::cli
