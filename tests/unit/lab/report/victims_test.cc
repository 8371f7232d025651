// Pauses that spread, and who suffers from them.
#include "lab/report/victims.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

using support::workload_of;

// Two leaves of eight hosts over one spine: hosts 0–7, and 8–15.
Topology two_leaves() { return build_leaf_spine({.hosts = 16, .leaves = 2, .spines = 1, .links_per_pair = 8}); }

FabricSettings lossless() {
  FabricSettings settings = support::exact_settings();
  settings.switches.flow_control.buffer = 4'000'000;
  settings.switches.flow_control.lossless = 1U << 3U;
  settings.switches.flow_control.xoff = dataplane::Threshold::fixed(50'000);
  return settings;
}

// Hosts 0–3 send to host 8. Flow 4 goes beside them from host 0 to host 9; flow 5 from host 4 to host 5.
std::vector<Flow> incast_with_victim() {
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < 4; ++i) flows.push_back({.src = i, .dst = 8, .bytes = 2'000'000});
  flows.push_back({.src = 0, .dst = 9, .bytes = 500'000});
  flows.push_back({.src = 4, .dst = 5, .bytes = 500'000});
  return flows;
}

TEST(Victims, AreThoseWhoseWayDoesNotLeadOverTheCongestion) {
  const Topology t = two_leaves();
  const Workload workload = workload_of(16, incast_with_victim());
  const RunResult result = run_fabric(t, workload, lossless());
  ASSERT_TRUE(support::all_done(result));
  ASSERT_FALSE(result.timeline.empty());
  const std::vector<HeldFlow> flows = find_held_flows(t, {}, workload, result.held);
  std::set<MessageId> held;
  std::set<MessageId> victims;
  for (const HeldFlow& flow : flows) {
    held.insert(flow.message);
    EXPECT_GE(flow.held, flow.by_others);
    if (flow.by_others == 0) continue;
    victims.insert(flow.message);
    EXPECT_EQ(t.neighbor(flow.origin.node(), flow.origin.port()), 8U) << "the port of the host they all send to";
  }
  EXPECT_EQ(victims, (std::set<MessageId>{4}));
  EXPECT_EQ(held, (std::set<MessageId>{0, 1, 2, 3, 4})) << "flow 5 meets no pause";
}

TEST(Victims, AreNotMadeByCongestionOfTheirOwn) {
  const Topology t = two_leaves();
  std::vector<Flow> flows = incast_with_victim();
  flows[4].dst = 8;
  const Workload workload = workload_of(16, flows);
  const RunResult result = run_fabric(t, workload, lossless());
  for (const HeldFlow& flow : find_held_flows(t, {}, workload, result.held)) EXPECT_EQ(flow.by_others, 0U);
}

// The timeline says the same as the counters: pauses of a port, summed, are the time that it was held back.
TEST(Victims, TimelineAndCountersAgree) {
  const Topology t = two_leaves();
  const RunResult result = run_fabric(t, workload_of(16, incast_with_victim()), lossless());
  ASSERT_TRUE(support::all_done(result));
  std::map<std::pair<NodeId, PortIndex>, Duration> of_port;
  Duration of_hosts = 0;
  Time last = 0;
  for (const NodePause& at : result.timeline) {
    EXPECT_GE(at.pause.from, last);
    last = at.pause.from;
    EXPECT_LT(at.pause.from, at.pause.until);
    EXPECT_TRUE(at.pause.origin.is_known());
    if (t.is_host(at.node)) {
      of_hosts += at.pause.until - at.pause.from;
    } else {
      of_port[{at.node, at.pause.port}] += at.pause.until - at.pause.from;
    }
  }
  EXPECT_GT(of_hosts, 0U);
  EXPECT_EQ(of_hosts, result.host_pause_time);
  for (const PortPauses& port : result.pauses) EXPECT_EQ((of_port[{port.node, port.port}]), port.paused) << port.port;
}

TEST(Victims, ResultDoesNotDependOnThreads) {
  const Topology t = two_leaves();
  const Workload workload = workload_of(16, incast_with_victim());
  FabricSettings settings = lossless();
  const std::vector<HeldFlow> one = find_held_flows(t, {}, workload, run_fabric(t, workload, settings).held);
  settings.run.threads = 3;
  const std::vector<HeldFlow> three = find_held_flows(t, {}, workload, run_fabric(t, workload, settings).held);
  ASSERT_EQ(one.size(), three.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].message, three[i].message);
    EXPECT_EQ(one[i].held, three[i].held);
    EXPECT_EQ(one[i].by_others, three[i].by_others);
    EXPECT_EQ(one[i].origin, three[i].origin);
  }
}

}  // namespace
}  // namespace heddle::lab
