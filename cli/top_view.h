// What `heddle top` shows, from the counters of a running switch at two moments.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/tables.h"

namespace heddle::cli {

// The counters at one moment.
struct Sample {
  std::chrono::steady_clock::time_point at;
  uint64_t tsc = 0;  // of this machine, which is the switch's too: what its worker ticks are counted in
  Json totals;       // GET /totals
  Json queues;       // GET /queues
};

// The whole view, many lines: workers, ports, members of groups, drops.
std::string top_screen(const Sample& before, const Sample& after);

// The same in one line, for logs: sums over ports, and the shares inside every group of more than one member.
std::string top_line(const Sample& before, const Sample& after);

}  // namespace heddle::cli
