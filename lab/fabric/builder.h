// Turns a topology, a workload and settings into live nodes joined by wires.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/engine/fabric_settings.h"
#include "lab/engine/huge_pages.h"
#include "lab/engine/message_board.h"
#include "lab/engine/packet_arena.h"
#include "lab/engine/wire.h"
#include "lab/fabric/lab_switch.h"
#include "lab/host/host.h"
#include "lab/host/partitions.h"
#include "lab/subnet/tables.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// One lookup for all switches of the lab: an rte_fib takes 33 MiB however few routes it has. The route id of a host's
// address is the host's number; every switch maps it to its own group (dataplane::ForwardingTables::group_of_route).
class HostLookup : public dataplane::RouteLookup {
 public:
  // `switches`: how many have an address and a route, behind those of the hosts (probe_plan.h).
  HostLookup(uint32_t hosts, uint32_t switches) : hosts_(hosts), switches_(switches) {}
  void lookup4(const uint32_t* destinations, dataplane::RouteId* routes, unsigned count) const override;
  void lookup6(const dataplane::Ipv6Address* destinations, dataplane::RouteId* routes, unsigned count) const override;

 private:
  uint32_t hosts_;
  uint32_t switches_;
};

// Bytes of headers that the packets of such a run may have.
uint16_t header_room_for(const Topology& topology, const FabricSettings& settings);

struct Fabric {
  Fabric(const Workload& workload, const FabricSettings& settings, const Topology& topology)
      : lookup(topology.host_count, settings.switches.path_delay.enabled ? topology.switch_count() : 0),
        board(workload, settings.hosts.qps_per_connection),
        packets(header_room_for(topology, settings)) {}

  // Hosts first, then switches, as in the topology.
  LiveNode& node(NodeId id) {
    if (id < hosts.size()) return *hosts[id];
    return *switches[id - hosts.size()];
  }

  HostLookup lookup;
  MessageBoard board;
  PacketArena packets;
  std::vector<Wire, HugePageAllocator<Wire>> wires;  // 2 l: link l from end a to end b; 2 l + 1: back
  std::vector<std::unique_ptr<Capture>> captures;
  std::vector<std::unique_ptr<const SubnetTables>> subnets;  // of InfiniBand links: the first, and after every sweep
  std::unique_ptr<const PartitionTables> partitions;         // null: there are none
  std::vector<std::string> notes;                            // for the user to see
  std::vector<NodeId> order;                                 // in which nodes run
  std::vector<Inbox::Word> inbox_words;                      // of all nodes, in that order; outlives them
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<std::unique_ptr<LabSwitch>> switches;
  Duration window = 0;
};

// Throws Error (bad input) where the settings do not fit the topology.
std::unique_ptr<Fabric> build_fabric(const Topology& topology, const Workload& workload,
                                     const FabricSettings& settings);

}  // namespace heddle::lab
