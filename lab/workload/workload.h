// What the hosts of the lab send, and what each message waits for: a graph of messages, plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/time.h"

namespace heddle::lab {

using HostId = uint32_t;     // 0 … hosts of the topology - 1
using MessageId = uint32_t;  // index into Workload::messages

// The most messages and triggers one workload may hold (a message takes 40 bytes, a trigger 24), the largest message,
// and the latest time a delay or a start may name (1,000 s: 85 times below the wrap of a signed picosecond clock).
inline constexpr uint64_t kMaxMessages = uint64_t{1} << 26U;
inline constexpr uint64_t kMaxTriggers = uint64_t{1} << 27U;
inline constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 40U;
inline constexpr Duration kMaxDelay = 1000 * kSecond;

// One message, or a barrier: src == dst and bytes == 0. A barrier crosses no link; it completes (sent and received) at
// the instant it is released. It stands for "all of these before any of those" without a trigger for every pair.
struct Message {
  HostId src = 0;
  HostId dst = 0;
  uint64_t bytes = 0;    // payload, 1 … kMaxMessageBytes; 0 only in a barrier
  uint32_t job = 0;      // index into Workload::jobs
  uint32_t phase = 0;    // dependency level: 0 without causes, else 1 + the highest phase among its causes; a barrier
                         // has the highest phase among its causes
  uint32_t pending = 0;  // how many triggers must take effect before it is released. As a rule all that point at it; if
                         // fewer ("after any two of these five"), the triggers that come later have no effect
  Time start = 0;        // pending == 0: when it is released; otherwise a delay added after the last trigger

  bool is_barrier() const { return bytes == 0; }
};

enum class TriggerOn : uint8_t {
  kSent,      // the sender holds the last ACK; happens at `src`
  kReceived,  // the last byte is at the receiver; happens at `dst`
};

// "`to` may go once `from` is sent (or received)". The effect lies at the source of `to`. Where cause and effect lie on
// one host it comes after `delay`, otherwise after `delay` + the fabric's trigger delay.
struct Trigger {
  MessageId from = 0;
  MessageId to = 0;
  TriggerOn on = TriggerOn::kReceived;
  Duration delay = 0;
};

// Messages of several jobs and the triggers between them. Made by WorkloadBuilder, which checks it.
struct Workload {
  uint32_t host_count = 0;
  std::vector<std::string> jobs;           // names
  std::vector<uint8_t> job_runs_in_steps;  // per job: 1 = its phases follow one another (WorkloadBuilder::add_job)
  std::vector<Message> messages;
  std::vector<Trigger> triggers;        // sorted by `from`, then in the order they were added
  std::vector<uint32_t> trigger_begin;  // triggers of message m: [trigger_begin[m], trigger_begin[m + 1])

  std::span<const Trigger> triggers_of(MessageId m) const {
    return {triggers.data() + trigger_begin[m], triggers.data() + trigger_begin[m + 1]};
  }
};

// Throws bad input if the graph cannot be run: a host out of range, a message without bytes between two hosts, a
// message to itself, a pending count that no triggers can bring to zero, a phase that contradicts the triggers, a
// cycle, a time or size beyond the limits above. `where` starts the text ("file" or "job"); it may be empty.
void check_workload(const Workload& workload, const std::string& where = "");

// A message on a cycle of triggers, if there is one.
std::optional<MessageId> find_cycle(const Workload& workload);

// All messages, every cause before its effects; the same order for the same workload. Needs an acyclic graph.
std::vector<MessageId> topological_order(const Workload& workload);

// What a workload amounts to, for reports and for estimates before a run.
struct WorkloadSize {
  uint64_t messages = 0;  // without barriers
  uint64_t barriers = 0;
  uint64_t triggers = 0;
  uint64_t bytes = 0;  // payload
  uint32_t phases = 0;
  size_t memory_bytes = 0;  // that the workload itself holds
};
WorkloadSize size_of(const Workload& workload);

// Payload bytes each host sends (receives), by host.
std::vector<uint64_t> bytes_sent_by_host(const Workload& workload);
std::vector<uint64_t> bytes_received_by_host(const Workload& workload);

}  // namespace heddle::lab
