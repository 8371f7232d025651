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

struct PortCounters {
  Counter rx_packets;
  Counter rx_bytes;  // frames without FCS
  Counter tx_packets;
  Counter tx_bytes;
  // What fails before the egress queue is charged to the port it came in by, the rest to the port it was to leave by.
  std::array<Counter, kDropReasons> drops;

  Counter& drop(DropReason reason) { return drops[static_cast<size_t>(reason)]; }
  PortCounters& operator+=(const PortCounters& other) {
    rx_packets.add(other.rx_packets.get());
    rx_bytes.add(other.rx_bytes.get());
    tx_packets.add(other.tx_packets.get());
    tx_bytes.add(other.tx_bytes.get());
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

// One lcore's counters of one switch.
struct alignas(64) SwitchCounters {
  std::vector<PortCounters> ports;
  std::vector<PathCounters> paths;  // by lb::NextHop::counter
};

}  // namespace heddle::telemetry
