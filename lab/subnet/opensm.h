// The real OpenSM, run over ibsim, which simulates the management side of a subnet from an ibnetdiscover file: what it
// computes for a topology. Both come from Debian's packages opensm and ibsim-utils and need no root; they work in a
// directory of their own under the system's temporary one and talk over a socket whose name no other run has.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/subnet/tables.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

struct OpensmSettings {
  std::string engine = "minhop";  // one of opensm_engines()
  uint8_t lmc = 0;
  bool qos = false;                     // SL to VL and VL arbitration are set up; engines that use lanes always do
  std::chrono::seconds limit{120};      // of the whole run
  std::function<bool()> interrupted{};  // asked now and then; true ends it with an error
};

struct OpensmRun {
  SubnetTables tables;             // with the LIDs of number_subnet, forwarding tables, and what there is of lanes
  std::vector<HostId> host_order;  // of ftree: the order in which shifts are free of contention
  std::string version;             // "OpenSM 3.3.23"
  double seconds = 0;
};

// minhop, updn, dnup, ftree, dor, sssp, dfsssp, nue. Those that choose service levels per pair without dumping them
// (lash, torus-2QoS) are not among them.
const std::vector<std::string_view>& opensm_engines();

// Whether everything that run_opensm needs is installed.
bool opensm_installed();

// Throws Error: bad input for an engine there is not, failed where the programs are missing, fail or take too long; the
// message holds what OpenSM said.
OpensmRun run_opensm(const Topology& topology, const std::vector<bool>& link_up, const OpensmSettings& settings);

}  // namespace heddle::lab
