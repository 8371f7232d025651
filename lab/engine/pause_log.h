// When the ports of a node were held back by PFC, where that began, and which messages waited because of it.
//
// A pause spreads: a switch whose egress queue is held back fills up and pauses others in turn. The lab's pause frames
// therefore name, beside what is on the wire, the queue where the congestion is: the egress queue of the class that
// holds most bytes in the switch that sends the frame, or, if that queue is itself held back, or was while the packet
// at its head has waited, the one that its own pause names. So every pause knows its origin, and a report can tell a
// flow that takes part in the congestion from one that only shares links with it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lab/topology/topology.h"
#include "lab/workload/workload.h"
#include "net/packet.h"
#include "net/time.h"

namespace heddle::lab {

// The egress port where a pause began, in one word.
class PauseOrigin {
 public:
  PauseOrigin() = default;
  explicit PauseOrigin(uint64_t mark) : mark_(mark) {}
  PauseOrigin(NodeId node, PortIndex port) : mark_((uint64_t{node} << 16U | port) + 1) {}

  bool is_known() const { return mark_ != 0; }
  NodeId node() const { return static_cast<NodeId>((mark_ - 1) >> 16U); }
  PortIndex port() const { return static_cast<PortIndex>(mark_ - 1); }
  uint64_t mark() const { return mark_; }
  bool operator==(const PauseOrigin&) const = default;

 private:
  uint64_t mark_ = 0;
};

// A class of a port was held back from `from` until `until`.
struct PauseInterval {
  PortIndex port = 0;
  uint8_t traffic_class = 0;
  Time from = 0;
  Time until = 0;
  PauseOrigin origin;
};

// How long packets of a message stood in a node's queues because of pauses of one origin.
struct HeldMessage {
  MessageId message = 0;
  PauseOrigin origin;
  Duration held = 0;
};

class PauseLog {
 public:
  explicit PauseLog(size_t ports) : queues_(ports * kTrafficClasses), paused_(ports) {}

  // What a port's pauses are from `now` on; `origin` is that of the frame which said so. Calls `ended(traffic_class)`
  // for each class whose pause is over by that, or has another origin from now on.
  template <typename Ended>
  void note(PortIndex port, uint8_t paused, PauseOrigin origin, Time now, const Ended& ended);
  void note(PortIndex port, uint8_t paused, PauseOrigin origin, Time now) {
    note(port, paused, origin, now, [](unsigned) {});
  }

  // Of the pause that holds the queue back, or of the last that has ended after `since`; unknown if there is none.
  PauseOrigin origin_since(PortIndex port, unsigned traffic_class, Time since) const {
    const Queue& of = queue(port, traffic_class);
    if (((paused_[port] >> traffic_class) & 1U) != 0) return of.open_origin;
    return !of.past.empty() && of.past.back().until > since ? of.past.back().origin : PauseOrigin();
  }

  // A packet of that message has stood in a queue since `since` and leaves it at `now`: the pauses meanwhile held the
  // message back. What several packets of it wait for together counts once.
  void note_wait(PortIndex port, unsigned traffic_class, MessageId message, Time since, Time now) {
    const Queue& of = queue(port, traffic_class);
    if (of.past.empty() || of.past.back().until <= since) return;
    add_wait(port, traffic_class, message, since, now);
  }
  // The same for the pause of the queue that has just ended.
  void note_wait_for_last(PortIndex port, unsigned traffic_class, MessageId message, Time since) {
    const PauseInterval& last = queue(port, traffic_class).past.back();
    if (last.until > since) add_overlap(last, message, since, last.until);
  }

  // All pauses that have ended, by port, class and time; and what waited, in no order.
  std::vector<PauseInterval> intervals() const;
  std::vector<HeldMessage> held() const;

 private:
  struct Queue {
    Time open_since = 0;  // of the pause that goes on
    PauseOrigin open_origin;
    std::vector<PauseInterval> past;
  };
  struct Key {
    MessageId message;
    PortIndex port;
    uint8_t traffic_class;
    uint64_t origin;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Wait {
    Time until = 0;  // what was before has been counted
    Duration held = 0;
  };

  const Queue& queue(PortIndex port, unsigned traffic_class) const {
    return queues_[port * size_t{kTrafficClasses} + traffic_class];
  }
  Queue& queue(PortIndex port, unsigned traffic_class) {
    return queues_[port * size_t{kTrafficClasses} + traffic_class];
  }
  void close(PortIndex port, unsigned traffic_class, Time now);
  void add_wait(PortIndex port, unsigned traffic_class, MessageId message, Time since, Time now);
  void add_overlap(const PauseInterval& pause, MessageId message, Time since, Time now);

  std::vector<Queue> queues_;    // by port and class
  std::vector<uint8_t> paused_;  // by port, bit = class
  std::unordered_map<Key, Wait, KeyHash> waits_;
};

// ---------------------------------------------------------------------------------------------------------------------

template <typename Ended>
void PauseLog::note(PortIndex port, uint8_t paused, PauseOrigin origin, Time now, const Ended& ended) {
  const uint8_t before = paused_[port];
  if ((before | paused) == 0) return;
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    const bool was = ((before >> tc) & 1U) != 0;
    const bool is = ((paused >> tc) & 1U) != 0;
    Queue& of = queue(port, tc);
    if (was && is && of.open_origin == origin) continue;
    if (was) {
      close(port, tc, now);
      ended(tc);
    }
    if (is) {
      of.open_since = now;
      of.open_origin = origin;
    }
  }
  paused_[port] = paused;
}

}  // namespace heddle::lab
