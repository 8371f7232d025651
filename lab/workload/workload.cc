#include "lab/workload/workload.h"

#include <algorithm>

#include "net/error.h"

namespace heddle::lab {
namespace {

// Kahn's order, lowest ids first; messages on or behind a cycle are missing from it.
std::vector<MessageId> order_as_far_as_possible(const Workload& workload) {
  std::vector<uint32_t> causes(workload.messages.size(), 0);
  for (const Trigger& trigger : workload.triggers) ++causes[trigger.to];
  std::vector<MessageId> order;
  order.reserve(workload.messages.size());
  for (MessageId m = 0; m < workload.messages.size(); ++m) {
    if (causes[m] == 0) order.push_back(m);
  }
  for (size_t next = 0; next < order.size(); ++next) {
    for (const Trigger& trigger : workload.triggers_of(order[next])) {
      if (--causes[trigger.to] == 0) order.push_back(trigger.to);
    }
  }
  return order;
}

std::string prefix(const std::string& where) { return where.empty() ? "" : where + ": "; }

void check_message(const Workload& workload, MessageId id, const std::string& where) {
  const Message& m = workload.messages[id];
  const auto refuse = [&](const std::string& why) {
    throw_bad_input("{}message {} ({} to {}, {} bytes): {}", prefix(where), id, m.src, m.dst, m.bytes, why);
  };
  if (m.src >= workload.host_count || m.dst >= workload.host_count) {
    refuse(workload.host_count == 0 ? "the fabric has no hosts"
                                    : fmt::format("hosts are 0 to {}", workload.host_count - 1));
  }
  if (m.is_barrier() && m.src != m.dst) refuse("a message needs at least 1 byte");
  if (!m.is_barrier() && m.src == m.dst) refuse("a host cannot send to itself");
  if (m.bytes > kMaxMessageBytes) refuse(fmt::format("a message may have at most {} bytes", kMaxMessageBytes));
  if (m.job >= workload.jobs.size()) refuse(fmt::format("job {} does not exist", m.job));
  if (m.start > kMaxDelay) refuse(fmt::format("starts after {} s, the latest possible", to_seconds(kMaxDelay)));
}

void check_triggers(const Workload& workload, const std::string& where) {
  if (workload.triggers.size() > kMaxTriggers) {
    throw_bad_input("{}{} triggers; at most {} are possible", prefix(where), workload.triggers.size(), kMaxTriggers);
  }
  const size_t count = workload.messages.size();
  bool consistent = workload.trigger_begin.size() == count + 1 && workload.trigger_begin.front() == 0 &&
                    workload.trigger_begin.back() == workload.triggers.size() &&
                    std::is_sorted(workload.trigger_begin.begin(), workload.trigger_begin.end());
  for (MessageId m = 0; consistent && m < count; ++m) {
    for (const Trigger& trigger : workload.triggers_of(m)) consistent &= trigger.from == m && trigger.to < count;
  }
  if (!consistent) throw_bad_input("{}the triggers are not sorted by cause, or name a missing message", prefix(where));
  for (const Trigger& trigger : workload.triggers) {
    if (trigger.delay > kMaxDelay) {
      throw_bad_input("{}the trigger from message {} to {} waits longer than {} s", prefix(where), trigger.from,
                      trigger.to, to_seconds(kMaxDelay));
    }
  }
}

void check_pending(const Workload& workload, const std::string& where) {
  std::vector<uint32_t> causes(workload.messages.size(), 0);
  for (const Trigger& trigger : workload.triggers) ++causes[trigger.to];
  for (MessageId m = 0; m < workload.messages.size(); ++m) {
    const uint32_t pending = workload.messages[m].pending;
    if (pending > causes[m] || (pending == 0) != (causes[m] == 0)) {
      throw_bad_input("{}message {} waits for {} triggers, but {} point at it", prefix(where), m, pending, causes[m]);
    }
  }
}

void check_phases(const Workload& workload, const std::string& where) {
  for (const Trigger& trigger : workload.triggers) {
    const Message& to = workload.messages[trigger.to];
    const uint32_t earliest = workload.messages[trigger.from].phase + (to.is_barrier() ? 0 : 1);
    if (to.phase < earliest) {
      throw_bad_input("{}message {} has phase {}, but message {} before it makes it {}", prefix(where), trigger.to,
                      to.phase, trigger.from, earliest);
    }
  }
}

}  // namespace

void check_workload(const Workload& workload, const std::string& where) {
  if (workload.messages.size() > kMaxMessages) {
    throw_bad_input("{}{} messages; at most {} are possible", prefix(where), workload.messages.size(), kMaxMessages);
  }
  if (workload.job_runs_in_steps.size() != workload.jobs.size()) {
    throw_bad_input("{}{} jobs, but {} of them say how they run", prefix(where), workload.jobs.size(),
                    workload.job_runs_in_steps.size());
  }
  for (MessageId m = 0; m < workload.messages.size(); ++m) check_message(workload, m, where);
  check_triggers(workload, where);
  check_pending(workload, where);
  if (const auto on_cycle = find_cycle(workload)) {
    throw_bad_input("{}message {} waits for itself through a cycle of triggers", prefix(where), *on_cycle);
  }
  check_phases(workload, where);
}

std::optional<MessageId> find_cycle(const Workload& workload) {
  const std::vector<MessageId> order = order_as_far_as_possible(workload);
  if (order.size() == workload.messages.size()) return std::nullopt;
  std::vector<bool> ordered(workload.messages.size(), false);
  for (const MessageId m : order) ordered[m] = true;
  // Every message left over has a cause that is left over too; going back far enough ends on a cycle.
  std::vector<MessageId> cause(workload.messages.size(), 0);
  MessageId at = 0;
  for (const Trigger& trigger : workload.triggers) {
    if (ordered[trigger.from] || ordered[trigger.to]) continue;
    cause[trigger.to] = trigger.from;
    at = trigger.to;
  }
  for (size_t step = 0; step < workload.messages.size(); ++step) at = cause[at];
  return at;
}

std::vector<MessageId> topological_order(const Workload& workload) {
  std::vector<MessageId> order = order_as_far_as_possible(workload);
  if (order.size() != workload.messages.size()) throw_failed("a workload with a cycle of triggers has no order");
  return order;
}

WorkloadSize size_of(const Workload& workload) {
  WorkloadSize size;
  for (const Message& m : workload.messages) {
    if (m.is_barrier()) {
      ++size.barriers;
      continue;
    }
    ++size.messages;
    size.bytes += m.bytes;
    size.phases = std::max(size.phases, m.phase + 1);
  }
  size.triggers = workload.triggers.size();
  size.memory_bytes = workload.messages.capacity() * sizeof(Message) + workload.triggers.capacity() * sizeof(Trigger) +
                      workload.trigger_begin.capacity() * sizeof(uint32_t);
  return size;
}

std::vector<uint64_t> bytes_sent_by_host(const Workload& workload) {
  std::vector<uint64_t> bytes(workload.host_count, 0);
  for (const Message& m : workload.messages) bytes[m.src] += m.bytes;
  return bytes;
}

std::vector<uint64_t> bytes_received_by_host(const Workload& workload) {
  std::vector<uint64_t> bytes(workload.host_count, 0);
  for (const Message& m : workload.messages) bytes[m.dst] += m.bytes;
  return bytes;
}

}  // namespace heddle::lab
