// One path decision by each scheduler, hash included, in bursts of 32 warm packets as the pipeline makes them. The
// project holds itself to 5 ns for any scheduler.
#include <string>

#include <benchmark/benchmark.h>

#include "bench/micro/per_item.h"
#include "dataplane/tables.h"
#include "lb/flow_hash.h"
#include "lb/path_selector.h"
#include "tests/support/flows.h"

namespace heddle::bench {
namespace {

using support::Flow;

void decide(benchmark::State& state, lb::Scheduler scheduler, unsigned members, unsigned dead) {
  lb::NextHopGroup group;
  for (unsigned i = 0; i < members; ++i) group.members.push_back({.rewrite = {}, .port = static_cast<PortId>(i)});
  group.scheduler = scheduler;
  dataplane::PortStates states(members);
  for (unsigned i = 0; i < dead; ++i) states.set(static_cast<PortId>(i), false);
  const lb::FlowHasher hasher({});
  lb::PathSelector selector(1);
  const lb::GroupView view(group);
  lb::GroupState of_group;
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < kBurst; ++i) flows.push_back(support::roce_flow(L3::kIpv4, {0, 1, 0xc000, 0x11 + i}));
  const auto is_up = [&states](PortId port) { return states.is_up(port); };

  PerItem per_decision(state);
  for (auto _ : state) {
    for (Flow& flow : flows) {
      const uint32_t hash = view.choice == lb::Choice::kHash ? hasher.hash(flow.frame.data(), flow.meta) : 0;
      benchmark::DoNotOptimize(selector.select(view, of_group, hash, is_up));
    }
  }
  per_decision.report(kBurst);
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const lb::SchedulerPreset& preset : lb::kSchedulerPresets) {
    for (const unsigned members : {1U, 4U, 8U, 64U}) {
      const std::string name = "PathDecision_" + std::string(preset.name) + "/" + std::to_string(members);
      benchmark::RegisterBenchmark(name.c_str(), decide, preset.scheduler, members, 0U);
    }
    const std::string name = "PathDecision_" + std::string(preset.name) + "/8_of_which_2_dead";
    benchmark::RegisterBenchmark(name.c_str(), decide, preset.scheduler, 8U, 2U);
  }
  return true;
}();

}  // namespace
}  // namespace heddle::bench
