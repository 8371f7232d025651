// What a run is said to take against what it takes.
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <malloc.h>

#include "lab/topology/builders.h"
#include "tests/support/fabric_runs.h"
#include "tests/support/sanitizer.h"

namespace heddle::lab {
namespace {

// A field of /proc/self/status in bytes.
uint64_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == field + ":" && status >> kib) return kib * 1024;
  }
  return 0;
}

// Makes the high-water mark of resident memory begin anew (proc(5), clear_refs).
bool reset_high_water() {
  malloc_trim(0);
  std::ofstream clear("/proc/self/clear_refs");
  clear << 5 << std::flush;
  return clear.good();
}

struct Row {
  const char* description;
  uint32_t hosts;
  Pattern pattern;
};

class MemoryEstimate : public testing::TestWithParam<Row> {};

TEST_P(MemoryEstimate, IsAtLeastWhatARunTakesAndAtMostThreeTimesThat) {
  if (support::kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer keeps freed memory";
  if (!reset_high_water()) GTEST_SKIP() << "this system does not reset VmHWM";
  const Row& row = GetParam();
  const Topology t = build_fat_tree({.hosts = row.hosts});
  const Workload workload = support::workload_of(row.hosts, row.pattern);
  FabricSettings settings;
  settings.run.threads = 1;
  settings.hosts.ack_every = 16;
  settings.hosts.retransmit_timeout = kSecond;  // nothing is lost: it only waits
  settings.switches.scheduler = *lb::scheduler_named("ecmp");
  const uint64_t estimate = estimate_memory(t, workload, settings);
  reset_high_water();
  const uint64_t before = status_bytes("VmRSS");
  const RunResult result = run_fabric(t, workload, settings);
  const uint64_t taken = status_bytes("VmHWM") - before;
  EXPECT_TRUE(support::all_done(result));
  EXPECT_GE(estimate, taken);
  EXPECT_LE(estimate, 3 * taken) << estimate << " estimated, " << taken << " taken";
}

INSTANTIATE_TEST_SUITE_P(
    Patterns, MemoryEstimate,
    testing::Values(Row{"a permutation under ECMP: most of the memory is what stands in queues", 432, Permutation{}},
                    Row{"an incast: nearly all of it stands before one host", 128, Incast{.bytes = 1'000'000}}),
    [](const auto& row) { return "Row" + std::to_string(row.index); });

}  // namespace
}  // namespace heddle::lab
