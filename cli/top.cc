// heddle top: a live view of a running switch.
#include <algorithm>
#include <ctime>

#include <rte_cycles.h>
#include <sys/ioctl.h>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/top_view.h"
#include "net/error.h"

namespace heddle::cli {

namespace {

using std::chrono::milliseconds;

struct Options {
  std::string socket;
  std::string interval = "1s";
  uint64_t count = 0;  // 0: without end
};

Sample take_sample(const Client& client) {
  Sample sample;
  sample.totals = client.get("/totals");
  sample.at = std::chrono::steady_clock::now();
  sample.tsc = rte_rdtsc();
  sample.queues = client.get("/queues");
  return sample;
}

std::string clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%H:%M:%S", &local)};
}

// Draws over the previous view, cut to what the window shows.
void draw(const std::string& text, bool first) {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0) window = {24, 80, 0, 0};
  std::string out = first ? "\x1b[2J\x1b[H" : "\x1b[H";
  size_t begin = 0;
  for (unsigned row = 1; row < window.ws_row && begin < text.size(); ++row) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += text.substr(begin, std::min<size_t>(end - begin, window.ws_col)) + "\x1b[K\n";
    begin = end + 1;
  }
  fmt::print("{}\x1b[J", out);
}

void top(const Options& options) {
  const milliseconds interval = duration_option("--interval", options.interval).value();
  if (interval < milliseconds(100))
    throw_bad_input("--interval: found '{}'; accepted: 100ms or more", options.interval);
  const Client client(options.socket);
  const Signals signals;
  const bool live = isatty(STDOUT_FILENO) != 0;
  Sample before = take_sample(client);
  for (uint64_t shown = 0; options.count == 0 || shown < options.count; ++shown) {
    if (signals.wait(interval)) return;
    Sample after = take_sample(client);
    if (live) {
      draw(fmt::format("heddle top   {}   {}   Ctrl-C ends\n{}", client.socket(), clock_text(),
                       top_screen(before, after)),
           shown == 0);
    } else {
      fmt::print("{}  {}\n", clock_text(), top_line(before, after));
    }
    std::fflush(stdout);
    before = std::move(after);
  }
}

}  // namespace

void add_top(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("top", "Live view of a running switch");
  command->add_option("--socket", options->socket, "Control socket; default: the only one in /run/heddle");
  command->add_option("--interval", options->interval, "Time between two views, e.g. 500ms")->capture_default_str();
  command->add_option("--count", options->count, "Stop after this many views; 0: never")->capture_default_str();
  command->footer(
      "Redraws in place on a terminal, prints a line per interval elsewhere.\n"
      "Example: heddle top --socket /run/heddle/leaf0.sock");
  command->callback([options] { top(*options); });
}

}  // namespace heddle::cli
