// What a scenario's workloads mean: every key, whose hosts they run on, what they draw, the files they come from.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/scenario/experiment.h"
#include "tests/unit/lab/scenario/loading.h"

namespace heddle::lab {
namespace {

using ::testing::ElementsAre;

TEST(ScenarioWorkload, ReadsEveryWorkload) {
  EXPECT_EQ(pattern<Permutation>(load("workload: {size: 1MB}")).bytes, 1'000'000U) << "permutation is the default";
  EXPECT_EQ(pattern<Shift>(load("workload: {kind: shift, distance: 5}")).distance, 5U);
  const Scenario incast_scenario = load("workload: {kind: incast, fan_in: 3, victims: 2, victim_size: 5kB}");
  const auto& incast = pattern<Incast>(incast_scenario);
  EXPECT_EQ(incast.fan_in, 3U);
  EXPECT_EQ(incast.victim_count, 2U);
  EXPECT_EQ(incast.victim_bytes, 5'000U);

  const auto collective = [](const std::string& text) {
    return pattern<Training>(load("workload: {" + text + "}")).collective;
  };
  EXPECT_EQ(collective("kind: all-reduce, size: 1GB").kind, CollectiveKind::kRingAllReduce);
  EXPECT_EQ(collective("kind: all-reduce, size: 1GB").bytes, 1'000'000'000U);
  EXPECT_EQ(collective("kind: all-reduce, algorithm: halving-doubling").kind, CollectiveKind::kHalvingDoubling);
  EXPECT_EQ(collective("kind: all-gather").kind, CollectiveKind::kRingAllGather);
  EXPECT_EQ(collective("kind: reduce-scatter").kind, CollectiveKind::kRingReduceScatter);
  EXPECT_EQ(collective("kind: all-to-all").kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(collective("kind: all-to-all, algorithm: staggered, in_flight: 2").in_flight, 2U);

  const Scenario training_scenario = load(
      "workload: {kind: training, collective: all-to-all, algorithm: staggered, steps: 3, compute: 1ms, "
      "compute_spread: 10us}");
  const auto& training = pattern<Training>(training_scenario);
  EXPECT_EQ(training.collective.kind, CollectiveKind::kStaggeredAllToAll);
  EXPECT_EQ(training.steps, 3U);
  EXPECT_EQ(training.compute, kMillisecond);
  EXPECT_EQ(training.compute_spread, 10 * kMicrosecond);

  const auto pipeline =
      pattern<Pipeline>(load("workload: {kind: pipeline, microbatches: 4, forward: 5us, backward: true}"));
  EXPECT_EQ(pipeline.microbatches, 4U);
  EXPECT_TRUE(pipeline.backward);

  const auto poisson = pattern<Poisson>(load("workload: {kind: poisson, load: 30%, duration: 1ms, max_flows: 9}"));
  EXPECT_DOUBLE_EQ(poisson.load, 0.3);
  EXPECT_EQ(poisson.max_flows, 9U);

  const auto flows = pattern<Flows>(load("workload: {kind: flows, size: 7kB, flows: [{src: 1, dst: 2, start: 3us}]}"));
  EXPECT_EQ(flows.flows.at(0).bytes, 7'000U);
  EXPECT_EQ(flows.flows.at(0).start, 3 * kMicrosecond);
}

TEST(ScenarioWorkload, PlacesJobsOnHosts) {
  const Experiment experiment = prepare(load(R"(
topology: {kind: single-switch, hosts: 10}
workload:
  - {name: own, kind: shift, hosts: [2, 4-5]}
  - {name: first, kind: shift, ranks: 3}
  - {name: rest, kind: shift, start: 5us}
  - {name: shared, kind: shift, hosts: 4-5}
)"));
  EXPECT_THAT(experiment.workload.jobs, ElementsAre("own", "first", "rest", "shared"));
  std::vector<std::vector<HostId>> sources(4);
  for (const Message& m : experiment.workload.messages) sources[m.job].push_back(m.src);
  EXPECT_THAT(sources[0], ElementsAre(2, 4, 5));
  EXPECT_THAT(sources[1], ElementsAre(0, 1, 3));
  EXPECT_THAT(sources[2], ElementsAre(6, 7, 8, 9));
  EXPECT_THAT(sources[3], ElementsAre(4, 5));
  EXPECT_EQ(experiment.workload.messages[6].start, 5 * kMicrosecond);
}

TEST(ScenarioWorkload, JobsOfOneScenarioDrawDifferentNumbers) {
  const std::string two = R"(
topology: {kind: single-switch, hosts: 64}
workload: [{name: a, ranks: 32}, {name: b, ranks: 32}]
)";
  const auto destinations = [](const Experiment& experiment, uint32_t job) {
    std::vector<HostId> hosts;
    for (const Message& m : experiment.workload.messages) {
      if (m.job == job) hosts.push_back(m.dst - 32 * job);
    }
    return hosts;
  };
  const Experiment experiment = prepare(load(two));
  EXPECT_NE(destinations(experiment, 0), destinations(experiment, 1));
  EXPECT_EQ(destinations(experiment, 0), destinations(prepare(load(two)), 0));
  EXPECT_NE(destinations(experiment, 0), destinations(prepare(load(two, {"run.seed=2"})), 0));
  EXPECT_EQ(destinations(prepare(load(two, {"workload.a.seed=5", "run.seed=2"})), 0),
            destinations(prepare(load(two, {"workload.a.seed=5", "run.seed=3"})), 0));
}

// A topology file whose switches are 0 and 1, and a flow file of the same numbers.
TEST(ScenarioWorkload, FlowsOfAFileRunBetweenTheHostsThatItNames) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "scenario-numbers";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "t.txt") << "6 2 5\n0 1\n0 1 100Gbps 1us 0\n0 2 100Gbps 1us 0\n0 3 100Gbps 1us 0\n"
                                     "1 4 100Gbps 1us 0\n1 5 100Gbps 1us 0\n";
  std::ofstream(folder / "f.txt") << "1\n2 3 3 100 5000 2.0\n";
  std::ofstream(folder / "x.yaml") << "topology: {kind: file, file: t.txt, format: hpcc}\n"
                                      "workload: {kind: file, file: f.txt, format: hpcc}\n";
  const Experiment experiment = prepare(load_scenario((folder / "x.yaml").string()));
  ASSERT_EQ(experiment.workload.messages.size(), 1U);
  EXPECT_EQ(experiment.topology.nodes[experiment.workload.messages[0].src].name, "host2");
  EXPECT_EQ(experiment.topology.nodes[experiment.workload.messages[0].dst].name, "host3");
  std::filesystem::remove_all(folder);
}

// Events at time 0 hold from the beginning, for what a load is a share of too.
TEST(ScenarioWorkload, ALoadIsAShareOfTheRateAtTheStart) {
  const std::string poisson = "workload: {kind: poisson, load: 50%, duration: 1ms}\n";
  const Experiment built = prepare(load("topology: {kind: single-switch, hosts: 2, link: {rate: 10G}}\n" + poisson));
  const Experiment slowed = prepare(load("topology: {kind: single-switch, hosts: 2}\n" + poisson +
                                         "events: [{at: 0, link: \"host1:0\", rate: 10G, direction: in}]\n"));
  ASSERT_EQ(slowed.workload.messages.size(), built.workload.messages.size());
  for (MessageId m = 0; m < built.workload.messages.size(); ++m) {
    EXPECT_EQ(slowed.workload.messages[m].start, built.workload.messages[m].start);
  }
}

}  // namespace
}  // namespace heddle::lab
