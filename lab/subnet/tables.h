// What a subnet manager gives an InfiniBand subnet: addresses (LIDs) for hosts and switches, a linear forwarding table
// per switch, and what maps service levels to virtual lanes and arbitrates between those (IBTA volume 1, 14.2.5).
//
// Switches are counted from 0 (NodeId - host_count), their ports from 1 in the order of their links in the topology;
// port 0 is the switch itself.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/topology/topology.h"

namespace heddle::lab {

using Lid = uint16_t;

inline constexpr Lid kLastUnicastLid = 0xBFFF;  // IBTA 4.1.3; from 0xC000 on they are multicast
inline constexpr uint8_t kLftSelf = 0;
inline constexpr uint8_t kLftUnreachable = 255;  // IBTA 14.2.5.11: a table's entry for a LID without a path
inline constexpr uint32_t kMaxSubnetPorts = 254;
inline constexpr uint8_t kMaxLmc = 7;
inline constexpr uint32_t kServiceLevels = 16;
inline constexpr uint32_t kDataLanes = 15;  // VL15 is the subnet manager's

// VL by SL, of one pair of an input and an output port. VL15 means "discard".
using SlToVl = std::array<uint8_t, kServiceLevels>;

struct VlArbitrationEntry {
  uint8_t vl = 0;
  uint8_t weight = 0;  // in 64 bytes; 0 = skipped
  friend bool operator==(const VlArbitrationEntry&, const VlArbitrationEntry&) = default;
};

// IBTA 7.6.9. The low table is looked at when the high one has nothing to send, or has sent `high_limit`.
struct VlArbitration {
  std::vector<VlArbitrationEntry> high;
  std::vector<VlArbitrationEntry> low;
  uint8_t high_limit = 0;  // in 4096 bytes; 255 = without limit, 0 = one packet
  friend bool operator==(const VlArbitration&, const VlArbitration&) = default;
};

struct SwitchTables {
  Lid lid = 0;
  std::vector<uint8_t> lft;  // by LID: output port, kLftSelf or kLftUnreachable
  uint32_t ports = 0;        // that it has links on
  // By input port × (ports + 1) + output port, port 0 included. Empty: every SL is on VL 0.
  std::vector<SlToVl> sl_to_vl;
  // By output port, entry 0 being port 0's. Empty: what the link layer does by itself.
  std::vector<VlArbitration> vl_arbitration;
};

struct SubnetTables {
  std::string engine;          // "shortest-path", "up-down"; of OpenSM "minhop", "updn", "ftree", …
  uint8_t lmc = 0;             // a host has 2^lmc LIDs, from its own on (IBTA 7.11.1)
  std::vector<Lid> host_lids;  // by HostId; multiples of 2^lmc; 0 = the subnet manager has not seen it
  std::vector<SwitchTables> switches;
  // Service level of the path from host a to host b, [a × hosts + b]. Empty: SL 0. Engines that break credit loops by
  // lanes (dfsssp, lash) choose it per pair.
  std::vector<uint8_t> path_sl;
  // At the hosts' ports. Empty: as at a switch's.
  std::vector<SlToVl> host_sl_to_vl;
  std::vector<VlArbitration> host_vl_arbitration;

  uint32_t paths_per_host() const { return 1U << lmc; }
  uint8_t port(uint32_t s, Lid lid) const {
    return lid < switches[s].lft.size() ? switches[s].lft[lid] : kLftUnreachable;
  }
  uint8_t sl(HostId from, HostId to) const {
    return path_sl.empty() ? uint8_t{0} : path_sl[size_t{from} * host_lids.size() + to];
  }
  uint8_t vl(uint32_t s, uint8_t in_port, uint8_t out_port, uint8_t sl_of_packet) const {
    const SwitchTables& at = switches[s];
    return at.sl_to_vl.empty() ? uint8_t{0} : at.sl_to_vl[in_port * (at.ports + 1) + out_port][sl_of_packet];
  }
  uint8_t host_vl(HostId host, uint8_t sl_of_packet) const {
    return host_sl_to_vl.empty() ? uint8_t{0} : host_sl_to_vl[host][sl_of_packet];
  }
  // How many data lanes packets can be on: 1 + the highest VL that a table names for an SL in use.
  uint32_t lanes() const;
};

// Gives LIDs in order, hosts first: host h has (h + 1) × 2^lmc, switch s follows. No forwarding table is filled in.
// Throws Error (bad input) where the topology does not fit into one subnet: more than 254 ports on a switch, more
// than 49,151 LIDs.
SubnetTables number_subnet(const Topology& topology, uint8_t lmc);

// Built-in routing over the links that are up; LIDs without a way are unreachable. Among ports that are equally good,
// `destination modulo` chooses: host h's path j takes entry ⌊(h + j) / d⌋ mod n of n ports, d being 1 at the leaves
// and above them the product of the uplinks of the tiers below, so that a fat-tree's tiers choose independently
// (Zahavi, "Fat-tree routing and node ordering providing contention free traffic for MPI global collectives", 2012).
//
// Shortest path takes the fewest hops. It may close cycles of credits (loops.h) in all but tree-like fabrics.
SubnetTables shortest_path_tables(const Topology& topology, const std::vector<bool>& link_up, uint8_t lmc = 0);
// Up-down first goes towards a root and then away from it, never back, so that no cycle of credits can close
// (Schroeder et al., "Autonet", 1991). Roots are the switches of the highest tier, where there are several tiers, and
// otherwise the first switch that has the fewest hops to its farthest; where failures leave leaves without a root in
// common, one root alone. Paths may be longer than the shortest.
SubnetTables up_down_tables(const Topology& topology, const std::vector<bool>& link_up, uint8_t lmc = 0);

// The hops of every switch from the nearest root, as up_down_tables ranks them; UINT16_MAX where there is no way.
std::vector<uint16_t> up_down_ranks(const Topology& topology, const std::vector<bool>& link_up);

}  // namespace heddle::lab
