// Between the thread that probes paths and one worker: probes that the worker is to send, and answers that came in by
// its ports. Two single-producer single-consumer queues; neither side ever waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "lb/next_hop_group.h"
#include "telemetry/counters.h"
#include "telemetry/int_probe.h"
#include "telemetry/path_prober.h"

namespace heddle::dataplane {

// One writer, one reader, a power of two of places.
template <typename T>
class SpscQueue {
 public:
  explicit SpscQueue(uint32_t places) : items_(places), mask_(places - 1) {}

  bool push(const T& item) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) > mask_) return false;
    items_[tail & mask_] = item;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  bool pop(T& item) {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    item = items_[head & mask_];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  std::vector<T> items_;
  uint32_t mask_;
  alignas(64) std::atomic<uint32_t> head_{0};
  alignas(64) std::atomic<uint32_t> tail_{0};
};

// A probe to send: its `sent` is the moment when the worker does.
struct ProbeOrder {
  telemetry::ProbeFields fields;
  lb::NextHop over;
};

class ProbeMailbox : public telemetry::ProbeReceiver {
 public:
  static constexpr uint32_t kPlaces = 1024;

  ProbeMailbox() : orders_(kPlaces), answers_(kPlaces) {}

  // The prober's side; false: the worker does not keep up.
  bool order(const ProbeOrder& probe) { return orders_.push(probe); }
  bool take(telemetry::ProbeAnswer& answer) { return answers_.pop(answer); }

  // The worker's side.
  bool next(ProbeOrder& probe) { return orders_.pop(probe); }
  void receive_probe(std::span<const uint8_t> frame, const telemetry::ProbeView& probe, Time now) override {
    if (!answers_.push(telemetry::read_answer(frame, probe, now))) overflowed_.add(1);
  }
  // Answers that found no room.
  uint64_t overflowed() const { return overflowed_.get(); }

 private:
  SpscQueue<ProbeOrder> orders_;
  SpscQueue<telemetry::ProbeAnswer> answers_;
  telemetry::Counter overflowed_;
};

}  // namespace heddle::dataplane
