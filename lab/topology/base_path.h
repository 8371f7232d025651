// The way between two hosts that a message would take if it were alone: what slowdown and the lower bound of the
// makespan are measured against.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lab/topology/link_state.h"
#include "lab/topology/switch_graph.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// Base paths of a topology at one state of its links. A base path is a shortest one (fewest hops); at each switch, of
// the ports that begin one, that with the widest bottleneck, then the least delay, then the lowest number. Computed
// per destination leaf when first asked for; may be asked from several threads. Keeps a reference to `topology`.
class BasePaths {
 public:
  explicit BasePaths(const Topology& topology) : BasePaths(topology, LinkStates(topology)) {}
  BasePaths(const Topology& topology, LinkStates states);

  // The links in the order they are crossed. Empty if src == dst or if no live path leads there.
  std::vector<LinkId> path(HostId src, HostId dst) const;

  // The rate of the slowest link of the path, in the direction of travel; unlimited for an empty path.
  Rate bottleneck_rate(HostId src, HostId dst) const;

  // Propagation alone, one way; 0 for an empty path.
  Duration delay(HostId src, HostId dst) const;

  // From the first bit out of src to the last bit into dst of a frame of `frame_bytes` (link-layer header included, the
  // links' overhead not), which every switch receives whole before it sends it on (store and forward).
  Duration one_way(HostId src, HostId dst, uint64_t frame_bytes) const;

 private:
  // The best port of every switch towards one leaf.
  struct Tree {
    std::once_flag made;
    std::vector<PortIndex> next;
  };
  static constexpr PortIndex kNoPort = UINT16_MAX;

  const Tree& tree_to(uint16_t leaf) const;
  void fill(Tree& tree, uint16_t target) const;
  Rate rate_from(LinkId link, NodeId sender) const;

  const Topology& topology_;
  LinkStates states_;
  SwitchGraph graph_;
  std::unique_ptr<Tree[]> trees_;  // by leaf; an array because once_flag cannot move
};

}  // namespace heddle::lab
