// What a fabric in the lab consists of: hosts, switches and the links between them. Plain data, filled by
// builders.h or import.h, checked by `validate`, then read by everyone and changed by nobody: what
// happens to links during a run (down, degraded) is kept beside it in link_state.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/rate.h"
#include "net/time.h"

namespace heddle::lab {

using NodeId = uint32_t;
using HostId = uint32_t;  // a NodeId below Topology::host_count
using LinkId = uint32_t;
using PortIndex = uint16_t;

// Limits of one fabric. Room for a k = 64 fat-tree; ports and switches stay below 2^15 so that a switch never needs
// more than 2^16 - 2 next-hop groups (routing.h).
inline constexpr uint32_t kMaxHosts = 65'536;
inline constexpr uint32_t kMaxSwitches = 16'384;
inline constexpr uint32_t kMaxPorts = 32'767;
inline constexpr uint32_t kMaxLinks = 1'048'576;
inline constexpr Rate kMinLinkRate = Rate(1'000'000);
inline constexpr Rate kMaxLinkRate = Rate::gbps(1600);
inline constexpr Duration kMinLinkDelay = kNanosecond;  // the smallest delay is the lookahead of the run
inline constexpr Duration kMaxLinkDelay = kSecond;
// Of a link's overhead. Below zero: simulators whose packets take fewer bytes than their headers would.
inline constexpr int kMinLinkOverhead = -32;
inline constexpr int kMaxLinkOverhead = 256;

inline constexpr uint32_t kNoPod = UINT32_MAX;

enum class NodeKind : uint8_t { kHost, kSwitch };

struct Node {
  NodeKind kind = NodeKind::kHost;
  std::string name;       // unique: host0, leaf3, spine1, edge12, agg5, core0, or the user's own
  uint16_t tier = 0;      // 0 host, 1 leaf or edge, 2 spine or aggregation, 3 core
  uint32_t pod = kNoPod;  // fat-tree: pod; rail: server group; leaf-spine: leaf. kNoPod for the top tier
};

// The properties of a link, as a scenario gives them.
struct LinkSettings {
  Rate rate = Rate::gbps(100);       // each direction; kMinLinkRate … kMaxLinkRate
  Duration delay = kMicrosecond;     // propagation, one way; kMinLinkDelay … kMaxLinkDelay
  int overhead = kEthernetOverhead;  // bytes a frame occupies beyond its own, kMinLinkOverhead … kMaxLinkOverhead
  double loss = 0;                   // probability that a frame is lost, [0, 1)
  double bit_error = 0;              // probability that a bit arrives wrong, [0, 1)
};

// One full-duplex cable between port `a_port` of node `a` and port `b_port` of node `b`.
struct Link {
  NodeId a = 0;
  NodeId b = 0;
  PortIndex a_port = 0;
  PortIndex b_port = 0;
  Rate rate;
  Duration delay = 0;
  int overhead = kEthernetOverhead;
  double loss = 0;
  double bit_error = 0;
};

struct PortRef {
  NodeId node = 0;
  PortIndex port = 0;
  friend bool operator==(PortRef x, PortRef y) { return x.node == y.node && x.port == y.port; }
};

struct Topology {
  std::string kind;         // "leaf-spine", "fat-tree", "rail", "single-switch", "graph", "file"
  std::vector<Node> nodes;  // hosts first, so that HostId h is nodes[h]; then switches
  std::vector<Link> links;
  uint32_t host_count = 0;
  uint32_t hosts_per_server = 1;  // NICs of one server have consecutive host ids
  // ports[node][port] = link. A node numbers its ports 0, 1, 2, … in the order of its links in `links`.
  std::vector<std::vector<LinkId>> ports;
  // Imported files number nodes their own way: file_ids[node] is the number there. Empty when it is the NodeId.
  std::vector<uint32_t> file_ids;
  // Of an imported InfiniBand subnet: every node's GUID, and the numbers of its ports there by PortIndex. Empty: what
  // lab/subnet/ibnetdiscover.h gives them.
  std::vector<uint64_t> guids;
  std::vector<std::vector<uint16_t>> port_numbers;
  // What an importer left out or assumed, one sentence each, for the user to see.
  std::vector<std::string> notes;

  // Building. All hosts are added before the first switch; throws Error when a limit is exceeded.
  NodeId add_host(std::string name, uint32_t pod);
  NodeId add_switch(std::string name, uint16_t tier, uint32_t pod);
  LinkId connect(NodeId a, NodeId b, const LinkSettings& settings);

  // Reading; of a validated topology.
  uint32_t switch_count() const { return static_cast<uint32_t>(nodes.size()) - host_count; }
  bool is_host(NodeId node) const { return node < host_count; }
  NodeId other_end(LinkId link, NodeId node) const { return links[link].a == node ? links[link].b : links[link].a; }
  NodeId neighbor(NodeId node, PortIndex port) const { return other_end(ports[node][port], node); }
  NodeId leaf_of(HostId host) const { return neighbor(host, 0); }
  uint32_t pod_of(HostId host) const { return nodes[host].pod; }
  uint32_t server_of(HostId host) const { return host / hosts_per_server; }
  uint32_t pod_count() const;
  // Ports towards a higher tier, ascending; empty at the top, and where all switches are of one tier.
  std::vector<PortIndex> uplinks(NodeId node) const;
  std::vector<LinkId> links_between(NodeId x, NodeId y) const;
  Duration smallest_delay() const;
};

// Throws Error (bad input) that names the node or link at fault and what is accepted: limits and ranges above, unique
// names, one link per host and that to a switch, no link from a node to itself, every host reachable from every other.
void validate(const Topology& topology);

// "leaf0:16-spine3:0"
std::string link_name(const Topology& topology, LinkId link);
std::optional<NodeId> find_node(const Topology& topology, std::string_view name);
// The port written as `node:port`, such as "leaf0:3". Throws Error (bad input) that lists the names there are.
PortRef find_port(const Topology& topology, std::string_view text);
// "host0…host127, leaf0…leaf7, spine0…spine7": what a user may write where a node is expected.
std::string node_names(const Topology& topology);

}  // namespace heddle::lab
