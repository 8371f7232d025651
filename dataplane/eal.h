// DPDK's environment: memory, lcores and log, as one switch process needs them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::dataplane {

struct EalSettings {
  std::string name;            // file prefix and telemetry directory become heddle-NAME
  bool hugepages = false;      // false: anonymous memory, for which neither hugepages nor root are needed
  uint64_t memory_bytes = 0;   // what FIBs, pools and rings take; reserved at start in anonymous mode
  std::vector<unsigned> cpus;  // one worker lcore on each, in order; may repeat a CPU
  bool pci = false;            // whether any port is a PCI device
};

// CPUs this process may run on, ascending.
std::vector<unsigned> allowed_cpus();

// Starts DPDK. The calling thread becomes the control thread, free to run on every allowed CPU that no worker has (or
// on all of them, if workers have them all). Throws Error (failed) with DPDK's own last words. The environment can be
// started once in the life of a process.
void start_eal(const EalSettings& settings);

// Lcore ids of the workers, in the order of EalSettings::cpus.
std::vector<unsigned> worker_lcores();

// Frees what DPDK holds; ports are closed and workers have returned.
void stop_eal();

// DPDK's most recent log line, for error messages; empty if it was silent.
std::string last_dpdk_message();

}  // namespace heddle::dataplane
