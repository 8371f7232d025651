// What is alive of a topology: links that went down or lost rate during a run, and what that leaves each leaf and pod.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/topology/topology.h"

namespace heddle::lab {

enum class LinkDirection : uint8_t { kBoth, kAToB, kBToA };

// Something that happens to a link at a given time. Down and up concern both directions, whatever `direction` says: a
// port that loses its receive signal reports a fault to the other side (IEEE 802.3 46.3.4 and 81.3.4).
struct LinkEvent {
  enum class Kind : uint8_t { kDown, kUp, kRate, kLoss };
  Time at = 0;
  LinkId link = 0;
  Kind kind = Kind::kDown;
  LinkDirection direction = LinkDirection::kBoth;
  Rate rate;        // kRate: the new one
  double loss = 0;  // kLoss: the new one
};

// Throws Error (bad input) if the link does not exist or the rate or loss is out of range.
void validate(const Topology& topology, const LinkEvent& event);

// The links' states at one time. Begins with all links up at the rate they were built with.
class LinkStates {
 public:
  explicit LinkStates(const Topology& topology);

  // `event` must be valid. Loss leaves no trace here: it costs packets, not capacity.
  void apply(const LinkEvent& event);

  const std::vector<bool>& up() const { return up_; }  // by LinkId, as compute_routes takes it
  bool is_up(LinkId link) const { return up_[link]; }
  // The rate from end a to end b (or back), whether or not the link is up.
  Rate rate(LinkId link, bool from_a) const { return from_a ? a_to_b_[link] : b_to_a_[link]; }

 private:
  std::vector<bool> up_;
  std::vector<Rate> a_to_b_;
  std::vector<Rate> b_to_a_;
};

// When a run begins: with the events of time 0, all valid.
LinkStates states_at_start(const Topology& topology, const std::vector<LinkEvent>& events);

// Bits per second that can leave and enter a part of the fabric over live links.
struct Capacity {
  uint64_t out = 0;
  uint64_t in = 0;
};

// By switch (NodeId - host_count): the links to other switches. For a leaf that is what its hosts share to reach the
// rest of the fabric.
std::vector<Capacity> switch_capacities(const Topology& topology, const LinkStates& states);
// By pod: the links between a node of the pod and one outside.
std::vector<Capacity> pod_capacities(const Topology& topology, const LinkStates& states);

}  // namespace heddle::lab
