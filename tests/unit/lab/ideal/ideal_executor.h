// Runs a workload on an ideal fabric, to check what its triggers mean and that no lower bound exceeds a real schedule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "lab/workload/workload.h"

namespace heddle::lab {

struct IdealFabric {
  Duration per_byte = 80;  // picoseconds; 80 = 100 Gb/s without headers
  Duration one_way = 0;
  Duration ack_one_way = 0;
  Duration trigger_delay = 0;
  // false: every message goes at full rate whatever else does. true: a host sends one message at a time in the order of
  // release, and receives one at a time.
  bool hosts_are_serial = false;
};

struct IdealRun {
  std::vector<Time> released;  // by message
  std::vector<Time> received;
  std::vector<bool> ran;
  Time makespan = 0;
  uint32_t most_sending = 0;    // the most messages one host had released but not finished sending at a time
  uint32_t most_receiving = 0;  // and the most that were on their way to one host
};

class IdealExecutor {
 public:
  IdealExecutor(const Workload& workload, const IdealFabric& fabric) : workload_(workload), fabric_(fabric) {
    const size_t n = workload.messages.size();
    run_.released.resize(n);
    run_.received.resize(n);
    run_.ran.resize(n);
    for (const Message& m : workload.messages) pending_.push_back(m.pending);
    for (auto* counts : {&sending_, &receiving_}) counts->resize(workload.host_count);
    receiver_free_.resize(workload.host_count);
    waiting_.resize(workload.host_count);
  }

  IdealRun run() {
    for (MessageId m = 0; m < workload_.messages.size(); ++m) {
      if (workload_.messages[m].pending == 0) schedule(workload_.messages[m].start, Event::kRelease, m);
    }
    while (!events_.empty()) {
      const auto [at, sequence, event, m] = events_.top();
      events_.pop();
      if (event == Event::kRelease) release(at, m);
      if (event == Event::kOut) sent_out(at, m);
      if (event == Event::kReceived) receive(at, m);
      if (event == Event::kSent) fire(at, m, TriggerOn::kSent);
      if (event == Event::kTrigger && pending_[m] > 0 && --pending_[m] == 0) {
        schedule(at + workload_.messages[m].start, Event::kRelease, m);
      }
    }
    return run_;
  }

 private:
  // At one instant: what ends comes before what begins.
  enum class Event : uint8_t { kOut, kReceived, kSent, kTrigger, kRelease };
  using Entry = std::tuple<Time, uint64_t, Event, MessageId>;

  void schedule(Time at, Event event, MessageId m) {
    const uint64_t sequence = (static_cast<uint64_t>(event) << 56U) + sequence_++;
    events_.push({at, sequence, event, m});
  }

  void release(Time at, MessageId id) {
    const Message& m = workload_.messages[id];
    run_.released[id] = at;
    run_.ran[id] = true;
    if (m.is_barrier()) {
      run_.received[id] = at;
      fire(at, id, TriggerOn::kReceived);
      fire(at, id, TriggerOn::kSent);
      return;
    }
    run_.most_sending = std::max(run_.most_sending, ++sending_[m.src]);
    run_.most_receiving = std::max(run_.most_receiving, ++receiving_[m.dst]);
    waiting_[m.src].push(id);
    if (!fabric_.hosts_are_serial || sending_[m.src] == 1) send_next(at, m.src);
  }

  void send_next(Time at, HostId host) {
    const MessageId id = waiting_[host].front();
    waiting_[host].pop();
    const Message& m = workload_.messages[id];
    const Duration length = m.bytes * fabric_.per_byte;
    Time in = at + fabric_.one_way;
    if (fabric_.hosts_are_serial) in = std::max(in, receiver_free_[m.dst]);
    in += length;
    receiver_free_[m.dst] = in;
    schedule(at + length, Event::kOut, id);
    schedule(in, Event::kReceived, id);
    schedule(in + fabric_.ack_one_way, Event::kSent, id);
  }

  void sent_out(Time at, MessageId id) {
    const HostId host = workload_.messages[id].src;
    --sending_[host];
    if (!waiting_[host].empty()) send_next(at, host);
  }

  void receive(Time at, MessageId id) {
    --receiving_[workload_.messages[id].dst];
    run_.received[id] = at;
    run_.makespan = std::max(run_.makespan, at);
    fire(at, id, TriggerOn::kReceived);
  }

  void fire(Time at, MessageId id, TriggerOn on) {
    const Message& m = workload_.messages[id];
    for (const Trigger& trigger : workload_.triggers_of(id)) {
      if (trigger.on != on) continue;
      const HostId cause = on == TriggerOn::kSent ? m.src : m.dst;
      const bool remote = cause != workload_.messages[trigger.to].src;
      schedule(at + trigger.delay + (remote ? fabric_.trigger_delay : 0), Event::kTrigger, trigger.to);
    }
  }

  const Workload& workload_;
  const IdealFabric fabric_;
  IdealRun run_;
  std::vector<uint32_t> pending_;
  std::vector<uint32_t> sending_;
  std::vector<uint32_t> receiving_;
  std::vector<std::queue<MessageId>> waiting_;  // by host: released, not begun
  std::vector<Time> receiver_free_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> events_;
  uint64_t sequence_ = 0;
};

inline IdealRun run_ideally(const Workload& workload, const IdealFabric& fabric) {
  return IdealExecutor(workload, fabric).run();
}

inline bool all_ran(const IdealRun& run) {
  return std::all_of(run.ran.begin(), run.ran.end(), [](bool r) { return r; });
}

}  // namespace heddle::lab
