// Cycles of credits: whether packets on the links of a subnet can wait for each other in a circle, so that none moves.
//
// A channel is a link in one direction on one virtual lane. A packet that holds a channel's buffer waits for the next
// channel on its way; without a cycle in that graph no deadlock is possible, and with destination-based tables a cycle
// is one that traffic can fill (Dally and Seitz, "Deadlock-free message routing in multiprocessor interconnection
// networks", 1987). Hosts always take what arrives, so only links between switches matter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/subnet/tables.h"
#include "lab/topology/routing.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

struct Channel {
  NodeId from = 0;
  PortIndex port = 0;  // of `from`
  uint8_t vl = 0;
};

struct CreditLoops {
  uint64_t channels = 0;          // that paths between hosts use
  uint64_t dependencies = 0;      // pairs of a channel and the next one
  uint64_t in_loops = 0;          // channels that are on a cycle
  std::vector<Channel> shortest;  // a cycle that is as short as any through its channels; empty: none
};

// Where packets may take other ports than their table's (alternatives.h).
struct PathChoices {
  const std::vector<SwitchRoutes>* groups = nullptr;  // by switch, then LID; null: there are none
  uint16_t levels = 0xffff;                           // bit = service level whose packets may
};

// Of the paths of all pairs of hosts, with the service levels and lanes of the tables. Paths that do not arrive count
// as far as they go.
CreditLoops find_credit_loops(const Topology& topology, const SubnetTables& tables, const PathChoices& choices = {});

// "sw0:4-sw1:5 VL 0 → sw1:4-sw2:5 VL 0 → …", ending with the first again; without the lanes if there are none.
std::string describe_loop(const Topology& topology, const std::vector<Channel>& loop, bool with_lanes = true);

}  // namespace heddle::lab
