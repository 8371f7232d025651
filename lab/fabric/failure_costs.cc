#include "lab/fabric/failure_costs.h"

#include <algorithm>

namespace heddle::lab {

namespace {

// Of two times either of which may never have come.
Time later_that_came(Time a, Time b) {
  if (a == kNever) return b;
  return b == kNever ? a : std::max(a, b);
}

}  // namespace

void collect_recovery(const Fabric& fabric, RunResult& result) {
  for (const auto& node : fabric.switches) result.last_loss = later_that_came(result.last_loss, node->last_loss());
  for (const auto& host : fabric.hosts) {
    result.last_loss = later_that_came(result.last_loss, host->last_loss());
    result.last_repair = later_that_came(result.last_repair, host->last_repair());
    if (result.goodput.size() < host->goodput().size()) result.goodput.resize(host->goodput().size());
    for (size_t i = 0; i < host->goodput().size(); ++i) result.goodput[i] += host->goodput()[i];
  }
}

}  // namespace heddle::lab
