// Stage 4: the group's scheduler picks the member this packet takes.
//
// The selector belongs to one lcore (or one lab switch). What it asks of the ports comes through `Ports`:
//   bool is_up(PortId)                       whether the port has its link
//   Duration drain_time(PortId)              how long what waits at the port would take to send, now
//   Duration drain_time_of_kibibyte(PortId)  how much longer with 1,024 bytes more; asked by read_loads alone
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "lb/flow_hash.h"
#include "lb/flowlet_table.h"
#include "lb/member_loads.h"
#include "lb/next_hop_group.h"
#include "lb/path_quality.h"
#include "net/random.h"
#include "telemetry/counters.h"

namespace heddle::lb {

// What a scheduler remembers about one group: owned by one lcore (or one lab switch), so that no packet writes a line
// that another core writes.
struct GroupState {
  uint8_t position = 0;
  uint8_t members = 0;  // the permutation is of this many; re-made when the group's size changes
  std::array<uint8_t, kMaxMembers> order{};
};

// Turns are taken packet by packet and meant to share out bytes. Were every second packet an ACK, members with the same
// number of packets would have had different numbers of data packets; so short frames take turns of their own.
struct GroupStates {
  // Bytes. With the least MTU of RoCE, 256, a full data packet is longer.
  static constexpr uint32_t kShortFrame = 256;

  GroupState& of(uint32_t frame_bytes) { return by_length[frame_bytes > kShortFrame ? 1 : 0]; }
  const GroupState& of(uint32_t frame_bytes) const { return by_length[frame_bytes > kShortFrame ? 1 : 0]; }

  std::array<GroupState, 2> by_length;  // of short frames, of long ones
};

struct FlowletCounters {
  telemetry::Counter flowlets;    // begun: the path could change
  telemetry::Counter reroutes;    // of those, where it did change (SAI: NEXT_HOP_REASSIGNMENTS)
  telemetry::Counter collisions;  // packets of flows that found no room in the table and went by their hash
};

class PathSelector {
 public:
  static constexpr unsigned kNone = ~0U;

  struct Settings {
    uint64_t seed = 1;
    ArsSettings ars;
    size_t ports = 0;       // that members may name
    bool flowlets = true;   // whether there is a flowlet table; without one, flowlets are flows
    bool resident = false;  // its memory is touched at once
  };

  explicit PathSelector(const Settings& settings);

  // Index of the member that a packet with this `flow_hash` takes at `now`, or kNone if none is alive. A dead member
  // moves only its own flows: the others keep theirs.
  template <typename Ports>
  unsigned select(const GroupView& group, GroupState& state, uint32_t flow_hash, Time now, const Ports& ports);

  // The same for a group that chooses by the flow's hash and has two members or more.
  template <typename Ports>
  static unsigned select_by_hash(const GroupView& group, uint32_t flow_hash, const Ports& ports);

  // Which member the hash says, alive or not; 0 of a group that has none.
  static unsigned by_hash(const NextHopGroup& group, uint32_t flow_hash) { return scale_hash(flow_hash, group.size()); }

  // For a burst, the less loaded of two at half the price: `read_loads` looks at every member once, each
  // `select_by_loads` then gives a frame of that length to one of them, as `select` would if every frame waited at its
  // port by then. Only for groups that `goes_by_loads`.
  bool goes_by_loads(const GroupView& group) const {
    return group.scheduler == kByLoads && per_packet_ == QualityRule::kPowerOfTwo && group.overrides == nullptr &&
           group.size > 1;
  }
  template <typename Ports>
  void read_loads(const GroupView& group, const Ports& ports) {
    loads_.read(group, quality_, ports);
  }
  template <typename Ports>
  unsigned select_by_loads(const GroupView& group, uint32_t frame_bytes, const Ports& ports);

  // Before a burst of `select`: the flow's entry is on its way from memory.
  void prefetch(uint32_t flow_hash) const {
    if (flowlets_) flowlets_->prefetch(flow_hash);
  }

  PathQuality& quality() { return quality_; }
  const PathQuality& quality() const { return quality_; }
  const FlowletCounters& counters() const { return counters_; }

 private:
  static constexpr Scheduler kByLoads{Granularity::kPacket, Choice::kQuality};
  struct Two {
    unsigned one;
    unsigned other;
  };

  template <typename Ports>
  unsigned select_other(const GroupView& group, GroupState& state, uint32_t flow_hash, Time now, const Ports& ports);
  template <typename Ports>
  unsigned select_flowlet(const GroupView& group, GroupState& state, uint32_t flow_hash, Time now, const Ports& ports);
  template <typename Ports>
  [[gnu::noinline]] unsigned begin_flowlet(const GroupView& group, GroupState& state, FlowletTable::Found found,
                                           bool can_stay, const Ports& ports);
  template <typename Ports>
  unsigned choose(const GroupView& group, GroupState& state, const uint32_t* flow_hash, const Ports& ports);
  Two two_members(const GroupView& group);
  template <typename Ports>
  unsigned less_loaded_of_two(const GroupView& group, const Ports& ports);
  template <typename Ports>
  unsigned best_of_all(const GroupView& group, bool by_band, const Ports& ports);
  template <typename Ports>
  [[gnu::always_inline]] Duration load_of(const NextHop& member, const Ports& ports) const {
    return quality_.load(member.port, ports.drain_time(member.port));
  }
  // Takes copies, so that a loop over packets may keep its own in registers.
  template <typename Ports>
  [[gnu::noinline]] static unsigned live_member(GroupView group, uint32_t hash, Ports ports);
  template <typename Ports>
  unsigned band_of(const NextHop& member, const Ports& ports) const {
    return quality_.band(load_of(member, ports)) + member.remote_band;
  }
  unsigned next_in_turn(GroupState& state, unsigned members);
  uint32_t draw() { return static_cast<uint32_t>(random_.next() >> 32U); }

  Random random_;
  QualityRule per_packet_;
  QualityRule per_flowlet_;
  unsigned primary_threshold_;
  unsigned alternate_cost_;
  PathQuality quality_;
  MemberLoads loads_;
  std::optional<FlowletTable> flowlets_;
  FlowletCounters counters_;
};

// ---------------------------------------------------------------------------------------------------------------------

inline PathSelector::PathSelector(const Settings& settings)
    : random_(settings.seed),
      per_packet_(settings.ars.quality_rule == QualityRule::kDefault ? QualityRule::kPowerOfTwo
                                                                     : settings.ars.quality_rule),
      per_flowlet_(settings.ars.quality_rule == QualityRule::kDefault ? QualityRule::kBands
                                                                      : settings.ars.quality_rule),
      primary_threshold_(settings.ars.primary_path_quality_threshold),
      alternate_cost_(settings.ars.alternate_path_cost),
      quality_(settings.ars, settings.ports) {
  if (settings.flowlets) flowlets_.emplace(settings.ars.max_flows, settings.ars.idle_time, settings.resident);
}

template <typename Ports>
inline unsigned PathSelector::select(const GroupView& group, GroupState& state, uint32_t flow_hash, Time now,
                                     const Ports& ports) {
  if (group.size <= 1) return group.size == 1 && ports.is_up(group.members[0].port) ? 0 : kNone;
  if (group.scheduler.choice != Choice::kHash) return select_other(group, state, flow_hash, now, ports);
  return select_by_hash(group, flow_hash, ports);
}

template <typename Ports>
inline unsigned PathSelector::select_by_hash(const GroupView& group, uint32_t flow_hash, const Ports& ports) {
  const unsigned pick = scale_hash(flow_hash, group.size);
  if (ports.is_up(group.members[pick].port)) [[likely]]
    return pick;
  return live_member(group, flow_hash, ports);
}

template <typename Ports>
inline unsigned PathSelector::select_other(const GroupView& group, GroupState& state, uint32_t flow_hash, Time now,
                                           const Ports& ports) {
  if (group.scheduler.granularity == Granularity::kFlowlet && flowlets_) {
    return select_flowlet(group, state, flow_hash, now, ports);
  }
  // The member is dead: by the packet's own hash where flows must keep together, else by a fresh number.
  const bool by_flow = group.scheduler.granularity != Granularity::kPacket;
  const unsigned pick = choose(group, state, by_flow ? &flow_hash : nullptr, ports);
  if (pick != kNone && ports.is_up(group.members[pick].port)) [[likely]]
    return pick;
  return live_member(group, by_flow ? flow_hash : draw(), ports);
}

template <typename Ports>
unsigned PathSelector::select_flowlet(const GroupView& group, GroupState& state, uint32_t flow_hash, Time now,
                                      const Ports& ports) {
  const FlowletTable::Found found = flowlets_->find(flow_hash, now);
  if (found.state == FlowletTable::State::kCollision) [[unlikely]] {
    counters_.collisions.add(1);
    const unsigned pick = scale_hash(flow_hash, group.size);
    return ports.is_up(group.members[pick].port) ? pick : live_member(group, flow_hash, ports);
  }
  // Members have moved up if one was taken out of the group: then a flowlet may change its path once.
  const unsigned last = found.member();
  const bool can_stay = last < group.size && ports.is_up(group.members[last].port);
  if (found.state == FlowletTable::State::kLive && can_stay) [[likely]]
    return last;
  return begin_flowlet(group, state, found, can_stay, ports);
}

template <typename Ports>
unsigned PathSelector::begin_flowlet(const GroupView& group, GroupState& state, FlowletTable::Found found,
                                     bool can_stay, const Ports& ports) {
  const unsigned last = found.member();
  unsigned pick = choose(group, state, nullptr, ports);
  if (pick == kNone || !ports.is_up(group.members[pick].port)) pick = live_member(group, draw(), ports);
  // Against herds: a flow leaves its member only for one that is at least a band better.
  if (group.scheduler.choice == Choice::kQuality && can_stay && pick != last &&
      band_of(group.members[last], ports) <= band_of(group.members[pick], ports)) {
    pick = last;
  }
  counters_.flowlets.add(1);
  if (last != FlowletTable::kNoMember && pick != last) counters_.reroutes.add(1);
  found.set_member(pick == kNone ? FlowletTable::kNoMember : pick);
  return pick;
}

// By the flow's hash where its packets must keep together, else (null) by a random number.
template <typename Ports>
inline unsigned PathSelector::choose(const GroupView& group, GroupState& state, const uint32_t* flow_hash,
                                     const Ports& ports) {
  const auto number = [&] { return flow_hash != nullptr ? *flow_hash : draw(); };
  switch (group.scheduler.choice) {
    case Choice::kRoundRobin:
      return next_in_turn(state, group.size);
    case Choice::kWeighted:
      return group.table == nullptr ? scale_hash(number(), group.size) : group.table->member(number());
    case Choice::kQuality: {
      const QualityRule rule = group.scheduler.granularity == Granularity::kPacket ? per_packet_ : per_flowlet_;
      if (rule == QualityRule::kPowerOfTwo) return less_loaded_of_two(group, ports);
      return best_of_all(group, rule == QualityRule::kBands, ports);
    }
    case Choice::kHash:
    case Choice::kRandom:
      break;
  }
  return scale_hash(number(), group.size);
}

// Two members by the luck of the draw: different ones, or those that the weights name, which may be one.
inline PathSelector::Two PathSelector::two_members(const GroupView& group) {
  const uint64_t draw = random_.next();
  const auto high = static_cast<uint32_t>(draw >> 32U);
  const auto low = static_cast<uint32_t>(draw);
  if (group.measured && group.table != nullptr) return {group.table->member(high), group.table->member(low)};
  const unsigned one = scale_hash(high, group.size);
  const unsigned other = scale_hash(low, group.size - 1);
  return {one, other + (other >= one ? 1U : 0U)};
}

// The first of two if they are equal; a dead one only if both are. Of a measured group the two are drawn by weight, and
// a short queue here never speaks for a member whose path is worse further on: what probes say is old by a sweep, and
// whoever acted on it packet by packet would send everything to the path that was best then.
template <typename Ports>
inline unsigned PathSelector::less_loaded_of_two(const GroupView& group, const Ports& ports) {
  const auto [one, other] = two_members(group);
  if (one == other) return one;
  const NextHop& a = group.members[one];
  const NextHop& b = group.members[other];
  if (!ports.is_up(b.port)) [[unlikely]]
    return one;
  if (!ports.is_up(a.port)) [[unlikely]]
    return other;
  return b.remote_band <= a.remote_band && load_of(b, ports) < load_of(a, ports) ? other : one;
}

template <typename Ports>
inline unsigned PathSelector::select_by_loads(const GroupView& group, uint32_t frame_bytes, const Ports& ports) {
  const auto [one, other] = two_members(group);
  const unsigned pick = loads_.give(one, other, group.measured, frame_bytes);
  if (pick != MemberLoads::kNone) [[likely]]
    return pick;
  const unsigned live = live_member(group, draw(), ports);
  if (live != kNone) loads_.give(live, live, false, frame_bytes);
  return live;
}

// A random one of the live members with the lowest band (here and further on) or load. An alternate one only if no
// primary is good enough.
template <typename Ports>
unsigned PathSelector::best_of_all(const GroupView& group, bool by_band, const Ports& ports) {
  struct Best {
    uint64_t key = ~uint64_t{0};
    unsigned count = 0;
    std::array<uint8_t, kMaxMembers> members;
  };
  std::array<Best, 2> best;  // primary, alternate
  for (unsigned i = 0; i < group.size; ++i) {
    const NextHop& member = group.members[i];
    if (!ports.is_up(member.port)) continue;
    const Duration load = load_of(member, ports);
    const uint64_t key = by_band ? quality_.band(load) + member.remote_band : load;
    Best& of = best[by_band && member.alternate ? 1 : 0];
    if (key > of.key) continue;
    if (key < of.key) of.count = 0;
    of.key = key;
    of.members[of.count++] = static_cast<uint8_t>(i);
  }
  const bool longer =
      best[1].count != 0 &&
      (best[0].count == 0 || (best[0].key >= primary_threshold_ && best[1].key + alternate_cost_ < best[0].key));
  const Best& taken = best[longer ? 1 : 0];
  return taken.count == 0 ? kNone : taken.members[random_.below(taken.count)];
}

// A few further draws find a live member unless most are dead; they keep to the weights. After that the highest random
// weight decides (Thaler and Ravishankar 1998). Both spread evenly over the live members, whichever they are, and when
// another member dies, only the packets that it had move again.
template <typename Ports>
unsigned PathSelector::live_member(GroupView group, uint32_t hash, Ports ports) {
  const unsigned n = group.size;
  const bool weighted = group.scheduler.choice == Choice::kWeighted && group.table != nullptr;
  uint32_t draw = hash;
  for (int tries = 0; tries < 4; ++tries) {
    draw = static_cast<uint32_t>(mix64(draw));
    const unsigned pick = weighted ? group.table->member(draw) : scale_hash(draw, n);
    if (ports.is_up(group.members[pick].port)) return pick;
  }
  unsigned best = kNone;
  uint64_t best_weight = 0;
  for (unsigned i = 0; i < n; ++i) {
    if (!ports.is_up(group.members[i].port)) continue;
    const uint64_t weight = mix64((uint64_t{i} << 32U) | hash);
    if (best != kNone && weight <= best_weight) continue;
    best = i;
    best_weight = weight;
  }
  return best;
}

// The order is drawn anew in every round: switches that keep one order fall into step with each other (last flow of a
// 1,024-host permutation 202–210 µs when re-drawn every round, 720–830 µs when never). It is drawn as it is used (one
// step of Fisher and Yates's shuffle a packet), so that no packet pays for a round.
inline unsigned PathSelector::next_in_turn(GroupState& state, unsigned members) {
  if (state.members != members) [[unlikely]] {
    state.members = static_cast<uint8_t>(members);
    for (unsigned i = 0; i < members; ++i) state.order[i] = static_cast<uint8_t>(i);
    state.position = 0;
  }
  const unsigned position = state.position;
  const unsigned taken = position + random_.below(members - position);
  const uint8_t pick = state.order[taken];
  state.order[taken] = state.order[position];
  state.order[position] = pick;
  state.position = static_cast<uint8_t>(position + 1U == members ? 0 : position + 1U);
  return pick;
}

}  // namespace heddle::lb
