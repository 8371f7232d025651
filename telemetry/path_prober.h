// A switch's prober: sends a probe over every member of its groups towards every far destination, in turns that keep to
// a small part of each link, and keeps a PathDelay per destination from what comes back.
//
// A member that fans out to many paths further on is probed with another source port each time: later switches hash
// probes, so that in the long run all of those paths are seen.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "net/ip_address.h"
#include "net/packet.h"
#include "net/random.h"
#include "net/rate.h"
#include "net/time.h"
#include "telemetry/int_probe.h"
#include "telemetry/path_delay.h"

namespace heddle::telemetry {

// One group towards one destination, as the prober sees it.
struct ProbeTarget {
  struct Member {
    PortId port = kNoPort;
    uint32_t share = 1;     // until something is known
    uint64_t identity = 0;  // tells members apart across changes of the tables
  };
  uint64_t label = 0;                     // tells destinations apart across changes of the tables
  std::vector<net::IpAddress> addresses;  // of the far switches, which are probed by turns; of the prober's own family
  std::vector<Member> members;            // 2–64
};

// A link carries the probes of up to two tiers and the answers to as many: a switch's own get this part of what probes
// may take of it.
inline constexpr double kProbesOnALink = 4;

// A probe that has come back, as it was read where it came in.
struct ProbeAnswer {
  uint16_t target = 0;
  uint8_t member = 0;
  uint32_t sequence = 0;
  bool returned = false;  // its far switch has turned it round
  PathReading reading;
  Time at = 0;
};
ProbeAnswer read_answer(std::span<const uint8_t> frame, const ProbeView& probe, Time now);

struct ProberSettings {
  net::IpAddress address;                 // of this switch
  uint8_t dscp = 26;                      // of the class that is measured
  unsigned hops = 4;                      // switches on the longest way there
  double share = 0.001 / kProbesOnALink;  // of each link that this switch's own probes may take
  uint64_t seed = 1;                      // of source ports and of when it begins
  PathDelaySettings paths;                // times in it are raised to what the sweep needs
  std::vector<Rate> rates;                // of the links, by port; an unlimited one counts as 100 Gb/s
  int overhead = kEthernetOverhead;
  // No sweep is shorter: answers must be able to come back before too many probes are out.
  Duration least_sweep = 100 * kMicrosecond;
  bool keep_trace = false;
};

class PathProber : public ProbeReceiver {
 public:
  static constexpr Time kNever = ~Time{0};

  struct Due {
    uint32_t target = 0;
    uint8_t member = 0;
    PortId port = kNoPort;
  };
  // Shares that changed.
  struct Change {
    Time at = 0;
    uint64_t label = 0;
    std::vector<uint32_t> shares;
  };
  struct Counters {
    uint64_t sent = 0;
    uint64_t returned = 0;  // whole, and of a probe that was sent
    uint64_t refused = 0;   // the rest
    uint64_t bytes = 0;     // sent, on the wire
    uint64_t updates = 0;   // of shares
  };

  explicit PathProber(const ProberSettings& settings);

  // From now on these are probed. What is known of a target with that label stays with those of its members that it
  // still has.
  void retarget(std::vector<ProbeTarget> targets, Time now);
  // The port's link has another rate from now on; shares are updated as often as before.
  void set_rate(PortId port, Rate rate);

  // When `attend` has something to do; kNever without targets.
  Time next_due() const { return next_due_; }
  // Calls `send(due)` for every probe whose turn has come, and `changed(target)` for every target whose shares moved.
  template <typename Send, typename Changed>
  void attend(Time now, const Send& send, const Changed& changed);
  // What that probe says, which leaves at once; from now on its answer is waited for.
  ProbeFields make(const Due& due, Time now);
  // The same, written; false if `frame` is too small.
  bool write(std::span<uint8_t> frame, const Due& due, Time now);
  void receive(const ProbeAnswer& answer);
  void receive_probe(std::span<const uint8_t> frame, const ProbeView& probe, Time now) override {
    receive(read_answer(frame, probe, now));
  }

  const net::IpAddress& address() const { return settings_.address; }
  uint32_t frame_bytes() const { return probe_frame_bytes(settings_.hops, settings_.address.family); }
  // How long it takes until every member has been probed towards every destination.
  Duration sweep() const { return sweep_; }
  // Between two updates of shares: a sweep at the links' first rates.
  Duration period() const { return period_; }
  size_t size() const { return targets_.size(); }
  const ProbeTarget& target(size_t i) const { return targets_[i]; }
  const PathDelay& paths(size_t i) const { return paths_[i]; }
  const Counters& counters() const { return counters_; }
  const std::vector<Change>& trace() const { return trace_; }

 private:
  static constexpr size_t kMostTrace = 100'000;
  struct Turn {
    uint32_t target;
    uint8_t member;
  };
  // What is probed over one port, in turns.
  struct Slot {
    PortId port = kNoPort;
    Duration interval = 0;
    Time next = 0;
    size_t position = 0;
    std::vector<Turn> turns;
  };

  Duration interval_of(Rate rate, size_t turns) const;
  Rate rate_of(PortId port) const { return port < rates_.size() ? rates_[port] : Rate(); }
  void find_sweep();
  PathDelaySettings path_settings(const ProbeTarget& target) const;
  PathDelay paths_of(const ProbeTarget& target, const std::vector<ProbeTarget>& old_targets,
                     const std::vector<PathDelay>& old_paths) const;
  void find_next();
  void note_change(size_t target, Time now);

  ProberSettings settings_;
  std::vector<Rate> rates_;  // as they are now
  Random random_;
  std::vector<ProbeTarget> targets_;
  std::vector<PathDelay> paths_;      // by target
  std::vector<size_t> next_address_;  // by target
  std::vector<Slot> slots_;
  Duration sweep_ = 0;
  Duration period_ = 0;
  Time since_ = 0;  // the targets are these
  Time next_update_ = kNever;
  Time next_due_ = kNever;
  Counters counters_;
  std::vector<Change> trace_;
};

// ---------------------------------------------------------------------------------------------------------------------

template <typename Send, typename Changed>
void PathProber::attend(Time now, const Send& send, const Changed& changed) {
  for (Slot& slot : slots_) {
    if (before(now, slot.next)) continue;
    const Turn turn = slot.turns[slot.position];
    slot.position = slot.position + 1 == slot.turns.size() ? 0 : slot.position + 1;
    slot.next = later_of(slot.next + slot.interval, now);  // what was missed is not made up for
    send(Due{turn.target, turn.member, slot.port});
  }
  if (next_update_ != kNever && !before(now, next_update_)) {
    next_update_ = later_of(next_update_ + period_, now);
    for (size_t i = 0; i < paths_.size(); ++i) {
      if (!paths_[i].update(now, period_)) continue;
      note_change(i, now);
      changed(i);
    }
  }
  find_next();
}

}  // namespace heddle::telemetry
