// Which runs a bench consists of; what a sweep is.
#include "lab/bench.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/scenario/experiment.h"
#include "lab/scenario/scenario.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

Scenario load(const std::string& yaml) { return load_scenario_text(yaml, "x.yaml"); }

template <typename Function>
std::string message_of(const Function& function) {
  try {
    function();
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    return error.what();
  }
}

// A scenario file that lives as long as the test.
class Bench : public testing::Test {
 protected:
  std::string write(const std::string& yaml) {
    std::ofstream(path_) << yaml;
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }

 private:
  std::string path_ = testing::TempDir() + "bench_test_" + std::to_string(getpid()) + ".yaml";
};

TEST(Schemes, AreAllPresetsHostSprayingAndStrictHosts) {
  EXPECT_THAT(all_schemes(load("{}")),
              ElementsAre("ecmp", "wcmp", "rps", "round-robin", "spray-wcmp", "flowlet", "flowlet-wcmp",
                          "flowlet-quality", "adaptive", "host-spray", "rps+reseq", "round-robin+reseq",
                          "spray-wcmp+reseq", "adaptive+reseq", "host-spray+reseq", "rps+gbn", "round-robin+gbn",
                          "spray-wcmp+gbn", "adaptive+gbn", "host-spray+gbn"));
  EXPECT_THAT(all_schemes(load("hosts: {out_of_order: go-back-n}")),
              ElementsAre("ecmp", "wcmp", "rps", "round-robin", "spray-wcmp", "flowlet", "flowlet-wcmp",
                          "flowlet-quality", "adaptive", "host-spray"))
      << "where hosts are strict anyway";
}

TEST(Schemes, ChangeSchedulerEntropyAndOrder) {
  const auto resolved = [](const std::string& scheme) {
    Scenario scenario = with_scheme(load("{}"), scheme);
    resolve(scenario);
    EXPECT_EQ(scheme_name(scenario), scheme);
    return scenario;
  };
  EXPECT_EQ(resolved("ecmp").hosts.out_of_order, OutOfOrder::kGoBackN);
  EXPECT_EQ(resolved("rps").hosts.out_of_order, OutOfOrder::kAnyOrderPlacement);
  EXPECT_EQ(resolved("rps+gbn").hosts.out_of_order, OutOfOrder::kGoBackN);
  EXPECT_EQ(resolved("round-robin+sr").hosts.out_of_order, OutOfOrder::kSelectiveRepeat);
  EXPECT_EQ(resolved("host-spray").hosts.entropy, Entropy::kPerPacket);
  EXPECT_EQ(resolved("host-spray").switches.scheduler, *lb::scheduler_named("ecmp"));
  EXPECT_EQ(resolved("host-spray+gbn").hosts.out_of_order, OutOfOrder::kGoBackN);
  EXPECT_EQ(resolved("rps").hosts.entropy, Entropy::kPerQp);
}

TEST(Schemes, OfInfinibandChangeTheLinks) {
  const Scenario scenario =
      load("{hosts: {congestion_control: dcqcn}, fabric: {control_scheduler: ecmp, resequencer: {enabled: true}}}");
  for (const std::string name : {"ib", "ib-adaptive", "ib-adaptive+gbn", "ib-adaptive-bounded"}) {
    Scenario on = with_scheme(scenario, name);
    resolve(on);
    EXPECT_EQ(scheme_name(on), name);
    EXPECT_EQ(on.hosts.link_layer, LinkLayer::kInfiniband);
    EXPECT_FALSE(on.hosts.dcqcn.has_value());
    EXPECT_FALSE(on.switches.resequencer.enabled);
    EXPECT_EQ(with_scheme(on, "ecmp").hosts.link_layer, LinkLayer::kEthernet) << "and back";
  }
  EXPECT_EQ(with_scheme(scenario, "ib").switches.scheduler, lb::Scheduler());
  EXPECT_EQ(with_scheme(scenario, "ib-adaptive").switches.scheduler, *lb::scheduler_named("adaptive"));
}

// Beside InfiniBand, Ethernet has the same bytes for each port and class.
TEST_F(Bench, ComparesEqualBuffers) {
  const auto buffers = [&](const std::string& fabric) {
    const std::string path = write("{topology: {kind: single-switch, hosts: 4}, workload: {kind: shift}, " + fabric +
                                   "bench: {schemes: [rps, ib]}}");
    const std::vector<BenchRun> runs = plan_bench(path, {}, {}, true);
    const FlowControlSettings& of = runs[0].scenario.switches.flow_control;
    EXPECT_EQ(runs[1].scenario.switches.flow_control.port_buffer, 0U) << "which InfiniBand links do not have";
    const Experiment experiment = prepare(runs[0].scenario);
    return std::tuple{of.buffer, of.port_buffer, of.lossless, experiment.notes};
  };
  using Notes = std::vector<std::string>;
  EXPECT_EQ(buffers(""),
            (std::tuple{uint64_t{0}, uint64_t{131'072}, uint8_t{8},
                        Notes{"Ethernet links: 131072 bytes of buffer for each port and lossless class"}}));
  EXPECT_EQ(buffers("fabric: {credits: {buffer: 64KiB}}, "),
            (std::tuple{uint64_t{0}, uint64_t{65'536}, uint8_t{8},
                        Notes{"Ethernet links: 65536 bytes of buffer for each port and lossless class"}}));
  EXPECT_EQ(buffers("fabric: {buffer: 9MB}, "), (std::tuple{uint64_t{9'000'000}, uint64_t{0}, uint8_t{0}, Notes{}}))
      << "its own";
}

TEST(Schemes, ThatDoNotExist) {
  const std::string accepted =
      "accepted: ecmp, wcmp, rps, round-robin, spray-wcmp, flowlet, flowlet-wcmp, flowlet-quality, adaptive, "
      "host-spray, ib, ib-adaptive, ib-adaptive-bounded, and after those that reorder packets +gbn, +sr or (Ethernet) "
      "+reseq";
  for (const std::string name :
       {"", "epcm", "ecmp+gbn", "rps+", "rps+xyz", "+gbn", "rps+gbn+sr", "ib+gbn", "ib-adaptive+reseq", "ib-rps"}) {
    EXPECT_EQ(message_of([&] { with_scheme(load("{}"), name, "x.yaml"); }),
              "x.yaml: found scheme '" + name + "'; " + accepted);
  }
}

TEST_F(Bench, IsEveryWorkloadPointAndScheme) {
  const std::string path = write(R"(
topology: {kind: single-switch, hosts: 4}
bench:
  schemes: [rps, ecmp]
  workloads:
    z: {kind: shift}
    a: [{name: one, ranks: 2}, {name: two}]
)");
  std::vector<std::string> names;
  for (const BenchRun& run : plan_bench(path, {}, {parse_sweep("hosts.mtu=1024,4096")}, true)) {
    names.push_back(run.workload + " " + text_of(run.point) + " " + scheme_name(run.scenario));
    EXPECT_EQ(std::to_string(run.scenario.hosts.mtu), run.point[0].second);
    EXPECT_EQ(run.scenario.workload.jobs.size(), run.workload == "a" ? 2U : 1U);
    EXPECT_GT(run.memory_bytes, 0U);
    EXPECT_GT(run.expected_hops, 0U);
  }
  EXPECT_THAT(names, ElementsAre("z hosts.mtu=1024 rps", "z hosts.mtu=1024 ecmp", "z hosts.mtu=4096 rps",
                                 "z hosts.mtu=4096 ecmp", "a hosts.mtu=1024 rps", "a hosts.mtu=1024 ecmp",
                                 "a hosts.mtu=4096 rps", "a hosts.mtu=4096 ecmp"));
}

TEST_F(Bench, WithoutABenchSectionIsTheScenarioUnderEveryScheme) {
  const std::string path = write("{topology: {kind: single-switch, hosts: 4}, workload: {kind: shift}}");
  const std::vector<BenchRun> runs = plan_bench(path, {}, {}, true);
  EXPECT_EQ(runs.size(), 20U);
  EXPECT_EQ(runs[0].workload, "shift");
  EXPECT_THAT(runs[0].point, IsEmpty());
  // A lab run takes the scenario as it is.
  const std::vector<BenchRun> lab = plan_bench(path, {"fabric.scheduler=rps"}, {}, false);
  ASSERT_EQ(lab.size(), 1U);
  EXPECT_EQ(scheme_name(lab[0].scenario), "rps");
}

TEST_F(Bench, RefusesWhatWouldHaveNoEffect) {
  const std::string path = write(R"(
topology: {kind: single-switch, hosts: 4}
bench: {workloads: {a: {kind: shift}}}
)");
  EXPECT_EQ(message_of([&] { plan_bench(path, {"fabric.scheduler=rps"}, {}, true); }),
            "--set fabric.scheduler=rps: found a scheduler where schemes are compared; accepted: bench.schemes=[…]");
  EXPECT_EQ(message_of([&] { plan_bench(path, {"workload.size=1MB"}, {}, true); }),
            "--set workload.size=1MB: found workload, but " + path +
                ":3 compares bench.workloads; accepted: bench.workloads.a.…");
  EXPECT_EQ(message_of([&] { plan_bench(path, {"bench.workloads.a.size=1MB"}, {}, true); }), "accepted");
  EXPECT_EQ(message_of([&] { plan_bench(path, {"workload.size=1MB"}, {}, false); }), "accepted");
}

TEST_F(Bench, FindsBeforeItStartsWhatDoesNotFit) {
  const std::string path = write("topology: {kind: fat-tree, hosts: 16}\n");
  EXPECT_EQ(message_of([&] { plan_bench(path, {}, {parse_sweep("topology.hosts=16,17")}, false); }).substr(0, 70),
            (path + ":1: fat-tree: there is none with 17 hosts; accepted: 16, 54, 128").substr(0, 70));
}

TEST(Sweep, IsAKeyAndItsValues) {
  const SweepAxis plain = parse_sweep("hosts.mtu=1024,4096");
  EXPECT_EQ(plain.key, "hosts.mtu");
  EXPECT_THAT(plain.values, ElementsAre("1024", "4096"));
  EXPECT_THAT(parse_sweep("a=[1, 2],{x: 1, y: [2,3]},'b,c',\"d,e\",f").values,
              ElementsAre("[1, 2]", "{x: 1, y: [2,3]}", "'b,c'", "\"d,e\"", "f"));
  EXPECT_THAT(parse_sweep("a=x=y").values, ElementsAre("x=y"));
}

TEST(Sweep, RefusesWhatIsNone) {
  const std::string accepted = "; accepted: section.key=value,value,…";
  EXPECT_EQ(message_of([] { parse_sweep("hosts.mtu"); }), "--sweep 'hosts.mtu': found no '='" + accepted);
  EXPECT_EQ(message_of([] { parse_sweep("=1"); }), "--sweep '=1': found no key" + accepted);
  EXPECT_EQ(message_of([] { parse_sweep("a="); }), "--sweep 'a=': found an empty value" + accepted);
  EXPECT_EQ(message_of([] { parse_sweep("a=1,,2"); }), "--sweep 'a=1,,2': found an empty value" + accepted);
  EXPECT_EQ(message_of([] { parse_sweep("a=1,1"); }), "--sweep 'a=1,1': found '1' a second time" + accepted);
  EXPECT_EQ(message_of([] {
              sweep_points({{"a", {"1"}}, {"a", {"2"}}});
            }),
            "--sweep: found key a a second time; accepted: each key once");
  EXPECT_EQ(message_of([] {
              sweep_points({{"a", std::vector<std::string>(101, "1")}, {"b", std::vector<std::string>(100, "1")}});
            }),
            "--sweep: found a grid of more than 10000 points; accepted: up to that many");
}

TEST(Sweep, AxesMakeAGrid) {
  const std::vector<SweepPoint> points = sweep_points({{"a", {"1", "2"}}, {"b", {"x", "y"}}});
  ASSERT_EQ(points.size(), 4U);
  EXPECT_THAT(points[0], ElementsAre(Pair("a", "1"), Pair("b", "x")));
  EXPECT_THAT(points[1], ElementsAre(Pair("a", "1"), Pair("b", "y")));
  EXPECT_THAT(points[2], ElementsAre(Pair("a", "2"), Pair("b", "x")));
  EXPECT_THAT(overlays_of(points[3]), ElementsAre("a=2", "b=y"));
  EXPECT_EQ(text_of(points[3]), "a=2, b=y");
  EXPECT_EQ(sweep_points({}).size(), 1U);
}

TEST_F(Bench, ComparesFurtherWorkloadsAndConditionsOnDemand) {
  const std::string path = write(R"(
topology: {kind: leaf-spine, hosts: 8, leaves: 2, spines: 2}
bench:
  schemes: [ecmp, rps]
  workloads: {a: {kind: shift, distance: 4}}
  further: {b: {kind: permutation}}
  conditions:
    slow: [{at: 0, link: leaf0-spine0, rate: 10G}]
    late: [{at: 50%, link: leaf0-spine0, state: down}, {at: 1ms, link: leaf0-spine0, state: up}]
)");
  const auto names = [&](const std::vector<std::string>& overlays) {
    std::vector<std::string> all;
    for (const BenchRun& run : plan_bench(path, overlays, {}, true)) {
      if (all.empty() || all.back() != run.workload) all.push_back(run.workload);
    }
    return all;
  };
  EXPECT_THAT(names({}), ElementsAre("a"));
  EXPECT_THAT(names({"bench.compare=[all]"}), ElementsAre("a", "a/slow", "a/late", "b", "b/slow", "b/late"));
  EXPECT_THAT(names({"bench.compare=[b/late, a]"}), ElementsAre("b/late", "a"));
  EXPECT_THAT(message_of([&] { names({"bench.compare=[c]"}); }),
              ::testing::EndsWith("found workload 'c'; accepted: all, a, a/slow, a/late, b, b/slow, b/late"));

  const std::vector<BenchRun> runs = plan_bench(path, {"bench.compare=[a, a/late]"}, {}, true);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_TRUE(runs[0].scenario.events.empty());
  ASSERT_EQ(runs[2].scenario.events.size(), 2U);
  const Duration bound = prepare(runs[0].scenario).bound.makespan;
  EXPECT_NEAR(static_cast<double>(runs[2].scenario.events[0].at), static_cast<double>(bound) / 2, 1);
  EXPECT_EQ(runs[2].scenario.events[1].at, kMillisecond);
  EXPECT_EQ(runs[3].scenario.events[0].at, runs[2].scenario.events[0].at);

  const Scenario scenario = load_scenario(path, {"bench.compare=[b]"});
  const std::string json = to_json(scenario).dump(2);
  EXPECT_EQ(to_json(load(json)).dump(2), json) << "printed, it is a scenario again";
}

}  // namespace
}  // namespace heddle::lab
