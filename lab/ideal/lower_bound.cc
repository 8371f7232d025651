#include "lab/ideal/lower_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "net/error.h"

namespace heddle::lab {
namespace {

class Bound {
 public:
  Bound(const Workload& workload, const FabricCapacity& fabric);

  LowerBound compute();

 private:
  void index_causes();
  std::vector<MessageId> in_phase_order() const;
  std::span<const uint32_t> causes_of(MessageId m) const {
    return {cause_.data() + cause_begin_[m], cause_.data() + cause_begin_[m + 1]};
  }

  void release_group(std::span<const MessageId> group);
  void wait_for_step(uint32_t job, std::span<const MessageId> group);
  double release_by_triggers(MessageId m);
  double join(MessageId m);
  double effect_time(const Trigger& trigger) const;
  double effect_delay(const Trigger& trigger) const;
  LowerBound summary();

  const Workload& workload_;
  const FabricCapacity& fabric_;
  FabricLoad load_;
  std::vector<double> released_;       // r(m), by message
  std::vector<double> by_steps_;       // what steps alone say of it, by message
  std::vector<double> gap_;            // by message: the delays since the phase before, with those of barriers
  std::vector<uint32_t> cause_begin_;  // by message: which part of cause_ points at it
  std::vector<uint32_t> cause_;        // indices into the workload's triggers
  struct Step {
    double end = 0;  // of the step before; 0: there was none
    std::vector<MessageId> messages;
  };
  std::vector<Step> steps_;      // by job: the latest
  std::vector<double> job_end_;  // by job: by chain and phases
  std::vector<double> times_;    // scratch
  std::vector<MessageId> set_;   // scratch
};

LowerBound Bound::compute() {
  const std::vector<MessageId> order = in_phase_order();
  for (size_t begin = 0; begin < order.size();) {
    // A group: one job's messages of one phase, or all barriers of one phase.
    const Message& first = workload_.messages[order[begin]];
    size_t end = begin;
    for (; end < order.size(); ++end) {
      const Message& m = workload_.messages[order[end]];
      if (m.phase != first.phase || m.is_barrier() != first.is_barrier()) break;
      if (!m.is_barrier() && m.job != first.job) break;
    }
    release_group({order.data() + begin, order.data() + end});
    begin = end;
  }
  return summary();
}

Bound::Bound(const Workload& workload, const FabricCapacity& fabric)
    : workload_(workload),
      fabric_(fabric),
      load_(workload, fabric),
      released_(workload.messages.size(), 0),
      by_steps_(workload.messages.size(), 0),
      gap_(workload.messages.size(), 0),
      steps_(workload.jobs.size()),
      job_end_(workload.jobs.size(), 0) {
  index_causes();
}

void Bound::index_causes() {
  cause_begin_.assign(workload_.messages.size() + 1, 0);
  for (const Trigger& trigger : workload_.triggers) ++cause_begin_[trigger.to + 1];
  std::partial_sum(cause_begin_.begin(), cause_begin_.end(), cause_begin_.begin());
  std::vector<uint32_t> next(cause_begin_.begin(), cause_begin_.end() - 1);
  cause_.resize(workload_.triggers.size());
  for (uint32_t t = 0; t < cause_.size(); ++t) cause_[next[workload_.triggers[t].to]++] = t;
}

// Phase by phase, in a phase the messages by job and then the barriers: also an order in which causes come first.
std::vector<MessageId> Bound::in_phase_order() const {
  std::vector<MessageId> order = topological_order(workload_);
  std::stable_sort(order.begin(), order.end(), [this](MessageId a, MessageId b) {
    const Message& x = workload_.messages[a];
    const Message& y = workload_.messages[b];
    if (x.phase != y.phase) return x.phase < y.phase;
    if (x.is_barrier() != y.is_barrier()) return y.is_barrier();
    return !x.is_barrier() && x.job < y.job;
  });
  return order;
}

void Bound::release_group(std::span<const MessageId> group) {
  const Message& first = workload_.messages[group.front()];
  for (const MessageId m : group) released_[m] = release_by_triggers(m);
  if (first.is_barrier()) return;
  const uint32_t job = first.job;
  if (workload_.job_runs_in_steps[job] != 0) wait_for_step(job, group);
  for (const MessageId m : group) {
    job_end_[job] = std::max(job_end_[job], released_[m] + load_.time_alone(workload_.messages[m]));
  }
}

// A pause that all messages of a phase wait for ends a step: what came since the pause before is a load that must be
// carried first, whoever got ahead of others meanwhile.
void Bound::wait_for_step(uint32_t job, std::span<const MessageId> group) {
  Step& step = steps_[job];
  const bool all_pause = std::all_of(group.begin(), group.end(), [this](MessageId m) { return gap_[m] > 0; });
  if (all_pause && !step.messages.empty()) {
    step.end = load_.finish(step.messages, by_steps_).soonest;
    step.messages.clear();
  }
  for (const MessageId m : group) {
    by_steps_[m] = step.end == 0 ? released_[m] : step.end + (all_pause ? gap_[m] : 0);
    released_[m] = std::max(released_[m], by_steps_[m]);
  }
  step.messages.insert(step.messages.end(), group.begin(), group.end());
}

double Bound::release_by_triggers(MessageId id) {
  const Message& m = workload_.messages[id];
  const double start = static_cast<double>(m.start);
  if (m.pending == 0) return start;
  times_.clear();
  for (const uint32_t t : causes_of(id)) {
    const Trigger& trigger = workload_.triggers[t];
    times_.push_back(effect_time(trigger));
    const Message& from = workload_.messages[trigger.from];
    if (from.phase + (m.is_barrier() ? 0U : 1U) != m.phase) continue;  // not what leads from the phase before to this
    gap_[id] = std::max(gap_[id], (from.is_barrier() ? gap_[trigger.from] : 0) + effect_delay(trigger) + start);
  }
  const bool waits_for_all = m.pending == times_.size();
  const auto last = times_.begin() + (m.pending - 1);
  std::nth_element(times_.begin(), last, times_.end());
  double released = *last;
  if (waits_for_all) released = std::max(released, join(id));
  return released + start;
}

// When everything that a message waits for can be done, as a load on what it shares.
double Bound::join(MessageId id) {
  set_.clear();
  double least_delay = std::numeric_limits<double>::max();
  for (const uint32_t t : causes_of(id)) {
    const Trigger& trigger = workload_.triggers[t];
    if (workload_.messages[trigger.from].is_barrier()) continue;
    set_.push_back(trigger.from);
    least_delay = std::min(least_delay, effect_delay(trigger));
  }
  return set_.size() < 2 ? 0 : load_.finish(set_, released_).at + least_delay;
}

double Bound::effect_time(const Trigger& trigger) const {
  const Message& from = workload_.messages[trigger.from];
  double done = released_[trigger.from];
  if (!from.is_barrier()) {
    done += load_.time_alone(from);
    if (trigger.on == TriggerOn::kSent) done += static_cast<double>(fabric_.ack_one_way);
  }
  return done + effect_delay(trigger);
}

double Bound::effect_delay(const Trigger& trigger) const {
  const Message& from = workload_.messages[trigger.from];
  const HostId cause = trigger.on == TriggerOn::kSent ? from.src : from.dst;
  const bool remote = cause != workload_.messages[trigger.to].src;
  return static_cast<double>(trigger.delay + (remote ? fabric_.trigger_delay : 0));
}

// What fifty times of still fits into a Time: no run goes on for longer.
Time time_of(double picoseconds) {
  constexpr double kLongest = 3e17;
  if (picoseconds <= kLongest) return static_cast<Time>(picoseconds);
  throw_bad_input(
      "found a workload that takes at least {:.0f} s; accepted: up to {:.0f} s (less data, or faster links)",
      picoseconds / 1e12, kLongest / 1e12);
}

LowerBound Bound::summary() {
  std::vector<std::vector<MessageId>> of_job(workload_.jobs.size());
  std::vector<MessageId> all;
  for (MessageId m = 0; m < workload_.messages.size(); ++m) {
    if (workload_.messages[m].is_barrier()) continue;
    of_job[workload_.messages[m].job].push_back(m);
    all.push_back(m);
  }
  LowerBound bound;
  double makespan = -1;
  for (uint32_t job = 0; job < of_job.size(); ++job) {
    const FabricLoad::Finish load = load_.finish(of_job[job], released_);
    const double end = std::max(job_end_[job], load.at);
    bound.job_end.push_back(time_of(end));
    if (end <= makespan) continue;
    makespan = end;
    const std::string chain = workload_.job_runs_in_steps[job] != 0 ? "phases" : "longest chain";
    bound.limit =
        fmt::format("{} of job {}", load.at > job_end_[job] ? load_.name(load.resource) : chain, workload_.jobs[job]);
  }
  if (const FabricLoad::Finish load = load_.finish(all, released_); load.at > makespan) {
    makespan = load.at;
    bound.limit = load_.name(load.resource) + ", all jobs";
  }
  bound.makespan = time_of(std::max(makespan, 0.0));
  return bound;
}

}  // namespace

LowerBound lower_bound(const Workload& workload, const FabricCapacity& fabric) {
  return Bound(workload, fabric).compute();
}

}  // namespace heddle::lab
