// Stage 4: the group's scheduler picks the member this packet takes.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "lb/flow_hash.h"
#include "lb/next_hop_group.h"
#include "net/random.h"

namespace heddle::lb {

// What a scheduler remembers about one group: owned by one lcore (or one lab switch), so that no packet writes a line
// that another core writes.
struct GroupState {
  uint8_t position = 0;
  uint8_t members = 0;  // the permutation is of this many; re-made when the group's size changes
  std::array<uint8_t, kMaxMembers> order{};
};

class PathSelector {
 public:
  static constexpr unsigned kNone = ~0U;

  explicit PathSelector(uint64_t seed) : random_(seed) {}

  // Index of the member that a packet with this `flow_hash` takes, or kNone if none is alive. `is_up(port)` tells
  // whether a member's port has its link. A dead member moves only its own flows: the others keep theirs.
  template <typename IsUp>
  unsigned select(const GroupView& group, GroupState& state, uint32_t flow_hash, const IsUp& is_up);

 private:
  unsigned choose(const GroupView& group, GroupState& state, uint32_t flow_hash);
  template <typename IsUp>
  static unsigned live_member(const GroupView& group, uint32_t hash, const IsUp& is_up);
  unsigned next_in_turn(GroupState& state, unsigned members);

  Random random_;
};

// ---------------------------------------------------------------------------------------------------------------------

template <typename IsUp>
inline unsigned PathSelector::select(const GroupView& group, GroupState& state, uint32_t flow_hash, const IsUp& is_up) {
  if (group.size <= 1) return group.size == 1 && is_up(group.members[0].port) ? 0 : kNone;
  const unsigned pick = choose(group, state, flow_hash);
  if (is_up(group.members[pick].port)) [[likely]]
    return pick;

  // The member is dead: by the packet's own hash where flows must keep together, else by a fresh number.
  const bool by_flow = group.choice == Choice::kHash;
  return live_member(group, by_flow ? flow_hash : static_cast<uint32_t>(random_.next() >> 32U), is_up);
}

// A few further draws find a live member unless most are dead. After that the highest random weight decides (Thaler and
// Ravishankar 1998). Both spread evenly over the live members, whichever they are, and when another member dies, only
// the packets that it had move again.
template <typename IsUp>
inline unsigned PathSelector::live_member(const GroupView& group, uint32_t hash, const IsUp& is_up) {
  const unsigned n = group.size;
  uint32_t draw = hash;
  for (int tries = 0; tries < 4; ++tries) {
    draw = static_cast<uint32_t>(mix64(draw));
    const unsigned pick = scale_hash(draw, n);
    if (is_up(group.members[pick].port)) return pick;
  }
  unsigned best = kNone;
  uint64_t best_weight = 0;
  for (unsigned i = 0; i < n; ++i) {
    if (!is_up(group.members[i].port)) continue;
    const uint64_t weight = mix64((uint64_t{i} << 32U) | hash);
    if (best != kNone && weight <= best_weight) continue;
    best = i;
    best_weight = weight;
  }
  return best;
}

inline unsigned PathSelector::choose(const GroupView& group, GroupState& state, uint32_t flow_hash) {
  if (group.choice == Choice::kHash) [[likely]]
    return scale_hash(flow_hash, group.size);
  return group.choice == Choice::kRandom ? random_.below(group.size) : next_in_turn(state, group.size);
}

// The order is re-drawn after every round: switches that keep one order fall into step with each other (last flow of a
// 1,024-host permutation 202–210 µs when re-permuted every round, 720–830 µs when never).
inline unsigned PathSelector::next_in_turn(GroupState& state, unsigned members) {
  if (state.members != members) {
    state.members = static_cast<uint8_t>(members);
    for (unsigned i = 0; i < members; ++i) state.order[i] = static_cast<uint8_t>(i);
    state.position = 0;
  }
  if (state.position == 0) {
    for (unsigned i = members - 1; i > 0; --i) std::swap(state.order[i], state.order[random_.below(i + 1)]);
  }
  const unsigned pick = state.order[state.position];
  state.position = static_cast<uint8_t>(state.position + 1U == members ? 0 : state.position + 1U);
  return pick;
}

}  // namespace heddle::lb
