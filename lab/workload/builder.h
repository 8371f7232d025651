// Puts a workload together message by message, and works out what follows from the triggers: counts and phases.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/workload/workload.h"

namespace heddle::lab {

// What a rank or message waits for.
struct Cause {
  MessageId message = 0;
  TriggerOn on = TriggerOn::kReceived;
};

// Collects messages and triggers in any order; `finish` checks and returns them. All of it throws bad input.
class WorkloadBuilder {
 public:
  explicit WorkloadBuilder(uint32_t host_count);

  // Adds a job and makes it the one that later messages belong to. `runs_in_steps`: all ranks do the same in every
  // phase and none can be a phase ahead of the others, so a lower bound may add the phases up
  // (lab/ideal/lower_bound.h). False = only the triggers say what follows what.
  uint32_t add_job(const std::string& name, bool runs_in_steps);

  // Refuses a job that would exceed kMaxMessages, before time and memory are spent on it.
  void expect(uint64_t messages) const;

  // `start`: release time, or the delay after the last trigger if triggers to it are added.
  MessageId add_message(HostId src, HostId dst, uint64_t bytes, Time start = 0);
  MessageId add_barrier(HostId host, Duration delay = 0);

  void add_trigger(Cause cause, MessageId to, Duration delay = 0);
  // Releases `to` by the first `count` of its triggers instead of by all.
  void release_after(MessageId to, uint32_t count);

  uint32_t host_count() const { return workload_.host_count; }
  uint64_t message_count() const { return workload_.messages.size(); }
  HostId source_of(MessageId m) const { return workload_.messages[m].src; }

  // Sorts, counts, numbers the phases; leaves the builder empty. Does not check (importers first look for a cycle to
  // name its line); `finish` does.
  Workload link();
  Workload finish();

 private:
  struct EarlyRelease {
    MessageId message;
    uint32_t count;
  };

  Workload workload_;
  std::vector<EarlyRelease> early_;
};

}  // namespace heddle::lab
