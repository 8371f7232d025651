// How the micro-benchmarks report: time and TSC cycles for one packet, hash or decision, not for one loop.
#pragma once

#include <benchmark/benchmark.h>
#include <rte_cycles.h>

namespace heddle::bench {

// Counts cycles from its making on; `report` closes the count.
class PerItem {
 public:
  explicit PerItem(benchmark::State& state) : state_(state), begun_(rte_rdtsc()) {}

  void report(uint64_t items_per_iteration) {
    const auto cycles = static_cast<double>(rte_rdtsc() - begun_);
    const double items = static_cast<double>(state_.iterations()) * static_cast<double>(items_per_iteration);
    state_.SetItemsProcessed(static_cast<int64_t>(items));
    state_.counters["time"] = benchmark::Counter(items, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    state_.counters["cycles"] = cycles / items;
  }

 private:
  benchmark::State& state_;
  uint64_t begun_;
};

}  // namespace heddle::bench
