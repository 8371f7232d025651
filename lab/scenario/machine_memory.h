// How much memory a run may take on this machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace heddle::lab {

// Bytes that can be had now without swapping: the kernel's MemAvailable (proc(5)), or what the control group of this
// process leaves (memory.max − memory.current, cgroup v2; memory.limit_in_bytes, v1) if that is less. Nothing if the
// system does not say. `root` stands for "/" in tests.
std::optional<uint64_t> available_memory(const std::string& root = "");

}  // namespace heddle::lab
