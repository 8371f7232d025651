// EgressScheduler: which class sends next. Strict order, shares of the deficit round robin, pause.
#include "dataplane/egress_scheduler.h"

#include <algorithm>
#include <bit>
#include <string>

#include <gtest/gtest.h>

#include "net/random.h"
#include "tests/support/queued.h"

namespace heddle::dataplane {
namespace {

using support::bytes_of;
using support::class_of;
using support::next_from;
using support::serial_of;
using support::Stock;

constexpr uint8_t bit(unsigned traffic_class) { return static_cast<uint8_t>(1U << traffic_class); }

EgressSettings strict_from(unsigned first) {
  EgressSettings settings;
  for (unsigned tc = first; tc < kTrafficClasses; ++tc) settings.classes[tc].strict = true;
  return settings;
}

EgressSettings weights(std::initializer_list<uint16_t> of_class) {
  EgressSettings settings;
  unsigned tc = 0;
  for (const uint16_t weight : of_class) settings.classes[tc++].weight = weight;
  return settings;
}

EgressScheduler scheduler_with(const EgressSettings& settings) {
  EgressScheduler scheduler;
  scheduler.configure(settings);
  return scheduler;
}

std::string classes_of(EgressScheduler& scheduler) {
  std::string order;
  while (const Packet* packet = next_from(scheduler)) order += static_cast<char>('0' + class_of(packet));
  return order;
}

// -- strict priority --------------------------------------------------------------------------------------------------

TEST(StrictPriority, HigherClassesEmptyFirst) {
  EgressScheduler scheduler = scheduler_with(strict_from(0));
  Stock stock;
  for (const uint8_t tc : {3, 0, 7, 5, 0, 7, 6, 3}) scheduler.enqueue(stock.make(tc, 1000));
  EXPECT_EQ(classes_of(scheduler), "77653300");
}

TEST(StrictPriority, StandsAboveRoundRobin) {
  EgressScheduler scheduler = scheduler_with(strict_from(6));
  Stock stock;
  for (const uint8_t tc : {0, 1, 6, 0, 7, 1, 6}) scheduler.enqueue(stock.make(tc, 1000));
  EXPECT_EQ(classes_of(scheduler).substr(0, 3), "766");
}

TEST(StrictPriority, ALaterArrivalGoesNext) {
  EgressScheduler scheduler = scheduler_with(strict_from(6));
  Stock stock;
  for (int i = 0; i < 4; ++i) scheduler.enqueue(stock.make(0, 1000));
  EXPECT_EQ(class_of(next_from(scheduler)), 0U);
  scheduler.enqueue(stock.make(6, 64));
  scheduler.enqueue(stock.make(7, 64));
  EXPECT_EQ(classes_of(scheduler), "76000");
}

TEST(StrictPriority, PacketsOfAClassKeepTheirOrder) {
  EgressScheduler scheduler = scheduler_with(strict_from(4));
  Stock stock;
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    scheduler.enqueue(stock.make(static_cast<uint8_t>(random.below(8)), 64 + random.below(9000)));
  }
  std::array<uint64_t, kTrafficClasses> last{};
  unsigned count = 0;
  while (const Packet* packet = next_from(scheduler)) {
    EXPECT_GE(serial_of(packet) + 1, last[class_of(packet)] + 1);
    last[class_of(packet)] = serial_of(packet);
    ++count;
  }
  EXPECT_EQ(count, 2000U);
}

// -- deficit round robin ----------------------------------------------------------------------------------------------

// Classes that never run dry.
class Backlog {
 public:
  Backlog(const EgressSettings& settings, uint8_t classes, std::vector<uint32_t> sizes)
      : scheduler_(scheduler_with(settings)), sizes_(std::move(sizes)) {
    for (uint8_t tc = 0; tc < classes; ++tc) {
      for (int i = 0; i < 3; ++i) refill(tc);
    }
  }

  struct Sent {
    unsigned traffic_class;
    uint32_t bytes;
  };
  // Sends one packet and puts another of its class in.
  Sent send() {
    Packet* packet = next_from(scheduler_);
    const Sent sent{class_of(packet), bytes_of(packet)};
    stock_.take_back(packet);
    refill(static_cast<uint8_t>(sent.traffic_class));
    return sent;
  }
  // Bytes by class of the next `packets` packets.
  std::array<uint64_t, kTrafficClasses> send_many(int packets) {
    std::array<uint64_t, kTrafficClasses> bytes{};
    for (int i = 0; i < packets; ++i) {
      const Sent sent = send();
      bytes[sent.traffic_class] += sent.bytes;
    }
    return bytes;
  }
  EgressScheduler& scheduler() { return scheduler_; }

 private:
  void refill(uint8_t tc) {
    scheduler_.enqueue(stock_.make(tc, sizes_[random_.below(static_cast<uint32_t>(sizes_.size()))]));
  }

  EgressScheduler scheduler_;
  Stock stock_;
  std::vector<uint32_t> sizes_;
  Random random_{1};
};

struct Shares {
  const char* description;
  std::vector<uint16_t> weights;
  std::vector<uint32_t> sizes;
};

class RoundRobinShares : public testing::TestWithParam<Shares> {};

EgressSettings settings_of(const Shares& row) {
  EgressSettings settings;
  for (size_t tc = 0; tc < row.weights.size(); ++tc) settings.classes[tc].weight = row.weights[tc];
  return settings;
}

// After r whole rounds a class of weight w has sent r · w · quantum bytes, less at most what one packet did not fit
// into (Shreedhar and Varghese 1995, lemma 1). The quantum is the scheduler's own business: there must be one that fits
// all.
TEST_P(RoundRobinShares, AreWithinOnePacketAfterEveryRound) {
  const Shares& row = GetParam();
  Backlog backlog(settings_of(row), static_cast<uint8_t>(row.weights.size()), row.sizes);
  const uint32_t largest = *std::max_element(row.sizes.begin(), row.sizes.end());
  std::vector<uint64_t> bytes(row.weights.size());
  unsigned first = kTrafficClasses;
  unsigned previous = kTrafficClasses;
  unsigned rounds = 0;
  while (rounds < 500) {
    const Backlog::Sent sent = backlog.send();
    if (previous == kTrafficClasses) first = sent.traffic_class;
    if (sent.traffic_class == first && previous != first && previous != kTrafficClasses) {
      ++rounds;
      double most = 0;
      double least = 1e18;
      for (size_t tc = 0; tc < bytes.size(); ++tc) {
        most = std::max(most, static_cast<double>(bytes[tc]) / row.weights[tc]);
        least = std::min(least, static_cast<double>(bytes[tc] + largest) / row.weights[tc]);
      }
      ASSERT_LT(most, least) << row.description << ", round " << rounds;
    }
    bytes[sent.traffic_class] += sent.bytes;
    previous = sent.traffic_class;
  }
}

// And at any moment, so that no class waits long: a class is never ahead by more than its turn.
TEST_P(RoundRobinShares, NoClassWaitsLongerThanTheOthersTurns) {
  const Shares& row = GetParam();
  Backlog backlog(settings_of(row), static_cast<uint8_t>(row.weights.size()), row.sizes);
  const uint64_t turn = 10'000 + 2 * *std::max_element(row.sizes.begin(), row.sizes.end());  // per weight
  std::vector<uint64_t> since(row.weights.size());
  for (int i = 0; i < 50'000; ++i) {
    const Backlog::Sent sent = backlog.send();
    uint64_t others = 0;
    for (size_t tc = 0; tc < since.size(); ++tc) {
      since[tc] += sent.bytes;
      others += turn * row.weights[tc];
    }
    since[sent.traffic_class] = 0;
    for (size_t tc = 0; tc < since.size(); ++tc) ASSERT_LE(since[tc], others) << row.description << ", class " << tc;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, RoundRobinShares,
    testing::Values(Shares{"1:2:5, RoCE data", {1, 2, 5}, {1082}}, Shares{"1:2:5, small frames", {1, 2, 5}, {60}},
                    Shares{"1:2:5, mixed sizes", {1, 2, 5}, {60, 74, 128, 594, 1082, 1518, 4178, 9018}},
                    Shares{"equal, mixed sizes", {1, 1}, {64, 1500}}, Shares{"1:100", {1, 100}, {64, 4178}},
                    Shares{"all eight", {1, 2, 3, 4, 5, 6, 7, 8}, {64, 1082, 9018}},
                    Shares{"frames above any quantum", {1, 2, 5}, {60, 65'535}}));

TEST(RoundRobin, SharesWhatStrictClassesLeave) {
  EgressSettings settings = weights({1, 3});
  settings.classes[7].strict = true;
  Backlog backlog(settings, 2, {1000});
  Stock stock;
  std::array<uint64_t, kTrafficClasses> bytes{};
  for (int i = 0; i < 8000; ++i) {
    if (i % 2 == 0) {
      backlog.scheduler().enqueue(stock.make(7, 1000));
      Packet* packet = next_from(backlog.scheduler());
      ASSERT_EQ(class_of(packet), 7U);
      stock.take_back(packet);
    } else {
      const Backlog::Sent sent = backlog.send();
      bytes[sent.traffic_class] += sent.bytes;
    }
  }
  EXPECT_NEAR(static_cast<double>(bytes[1]) / static_cast<double>(bytes[0]), 3, 0.1);
}

TEST(RoundRobin, AnIdleClassSavesNothingUp) {
  EgressScheduler scheduler = scheduler_with(weights({1, 1}));
  Stock stock;
  for (int i = 0; i < 1000; ++i) scheduler.enqueue(stock.make(0, 1000));
  for (int i = 0; i < 500; ++i) ASSERT_EQ(class_of(next_from(scheduler)), 0U);
  for (int i = 0; i < 500; ++i) scheduler.enqueue(stock.make(1, 1000));
  std::array<unsigned, 2> sent{};
  for (int i = 0; i < 400; ++i) sent[class_of(next_from(scheduler))]++;
  EXPECT_NEAR(sent[0], 200, 11) << "one turn of 10,000 bytes more or less";
}

TEST(RoundRobin, AClassThatComesAndGoesGetsItsShareWhileItIsThere) {
  // Class 1 brings ten packets at a time, each time as class 0's backlog stands. No turn may be lost or doubled.
  EgressScheduler scheduler = scheduler_with(weights({1, 1}));
  Stock stock;
  for (int i = 0; i < 5000; ++i) scheduler.enqueue(stock.make(0, 1000));
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 10; ++i) scheduler.enqueue(stock.make(1, 1000));
    unsigned of_0 = 0;
    for (unsigned of_1 = 0; of_1 < 10;) (class_of(next_from(scheduler)) == 1 ? of_1 : of_0)++;
    EXPECT_LE(of_0, 20U) << "round " << round;
  }
}

TEST(RoundRobin, ALoneClassSendsInOrderWhateverItsWeight) {
  EgressScheduler scheduler = scheduler_with(weights({1, 1, 100}));
  Stock stock;
  for (int i = 0; i < 100; ++i) scheduler.enqueue(stock.make(2, 9000));
  for (uint64_t i = 0; i < 100; ++i) ASSERT_EQ(serial_of(next_from(scheduler)), i);
}

// -- bursts -----------------------------------------------------------------------------------------------------------

TEST(Bursts, TakeNoMoreThanThereIsRoomForAndNoLessThanThereIs) {
  Random random(3);
  for (int trial = 0; trial < 200; ++trial) {
    EgressScheduler scheduler = scheduler_with(strict_from(5));
    Stock stock;
    const unsigned count = random.below(100);
    for (unsigned i = 0; i < count; ++i) scheduler.enqueue(stock.make(static_cast<uint8_t>(random.below(8)), 1000));
    unsigned left = count;
    while (true) {
      Packet* out[64];
      const unsigned room = 1 + random.below(64);
      const unsigned n = scheduler.schedule(out, room, 0);
      ASSERT_EQ(n, std::min(room, left)) << "an unlimited port sends all that is open";
      left -= n;
      if (n == 0) break;
    }
    EXPECT_TRUE(scheduler.empty());
  }
}

TEST(Bursts, ChooseAsPacketByPacketDoes) {
  const EgressSettings settings = [] {
    EgressSettings mixed = strict_from(6);
    mixed.classes[1].weight = 2;
    mixed.classes[2].weight = 5;
    return mixed;
  }();
  EgressScheduler one = scheduler_with(settings);
  EgressScheduler burst = scheduler_with(settings);
  Stock of_one;
  Stock of_burst;
  Random random(4);
  for (int i = 0; i < 3000; ++i) {
    const auto tc = static_cast<uint8_t>(random.below(8));
    const uint32_t bytes = 60 + random.below(9000);
    one.enqueue(of_one.make(tc, bytes));
    burst.enqueue(of_burst.make(tc, bytes));
  }
  Packet* out[kBurst];
  while (const unsigned n = burst.schedule(out, kBurst, 0)) {
    for (unsigned i = 0; i < n; ++i) ASSERT_EQ(serial_of(out[i]), serial_of(next_from(one)));
  }
  EXPECT_TRUE(one.empty());
}

// Asked for one packet, it gives the one that a burst of one would have.
TEST(Bursts, OfOneAreTheSamePackets) {
  EgressSettings settings = strict_from(6);
  settings.rate = Rate::gbps(100);
  for (unsigned tc = 0; tc < 6; ++tc) settings.classes[tc].weight = static_cast<uint16_t>(tc + 1);
  EgressScheduler by_burst = scheduler_with(settings);
  EgressScheduler one_by_one = scheduler_with(settings);
  Stock stock;
  Random random(7);
  for (unsigned i = 0; i < 2000; ++i) {
    Packet* packet = stock.make(static_cast<uint8_t>(random.below(kTrafficClasses)), 64 + random.below(4000));
    by_burst.enqueue(packet);
    one_by_one.enqueue(packet);
  }
  unsigned sent = 0;
  unsigned waits = 0;
  for (Time now = 0; !by_burst.empty(); now += 100 * kNanosecond) {
    const auto paused = static_cast<uint8_t>(now % kMicrosecond == 0 ? random.below(256) : 0);
    by_burst.set_paused(paused);
    one_by_one.set_paused(paused);
    Packet* expected = nullptr;
    const unsigned n = by_burst.schedule(&expected, 1, now);
    const Queued one = one_by_one.schedule_one(now);
    ASSERT_EQ(one.packet(), n == 0 ? nullptr : expected) << "after " << sent;
    ASSERT_EQ(one.frame_bytes(), n == 0 ? 0U : expected->pkt_len);
    ASSERT_EQ(one_by_one.wire_free_at(), by_burst.wire_free_at());
    ASSERT_EQ(one_by_one.scheduled_bytes(), by_burst.scheduled_bytes());
    sent += n;
    waits += 1 - n;
  }
  EXPECT_TRUE(one_by_one.empty());
  EXPECT_EQ(sent, 2000U);
  EXPECT_GT(waits, 0U);  // the wire was busy, or everything paused
}

// -- pause ------------------------------------------------------------------------------------------------------------

TEST(Pause, EveryMaskHoldsItsClassesAndOnlyThem) {
  for (unsigned mask = 0; mask < 256; ++mask) {
    EgressScheduler scheduler = scheduler_with(strict_from(6));
    Stock stock;
    for (uint8_t tc = 0; tc < kTrafficClasses; ++tc) {
      scheduler.enqueue(stock.make(tc, 1000));
      scheduler.enqueue(stock.make(tc, 1000));
    }
    scheduler.set_paused(static_cast<uint8_t>(mask));
    EXPECT_EQ(scheduler.paused(), mask);
    unsigned open = 0;
    while (const Packet* packet = next_from(scheduler)) {
      EXPECT_EQ(mask & bit(class_of(packet)), 0U) << "class " << class_of(packet) << " is paused";
      ++open;
    }
    const auto paused_classes = static_cast<unsigned>(std::popcount(mask));
    EXPECT_EQ(open, 2 * (kTrafficClasses - paused_classes));
    EXPECT_TRUE(scheduler.idle()) << "nothing that may be sent";
    EXPECT_EQ(scheduler.empty(), mask == 0);
    EXPECT_EQ(scheduler.bytes(), 2000U * paused_classes);
    scheduler.set_paused(0);
    EXPECT_EQ(classes_of(scheduler).size(), 2 * paused_classes);
  }
}

TEST(Pause, APausedStrictClassDoesNotHoldUpTheOthers) {
  EgressScheduler scheduler = scheduler_with(strict_from(6));
  Stock stock;
  for (const uint8_t tc : {7, 6, 0}) scheduler.enqueue(stock.make(tc, 1000));
  scheduler.set_paused(bit(7));
  EXPECT_EQ(classes_of(scheduler), "60");
  scheduler.set_paused(0);
  EXPECT_EQ(classes_of(scheduler), "7");
}

// A lossless class that is paused in the middle of its turn over and over, as PFC does it, must not save up what it did
// not send and later shut the others out.
TEST(Pause, WhatAClassCouldNotSendIsNotSavedUp) {
  Backlog backlog(weights({1, 1, 1}), 3, {1000});
  for (int i = 0; i < 20'000; ++i) {
    const unsigned tc = backlog.send().traffic_class;
    backlog.scheduler().set_paused(tc == 0 ? bit(0) : 0);  // whenever class 0 has sent one packet
  }
  backlog.scheduler().set_paused(0);
  const auto bytes = backlog.send_many(300);
  for (unsigned tc = 0; tc < 3; ++tc) EXPECT_NEAR(static_cast<double>(bytes[tc]), 100'000, 21'000) << "class " << tc;
}

TEST(Pause, AClassPausedForAWhileDoesNotCatchUp) {
  Backlog backlog(weights({1, 1}), 2, {1000});
  backlog.send_many(95);
  backlog.scheduler().set_paused(bit(0));
  EXPECT_EQ(backlog.send_many(500)[0], 0U);
  backlog.scheduler().set_paused(0);
  const auto bytes = backlog.send_many(400);
  EXPECT_NEAR(static_cast<double>(bytes[0]), 200'000, 11'000);
}

}  // namespace
}  // namespace heddle::dataplane
