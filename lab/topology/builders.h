// The fabrics a scenario can ask for by name. Every builder returns a validated topology or throws Error (bad input)
// that says which setting does not fit and what would.
//
// Everywhere: hosts come first in the order of their leaves, and a switch's ports to hosts or lower tiers come before
// its ports to higher tiers, in the order of the nodes they lead to. A tier's rate left unlimited means "derive it", as
// described with each builder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/topology/topology.h"

namespace heddle::lab {

// Leaf-spine: every leaf linked to every spine. Names host0…, leaf0…, spine0…; the pod of a host is its leaf.
// Of `spines`, `uplink.rate` and `oversubscription` what is left out follows from the rest:
//   oversubscription = hosts per leaf × host rate / (spines × links per pair × uplink rate)
// With only spines given, uplinks run at the host rate; with none given, oversubscription is 1. All three given must
// agree.
struct LeafSpineSettings {
  uint32_t hosts = 128;  // a multiple of leaves
  uint32_t leaves = 8;
  uint32_t spines = 8;  // 0 = derive
  uint32_t links_per_pair = 1;
  double oversubscription = 0;  // 0 = derive; 1 = as much up as down; 2 = half as much up as down
  LinkSettings host_link;
  LinkSettings uplink = {.rate = Rate::unlimited()};
};
Topology build_leaf_spine(const LeafSpineSettings& settings);

// Rail-optimised: NIC r of every server of a group on leaf r of that group; every leaf linked to every spine. Names as
// in leaf-spine: leaf g × nics_per_server + r is rail r of group g. Host s × nics_per_server + r is NIC r of server s.
// The pod of a host is its group. Spines, uplink rate and oversubscription as in leaf-spine.
struct RailSettings {
  uint32_t hosts = 128;            // NICs in all; a multiple of nics_per_server
  uint32_t nics_per_server = 8;    // rails
  uint32_t servers_per_group = 0;  // servers sharing a set of leaves; divides the servers; 0 = all of them
  uint32_t spines = 8;             // 0 = derive
  uint32_t links_per_pair = 1;
  double oversubscription = 0;
  LinkSettings host_link;
  LinkSettings uplink = {.rate = Rate::unlimited()};
};
Topology build_rail(const RailSettings& settings);

// All hosts on one switch, called switch0.
struct SingleSwitchSettings {
  uint32_t hosts = 16;
  LinkSettings link;
};
Topology build_single_switch(const SingleSwitchSettings& settings);

// Three-tier fat-tree (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008), sized in one of three ways:
//   k      k pods of k/2 edge and k/2 aggregation switches, (k/2)² cores; k³/4 hosts × oversubscription. k even, 4…64.
//   hosts  the k whose fabric has exactly that many; otherwise refused with the sizes there are.
//   radix  switches of that many ports and no more, `pods` pods (at most radix, which is the default): an
//          oversubscribed edge switch gives up uplinks, and with them its pod aggregation switches, for hosts.
// Nothing given: 1024 hosts. k and hosts both given must agree.
struct FatTreeSettings {
  uint32_t k = 0;
  uint32_t hosts = 0;
  uint32_t radix = 0;
  uint32_t pods = 0;            // with radix only
  double oversubscription = 1;  // host ports : uplinks of an edge switch; must give whole numbers of ports
  LinkSettings host_link;
  LinkSettings aggregation_link = {.rate = Rate::unlimited()};  // edge to aggregation; derived: the host rate
  LinkSettings core_link = {.rate = Rate::unlimited()};         // aggregation to core; derived: as the one below
};
Topology build_fat_tree(const FatTreeSettings& settings);

// A fat-tree described switch by switch. Aggregation switch j of every pod is linked to the same cores:
// j × cores_per_aggregation and those after it. Names host0…, edge0…, agg0…, core0…, each counted over the whole
// fabric.
struct FatTreeShape {
  uint32_t pods = 0;
  uint32_t edges_per_pod = 0;
  uint32_t hosts_per_edge = 0;
  uint32_t aggregations_per_pod = 0;
  uint32_t links_per_edge_aggregation = 1;
  uint32_t cores_per_aggregation = 0;
  uint32_t links_per_aggregation_core = 1;
};
struct FatTreeLinks {
  LinkSettings host;
  LinkSettings aggregation;
  LinkSettings core;
};
FatTreeShape fat_tree_shape(const FatTreeSettings& settings);
Topology build_fat_tree(const FatTreeShape& shape, const FatTreeLinks& links);

// Any graph. Host ids: first the named hosts in their order, then each switch's own `hosts` in the order of the
// switches, named host<id>. Links: each switch's own hosts first, then `links`.
struct GraphSwitch {
  std::string name;
  uint16_t tier = 0;   // 0 = derive: 1 + hops to the nearest host
  uint32_t hosts = 0;  // hosts that hang on it without being named
  LinkSettings host_link;
};
struct GraphLink {
  std::string a;
  std::string b;
  uint32_t count = 1;  // parallel links
  LinkSettings link;
};
struct GraphSettings {
  std::vector<std::string> hosts;
  std::vector<GraphSwitch> switches;
  std::vector<GraphLink> links;
  uint32_t hosts_per_server = 1;
};
Topology build_graph(const GraphSettings& settings);

// Gives every switch of tier 0 the tier its distance from the hosts suggests, and every node its pod. With three tiers
// or more, a pod is what holds together without the top tier; otherwise every leaf is one. For graphs and imported
// files, whose authors do not say; needs all links.
void derive_tiers_and_pods(Topology& topology);

}  // namespace heddle::lab
