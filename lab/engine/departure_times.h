// When each port of a node next sends, and which port is first.
//
// In the order of time a node sends port by port, and which is next changes with every packet. So the times are the
// leaves of a tree whose nodes hold the earlier of their two children: a change walks up to the root, a look for the
// first port walks down, and neither has a branch that cannot be foreseen.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "lab/engine/run_result.h"
#include "net/packet.h"
#include "net/prefetch.h"

namespace heddle::lab {

class DepartureTimes {
 public:
  // No port has anything to send. Only if `ordered` does it know which port is first.
  DepartureTimes(size_t ports, bool ordered)
      : ports_(ports),
        leaves_(std::bit_ceil(std::max<size_t>(ports, 1))),
        ordered_(ordered),
        nodes_(2 * leaves_, kNever) {}

  // kNever: nothing to send.
  Time at(PortId port) const { return nodes_[leaves_ + port]; }
  void set(PortId port, Time at) {
    size_t node = leaves_ + port;
    nodes_[node] = at;
    if (!ordered_) return;
    for (; node > 1; node /= 2) {
      at = std::min(at, nodes_[node ^ 1U]);
      nodes_[node / 2] = at;
    }
  }

  // The earliest time; kNever if no port has anything to send. Ordered only.
  Time first_time() const { return nodes_[1]; }
  // The port whose it is; of several, the lowest. Ordered only.
  PortId first() const {
    size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      node += nodes_[node + 1] < nodes_[node] ? 1U : 0U;
    }
    return static_cast<PortId>(node - leaves_);
  }

  size_t ports() const { return ports_; }
  void prefetch() const {
    const size_t from = ordered_ ? 0 : leaves_;
    prefetch_all(nodes_.data() + from, leaves_ + ports_ - from);
  }

 private:
  size_t ports_;
  size_t leaves_;
  bool ordered_;
  // Of node n the children are 2n and 2n + 1; 1 is the root, with one port also the leaf.
  std::vector<Time> nodes_;
};

}  // namespace heddle::lab
