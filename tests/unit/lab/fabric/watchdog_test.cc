// The PFC watchdog in a fabric: the shipped deadlock, with and without it.
#include <string>

#include <gtest/gtest.h>

#include "lab/fabric/fabric.h"
#include "lab/scenario/experiment.h"
#include "lab/scenario/scenario.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

struct Row {
  const char* what;
  const char* watchdog;
  bool ends;   // all flows are completed
  bool drops;  // some packets, as pfc_storm
  bool storms;
  bool breaks;  // the deadlock, and all storms end
};

RunResult run(const std::string& watchdog) {
  const Experiment experiment = prepare(load_scenario(
      "examples/lab/pfc-deadlock.yaml", {"fabric.watchdog=" + watchdog, "run.until=100ms", "run.threads=1"}));
  return run_fabric(experiment.topology, experiment.workload, experiment.settings);
}

TEST(WatchdogInAFabric, BreaksADeadlock) {
  const Row rows[] = {
      {"without it nothing moves any more", "none", false, false, false, false},
      {"dropping lets the others go on", "{detect: 10ms, restore: 10ms}", true, true, true, true},
      {"an alert changes nothing", "{detect: 10ms, restore: 10ms, action: alert}", false, false, true, false},
      {"longer than the run", "{detect: 200ms}", false, false, false, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const RunResult result = run(row.watchdog);
    ASSERT_TRUE(result.deadlock.has_value());
    EXPECT_EQ(result.end == RunResult::End::kDone, row.ends);
    EXPECT_EQ(result.drops[static_cast<size_t>(DropReason::kPfcStorm)], result.watchdog_drops);
    EXPECT_EQ(support::all_drops(result), result.watchdog_drops) << "nothing else is lost";
    EXPECT_EQ(result.watchdog_drops != 0, row.drops);
    EXPECT_EQ(result.watchdog_storms != 0, row.storms);
    EXPECT_EQ(result.deadlock->broken_at != kNever, row.breaks);
    EXPECT_TRUE(!row.breaks || result.watchdog_restores == result.watchdog_storms);
    EXPECT_EQ(result.incidents.size(), result.watchdog_storms + result.watchdog_restores);
    if (!row.storms) continue;
    const WatchdogIncident& first = result.incidents.front();
    EXPECT_TRUE(first.storm);
    EXPECT_GE(first.at, 10 * kMillisecond);
    EXPECT_TRUE(!row.breaks || result.deadlock->broken_at > first.at);
  }
}

// Long pauses that end by themselves, one after another, are congestion.
TEST(WatchdogInAFabric, DoesNotTakeAnIncastForAStorm) {
  const Experiment experiment = prepare(load_scenario(
      "examples/lab/incast-15.yaml", {"fabric.buffer=4MB", "fabric.lossless=[3]", "fabric.watchdog={detect: 1ms}",
                                      "workload.size=4MB", "run.threads=1"}));
  const RunResult result = run_fabric(experiment.topology, experiment.workload, experiment.settings);
  EXPECT_TRUE(support::all_done(result));
  EXPECT_FALSE(result.pauses.empty());
  EXPECT_EQ(result.watchdog_storms, 0U);
  EXPECT_EQ(support::all_drops(result), 0U);
}

}  // namespace
}  // namespace heddle::lab
