// The sending side of a port whose NIC has one transmit queue per class and stops those that the peer has paused. What
// such a queue does not take waits in an outbox of its class, and keeps the scheduler from giving out more of it; the
// other classes go on.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/class_queues.h"
#include "dataplane/outbox.h"

namespace heddle::dataplane {

class ClassSender {
 public:
  ClassSender(PortId port, uint16_t ethdev, const ClassQueues& queues)
      : port_(port), ethdev_(ethdev), queues_(queues) {}

  // Up to `most` bursts; returns how many frames the device took. `up`: the port's link.
  unsigned send(Pipeline& pipeline, unsigned most, bool up, Time now);

  bool empty() const { return held_ == 0; }
  void drop_all(Pipeline& pipeline, DropReason reason);

  // Whether the device takes no more of the class, and for how long it ever has not.
  bool is_held(unsigned traffic_class) const { return ((held_ >> traffic_class) & 1U) != 0; }
  Duration held_time(unsigned traffic_class, Time now) const {
    return held_time_[traffic_class] + (is_held(traffic_class) ? elapsed(now, held_since_[traffic_class]) : 0);
  }

 private:
  unsigned offer(Pipeline& pipeline, unsigned traffic_class, bool up, Time now);
  void note_held(unsigned traffic_class, bool held, Time now);

  PortId port_;
  uint16_t ethdev_;
  ClassQueues queues_;
  uint8_t held_ = 0;  // bit = class whose outbox is not empty
  std::array<Outbox, kTrafficClasses> outboxes_;
  std::array<Time, kTrafficClasses> held_since_{};
  std::array<Duration, kTrafficClasses> held_time_{};
};

}  // namespace heddle::dataplane
