// The shortest ways through an empty fabric: by tier of its hosts, for packets of one size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lab/topology/link_state.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// Between hosts of one leaf, of one pod, and of different ones.
enum class WayTier : uint8_t { kLeaf, kPod, kAcross };
// Whose capacity a message is measured against: the packet's time on that link is part of the message's time there and
// left out of the way. Of the host's two links the slower one, or all that lead out of the source's leaf (pod), or into
// the destination's; kNone: nothing is left out.
enum class WayWithout : uint8_t { kNone, kHost, kLeaf, kPod };

struct ShortestWays {
  static constexpr Duration kNoWay = ~Duration{0};

  // By tier and by what is left out, in their order; kNoWay where there are no such hosts.
  std::array<std::array<Duration, 4>, 3> times;

  Duration at(WayTier tier, WayWithout without) const {
    return times[static_cast<size_t>(tier)][static_cast<size_t>(without)];
  }
};

// From the first bit out of a host to the last bit into another, of a frame of `frame_bytes` that every switch receives
// whole before it sends it on. The smallest over all pairs of hosts and all paths over live links at the rates of
// `states`, not the routed ones alone, so that no packet is faster. Fabrics that are built alike everywhere are
// measured from one leaf if they are large, with every kind of link at the fastest rate that one has; of large graphs
// and imported fabrics a sample of leaves is measured from.
ShortestWays shortest_ways(const Topology& topology, const LinkStates& states, uint64_t frame_bytes);

}  // namespace heddle::lab
