// Available memory, read from made-up kernels.
#include "lab/scenario/machine_memory.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace heddle::lab {
namespace {

struct Case {
  std::string what;
  std::map<std::string, std::string> files;
  std::optional<uint64_t> available;
};

TEST(MachineMemory, IsTheTightestLimit) {
  const std::string meminfo = "MemTotal: 2000 kB\nMemFree: 10 kB\nMemAvailable:    1000 kB\n";
  const std::vector<Case> cases{
      {"no proc", {}, std::nullopt},
      {"no control group", {{"proc/meminfo", meminfo}}, 1'024'000},
      {"v2 without a limit",
       {{"proc/meminfo", meminfo},
        {"proc/self/cgroup", "0::/a/b\n"},
        {"sys/fs/cgroup/a/b/memory.max", "max\n"},
        {"sys/fs/cgroup/a/b/memory.current", "5000\n"}},
       1'024'000},
      {"v2 with a limit",
       {{"proc/meminfo", meminfo},
        {"proc/self/cgroup", "0::/a/b\n"},
        {"sys/fs/cgroup/a/b/memory.max", "9000\n"},
        {"sys/fs/cgroup/a/b/memory.current", "5000\n"}},
       4'000},
      {"page cache can be had",
       {{"proc/meminfo", meminfo},
        {"proc/self/cgroup", "0::/a\n"},
        {"sys/fs/cgroup/a/memory.max", "9000\n"},
        {"sys/fs/cgroup/a/memory.current", "5000\n"},
        {"sys/fs/cgroup/a/memory.stat", "anon 4000\ninactive_file 1000\n"}},
       5'000},
      {"the limit of the group above is tighter",
       {{"proc/meminfo", meminfo},
        {"proc/self/cgroup", "0::/a/b\n"},
        {"sys/fs/cgroup/a/b/memory.max", "9000\n"},
        {"sys/fs/cgroup/a/b/memory.current", "5000\n"},
        {"sys/fs/cgroup/a/memory.max", "7000\n"},
        {"sys/fs/cgroup/a/memory.current", "6500\n"}},
       500},
      {"a container's own root",
       {{"proc/meminfo", meminfo},
        {"proc/self/cgroup", "0::/\n"},
        {"sys/fs/cgroup/memory.max", "100\n"},
        {"sys/fs/cgroup/memory.current", "200\n"}},
       0},
      {"v1",
       {{"proc/meminfo", meminfo},
        {"proc/self/cgroup", "5:cpu:/x\n4:memory:/m\n0::/\n"},
        {"sys/fs/cgroup/memory/m/memory.limit_in_bytes", "8000\n"},
        {"sys/fs/cgroup/memory/m/memory.usage_in_bytes", "3000\n"}},
       5'000},
  };
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) / ("machine_memory_" + std::to_string(getpid()));
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    std::filesystem::remove_all(root);
    for (const auto& [name, text] : c.files) {
      std::filesystem::create_directories((root / name).parent_path());
      std::ofstream(root / name) << text;
    }
    EXPECT_EQ(available_memory(root.string()), c.available);
  }
  std::filesystem::remove_all(root);
}

TEST(MachineMemory, OfThisMachineIsSomething) { EXPECT_GT(available_memory().value_or(0), 0U); }

}  // namespace
}  // namespace heddle::lab
