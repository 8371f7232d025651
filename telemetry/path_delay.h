// What probes say about the members of one next-hop group towards one destination, and the shares of traffic that
// follow from it.
//
// Law: a member's share is in proportion to capacity / (queueing delay + base), less what is lost. A queue is the sum
// of past imbalance, and what is heard of it is smoothed: shares that answer to it are a loop of an integrator and a
// lag, of damping ½ √(base / (load × lag)). `base` is therefore never less than twice the time over which delays are
// smoothed, which makes 0.7 of it. Capacity, which is known at once, needs no such care.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/time.h"
#include "telemetry/int_probe.h"

namespace heddle::telemetry {

struct PathDelaySettings {
  Duration base = 10 * kMicrosecond;      // delays well below this make no difference; raised as said above
  unsigned delay_shift = 2;               // gain 2^-shift of the smoothed delay
  unsigned loss_shift = 2;                // the same of the loss
  unsigned capacity_shift = 1;            // the same of the capacity: higher where a member fans out to many paths
  unsigned bad_after = 3;                 // probes lost in a row: nothing gets through
  unsigned good_after = 3;                // and answered in a row: it does again
  Duration timeout = 10 * kMillisecond;   // a probe out for this long is lost
  unsigned overtaken = 0;                 // and so is one that so many later ones have overtaken; 0: only by time
  Duration max_age = 100 * kMillisecond;  // what was heard longer ago is forgotten
  // There are queues between the switches that no switch stamps (a kernel's, a NIC's): what a member takes longer than
  // the quickest one, hops' latencies aside, counts as delay too. Needs one far switch: the members are compared by its
  // clock.
  bool wires = false;
  unsigned outstanding = 16;  // probes of a member that may be out; what is sent beyond counts the oldest as lost
};

// Shares are counted in these; all members of a group together have exactly so many, and one update moves at most an
// eighth of them.
inline constexpr uint32_t kShareSlots = 4096;
inline constexpr uint32_t kMostMoved = kShareSlots / 8;
// Less than this is not worth rebuilding a table for.
inline constexpr uint32_t kLeastMoved = kShareSlots / 128;

class PathDelay {
 public:
  struct Member {
    bool measured = false;
    bool bad = false;     // its probes do not come back
    Duration delay = 0;   // smoothed, its own switch's queue included
    Duration beyond = 0;  // smoothed, without it
    Duration wire = 0;    // between switches, smoothed: more than the quickest member's
    Duration jitter = 0;  // mean change from one probe to the next (RFC 3550 6.4.1)
    double capacity = 0;  // Mb/s, smoothed bottleneck; 0: unknown
    double loss = 0;      // smoothed share of lost probes
    uint64_t sent = 0;
    uint64_t returned = 0;
    uint64_t lost = 0;
    Time heard = 0;  // last
  };

  // `initial`: relative shares until something is known (the rates of the members' own links).
  PathDelay(const PathDelaySettings& settings, std::span<const uint32_t> initial);

  // A probe leaves over `member`; its sequence number.
  uint32_t send(unsigned member, Time now);
  // A probe came back. One that had been given up says what it says all the same.
  void receive(unsigned member, uint32_t sequence, const PathReading& reading, Time now);
  // A member's share moves, by at most kMostMoved in all, towards what its quality says; true if any did, or a member
  // has become bad or good again since the last time. To be called once a `period`.
  bool update(Time now, Duration period);
  // Longer ones from now on, where answers have become rarer.
  void raise_times(Duration timeout, Duration max_age);

  unsigned size() const { return static_cast<unsigned>(members_.size()); }
  const Member& member(unsigned i) const { return members_[i]; }
  // By member, together kShareSlots.
  const std::vector<uint32_t>& shares() const { return shares_; }
  // How many halvings a member's share per capacity of its own link lies below the best one's, 0–7: the bands that
  // quality-driven schedulers count it worse by.
  unsigned bands_below_best(unsigned i) const;
  // The base that `update` goes by.
  Duration base_for(Duration period) const;
  // Carries over what `before` knows of one of its members.
  void adopt(unsigned member, const PathDelay& before, unsigned of);

 private:
  struct Flight {
    uint32_t sequence = 0;
    Time sent = 0;
    bool out = false;
  };
  struct State {
    uint32_t next_sequence = 0;
    uint32_t oldest = 0;    // none before it is out
    uint32_t answered = 0;  // one past the latest that was
    uint32_t lost_in_row = 0;
    uint32_t returned_in_row = 0;
    uint32_t late = 0;  // answers after their time-out, since the member was last found bad
    Duration last = 0;
    Duration wire = 0;  // smoothed, the difference of the clocks included; wraps
    bool bad = false;   // as `update` last said
    std::vector<Flight> flights{};
  };

  void count_lost(unsigned member, uint32_t sequence);
  void expire(unsigned member, Time now);
  void give_up_overtaken(unsigned member, uint32_t by);
  Flight& flight_of(State& state, uint32_t sequence) const;
  void compare_wires(Time now, Duration period);
  std::vector<double> wanted(Duration period) const;
  bool move_towards(const std::vector<double>& wanted);

  PathDelaySettings settings_;
  std::vector<Member> members_;
  std::vector<State> states_;
  std::vector<uint32_t> initial_;
  std::vector<uint32_t> shares_;
};

// Whole slots in proportion to `parts` (at least one above 0), together `slots`, each within one of its share.
std::vector<uint32_t> apportion(const std::vector<double>& parts, uint32_t slots);

}  // namespace heddle::telemetry
