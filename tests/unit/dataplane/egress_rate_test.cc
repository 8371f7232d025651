// EgressScheduler: when a port sends. Exact to the picosecond, never faster than the wire, idle time not saved up.
#include <gtest/gtest.h>

#include "dataplane/egress_scheduler.h"
#include "net/random.h"
#include "tests/support/queued.h"

namespace heddle::dataplane {
namespace {

using support::bytes_of;
using support::next_from;
using support::Stock;

constexpr Duration kDay = 86'400 * kSecond;

EgressScheduler port_at(Rate rate, Duration catch_up = 0, int overhead = kEthernetOverhead) {
  EgressSettings settings;
  settings.rate = rate;
  settings.catch_up = catch_up;
  settings.overhead = overhead;
  EgressScheduler scheduler;
  scheduler.configure(settings);
  return scheduler;
}

struct ExactRate {
  uint64_t gbps;
  uint64_t ps_per_byte;
};

class ExactRates : public testing::TestWithParam<ExactRate> {};

// Served at every picosecond that matters, each frame starts exactly when the one before has left.
TEST_P(ExactRates, EveryFrameStartsAtItsPicosecond) {
  const ExactRate& row = GetParam();
  for (const Time start : {Time{0}, 3 * kSecond + 1, ~Time{0} - kMicrosecond}) {  // the last run crosses the wrap
    EgressScheduler port = port_at(Rate::gbps(row.gbps));
    for (Time idle = 0; idle < start && idle <= start - 50 * kDay; idle += 50 * kDay) next_from(port, idle);
    Stock stock;
    Random random(row.gbps);
    for (int i = 0; i < 2000; ++i) port.enqueue(stock.make(0, 60 + random.below(9000)));
    Time now = start;
    for (int i = 0; i < 2000; ++i) {
      if (i > 0) {
        ASSERT_EQ(next_from(port, now - 1), nullptr) << "a picosecond early";
      }
      const Packet* packet = next_from(port, now);
      ASSERT_NE(packet, nullptr) << "frame " << i << " is late";
      now += (bytes_of(packet) + kEthernetOverhead) * row.ps_per_byte;
      ASSERT_EQ(port.wire_free_at(), now);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ethernet, ExactRates,
                         testing::Values(ExactRate{1, 8000}, ExactRate{10, 800}, ExactRate{25, 320}, ExactRate{40, 200},
                                         ExactRate{50, 160}, ExactRate{100, 80}, ExactRate{200, 40}, ExactRate{400, 20},
                                         ExactRate{800, 10}, ExactRate{1600, 5}),
                         [](const auto& row) { return std::to_string(row.param.gbps) + "G"; });

TEST(PortRate, OtherRatesAreExactToAPicosecondPerFrame) {
  for (const uint64_t bits_per_second : {10'000'000ULL, 2'500'000'000ULL, 3'000'000'000ULL, 97'654'321'000ULL}) {
    EgressScheduler port = port_at(Rate(bits_per_second));
    Stock stock;
    constexpr int kFrames = 10'000;
    for (int i = 0; i < kFrames; ++i) {
      port.enqueue(stock.make(0, 1082));
      const Packet* packet = next_from(port, port.wire_free_at());
      ASSERT_NE(packet, nullptr);
    }
    const double exact = kFrames * (1082.0 + kEthernetOverhead) * 8e12 / static_cast<double>(bits_per_second);
    EXPECT_NEAR(static_cast<double>(port.wire_free_at()), exact, kFrames * 1.01) << bits_per_second;
  }
}

TEST(PortRate, OverheadIsWhatTheLinkSays) {
  for (const int overhead : {0, 4, 24, 38, -14}) {
    EgressScheduler port = port_at(Rate::gbps(100), 0, overhead);
    Stock stock;
    port.enqueue(stock.make(0, 1000));
    next_from(port, 0);
    EXPECT_EQ(port.wire_free_at(), static_cast<Time>(1000 + overhead) * 80) << overhead;
  }
}

TEST(PortRate, AnUnlimitedPortSendsAllAtOnce) {
  EgressScheduler port = port_at(Rate::unlimited());
  Stock stock;
  for (int i = 0; i < 100; ++i) port.enqueue(stock.make(0, 9000));
  Packet* out[128];
  EXPECT_EQ(port.schedule(out, 128, 5), 100U);
}

TEST(PortRate, ANewRateCountsFromTheNextFrame) {
  EgressScheduler port = port_at(Rate::gbps(100));
  Stock stock;
  for (int i = 0; i < 3; ++i) port.enqueue(stock.make(0, 976));
  next_from(port, 0);
  EXPECT_EQ(port.wire_free_at(), 80'000U);
  port.set_rate(Rate::gbps(10));
  EXPECT_EQ(next_from(port, 79'999), nullptr);
  ASSERT_NE(next_from(port, 80'000), nullptr);
  EXPECT_EQ(port.wire_free_at(), 880'000U);
}

// -- polled late ------------------------------------------------------------------------------------------------------

TEST(LatePolls, WithoutCatchUpLoseTheTime) {
  EgressScheduler port = port_at(Rate::gbps(100));
  Stock stock;
  for (int i = 0; i < 10; ++i) port.enqueue(stock.make(0, 976));
  Packet* out[16];
  EXPECT_EQ(port.schedule(out, 16, 0), 1U);
  EXPECT_EQ(port.schedule(out, 16, kMillisecond), 1U) << "one frame, however long nobody asked";
  EXPECT_EQ(port.wire_free_at(), kMillisecond + 80'000);
}

TEST(LatePolls, SendNoMoreAtOnceThanCatchUpAllows) {
  constexpr Duration kCatchUp = 20 * kMicrosecond;
  for (const uint64_t gbps : {1, 10, 100, 400}) {
    for (const uint32_t bytes : {60U, 1082U, 9018U}) {
      for (const Time idle_until :
           {kCatchUp / 3, kMicrosecond * 100, 5 * kSecond}) {  // the first: since the clock began
        EgressScheduler port = port_at(Rate::gbps(gbps), kCatchUp);
        Stock stock;
        for (int i = 0; i < 20'000; ++i) port.enqueue(stock.make(0, bytes));
        std::vector<Packet*> out(20'000);
        const unsigned n = port.schedule(out.data(), 20'000, idle_until);
        const Duration per_frame = Rate::gbps(gbps).time_for(bytes + kEthernetOverhead);
        const Duration due = std::min<Duration>(kCatchUp, idle_until);
        EXPECT_EQ(n, due / per_frame + 1) << gbps << "G, " << bytes << " bytes, after " << idle_until << " ps";
      }
    }
  }
}

// Whatever the times of polling: in any interval no more leaves than the wire carries in it, plus what catch-up allows,
// plus the frame that begins at its end. And if polls come often enough, nothing is lost of the rate.
TEST(LatePolls, NeverExceedTheRateAndLoseNothingWithinCatchUp) {
  constexpr Duration kCatchUp = 20 * kMicrosecond;
  constexpr uint64_t kPsPerByte = 80;
  for (const Duration longest_gap : {kMicrosecond, kCatchUp, 3 * kCatchUp}) {
    EgressScheduler port = port_at(Rate::gbps(100), kCatchUp);
    Stock stock;
    Random random(longest_gap);
    struct Departure {
      Time at;
      uint64_t wire_bytes_before;
    };
    std::vector<Departure> departures;
    uint64_t wire_bytes = 0;
    Time now = kMillisecond;
    for (int poll = 0; poll < 3000; ++poll) {
      while (port.bytes() < 1'000'000) port.enqueue(stock.make(0, 60 + random.below(9000)));
      Packet* out[kBurst];
      while (const unsigned n = port.schedule(out, kBurst, now)) {
        for (unsigned i = 0; i < n; ++i) {
          departures.push_back({now, wire_bytes});
          wire_bytes += bytes_of(out[i]) + kEthernetOverhead;
          stock.take_back(out[i]);
        }
      }
      now += 1 + random.below(static_cast<uint32_t>(longest_gap));
    }
    // The interval from departure i to departure j, the latter's own bytes not counted.
    Time bound = 0;  // the least (time · rate − bytes) seen so far, shifted to stay positive
    for (size_t i = 0; i < departures.size(); ++i) {
      const Time virtual_time = departures[i].at + kSecond - departures[i].wire_bytes_before * kPsPerByte;
      if (i > 0) {
        ASSERT_LE(bound, virtual_time + kCatchUp) << "gap " << longest_gap << ", departure " << i;
      }
      bound = std::max(bound, virtual_time);
    }
    const Duration taken = now - kMillisecond;
    if (longest_gap <= kCatchUp) {
      EXPECT_GE(wire_bytes * kPsPerByte + kCatchUp, taken)
          << "rate lost with polls up to " << longest_gap << " ps apart";
    }
  }
}

TEST(LatePolls, AtTheVeryStartOfTheClockAreNoSpecialCase) {
  EgressScheduler port = port_at(Rate::gbps(100), 20 * kMicrosecond);
  Stock stock;
  for (int i = 0; i < 10; ++i) port.enqueue(stock.make(0, 976));
  Packet* out[16];
  EXPECT_EQ(port.schedule(out, 16, 0), 1U);
  EXPECT_EQ(port.schedule(out, 16, 80'000), 1U);
  EXPECT_EQ(port.schedule(out, 16, 239'999), 1U) << "160,000 has passed, 240,000 has not";
}

// A port without traffic for more than half of the clock's range (106 days of its 213): polled all the while, as every
// port is, it must not take its last departure for one that lies ahead.
TEST(LatePolls, APortIdleForMonthsStillSends) {
  for (const Duration catch_up : {Duration{0}, 20 * kMicrosecond}) {
    EgressScheduler port = port_at(Rate::gbps(100), catch_up);
    Stock stock;
    port.enqueue(stock.make(0, 976));
    Time now = kSecond;
    ASSERT_NE(next_from(port, now), nullptr);
    for (int day = 0; day < 400; ++day) {
      now += kDay;
      ASSERT_EQ(next_from(port, now), nullptr) << "there is nothing to send";
      if (day % 50 != 49) continue;
      port.enqueue(stock.make(0, 976));
      ASSERT_NE(next_from(port, now), nullptr) << "blocked after " << day << " days";
      now += kMicrosecond;
    }
    port.set_paused(0xff);  // paused for as long
    port.enqueue(stock.make(0, 976));
    for (int day = 0; day < 150; ++day) ASSERT_EQ(next_from(port, now += kDay), nullptr);
    port.set_paused(0);
    EXPECT_NE(next_from(port, now), nullptr);
  }
}

}  // namespace
}  // namespace heddle::dataplane
