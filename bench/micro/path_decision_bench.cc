// One path decision by each scheduler in bursts of 32 warm packets, whose hashes the stage before has left (their cost:
// FlowHash). The project holds itself to 5 ns for any scheduler.
#include <array>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/micro/per_item.h"
#include "dataplane/egress_scheduler.h"
#include "dataplane/tables.h"
#include "lb/flow_hash.h"
#include "lb/path_selector.h"
#include "tests/support/flows.h"

namespace heddle::bench {
namespace {

void decide(benchmark::State& state, lb::Scheduler scheduler, unsigned members, unsigned dead) {
  lb::NextHopGroup group;
  for (unsigned i = 0; i < members; ++i) group.members.push_back({.rewrite = {}, .port = static_cast<PortId>(i)});
  group.scheduler = scheduler;
  dataplane::PortStates states(members);
  for (unsigned i = 0; i < dead; ++i) states.set(static_cast<PortId>(i), false);
  const lb::FlowHasher hasher({});
  group.make_table();
  lb::PathSelector selector({.seed = 1, .ports = members});
  const lb::GroupView view(group);
  lb::GroupState of_group;
  std::array<uint32_t, kBurst> hashes{};
  std::array<uint32_t, kBurst> frame_bytes{};
  for (uint32_t i = 0; i < kBurst; ++i) {
    const support::Flow flow = support::roce_flow(L3::kIpv4, {0, 1, 0xc000, 0x11 + i});
    hashes[i] = hasher.hash(flow.frame.data(), flow.meta);
    frame_bytes[i] = 64 + i * 64;
  }
  struct Ports {
    const dataplane::PortStates& states;
    const std::vector<dataplane::EgressScheduler>& egress;
    Time now;
    bool is_up(PortId port) const { return states.is_up(port); }
    Duration drain_time(PortId port) const { return egress[port].drain_time(now); }
    Duration drain_time_of_kibibyte(PortId port) const { return egress[port].drain_time_of_kibibyte(); }
  };
  std::vector<dataplane::EgressScheduler> egress(members);
  for (dataplane::EgressScheduler& port : egress) port.configure({.rate = Rate::gbps(100)});
  Time now = kMillisecond;
  const bool by_loads = selector.goes_by_loads(view);  // then as the pipeline takes a run of one route

  PerItem per_decision(state);
  for (auto _ : state) {
    now += kMicrosecond;
    const Ports ports{states, egress, now};
    if (by_loads) {
      selector.read_loads(view, ports);
      for (const uint32_t bytes : frame_bytes) {
        benchmark::DoNotOptimize(selector.select_by_loads(view, bytes, ports));
      }
      continue;
    }
    for (const uint32_t hash : hashes) {
      benchmark::DoNotOptimize(selector.select(view, of_group, hash, now, ports));
    }
  }
  per_decision.report(kBurst);
}

// A million flows that are in the midst of their flowlets, in an order that no cache foresees; entries are fetched a
// burst ahead of their use, as the pipeline does.
void decide_among_a_million(benchmark::State& state) {
  constexpr uint32_t kFlows = 1U << 20U;
  lb::NextHopGroup group;
  for (unsigned i = 0; i < 8; ++i) group.members.push_back({.rewrite = {}, .port = static_cast<PortId>(i)});
  group.scheduler = *lb::scheduler_named("flowlet");
  struct Ports {
    bool is_up(PortId /*port*/) const { return true; }
    Duration drain_time(PortId /*port*/) const { return 0; }
  };
  lb::PathSelector selector({.seed = 1, .ars = {.max_flows = kFlows}, .ports = 8, .resident = true});
  const lb::GroupView view(group);
  lb::GroupState of_group;
  std::vector<uint32_t> hashes(kFlows);
  Random random(1);
  for (uint32_t& hash : hashes) hash = static_cast<uint32_t>(random.next());
  Time now = kMillisecond;
  for (const uint32_t hash : hashes) selector.select(view, of_group, hash, now, Ports());
  size_t next = 0;

  PerItem per_decision(state);
  for (auto _ : state) {
    for (unsigned i = 0; i < kBurst; ++i) selector.prefetch(hashes[next + i]);
    for (unsigned i = 0; i < kBurst; ++i) {
      benchmark::DoNotOptimize(selector.select(view, of_group, hashes[next + i], now, Ports()));
    }
    next = (next + kBurst) % kFlows;
    now += 2 * kNanosecond;  // all flows pass in 65 µs, within the idle time
  }
  per_decision.report(kBurst);
  state.counters["live"] = 1 - static_cast<double>(selector.counters().collisions.get()) /
                                   static_cast<double>((state.iterations() + kFlows / kBurst) * kBurst);
}
BENCHMARK(decide_among_a_million)->Name("PathDecision_flowlet/1M_live_flows");

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
