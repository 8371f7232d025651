// What only this machine can tell about a configuration, asked before anything starts. DPDK would answer most of it
// with "Failed to attach device", or with a page of its own options.
#pragma once

#include <string>

#include "control/switch_config.h"

namespace heddle::control {

// Throws Error (bad input) for a CPU, interface or capture file that is not there or of the wrong kind, and Error
// (failed) where this process lacks the right to use one. Opens nothing for good and changes nothing.
void check_machine(const SwitchConfig& config);

// What keeps the net_pcap driver from replaying a file, as "found …; accepted: …"; empty if nothing does. The driver
// takes frames of any link type for Ethernet; with `endless` (infinite_rx=1) their number must be known beforehand.
std::string fault_of_capture(const std::string& path, bool endless);

}  // namespace heddle::control
