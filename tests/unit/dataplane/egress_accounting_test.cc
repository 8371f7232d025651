// EgressScheduler: what it says it holds is what it holds, through any sequence of operations, beside a plain model.
#include <array>
#include <deque>

#include <gtest/gtest.h>

#include "dataplane/egress_scheduler.h"
#include "net/random.h"
#include "tests/support/queued.h"

namespace heddle::dataplane {
namespace {

using support::bytes_of;
using support::class_of;
using support::Stock;

// Queues as one would write them on paper.
class Model {
 public:
  explicit Model(const EgressSettings& settings) : settings_(settings) {}

  bool enqueue(Packet* packet) {
    const unsigned tc = class_of(packet);
    if (bytes_[tc] + bytes_of(packet) > settings_.classes[tc].limit_bytes) return false;
    if (held_[tc].size() >= settings_.limit_packets) return false;
    held_[tc].push_back(packet);
    bytes_[tc] += bytes_of(packet);
    peak_[tc] = std::max(peak_[tc], bytes_[tc]);
    return true;
  }
  void expect_sent(const Packet* packet, uint8_t paused) {
    const unsigned tc = class_of(packet);
    ASSERT_EQ((paused >> tc) & 1U, 0U) << "a paused class sent";
    ASSERT_FALSE(held_[tc].empty());
    ASSERT_EQ(packet, held_[tc].front()) << "a packet overtook another of its class";
    for (unsigned higher = tc + 1; higher < kTrafficClasses; ++higher) {
      const bool waits = settings_.classes[higher].strict && !held_[higher].empty() && ((paused >> higher) & 1U) == 0;
      ASSERT_FALSE(waits) << "class " << higher << " is strict and waits, class " << tc << " sent";
    }
    held_[tc].pop_front();
    bytes_[tc] -= bytes_of(packet);
  }
  void expect_agrees(const EgressScheduler& port, uint8_t paused) const {
    uint64_t sum = 0;
    bool empty = true;
    bool idle = true;
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      ASSERT_EQ(port.queue(tc).bytes(), bytes_[tc]) << "class " << tc;
      ASSERT_EQ(port.queue(tc).packets(), held_[tc].size()) << "class " << tc;
      ASSERT_EQ(port.queue(tc).empty(), held_[tc].empty());
      ASSERT_EQ(port.queue(tc).peak_bytes(), peak_[tc]);
      ASSERT_LE(bytes_[tc], settings_.classes[tc].limit_bytes);
      sum += bytes_[tc];
      empty = empty && held_[tc].empty();
      idle = idle && (held_[tc].empty() || ((paused >> tc) & 1U) != 0);
    }
    ASSERT_EQ(port.bytes(), sum);
    ASSERT_EQ(port.empty(), empty);
    ASSERT_EQ(port.idle(), idle);
  }

 private:
  EgressSettings settings_;
  std::array<std::deque<Packet*>, kTrafficClasses> held_;
  std::array<uint64_t, kTrafficClasses> bytes_{};
  std::array<uint64_t, kTrafficClasses> peak_{};
};

EgressSettings random_settings(Random& random) {
  EgressSettings settings;
  settings.rate = random.below(3) == 0 ? Rate::unlimited() : Rate::gbps(1 + random.below(400));
  settings.catch_up = random.below(2) * 20 * kMicrosecond;
  settings.limit_packets = random.below(2) == 0 ? ~0U : 1 + random.below(100);
  for (ClassSettings& of : settings.classes) {
    of.strict = random.below(3) == 0;
    of.weight = static_cast<uint16_t>(1 + random.below(100));
    of.limit_bytes = random.below(2) == 0 ? EgressQueue::kUnlimited : random.below(100'000);
  }
  return settings;
}

// One port's life: arrivals, polls, pauses and rate changes in a random order.
void live(uint64_t seed) {
  Random random(seed);
  const EgressSettings settings = random_settings(random);
  EgressScheduler port;
  port.configure(settings);
  if (random.below(2) == 0) port.reserve(128);
  Model model(settings);
  Stock stock;
  Time now = random.below(2) == 0 ? 0 : ~Time{0} - 20 * kMicrosecond;  // half of them cross the wrap
  for (int step = 0; step < 3000; ++step) {
    const uint32_t what = random.below(20);
    if (what < 10) {
      Packet* packet = stock.make(static_cast<uint8_t>(random.below(8)), 60 + random.below(9000));
      const bool fits = model.enqueue(packet);
      ASSERT_EQ(port.enqueue(packet), fits) << "step " << step;
      if (!fits) stock.take_back(packet);
    } else if (what < 18) {
      Packet* out[kBurst];
      const unsigned n = port.schedule(out, 1 + random.below(kBurst), now);
      for (unsigned i = 0; i < n; ++i) {
        ASSERT_NO_FATAL_FAILURE(model.expect_sent(out[i], port.paused())) << "step " << step;
        stock.take_back(out[i]);
      }
    } else if (what == 18) {
      port.set_paused(static_cast<uint8_t>(random.next() & random.next()));
    } else if (random.below(10) == 0) {
      port.set_rate(random.below(3) == 0 ? Rate::unlimited() : Rate::gbps(1 + random.below(400)));
    }
    now += random.below(2'000'000);
    ASSERT_NO_FATAL_FAILURE(model.expect_agrees(port, port.paused())) << "step " << step;
  }
}

TEST(EgressAccounting, HoldsThroughAnySequenceOfOperations) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    live(seed);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace heddle::dataplane
