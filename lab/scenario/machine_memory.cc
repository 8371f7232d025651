#include "lab/scenario/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace heddle::lab {
namespace {

std::optional<uint64_t> first_number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // also "max": no limit
}

std::optional<uint64_t> mem_available(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kib = 0;
    if (words >> name >> kib && name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

// The path of this process in a hierarchy: "0::/a/b" (v2), "4:memory:/a/b" (v1).
std::string group_path(const std::string& root, const std::string& controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second != std::string::npos && line.substr(first + 1, second - first - 1) == controller) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

// Page cache of the group counts as used but can be had.
uint64_t reclaimable(const std::string& stat_file) {
  std::ifstream file(stat_file);
  std::string name;
  uint64_t bytes = 0;
  while (file >> name >> bytes) {
    if (name == "inactive_file" || name == "total_inactive_file") return bytes;
  }
  return 0;
}

// The tightest limit of a group and those it lies in.
std::optional<uint64_t> left_in_group(const std::string& mount, std::string group, const std::string& limit_file,
                                      const std::string& usage_file) {
  std::optional<uint64_t> left;
  for (;;) {
    const std::string folder = mount + group + "/";
    const auto limit = first_number_in(folder + limit_file);
    const auto usage = first_number_in(folder + usage_file);
    if (limit && usage) {
      const uint64_t used = *usage - std::min(*usage, reclaimable(folder + "memory.stat"));
      const uint64_t here = *limit - std::min(*limit, used);
      left = std::min(left.value_or(here), here);
    }
    if (group.empty() || group == "/") return left;
    group.erase(group.rfind('/'));
  }
}

}  // namespace

std::optional<uint64_t> available_memory(const std::string& root) {
  std::optional<uint64_t> least = mem_available(root);
  const auto keep_smaller = [&least](std::optional<uint64_t> bytes) {
    if (bytes) least = std::min(least.value_or(*bytes), *bytes);
  };
  keep_smaller(left_in_group(root + "/sys/fs/cgroup", group_path(root, ""), "memory.max", "memory.current"));
  keep_smaller(left_in_group(root + "/sys/fs/cgroup/memory", group_path(root, "memory"), "memory.limit_in_bytes",
                             "memory.usage_in_bytes"));
  return least;
}

}  // namespace heddle::lab
