// Where every message of the workload stands. Shared by all hosts without locks: each entry has one writer in each of
// its columns, the message's source (released, sent, waiting) or its destination (received).
#pragma once

#include <cstdint>
#include <vector>

#include "lab/engine/run_result.h"
#include "lab/workload/workload.h"

namespace heddle::lab {

class MessageBoard {
 public:
  // A message travels as up to `parts` parts, one per queue pair.
  MessageBoard(const Workload& workload, uint32_t parts)
      : workload_(workload),
        parts_(parts),
        times_(workload.messages.size()),
        waiting_(workload.messages.size()),
        unsent_(workload.messages.size()),
        unreceived_(workload.messages.size()) {
    for (MessageId m = 0; m < workload.messages.size(); ++m) {
      waiting_[m] = workload.messages[m].pending;
      unsent_[m] = unreceived_[m] = static_cast<uint16_t>(parts_of(m));
    }
  }

  const Workload& workload() const { return workload_; }
  const Message& message(MessageId m) const { return workload_.messages[m]; }

  // How many parts a message has: no part is empty.
  uint32_t parts_of(MessageId m) const {
    const uint64_t bytes = message(m).bytes;
    return static_cast<uint32_t>(bytes < parts_ ? bytes : parts_);
  }
  // Bytes of part `i`; the first parts take what does not divide.
  uint64_t part_bytes(MessageId m, uint32_t i) const {
    const uint64_t n = parts_of(m);
    return message(m).bytes / n + (i < message(m).bytes % n ? 1 : 0);
  }

  // One trigger took effect: true if the message may now be released. Late ones have no effect.
  bool count_trigger(MessageId m) { return waiting_[m] != 0 && --waiting_[m] == 0; }
  void released(MessageId m, Time at) { times_[m].released = at; }
  // A part's last ACK is at the sender: true if it was the last part's.
  bool part_sent(MessageId m, Time at) { return --unsent_[m] == 0 ? (times_[m].sent = at, true) : false; }
  bool part_received(MessageId m, Time at) { return --unreceived_[m] == 0 ? (times_[m].received = at, true) : false; }
  void barrier_done(MessageId m, Time at) { times_[m] = {at, at, at}; }

  const std::vector<MessageTimes>& times() const { return times_; }
  std::vector<MessageTimes> take_times() { return std::move(times_); }

 private:
  const Workload& workload_;
  uint32_t parts_;
  std::vector<MessageTimes> times_;
  std::vector<uint32_t> waiting_;
  std::vector<uint16_t> unsent_;
  std::vector<uint16_t> unreceived_;
};

}  // namespace heddle::lab
