// DCQCN in a fabric: a queue pair that has the bottleneck to itself makes room for one that comes later.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "flowctl/dcqcn.h"
#include "lab/fabric/fabric.h"
#include "lab/scenario/experiment.h"
#include "lab/scenario/scenario.h"

namespace heddle::lab {
namespace {

constexpr uint64_t kMessage = 250'000;
constexpr unsigned kMessages = 600;  // of each sender: 150 MB, 48 ms of the bottleneck

// Hosts 0 (from the beginning) and 1 (from 5 ms on) to host 2, over one 25G link, for 60 ms.
std::string two_senders(std::string_view set, const char* control) {
  std::string yaml = fmt::format(
      "topology: {{kind: single-switch, hosts: 3, link: {{rate: 25G, delay: 1us}}}}\n"
      "fabric: {{buffer: 9MB, lossless: [3], ecn: {{kmin: 100kB, kmax: 400kB, pmax: 20%}}}}\n"
      "hosts: {{mtu: 1024, congestion_control: {{kind: {}{}}}}}\n"
      "run: {{until: 60ms, threads: 1}}\n"
      "workload:\n  kind: flows\n  size: {}\n  flows:\n",
      control, set.empty() ? "" : fmt::format(", set: {}", set), kMessage);
  for (unsigned i = 0; i < kMessages; ++i) yaml += "    - {src: 0, dst: 2}\n    - {src: 1, dst: 2, start: 5ms}\n";
  return yaml;
}

// Messages of each sender that host 2 has received in [from, to).
std::array<double, 2> received(const Experiment& experiment, const RunResult& result, Time from, Time to) {
  std::array<double, 2> count{};
  for (MessageId m = 0; m < experiment.workload.messages.size(); ++m) {
    const Time at = result.messages[m].received;
    if (at >= from && at < to) count[experiment.workload.messages[m].src]++;
  }
  return count;
}

TEST(DcqcnFairness, TwoFlowsConvergeToAFairShare) {
  for (const flowctl::DcqcnSet& set : flowctl::dcqcn_sets()) {
    SCOPED_TRACE(set.name);
    const Experiment experiment = prepare(load_scenario_text(two_senders(set.name, "dcqcn"), "two.yaml"));
    const RunResult result = run_fabric(experiment.topology, experiment.workload, experiment.settings);
    const auto alone = received(experiment, result, 0, 5 * kMillisecond);
    EXPECT_EQ(alone[1], 0);
    EXPECT_GT(alone[0] * kMessage * 8, 0.9 * 25e9 * 5e-3) << "the first has the link to itself";
    const auto both = received(experiment, result, 20 * kMillisecond, 60 * kMillisecond);
    const double share = both[0] / (both[0] + both[1]);
    EXPECT_NEAR(share, 0.5, 0.08) << both[0] << " and " << both[1];
    EXPECT_GT((both[0] + both[1]) * kMessage * 8, 0.88 * 25e9 * 40e-3) << "and they leave little of the link unused";
    EXPECT_GT(result.cnps, 10U);
    EXPECT_LE(result.cnps, result.ce_packets);
    EXPECT_EQ(result.retransmitted, 0U);
    for (const uint64_t dropped : result.drops) EXPECT_EQ(dropped, 0U);
    EXPECT_LT(result.peak_queue_bytes, 1'000'000U) << "marks keep the queue short";
  }
}

// Without it both send at line rate, and only the pauses of a full buffer hold them back.
TEST(DcqcnFairness, WithoutItTheQueueFillsTheBuffer) {
  const Experiment experiment = prepare(load_scenario_text(two_senders("", "none"), "two.yaml"));
  const RunResult result = run_fabric(experiment.topology, experiment.workload, experiment.settings);
  EXPECT_EQ(result.cnps, 0U);
  EXPECT_GT(result.peak_queue_bytes, 1'000'000U);
  EXPECT_GT(result.host_pfc_frames, 0U);
  EXPECT_GT(result.host_pause_time, kMillisecond);
  for (const uint64_t dropped : result.drops) EXPECT_EQ(dropped, 0U);
}

}  // namespace
}  // namespace heddle::lab
