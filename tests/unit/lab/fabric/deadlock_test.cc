// Cyclic buffer dependencies: found where routes go up again after they came down, and nowhere else.
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

using support::workload_of;

// examples/lab/pfc-deadlock.yaml: four leaves, two spines; each host sends to the one across.
Topology leaves_and_spines() { return build_leaf_spine({.hosts = 16, .leaves = 4, .spines = 2, .links_per_pair = 1}); }

std::vector<Flow> across(uint64_t bytes) {
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < 16; ++i) flows.push_back({.src = i, .dst = (i + 8) % 16, .bytes = bytes});
  return flows;
}

LinkId link_between(const Topology& t, const std::string& a, const std::string& b) {
  for (LinkId id = 0; id < t.links.size(); ++id) {
    const std::set<std::string> ends{t.nodes[t.links[id].a].name, t.nodes[t.links[id].b].name};
    if (ends == std::set<std::string>{a, b}) return id;
  }
  ADD_FAILURE() << "no link " << a << "-" << b;
  return 0;
}

FabricSettings lossless() {
  FabricSettings settings;
  settings.switches.flow_control.buffer = 4'000'000;
  settings.switches.flow_control.lossless = 1U << 3U;
  settings.switches.flow_control.xoff = dataplane::Threshold::fixed(30'000);
  settings.run.threads = 1;
  settings.run.until = 30 * kMillisecond;
  settings.switches.convergence = 0;
  return settings;
}

TEST(DeadlockWatch, NamesTheCycleThatFailedLinksMake) {
  const Topology t = leaves_and_spines();
  FabricSettings settings = lossless();
  for (const auto& [leaf, spine] : {std::pair{"leaf0", "spine1"}, std::pair{"leaf2", "spine0"}}) {
    settings.events.push_back({.at = 0, .link = link_between(t, leaf, spine), .kind = LinkEvent::Kind::kDown});
  }
  const RunResult result = run_fabric(t, workload_of(16, across(4'000'000)), settings);
  EXPECT_EQ(result.end, RunResult::End::kTimeLimit) << "what waits for itself does not end";
  EXPECT_EQ(support::all_drops(result), 0U);
  ASSERT_TRUE(result.deadlock.has_value());
  const std::vector<QueueRef>& cycle = result.deadlock->cycle;
  ASSERT_GE(cycle.size(), 3U);
  std::set<NodeId> nodes;
  for (size_t i = 0; i < cycle.size(); ++i) {
    EXPECT_EQ(t.neighbor(cycle[i].node, cycle[i].port), cycle[(i + 1) % cycle.size()].node) << "link " << i;
    EXPECT_EQ(cycle[i].traffic_class, 3);
    EXPECT_TRUE(nodes.insert(cycle[i].node).second) << "a switch twice";
  }
}

TEST(DeadlockWatch, FindsNoneWhereEveryPathGoesUpAndDownOnce) {
  const Topology t = leaves_and_spines();
  const RunResult result = run_fabric(t, workload_of(16, across(4'000'000)), lossless());
  EXPECT_TRUE(support::all_done(result));
  EXPECT_FALSE(result.deadlock.has_value());
}

// 15 to 1 for long: queues stand paused for milliseconds, and wait for no cycle.
TEST(DeadlockWatch, DoesNotTakeALongPauseForOne) {
  const Topology t = leaves_and_spines();
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < 15; ++i) flows.push_back({.src = i, .dst = 15, .bytes = 3'000'000});
  const RunResult result = run_fabric(t, workload_of(16, flows), lossless());
  EXPECT_TRUE(support::all_done(result));
  EXPECT_GT(result.host_pause_time, 10 * kMillisecond);
  EXPECT_FALSE(result.deadlock.has_value());
}

}  // namespace
}  // namespace heddle::lab
