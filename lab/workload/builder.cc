#include "lab/workload/builder.h"

#include <algorithm>
#include <utility>

#include "net/error.h"

namespace heddle::lab {
namespace {

// Stable counting sort of the triggers by `from`.
void sort_triggers(Workload& workload) {
  std::vector<uint32_t>& begin = workload.trigger_begin;
  begin.assign(workload.messages.size() + 1, 0);
  for (const Trigger& trigger : workload.triggers) ++begin[trigger.from + 1];
  for (size_t m = 1; m < begin.size(); ++m) begin[m] += begin[m - 1];
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  std::vector<Trigger> sorted(workload.triggers.size());
  for (const Trigger& trigger : workload.triggers) sorted[next[trigger.from]++] = trigger;
  workload.triggers = std::move(sorted);
}

void number_phases(Workload& workload) {
  if (find_cycle(workload)) return;  // there are none; check_workload refuses the graph
  for (const MessageId m : topological_order(workload)) {
    for (const Trigger& trigger : workload.triggers_of(m)) {
      Message& to = workload.messages[trigger.to];
      to.phase = std::max(to.phase, workload.messages[m].phase + (to.is_barrier() ? 0U : 1U));
    }
  }
}

}  // namespace

WorkloadBuilder::WorkloadBuilder(uint32_t host_count) { workload_.host_count = host_count; }

uint32_t WorkloadBuilder::add_job(const std::string& name, bool runs_in_steps) {
  workload_.jobs.push_back(name);
  workload_.job_runs_in_steps.push_back(runs_in_steps ? 1 : 0);
  return static_cast<uint32_t>(workload_.jobs.size() - 1);
}

void WorkloadBuilder::expect(uint64_t messages) const {
  const uint64_t left = kMaxMessages - std::min<uint64_t>(kMaxMessages, workload_.messages.size());
  if (messages <= left) return;
  throw_bad_input("{} messages; a workload may hold {}{}", messages, kMaxMessages,
                  left == kMaxMessages ? "" : fmt::format(", {} of them are left", left));
}

MessageId WorkloadBuilder::add_message(HostId src, HostId dst, uint64_t bytes, Time start) {
  if (workload_.jobs.empty()) throw_failed("a message was added before its job");
  expect(1);
  Message m;
  m.src = src;
  m.dst = dst;
  m.bytes = bytes;
  m.job = static_cast<uint32_t>(workload_.jobs.size() - 1);
  m.start = start;
  workload_.messages.push_back(m);
  return static_cast<MessageId>(workload_.messages.size() - 1);
}

MessageId WorkloadBuilder::add_barrier(HostId host, Duration delay) { return add_message(host, host, 0, delay); }

void WorkloadBuilder::add_trigger(Cause cause, MessageId to, Duration delay) {
  if (workload_.triggers.size() >= kMaxTriggers) {
    throw_bad_input("more than {} triggers", kMaxTriggers);
  }
  if (std::max(cause.message, to) >= workload_.messages.size()) throw_failed("a trigger names a missing message");
  workload_.triggers.push_back({cause.message, to, cause.on, delay});
  ++workload_.messages[to].pending;
}

void WorkloadBuilder::release_after(MessageId to, uint32_t count) { early_.push_back({to, count}); }

Workload WorkloadBuilder::link() {
  for (const EarlyRelease& early : early_) workload_.messages[early.message].pending = early.count;
  early_.clear();
  sort_triggers(workload_);
  number_phases(workload_);
  return std::exchange(workload_, Workload{});
}

Workload WorkloadBuilder::finish() {
  Workload workload = link();
  check_workload(workload);
  return workload;
}

}  // namespace heddle::lab
