// The switches of a topology and the live links between them, laid out for breadth-first search: what routing.cc and
// base_path.cc walk. Switches are counted from 0 (NodeId - host_count). Hosts forward nothing and are not in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/topology/topology.h"

namespace heddle::lab {

class SwitchGraph {
 public:
  struct Edge {
    PortIndex port;     // of the switch the edge belongs to
    uint16_t neighbor;  // the switch at the other end
  };
  static constexpr uint16_t kFar = UINT16_MAX;  // the distance of a switch that cannot be reached

  SwitchGraph(const Topology& topology, const std::vector<bool>& link_up);

  uint32_t size() const { return static_cast<uint32_t>(first_.size() - 1); }
  // The live edges of a switch, in the order of its ports.
  std::span<const Edge> edges(uint32_t s) const { return {edges_.data() + first_[s], edges_.data() + first_[s + 1]}; }

  // The switches that have hosts, ascending. A host whose only link is down still has its leaf.
  const std::vector<uint16_t>& leaves() const { return leaves_; }
  // Which entry of leaves() a host hangs on.
  uint16_t leaf_of(HostId host) const { return leaf_of_host_[host]; }

  // Fills `distances` (one per switch) with the hops to switch `target`. Links work both ways, so these are also the
  // hops from it. Returns the switches reached, nearest first.
  std::vector<uint16_t> distances_to(uint16_t target, std::span<uint16_t> distances) const;

 private:
  std::vector<uint32_t> first_;  // edges_[first_[s]] … edges_[first_[s + 1] - 1] belong to switch s
  std::vector<Edge> edges_;
  std::vector<uint16_t> leaves_;
  std::vector<uint16_t> leaf_of_host_;
};

}  // namespace heddle::lab
