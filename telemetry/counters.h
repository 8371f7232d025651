// What is counted while packets flow. Every block belongs to one lcore (or one lab switch): a packet writes no line
// that another core writes. Readers sum over the blocks and may see a burst half counted, never a torn number.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "net/drop_reason.h"
#include "net/packet.h"

namespace heddle::telemetry {

// A number with one writer and any number of readers. Both sides compile to plain moves.
class Counter {
 public:
  Counter() = default;
  Counter(const Counter& other) : value_(other.get()) {}
  Counter& operator=(const Counter& other) {
    set(other.get());
    return *this;
  }
  ~Counter() = default;

  uint64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(uint64_t n) { set(get() + n); }
  void subtract(uint64_t n) { set(get() - n); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Aligned so that what every packet counts lies in one cache line.
struct alignas(64) PortCounters {
  Counter rx_packets;
  Counter rx_bytes;  // frames without FCS
  Counter tx_packets;
  Counter tx_bytes;
  // What fails before the egress queue is charged to the port it came in by, the rest to the port it was to leave by.
  std::array<Counter, kDropReasons> drops;
  Counter answered;  // requests to the switch itself; the answers are among what was sent or dropped

  Counter& drop(DropReason reason) { return drops[static_cast<size_t>(reason)]; }
  PortCounters& operator+=(const PortCounters& other) {
    rx_packets.add(other.rx_packets.get());
    rx_bytes.add(other.rx_bytes.get());
    tx_packets.add(other.tx_packets.get());
    tx_bytes.add(other.tx_bytes.get());
    answered.add(other.answered.get());
    for (size_t i = 0; i < drops.size(); ++i) drops[i].add(other.drops[i].get());
    return *this;
  }
};

// Traffic of one member of a next-hop group.
struct PathCounters {
  Counter packets;
  Counter bytes;

  void add(uint32_t frame_bytes) {
    packets.add(1);
    bytes.add(frame_bytes);
  }
};

// Flow control on one port, by class.
struct FlowControlCounters {
  using ByClass = std::array<Counter, kTrafficClasses>;
  ByClass rx_pause;  // PFC frames that named the class with a time, and with none
  ByClass rx_resume;
  ByClass tx_pause;
  ByClass tx_resume;
  Counter rx_frames;  // PFC frames, not among the port's packets
  Counter tx_frames;
  Counter rx_global_pause;  // MAC control frames that PFC does not obey; they are also among the port's drops
  Counter rx_malformed;
  ByClass lossless_violations;  // packets of a lossless class, by where they came in, that the buffer had no room for
  ByClass ecn_eligible;         // ECN-capable packets that left a queue above Kmin
  ByClass ecn_marked;
  ByClass watchdog_storms;  // of an egress queue, as the PFC watchdog found them; one runs while restores lag behind
  ByClass watchdog_restores;
  ByClass watchdog_drops;  // packets

  FlowControlCounters& operator+=(const FlowControlCounters& other);
};

// One lcore's counters of one switch.
struct alignas(64) SwitchCounters {
  std::vector<PortCounters> ports;
  std::vector<PathCounters> paths;  // by lb::NextHop::counter
  std::vector<FlowControlCounters> flow_control;
};

// ---------------------------------------------------------------------------------------------------------------------

inline FlowControlCounters& FlowControlCounters::operator+=(const FlowControlCounters& other) {
  const auto add = [](ByClass& to, const ByClass& from) {
    for (size_t tc = 0; tc < to.size(); ++tc) to[tc].add(from[tc].get());
  };
  add(rx_pause, other.rx_pause);
  add(rx_resume, other.rx_resume);
  add(tx_pause, other.tx_pause);
  add(tx_resume, other.tx_resume);
  add(lossless_violations, other.lossless_violations);
  add(ecn_eligible, other.ecn_eligible);
  add(ecn_marked, other.ecn_marked);
  add(watchdog_storms, other.watchdog_storms);
  add(watchdog_restores, other.watchdog_restores);
  add(watchdog_drops, other.watchdog_drops);
  rx_frames.add(other.rx_frames.get());
  tx_frames.add(other.tx_frames.get());
  rx_global_pause.add(other.rx_global_pause.get());
  rx_malformed.add(other.rx_malformed.get());
  return *this;
}

}  // namespace heddle::telemetry
