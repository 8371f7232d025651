// Resequencer: order restored, nothing lost, nothing held beyond its bounds.
#include "lb/resequencer.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "net/random.h"
#include "tests/support/resequencing.h"

namespace heddle::lb {
namespace {

using support::Numbered;
using support::PacketMill;

constexpr uint8_t kWriteFirst = 0x06;

class Bench {
 public:
  explicit Bench(ResequencerSettings settings = {}) : resequencer(settings), settings_(settings) {}

  void receive(const Numbered& as, Time now = 0) { receive(mill.make(as), now); }
  void receive(Packet* packet, Time now) {
    resequencer.expire(now, [&](Packet* p) { leave(p, now); });
    arrived_[packet] = now;
    resequencer.receive(packet, now, [&](Packet* p) { leave(p, now); });
    EXPECT_LE(resequencer.held_bytes(), settings_.max_bytes);
    EXPECT_LE(resequencer.held_packets(), settings_.max_packets);
  }
  void expire(Time now) {
    resequencer.expire(now, [&](Packet* p) { leave(p, now); });
  }
  void flush() {
    resequencer.flush([&](Packet* p) { leave(p, 0); });
  }
  std::vector<uint32_t> psns() const {
    std::vector<uint32_t> psns;
    for (const Packet* packet : out) psns.push_back(PacketMill::psn_of(packet));
    return psns;
  }
  const ResequencerCounters& counters() const { return resequencer.counters(); }

  PacketMill mill;
  Resequencer resequencer;
  std::vector<Packet*> out;

 private:
  void leave(Packet* packet, Time /*now*/) {
    EXPECT_TRUE(left_.insert(packet).second) << "released twice";
    EXPECT_TRUE(arrived_.contains(packet)) << "never received";
    out.push_back(packet);
  }
  ResequencerSettings settings_;
  std::map<const Packet*, Time> arrived_;
  std::set<const Packet*> left_;
};

std::vector<uint32_t> range(uint32_t first, uint32_t count) {
  std::vector<uint32_t> all(count);
  for (uint32_t i = 0; i < count; ++i) all[i] = (first + i) & 0xffffffU;
  return all;
}

// A random permutation in which nothing is more than `reach` places early.
std::vector<uint32_t> shuffled(uint32_t first, uint32_t count, uint32_t reach, Random& random) {
  std::vector<std::pair<uint64_t, uint32_t>> keyed;
  for (uint32_t i = 0; i < count; ++i) keyed.emplace_back(uint64_t{i} + random.below(reach), i);
  std::stable_sort(keyed.begin(), keyed.end());
  std::vector<uint32_t> psns;
  for (const auto& [key, i] : keyed) psns.push_back((first + i) & 0xffffffU);
  return psns;
}

TEST(Resequencer, RandomPermutationsComeOutSorted) {
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    const uint32_t first = round % 3 == 0 ? 0xffffff - random.below(200) : random.below(1U << 24U);  // wraps too
    Bench bench;
    bench.receive({.psn = first, .opcode = kWriteFirst});
    for (const uint32_t psn : shuffled(first + 1, 800, 1 + random.below(400), random)) bench.receive({.psn = psn});
    EXPECT_EQ(bench.psns(), range(first, 801)) << "round " << round;
    EXPECT_FALSE(bench.resequencer.holds_any());
    EXPECT_EQ(bench.counters().late.get(), 0U);
    EXPECT_EQ(bench.counters().held.get(), bench.counters().released.get());
    EXPECT_EQ(bench.counters().in_order.get() + bench.counters().released.get(), 801U);
  }
}

TEST(Resequencer, TheFirstPacketMayComeLate) {
  Bench bench;
  for (const uint32_t psn : {3U, 1U, 2U}) bench.receive({.psn = psn});
  EXPECT_TRUE(bench.out.empty());
  bench.receive({.psn = 0, .opcode = kWriteFirst});
  EXPECT_EQ(bench.psns(), range(0, 4));
}

TEST(Resequencer, AFlowSeenFromItsMidstWaitsNoLongerThanTheHoldTime) {
  Bench bench({.hold_time = 10 * kMicrosecond});
  for (const uint32_t psn : {502U, 500U, 501U}) bench.receive({.psn = psn}, kMicrosecond);
  EXPECT_TRUE(bench.out.empty());
  bench.expire(11 * kMicrosecond);
  bench.receive({.psn = 503}, 12 * kMicrosecond);
  EXPECT_EQ(bench.psns(), range(500, 4));
}

TEST(Resequencer, ACopyOfTheBeginningThatIsHeldLeavesWithIt) {
  Bench bench;
  bench.receive({.psn = 5});
  bench.receive({.psn = 6});
  bench.receive({.psn = 5, .opcode = kWriteFirst});
  bench.receive({.psn = 7});
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{5, 6, 5, 7}));
  EXPECT_FALSE(bench.resequencer.holds_any());
}

TEST(Resequencer, DuplicatesPass) {
  Bench bench;
  bench.receive({.psn = 0, .opcode = kWriteFirst});
  bench.receive({.psn = 0, .opcode = kWriteFirst});  // behind
  bench.receive({.psn = 2});
  bench.receive({.psn = 2});  // the first copy is held
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{0, 0, 2}));
  bench.receive({.psn = 1});
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{0, 0, 2, 1, 2}));
  EXPECT_EQ(bench.counters().late.get(), 2U);
}

TEST(Resequencer, ALossHoldsTheOthersForTheHoldTime) {
  Bench bench({.hold_time = 10 * kMicrosecond});
  bench.receive({.psn = 0, .opcode = kWriteFirst}, 0);
  bench.receive({.psn = 2}, 1 * kMicrosecond);
  bench.receive({.psn = 3}, 4 * kMicrosecond);
  bench.receive({.psn = 6}, 9 * kMicrosecond);
  EXPECT_EQ(bench.resequencer.next_expiry(), 11 * kMicrosecond);
  bench.expire(11 * kMicrosecond - 1);
  EXPECT_EQ(bench.psns(), range(0, 1));
  bench.expire(11 * kMicrosecond);  // 2 has waited; 3 follows it without a gap; 6 has its own time
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{0, 2, 3}));
  EXPECT_EQ(bench.resequencer.next_expiry(), 19 * kMicrosecond);
  bench.receive({.psn = 1}, 12 * kMicrosecond);  // the lost one, sent again
  bench.expire(19 * kMicrosecond);
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{0, 2, 3, 1, 6}));
  EXPECT_EQ(bench.counters().timed_out.get(), 2U);
  EXPECT_FALSE(bench.resequencer.holds_any());
}

TEST(Resequencer, AnOlderPacketBehindTakesAllBeforeItAlong) {
  Bench bench({.hold_time = 10 * kMicrosecond});
  bench.receive({.psn = 0, .opcode = kWriteFirst}, 0);
  bench.receive({.psn = 8}, 1 * kMicrosecond);
  bench.receive({.psn = 4}, 5 * kMicrosecond);
  bench.expire(11 * kMicrosecond);
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{0, 4, 8}));
}

TEST(Resequencer, AnswersAndOtherTransportsGoRound) {
  Bench bench;
  bench.receive({.psn = 0, .opcode = kWriteFirst});
  bench.receive({.psn = 5});                               // held
  for (const uint8_t opcode : {0x11, 0x12, 0x81, 0x64}) {  // ACK, ATOMIC ACK, CNP, UD SEND only
    bench.receive({.psn = 900, .opcode = opcode});
  }
  EXPECT_EQ(bench.out.size(), 5U);
  EXPECT_EQ(bench.resequencer.held_packets(), 1U);
}

TEST(Resequencer, ReadResponsesHaveNumbersOfTheirOwn) {
  Bench bench;
  bench.receive({.psn = 100, .opcode = kWriteFirst});
  bench.receive({.psn = 7000, .opcode = 0x0d});  // READ response first, to the same queue pair
  bench.receive({.psn = 101});
  bench.receive({.psn = 7001, .opcode = 0x0e});
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{100, 7000, 101, 7001}));
}

TEST(Resequencer, BeyondItsBytesAFlowLeavesInOrder) {
  Bench bench({.max_flow_bytes = 10'000});
  bench.receive({.psn = 0, .opcode = kWriteFirst});
  bench.receive({.psn = 3});
  bench.receive({.psn = 2});
  EXPECT_EQ(bench.out.size(), 1U);
  bench.receive({.psn = 5});  // 12,450 bytes would be too many
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{0, 2, 3, 5}));
  EXPECT_EQ(bench.counters().overflowed.get(), 3U);
  bench.receive({.psn = 6});
  EXPECT_EQ(bench.psns().back(), 6U);
}

TEST(Resequencer, AJumpBeyondTheWindowIsANewBeginning) {
  Bench bench;
  bench.receive({.psn = 0, .opcode = kWriteFirst});
  bench.receive({.psn = 2});
  bench.receive({.psn = 50'000});
  bench.receive({.psn = 50'001});
  bench.receive({.psn = 10, .opcode = kWriteFirst});  // far behind
  bench.receive({.psn = 12});
  bench.receive({.psn = 11});
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{0, 2, 50'000, 50'001, 10, 11, 12}));
  EXPECT_EQ(bench.counters().resyncs.get(), 2U);
}

TEST(Resequencer, TenThousandFlowsEachInOrder) {
  constexpr uint32_t kFlows = 10'000;
  Bench bench({.max_flows = 65'536});
  Random random(5);
  std::vector<Numbered> packets;
  for (uint32_t flow = 0; flow < kFlows; ++flow) {
    bench.receive({.qp = flow, .psn = 0, .opcode = kWriteFirst, .bytes = 100});
  }
  // In groups of 500 flows, as many as may have gaps at a time.
  for (uint32_t group = 0; group < kFlows; group += 500) {
    packets.clear();
    for (uint32_t flow = group; flow < group + 500; ++flow) {
      for (uint32_t psn = 1; psn < 5; ++psn) packets.push_back({.qp = flow, .psn = psn, .bytes = 100});
    }
    for (uint32_t i = static_cast<uint32_t>(packets.size()) - 1; i > 0; --i) {
      std::swap(packets[i], packets[random.below(i + 1)]);
    }
    for (const Numbered& packet : packets) bench.receive(packet);
  }
  std::map<uint32_t, uint32_t> next;
  for (const Packet* packet : bench.out) EXPECT_EQ(PacketMill::psn_of(packet), next[PacketMill::qp_of(packet)]++);
  EXPECT_EQ(bench.out.size(), kFlows * 5U);
  EXPECT_EQ(bench.counters().unknown.get(), 0U);
}

// Anything may happen: loss, duplicates, repeats, wrap, answers, several flows, tight bounds. Nothing is lost, nothing
// is held beyond its time, and each flow's first copies leave in order unless a gap before them was given up.
TEST(Resequencer, WhateverHappensNothingIsLostNorHeldTooLong) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const Duration hold = 20 * kMicrosecond;
    Bench bench({.hold_time = hold,
                 .max_flow_bytes = 20'000 + random.below(400'000),
                 .max_bytes = 50'000 + random.below(600'000),
                 .max_packets = 20 + random.below(200),
                 .max_flows = 64});
    std::map<uint32_t, uint32_t> next;
    Time now = 0;
    size_t sent = 0;
    for (int i = 0; i < 4000; ++i) {
      now += random.below(300) * kNanosecond;
      const uint32_t qp = 1 + random.below(5);
      uint32_t& psn = next.try_emplace(qp, 0xffffff - random.below(500)).first->second;
      const uint32_t dice = random.below(100);
      Numbered packet{.qp = qp, .psn = psn};
      if (dice < 50) {
        ++psn;
      } else if (dice < 75) {
        packet.psn = psn + random.below(100);  // early: its turn will come again, as a duplicate
      } else if (dice < 85) {
        packet.psn = psn - random.below(50);
      } else if (dice < 90) {
        psn += 1 + random.below(3);  // lost
      } else if (dice < 95) {
        packet.opcode = 0x11;
      } else {
        packet.opcode = kWriteFirst;
        ++psn;
      }
      bench.receive(packet, now);
      ++sent;
      EXPECT_TRUE(!bench.resequencer.holds_any() || before(now, bench.resequencer.next_expiry()));
    }
    now += hold;
    bench.expire(now);
    EXPECT_FALSE(bench.resequencer.holds_any()) << "seed " << seed;
    EXPECT_EQ(bench.out.size(), sent) << "seed " << seed;
    const auto& c = bench.counters();
    EXPECT_LE(c.released.get() + c.timed_out.get(), c.held.get());
  }
}

TEST(Resequencer, AFlushEmptiesIt) {
  Bench bench;
  bench.receive({.psn = 0, .opcode = kWriteFirst});
  for (const uint32_t psn : {4U, 2U, 9U}) bench.receive({.psn = psn});
  bench.flush();
  EXPECT_EQ(bench.psns(), (std::vector<uint32_t>{0, 2, 4, 9}));
  EXPECT_EQ(bench.resequencer.held_bytes(), 0U);
}

}  // namespace
}  // namespace heddle::lb
