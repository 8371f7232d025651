// Path probes in the lab: what they find, and that the weights which follow from it come to rest and help.
#include "telemetry/path_delay.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lab/fabric/probe_plan.h"
#include "lab/topology/builders.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

using support::exact_settings;
using support::workload_of;
using telemetry::kShareSlots;

FabricSettings probing(std::string_view scheduler) {
  FabricSettings settings = exact_settings();
  settings.switches.scheduler = *lb::scheduler_named(scheduler);
  settings.switches.path_delay.enabled = true;
  settings.switches.path_delay.trace = true;
  settings.hosts.out_of_order = OutOfOrder::kAnyOrderPlacement;
  settings.hosts.window_bytes = 400'000;  // what queues hold must not outlast the run
  return settings;
}

// Leaf l's uplinks lead to spines 0, 1, …, the last `slow` of which have links of a tenth of the rate.
Topology asymmetric(uint32_t spines, uint32_t slow) {
  GraphSettings graph;
  for (uint32_t l = 0; l < 2; ++l) {
    GraphSwitch leaf;
    leaf.name = fmt::format("leaf{}", l);
    leaf.hosts = 4;
    graph.switches.push_back(leaf);
  }
  for (uint32_t s = 0; s < spines; ++s) {
    GraphSwitch spine;
    spine.name = fmt::format("spine{}", s);
    graph.switches.push_back(spine);
    for (uint32_t l = 0; l < 2; ++l) {
      GraphLink link;
      link.a = graph.switches[l].name;
      link.b = spine.name;
      // The leaf's own port does not show it: only the spine's link down to leaf 1 is slow.
      link.link.rate = s + slow >= spines && l == 1 ? Rate::gbps(10) : Rate::gbps(100);
      graph.links.push_back(link);
    }
  }
  return build_graph(graph);
}

std::vector<Flow> across(uint64_t bytes) {
  std::vector<Flow> flows;
  for (HostId host = 0; host < 4; ++host) flows.push_back({host, host + 4, bytes, 0});
  return flows;
}

// Shares of a switch towards one destination, in the order of its ports.
std::vector<double> shares_of(const Topology& topology, const RunResult& result, NodeId node,
                              std::string_view destination) {
  std::vector<double> shares;
  for (const PathState& path : result.probes.paths) {
    if (path.node == node && destination_of_label(topology, path.destination) == destination)
      shares.push_back(path.share / double{kShareSlots});
  }
  return shares;
}

double steady_gbps(const RunResult& result) {
  return static_cast<double>(result.steady_bytes) * 8e3 / static_cast<double>(result.steady_time);
}

TEST(LabPathDelay, TwoLeavesOverAsymmetricSpinesSettle) {
  const Topology topology = asymmetric(4, 1);
  FabricSettings settings = probing("spray-wcmp");
  settings.run.until = 20 * kMillisecond;
  const RunResult result = run_fabric(topology, workload_of(8, across(1'000'000'000)), settings);
  const NodeId leaf0 = topology.host_count;
  const std::vector<double> shares = shares_of(topology, result, leaf0, "leaf1");
  ASSERT_EQ(shares.size(), 4U);
  for (unsigned i = 0; i < 3; ++i) EXPECT_NEAR(shares[i], 1 / 3.1, 0.04) << i;
  EXPECT_NEAR(shares[3], 0.1 / 3.1, 0.02);

  // The trace: it moves for some sweeps, an eighth at most at a time, then stands.
  Time last = 0;
  std::vector<uint32_t> before(4, kShareSlots / 4);
  std::vector<uint32_t> lowest(4, kShareSlots);
  std::vector<uint32_t> highest(4, 0);
  for (const ShareChange& change : result.probes.trace) {
    if (change.node != leaf0) continue;
    uint32_t moved = 0;
    for (unsigned i = 0; i < 4; ++i) moved += change.shares[i] > before[i] ? change.shares[i] - before[i] : 0;
    EXPECT_LE(moved, telemetry::kMostMoved);
    EXPECT_EQ(std::accumulate(change.shares.begin(), change.shares.end(), 0U), kShareSlots);
    before = change.shares;
    last = change.at;
    if (change.at < result.ended_at / 2) continue;
    for (unsigned i = 0; i < 4; ++i) {
      lowest[i] = std::min(lowest[i], change.shares[i]);
      highest[i] = std::max(highest[i], change.shares[i]);
    }
  }
  EXPECT_GT(last, Time{0});
  for (unsigned i = 0; i < 4; ++i) {
    const bool moved_late = highest[i] != 0;
    EXPECT_LE(moved_late ? highest[i] - lowest[i] : 0, kShareSlots / 25) << "still swings: uplink " << i;
  }
}

TEST(LabPathDelay, ProbesKeepToTheirRateAndSayWhatTheyCost) {
  const Topology topology = asymmetric(4, 0);
  FabricSettings settings = probing("ecmp");
  settings.run.until = 20 * kMillisecond;
  const RunResult result = run_fabric(topology, workload_of(8, across(1'000'000'000)), settings);
  EXPECT_GT(result.probes.sent, 1000U);
  EXPECT_GE(result.probes.returned + 20, result.probes.sent);
  double busiest = 0;
  for (const auto& link : result.probes.links) {
    for (const uint64_t bytes : link) {
      busiest = std::max(busiest, static_cast<double>(bytes) * 8 / (100e9 * to_seconds(result.ended_at)));
    }
  }
  EXPECT_LE(busiest, settings.switches.path_delay.rate);
  EXPECT_GT(busiest, settings.switches.path_delay.rate / 8);
  support::expect_books_balance(result);
}

// With probes a run is the same however many threads it has, and ends when its messages have.
TEST(LabPathDelay, IsTheSameForAnyNumberOfThreads) {
  const Topology topology = build_fat_tree({.k = 4});
  for (const std::string_view scheduler : {"spray-wcmp", "adaptive"}) {
    std::vector<RunResult> results;
    for (const unsigned threads : {1U, 2U, 4U}) {
      FabricSettings settings = probing(scheduler);
      settings.run.threads = threads;
      settings.switches.path_delay.rate = 0.01;
      Permutation permutation;
      permutation.bytes = 4'000'000;
      results.push_back(run_fabric(topology, workload_of(16, permutation), settings));
    }
    EXPECT_TRUE(support::all_done(results[0]));
    EXPECT_GT(results[0].probes.returned, 100U);
    for (const RunResult& other : results) {
      support::expect_same(results[0], other);
      EXPECT_EQ(results[0].probes.sent, other.probes.sent);
      EXPECT_EQ(results[0].probes.returned, other.probes.returned);
      ASSERT_EQ(results[0].probes.trace.size(), other.probes.trace.size());
      for (size_t i = 0; i < other.probes.trace.size(); ++i) {
        ASSERT_EQ(results[0].probes.trace[i].at, other.probes.trace[i].at);
        ASSERT_EQ(results[0].probes.trace[i].shares, other.probes.trace[i].shares);
      }
    }
  }
}

// All core links of one aggregation switch at a tenth, both ways: nobody's own queue shows it, but for that switch's.
class SlowAggregation : public testing::Test {
 protected:
  static constexpr uint32_t kHosts = 54;  // k = 6

  static double goodput(std::string_view scheduler, bool probes, bool slow) {
    const Topology topology = build_fat_tree({.k = 6});
    FabricSettings settings = probing(scheduler);
    settings.switches.path_delay.enabled = probes;
    settings.switches.path_delay.rate = 0.01;
    // A sweep of the edge switches takes 100 µs: steady state begins after 20 of them.
    settings.run.until = 3 * kMillisecond;
    settings.run.warm_up = 2 * kMillisecond;
    if (slow) {
      const NodeId agg = *find_node(topology, "agg0");
      for (const PortIndex port : topology.uplinks(agg)) {
        LinkEvent event;
        event.link = topology.ports[agg][port];
        event.kind = LinkEvent::Kind::kRate;
        event.rate = Rate::gbps(10);
        settings.events.push_back(event);
      }
    }
    std::vector<Flow> flows;  // every host to the one a pod further
    for (HostId host = 0; host < kHosts; ++host) flows.push_back({host, (host + kHosts / 6) % kHosts, 500'000'000, 0});
    return steady_gbps(run_fabric(topology, workload_of(kHosts, flows), settings));
  }
};

TEST_F(SlowAggregation, IsSeenByProbesAlone) {
  const double healthy = goodput("spray-wcmp", true, false);
  EXPECT_GT(healthy, 0.9 * kHosts * 97);
  EXPECT_GE(goodput("spray-wcmp", true, true), 0.85 * healthy);
  EXPECT_GE(goodput("adaptive", true, true), 0.85 * healthy);
  EXPECT_LT(goodput("rps", false, true), 0.80 * healthy);
}

// A link beyond the spine goes down and routing does not notice: probes do.
TEST(LabPathDelay, ARemoteFailureIsGoneRound) {
  const Topology topology = asymmetric(4, 0);
  const NodeId leaf1 = topology.host_count + 1;
  const NodeId spine3 = *find_node(topology, "spine3");
  const auto goodput = [&](bool probes) {
    FabricSettings settings = probing("spray-wcmp");
    settings.switches.path_delay.enabled = probes;
    settings.switches.convergence = kSecond;
    settings.run.warm_up = 12 * kMillisecond;
    settings.run.until = 16 * kMillisecond;
    LinkEvent event;
    event.at = 2 * kMillisecond;
    event.link = topology.links_between(spine3, leaf1).front();
    event.kind = LinkEvent::Kind::kDown;
    settings.events.push_back(event);
    const RunResult result = run_fabric(topology, workload_of(8, across(1'000'000'000)), settings);
    if (probes) {
      for (const PathState& path : result.probes.paths) {
        const bool dead = path.node == topology.host_count && topology.neighbor(path.node, path.port) == spine3;
        EXPECT_EQ(path.bad, dead) << topology.nodes[path.node].name << ":" << path.port;
        if (dead) {
          EXPECT_EQ(path.share, 0U);
        }
      }
    }
    return steady_gbps(result);
  };
  EXPECT_GE(goodput(true), 0.85 * 300 * 4096 / 4178);
  EXPECT_LT(goodput(false), 0.5 * 300);
}

TEST(ProbePlan, SplitsGroupsByLeafOfTheOwnPodAndByOtherPod) {
  const Topology topology = build_fat_tree({.k = 4});
  std::vector<SwitchRoutes> routes = compute_routes(topology, std::vector<bool>(topology.links.size(), true));
  const auto probed = plan_probes(topology, std::vector<bool>(topology.links.size(), true), routes);
  const auto switch_named = [&](std::string_view name) { return *find_node(topology, name) - topology.host_count; };
  const auto destinations = [&](std::string_view name) {
    std::vector<std::string> names;
    for (const ProbedGroup& group : probed[switch_named(name)]) {
      names.push_back(destination_of_label(topology, group.label));
    }
    return names;
  };
  EXPECT_EQ(destinations("edge0"), (std::vector<std::string>{"edge1", "pod1", "pod2", "pod3"}));
  EXPECT_EQ(destinations("agg0"), (std::vector<std::string>{"pod1", "pod2", "pod3"}));
  EXPECT_TRUE(destinations("core0").empty());
  EXPECT_EQ(probe_hops(topology), 4U);  // edge, aggregation, core, aggregation; the far edge turns it round
  // Every switch has a way to every other.
  for (uint32_t from = 0; from < topology.switch_count(); ++from) {
    for (uint32_t to = 0; to < topology.switch_count(); ++to) {
      EXPECT_EQ(routes[from].group_of_host[topology.host_count + to] == kUnreachable, from == to);
    }
  }
}

}  // namespace
}  // namespace heddle::lab
