// What a run is said to take against what it takes.
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <malloc.h>

#include "lab/topology_builders.h"
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

// A permutation under ECMP: what stands in queues is most of the memory.
TEST(MemoryEstimate, IsAtLeastWhatARunTakesAndAtMostThreeTimesThat) {
  if (support::kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer keeps freed memory";
  if (!reset_high_water()) GTEST_SKIP() << "this system does not reset VmHWM";
  const Topology t = build_fat_tree({.hosts = 432});
  const Workload workload = support::workload_of(432, Permutation{});
  FabricSettings settings;
  settings.run.threads = 1;
  settings.hosts.ack_every = 16;
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

}  // namespace
}  // namespace heddle::lab
