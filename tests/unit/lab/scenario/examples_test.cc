// The shipped scenarios: all load, can be built, and are what their names say.
#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lab/bench.h"
#include "lab/scenario/experiment.h"
#include "lab/scenario/scenario.h"

namespace heddle::lab {
namespace {

struct Example {
  const char* name;
  uint32_t hosts;
  uint64_t flows;
  double lower_bound_us;
};

// Lower bounds: payload of the busiest host at 100 Gbit/s with 82 bytes of headers and gaps per 4096, and the way.
class Examples : public testing::TestWithParam<Example> {};

TEST_P(Examples, LoadAndBuild) {
  const std::string path = std::string("examples/lab/") + GetParam().name + ".yaml";
  const Experiment experiment = prepare(load_scenario(path));
  EXPECT_EQ(experiment.topology.host_count, GetParam().hosts);
  EXPECT_EQ(size_of(experiment.workload).messages, GetParam().flows);
  EXPECT_NEAR(to_microseconds(experiment.bound.makespan), GetParam().lower_bound_us, 0.005 * GetParam().lower_bound_us);
  EXPECT_FALSE(plan_bench(path, {}, {}, true).empty());
}

INSTANTIATE_TEST_SUITE_P(
    Shipped, Examples,
    testing::Values(
        Example{"single-flow", 2, 1, 165.6}, Example{"bidirectional", 2, 2, 165.6},
        Example{"incast-15", 16, 15, 15 * 163.2 + 2.3}, Example{"permutation-432", 432, 432, 170.8},
        Example{"permutation-1024", 1024, 1024, 170.8}, Example{"permutation-16000", 16000, 16000, 170.8},
        // 15 of the 16 chunks of the busiest leaf cross its 8 uplinks in each of 254 steps, which may overlap.
        Example{"all-reduce-128", 128, 254 * 128, 254.0 * 15 * 40.807 / 8 + 5},
        Example{"all-to-all-64", 64, 64 * 63, 63 * 20.9 + 2.3}, Example{"default", 128, 128, 168.2},
        // 1,954 packets of 1024 bytes a message.
        Example{"incast-127-victim", 128, 127 + 16, 127 * 172.82 + 4.4},
        // Four messages share the one uplink that leaf0 has left.
        Example{"pfc-deadlock", 16, 16, 4 * 326.4 + 5},
        // Twice: 200 µs of computing, and 254 steps of 1 MB (81.6 µs on the wire) and 5 µs on the way.
        Example{"training-128", 128, 2 * 254 * 128, 2 * (200 + 254 * (81.607 + 5))},
        // Once, and 256 packets for each MB: 32 queue pairs have eight, the last one shorter.
        Example{"training-128-flowlets", 128, 254 * 128, 200 + 254 * (81.679 + 5)},
        // In order, one of 16 steps leaves the leaf; the others take 2.3 µs on the way.
        Example{"training-128-aligned", 128, 2 * 254 * 128, 2 * (200 + 254 * 81.607 + 16 * 5 + 238 * 2.33)},
        // 1,954 packets of 4,124 bytes on the wire; a switch's four share the two links of the ring that it has.
        Example{"ib-ring", 20, 20, 2 * 1954 * 0.32992 + 3},
        // 489 packets a message.
        Example{"ib-incast-15", 16, 15, 15 * 489 * 0.32992}, Example{"link-failure-128", 128, 128, 1309},
        Example{"ib-incast-victim", 64, 32 + 60, 32 * 489 * 0.32992},
        // Host 0 sends two messages of 244.1 packets to other leaves; one is dropped there. What leaves last may be a
        // last packet of 576 bytes, 0.05 us on each of three links.
        Example{"ib-tenants", 16, 8 + 7 + 2 + 1, 2 * 244.14 * 0.32992 + 4 + 3 * 0.05},
        Example{"slow-core-1024", 1024, 1024, 170.9},
        // 48,829 packets a message; the 56 flows out of the slow switch's pod would need 16,090.
        Example{"slow-aggregation-1024", 1024, 1024, 16'320.3 + 7.5}),
    [](const auto& example) {
      std::string name = example.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// 979,000 flows in 0.1 s; here a fiftieth of it. Each host sends 25 % of its 100 Gbit/s in messages of 40.9 kB on
// average (tests/unit/lab/size_distribution_test.cc).
TEST(Examples, Conweave128) {
  const Experiment experiment = prepare(load_scenario("examples/lab/conweave-128.yaml", {"workload.duration=2ms"}));
  EXPECT_EQ(experiment.topology.host_count, 128U);
  EXPECT_EQ(experiment.topology.switch_count(), 16U);
  const double expected = 128 * 0.25 * 100e9 / 8 * 2e-3 / 40'900;
  EXPECT_NEAR(static_cast<double>(size_of(experiment.workload).messages), expected, 0.1 * expected);
  EXPECT_EQ(experiment.settings.hosts.connections, Connections::kPerMessage);
  ASSERT_TRUE(experiment.settings.hosts.dcqcn.has_value());
  EXPECT_EQ(experiment.settings.hosts.dcqcn->name, "conweave");
}

TEST(Examples, AreAllTested) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("examples/lab")) {
    files += entry.path().extension() == ".yaml" ? 1 : 0;
  }
  EXPECT_GE(files, 14U);
}

}  // namespace
}  // namespace heddle::lab
