// One, two and sixteen hosts against the limits of csg-htsim's validation runs (Broadcom/csg-htsim,
// sim/datacenter/validate.txt: 100G, three-tier fat-tree, 1 µs a hop, 2 MB flows).
#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "tests/golden/golden_run.h"

namespace heddle::golden {
namespace {

using namespace heddle::lab;

constexpr uint64_t kBytes = 2'000'000;

// one.cm: at most 180 µs; 160 µs of payload and a round trip is the ideal.
TEST(GoldenFlows, OneFlow) {
  const Topology t = build_fat_tree({.hosts = 432});
  const Workload workload = workload_of(432, {{.src = 0, .dst = 431, .bytes = kBytes}});
  const RunResult result = run_fabric(t, workload, open_loop("ecmp"));
  ASSERT_TRUE(all_done(result));
  EXPECT_LE(microseconds(support::last_completion(result)), 180);
  EXPECT_GE(microseconds(support::last_completion(result)), 160);
}

// bidir.cm: at most 190 µs.
TEST(GoldenFlows, TwoOppositeFlows) {
  const Topology t = build_fat_tree({.hosts = 432});
  const Workload workload =
      workload_of(432, {{.src = 0, .dst = 431, .bytes = kBytes}, {.src = 431, .dst = 0, .bytes = kBytes}});
  const RunResult result = run_fabric(t, workload, open_loop("ecmp"));
  ASSERT_TRUE(all_done(result));
  EXPECT_LE(microseconds(support::last_completion(result)), 190);
  EXPECT_GE(microseconds(support::last_completion(result)), 160);
}

// incast.cm, 15 to 1: at most 2500 µs; 15 × 160 µs of payload is the ideal.
TEST(GoldenFlows, IncastOfFifteen) {
  const Topology t = build_fat_tree({.hosts = 432});
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < 15; ++i) flows.push_back({.src = 7 + 28 * i, .dst = 431, .bytes = kBytes});
  const RunResult result = run_fabric(t, workload_of(432, flows), open_loop("ecmp"));
  ASSERT_TRUE(all_done(result));
  EXPECT_EQ(support::all_drops(result), 0U);
  EXPECT_EQ(result.retransmitted, 0U);
  EXPECT_LE(microseconds(support::last_completion(result)), 2500);
  EXPECT_GE(microseconds(support::last_completion(result)), 2400);
}

}  // namespace
}  // namespace heddle::golden
