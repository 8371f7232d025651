// Who computes the tables of a subnet: a built-in routing, OpenSM, or somebody before, into a directory.
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

struct SubnetRouting {
  std::string engine = "shortest-path";  // one of subnet_engines()
  std::string directory;                 // of dumps (dumps.h) to take instead; "" = none
  uint8_t lmc = 0;                       // 0–7; of a directory: what its tables say
};

struct ManagedSubnet {
  SubnetTables tables;
  std::vector<HostId> host_order;  // of OpenSM's ftree (opensm.h); otherwise empty
  std::string by;                  // "built in", "OpenSM 3.3.23 over ibsim", or "tables in <directory>"
  double seconds = 0;
};

struct ManagerOptions {
  bool qos = false;                 // see OpensmSettings
  std::chrono::seconds limit{120};  // of OpenSM's run
  std::function<bool()> interrupted{};
};

// "shortest-path" and "up-down", which are built in, then OpenSM's.
const std::vector<std::string_view>& subnet_engines();
bool is_built_in(std::string_view engine);

// The tables over the links that are up. A directory's are checked against the topology, not recomputed; OpenSM's for
// the same fabric are remembered for a while. Throws Error:
// bad input where the routing or its files do not fit the topology, failed where OpenSM cannot be run or fails.
ManagedSubnet manage_subnet(const Topology& topology, const std::vector<bool>& link_up, const SubnetRouting& routing,
                            const ManagerOptions& options = {});

}  // namespace heddle::lab
