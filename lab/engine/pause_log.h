// When the ports of a node were held back, by PFC or for want of credit, where that began, and which messages waited
// because of it.
//
// A pause spreads: a switch whose egress queue is held back fills up and pauses others in turn. The lab's pause frames
// therefore name, beside what is on the wire, the queue where the congestion is: the egress queue of the class that
// holds most bytes in the switch that sends the frame, or, if that queue is itself held back, or was while the packet
// at its head has waited, the one that its own pause names. So every pause knows its origin, and a report can tell a
// flow that takes part in the congestion from one that only shares links with it.
//
// A lane of an InfiniBand link that waits for credit is the same: its flow-control packets name the queue that holds
// most of the buffer they speak for, and a wait has the origin that the packet names which ends it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rte_prefetch.h>

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

// A class (lane) of a port was held back from `from` until `until`.
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
  // Without `keeps_all` pauses are forgotten that nothing in the queue has seen, and `intervals` has a part of them.
  // Then packets leave a queue in the order in which they came.
  explicit PauseLog(size_t ports, bool keeps_all = true)
      : keeps_all_(keeps_all), queues_(ports * kTrafficClasses), paused_(ports), latest_(ports) {}
  PauseLog(const PauseLog&) = delete;  // queues point into `waits_`
  PauseLog& operator=(const PauseLog&) = delete;

  // What a port's pauses are from `now` on; `origin` is that of the frame which said so.
  void note(PortIndex port, uint8_t paused, PauseOrigin origin, Time now) {
    if ((paused_[port] | paused) == 0) return;
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) note_class(port, tc, ((paused >> tc) & 1U) != 0, origin, now);
  }
  // Of one class alone.
  void note_class(PortIndex port, unsigned traffic_class, bool paused, PauseOrigin origin, Time now);
  // Of all classes that are, or were, held back, each with an origin of its own.
  void note_each(PortIndex port, uint8_t paused, const PauseOrigin* by_class, Time now) {
    for (unsigned changed = paused_[port] ^ paused; changed != 0; changed &= changed - 1) {
      const auto tc = static_cast<unsigned>(__builtin_ctz(changed));
      note_class(port, tc, ((paused >> tc) & 1U) != 0, by_class[tc], now);
    }
  }
  // The pause that holds the queue back, if one does, has another origin than was thought.
  void correct_origin(PortIndex port, unsigned traffic_class, PauseOrigin origin) {
    queue(port, traffic_class).open_origin = origin;
  }
  // Bit = class that is held back now, as was last noted.
  uint8_t paused(PortIndex port) const { return paused_[port]; }

  // Asks for what a packet that comes or goes there will read.
  void prefetch(PortIndex port, unsigned traffic_class) const {
    if (latest_[port] == 0) return;  // it will not
    const Queue& of = queue(port, traffic_class);
    rte_prefetch0(&of);
    rte_prefetch0(&of.last_origin);
  }

  // Whether it would be known below for some `since`.
  bool has_origin(PortIndex port, unsigned traffic_class) const {
    return ((paused_[port] >> traffic_class) & 1U) != 0 || queue(port, traffic_class).last_until != 0;
  }
  // Of the pause that holds the queue back, or of the last that has ended after `since`; unknown if there is none.
  PauseOrigin origin_since(PortIndex port, unsigned traffic_class, Time since) const {
    const Queue& of = queue(port, traffic_class);
    if (((paused_[port] >> traffic_class) & 1U) != 0) return of.open_origin;
    return of.last_until > since ? of.last_origin : PauseOrigin();
  }

  // A packet of that message has stood in a queue since `since` and leaves it at `now`: the pauses meanwhile held the
  // message back. What several packets of it wait for together counts once.
  void note_wait(PortIndex port, unsigned traffic_class, MessageId message, Time since, Time now) {
    if (latest_[port] <= since) return;
    Queue& of = queue(port, traffic_class);
    if (of.last_until > since) add_wait(of, {message, port, static_cast<uint8_t>(traffic_class)}, since, now);
    forget(of, since);
  }
  // A packet of no message has left a queue in which it had stood since `since`.
  void note_left(PortIndex port, unsigned traffic_class, Time since) {
    if (latest_[port] > since) forget(queue(port, traffic_class), since);
  }

  // All pauses that have ended, by port, class and time; and what waited, in no order.
  std::vector<PauseInterval> intervals() const;
  std::vector<HeldMessage> held() const;

 private:
  static constexpr Time kNotYet = ~Time{0};

  struct Past {
    Time from;
    Time until;
    PauseOrigin origin;
    Duration before;  // how long the queue's pauses before it lasted, in all
    uint64_t run;     // number of the first of the pauses up to this one that have its origin
    Duration length() const { return until - from; }
  };
  struct Key {
    MessageId message;
    PortIndex port;
    uint8_t traffic_class;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  struct Wait {
    Time until = 0;  // what was before has been counted
    std::vector<std::pair<PauseOrigin, Duration>> held;
    void add(PauseOrigin origin, Duration time);
  };

  struct Recent {
    MessageId message = 0;
    Wait* wait = nullptr;  // of it in this queue
  };
  // What packets ask for fills the first cache line, and what the end of a pause needs of those before it the second:
  // `past` itself is cold.
  struct alignas(64) Queue {
    Time open_since = 0;  // of the pause that goes on
    PauseOrigin open_origin;
    Time last_until = 0;           // when the last of `past` was over; 0 if there is none
    Time next_unneeded = kNotYet;  // when that of the others was which comes first
    size_t unneeded = 0;           // at the front of `past`, that nothing in the queue has seen
    std::vector<Past> past;
    PauseOrigin last_origin;         // of the last of `past`
    uint64_t last_run = 0;           // likewise
    Duration total = 0;              // how long all pauses lasted that are over
    uint64_t forgotten = 0;          // pauses that are no more in `past`: the number of its first
    std::array<Recent, 4> recent{};  // by message, modulo
  };

  const Queue& queue(PortIndex port, unsigned traffic_class) const {
    return queues_[port * size_t{kTrafficClasses} + traffic_class];
  }
  Queue& queue(PortIndex port, unsigned traffic_class) {
    return queues_[port * size_t{kTrafficClasses} + traffic_class];
  }
  void close(Queue& of, Time now) const;
  Wait& wait_of(Queue& of, const Key& key);
  void add_wait(Queue& of, const Key& key, Time since, Time now);
  static void forget(Queue& of, Time since) {
    if (of.next_unneeded <= since) drop_unneeded(of, since);
  }
  static void drop_unneeded(Queue& of, Time since);

  bool keeps_all_;
  std::vector<Queue> queues_;    // by port and class
  std::vector<uint8_t> paused_;  // by port, bit = class
  std::vector<Time> latest_;     // by port: when the last pause that is over was; most packets ask for no more
  std::unordered_map<Key, Wait, KeyHash> waits_;
};

}  // namespace heddle::lab
