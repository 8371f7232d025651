// DPDK's environment for tests that need it: anonymous memory, no devices, started once in the program.
#pragma once

#include <string>

#include <unistd.h>

#include "dataplane/eal.h"

namespace heddle::support {

inline void need_eal() {
  static const bool started = [] {
    dataplane::start_eal({.name = "test-" + std::to_string(getpid()),
                          .hugepages = false,
                          .memory_bytes = uint64_t{1200} << 20U,
                          .cpus = {dataplane::allowed_cpus().back()},
                          .pci = false});
    return true;
  }();
  (void)started;
}

}  // namespace heddle::support
