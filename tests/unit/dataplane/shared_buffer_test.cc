// SharedBuffer: thresholds by hand-computed cases, and books that balance through any sequence, one lcore or several.
#include "dataplane/shared_buffer.h"

#include <deque>
#include <memory>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::dataplane {
namespace {

constexpr unsigned kPorts = 3;

BufferSettings settings_of(uint64_t bytes, const GroupSettings& group, const QueueSettings& queue = {}) {
  BufferSettings settings;
  settings.bytes = bytes;
  settings.groups.resize(kPorts);
  settings.queues.resize(kPorts);
  for (auto& port : settings.groups) port.fill(group);
  for (auto& port : settings.queues) port.fill(queue);
  return settings;
}

SharedBuffer buffer_of(const BufferSettings& settings) {
  SharedBuffer buffer;
  buffer.configure(settings, {}, {}, 0);
  return buffer;
}

// How many packets of `bytes` a group takes until the buffer says something else than "fits, and no XOFF".
unsigned takes(SharedBuffer& buffer, PortId port, unsigned tc, uint32_t bytes) {
  unsigned n = 0;
  while (n < 100'000 && buffer.charge(port, tc, bytes) == DropReason::kNone && buffer.xoff(port) == 0) ++n;
  return n;
}

TEST(SharedBuffer, AStaticThresholdLetsInThatMuchAboveTheReservedBytes) {
  SharedBuffer buffer = buffer_of(settings_of(1'000'000, {.reserved = 3000, .shared = Threshold::fixed(20'000)}));
  EXPECT_EQ(takes(buffer, 0, 3, 1000), 23U);
  EXPECT_EQ(buffer.charge(0, 3, 1000), DropReason::kBufferFull);
  EXPECT_EQ(buffer.charge(0, 4, 1000), DropReason::kNone) << "another class has its own share";
  const auto held = buffer.occupancy(0, 3);
  EXPECT_EQ(held.reserved, 3000U);
  EXPECT_EQ(held.shared, 20'000U);
  EXPECT_EQ(held.headroom, 0U);
}

// n greedy groups with α over a pool of B each get αB / (1 + nα) (Choudhury and Hahne 1998, equation 2).
TEST(SharedBuffer, ADynamicThresholdLeavesEveryGroupItsShareOfThePool) {
  for (const double alpha : {0.125, 0.5, 1.0, 4.0}) {
    for (const unsigned groups : {1U, 3U, 8U}) {
      SharedBuffer buffer = buffer_of(settings_of(9'000'000, {.shared = Threshold::dynamic(alpha)}));
      std::vector<uint64_t> held(groups);
      for (bool any = true; any;) {
        any = false;
        for (unsigned g = 0; g < groups; ++g) {
          if (buffer.charge(0, g, 500) != DropReason::kNone) continue;
          held[g] += 500;
          any = true;
        }
      }
      for (const uint64_t bytes : held) {
        EXPECT_NEAR(static_cast<double>(bytes), alpha * 9e6 / (1 + groups * alpha), 500 * (1 + alpha) * groups)
            << alpha << " " << groups;
      }
    }
  }
}

TEST(SharedBuffer, ReservedBytesAreThereWhenThePoolIsUsedUp) {
  SharedBuffer buffer = buffer_of(settings_of(124'000, {.reserved = 1000, .shared = Threshold::fixed(1'000'000)}));
  EXPECT_EQ(takes(buffer, 0, 0, 1000), 101U);  // its own, and the pool of 124,000 less 24 groups' reservations
  EXPECT_EQ(buffer.shared_free(), 0);
  EXPECT_EQ(takes(buffer, 1, 5, 500), 2U);
  EXPECT_EQ(buffer.charge(1, 5, 1), DropReason::kBufferFull);
}

TEST(SharedBuffer, ALosslessGroupPassesXoffIntoItsHeadroomAndResumesBelowXon) {
  SharedBuffer buffer = buffer_of(settings_of(
      1'000'000, {.lossless = true, .shared = Threshold::fixed(10'000), .xon_offset = 3000, .headroom = 5000}));
  unsigned n = 0;
  for (; n < 10; ++n) ASSERT_EQ(buffer.charge(1, 3, 1000), DropReason::kNone);
  EXPECT_EQ(buffer.xoff(1), 0) << "exactly at the threshold";
  EXPECT_FALSE(buffer.has_changed());
  for (; n < 15; ++n) ASSERT_EQ(buffer.charge(1, 3, 1000), DropReason::kNone) << "headroom takes what is in flight";
  EXPECT_EQ(buffer.xoff(1), 0x08);
  EXPECT_EQ(buffer.occupancy(1, 3).headroom, 5000U);
  EXPECT_EQ(buffer.charge(1, 3, 1), DropReason::kHeadroomFull);
  std::vector<PortId> changed;
  const auto note = [&](PortId port) { changed.push_back(port); };
  buffer.take_changed(note);
  EXPECT_EQ(changed, (std::vector<PortId>{1}));
  for (; n > 8; --n) {
    buffer.release(1, 3, 1000);
    EXPECT_EQ(buffer.xoff(1), 0x08) << n;
  }
  buffer.release(1, 3, 1000);  // 7,000 left: 3,000 below XOFF
  EXPECT_EQ(buffer.xoff(1), 0x00);
  buffer.take_changed(note);
  EXPECT_EQ(changed, (std::vector<PortId>{1, 1}));
  EXPECT_EQ(buffer.occupancy(1, 3).peak, 15'000U);
  EXPECT_EQ(buffer.occupancy(1, 3).peak_headroom, 5000U);
  buffer.reset_peaks();
  EXPECT_EQ(buffer.occupancy(1, 3).peak, 7000U);
  EXPECT_EQ(buffer.occupancy(1, 3).peak_headroom, 0U);
}

TEST(SharedBuffer, OneClassInHeadroomPausesNoOther) {
  SharedBuffer buffer =
      buffer_of(settings_of(10'000'000, {.lossless = true, .shared = Threshold::fixed(10'000), .headroom = 50'000}));
  for (unsigned tc = 0; tc < 8; ++tc) ASSERT_EQ(buffer.charge(0, tc, 9000), DropReason::kNone);
  ASSERT_EQ(buffer.charge(0, 5, 9000), DropReason::kNone);
  EXPECT_EQ(buffer.xoff(0), 0x20);
  EXPECT_EQ(buffer.xoff(1), 0x00);
}

TEST(SharedBuffer, AGroupThatHoldsNothingIsNeverLeftInXoff) {
  SharedBuffer buffer = buffer_of(settings_of(100'000, {.lossless = true, .shared = Threshold::fixed(1'000'000)}));
  while (buffer.charge(0, 0, 1000) == DropReason::kNone) {
  }
  EXPECT_EQ(buffer.charge(1, 0, 1000), DropReason::kHeadroomFull) << "no headroom, and the pool is used up";
  EXPECT_EQ(buffer.xoff(1), 0) << "nothing it holds could leave and bring XON";
}

TEST(SharedBuffer, ThePacketLimitIsChargedByTheSameRules) {
  BufferSettings settings = settings_of(1'000'000, {.shared = Threshold::fixed(500'000)});
  settings.packets = 1000;
  SharedBuffer small = buffer_of(settings);
  EXPECT_EQ(takes(small, 0, 0, 60), 500U) << "half of the bytes is half of the packets";
  SharedBuffer large = buffer_of(settings);
  EXPECT_EQ(takes(large, 0, 0, 5000), 100U);
  for (int i = 0; i < 500; ++i) small.release(0, 0, 60);
  EXPECT_EQ(small.occupancy(0, 0).bytes(), 0U);
}

TEST(SharedBuffer, AnEgressQueueHasItsReservedBytesAndItsShare) {
  SharedBuffer buffer = buffer_of(settings_of(1'000'000, {}, {.reserved = 2000, .shared = Threshold::dynamic(0.5)}));
  EXPECT_TRUE(buffer.admits(0, 0, 499'000, 1000));
  EXPECT_FALSE(buffer.admits(0, 0, 499'001, 1000));
  while (buffer.charge(0, 0, 1000) == DropReason::kNone) {
  }
  EXPECT_FALSE(buffer.admits(0, 0, 5000, 1000));
  EXPECT_TRUE(buffer.admits(0, 0, 1000, 1000));
}

// --- books
// ------------------------------------------------------------------------------------------------------------

GroupSettings random_group(Random& random) {
  GroupSettings group;
  group.lossless = random.below(2) == 0;
  group.reserved = random.below(3) * 4000;
  group.shared = random.below(2) == 0 ? Threshold::fixed(random.below(300'000))
                                      : Threshold::dynamic(0.0625 * (1U << random.below(8)));
  group.xon_offset = random.below(10'000);
  group.headroom = random.below(20'000);
  return group;
}

struct Held {
  PortId port;
  unsigned tc;
  uint32_t bytes;
};

// Groups hold, each in three parts, exactly the packets that were let in and have not left; the pool is exactly what
// they do not use.
void expect_balanced(const SharedBuffer& buffer, const BufferSettings& settings, const std::deque<Held>& held) {
  std::array<std::array<uint64_t, kTrafficClasses>, kPorts> bytes{};
  for (const Held& packet : held) bytes[packet.port][packet.tc] += buffer.charge_of(packet.bytes);
  int64_t shared = 0;
  for (PortId port = 0; port < kPorts; ++port) {
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      const auto group = buffer.occupancy(port, tc);
      const GroupSettings& of = settings.groups[port][tc];
      ASSERT_EQ(group.bytes(), bytes[port][tc]) << "port " << port << " class " << tc;
      ASSERT_LE(group.reserved, of.reserved);
      ASSERT_LE(group.headroom, of.lossless ? of.headroom : 0);
      const bool paused = ((buffer.xoff(port) >> tc) & 1U) != 0;
      ASSERT_TRUE(group.shared == 0 || group.reserved == of.reserved) << "the pool before its own";
      ASSERT_TRUE(group.headroom == 0 || paused) << "in headroom, and not paused";
      ASSERT_FALSE(group.bytes() == 0 && paused) << "paused for nothing";
      ASSERT_GE(group.peak, group.bytes());
      shared += static_cast<int64_t>(group.shared);
    }
  }
  ASSERT_EQ(buffer.shared_free(), settings.shared_bytes() - shared);
  ASSERT_GE(buffer.shared_free(), 0);
}

TEST(SharedBuffer, SumsAreWhatIsHeldThroughAnySequence) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    BufferSettings settings = settings_of(1'000'000 + random.below(3'000'000), {});
    settings.packets = random.below(2) == 0 ? 0 : 1000 + random.below(20'000);
    for (auto& port : settings.groups) {
      for (GroupSettings& group : port) group = random_group(random);
    }
    SharedBuffer buffer = buffer_of(settings);
    std::deque<Held> held;
    for (int step = 0; step < 3000; ++step) {
      const bool filling = (step / 500) % 2 == 0;
      if (random.below(10) < (filling ? 8 : 3)) {
        const Held packet{static_cast<PortId>(random.below(kPorts)), random.below(8), 60 + random.below(9000)};
        const DropReason reason = buffer.charge(packet.port, packet.tc, packet.bytes);
        if (reason == DropReason::kNone) {
          held.push_back(packet);
        } else {
          const bool lossless = settings.groups[packet.port][packet.tc].lossless;
          ASSERT_EQ(reason, lossless ? DropReason::kHeadroomFull : DropReason::kBufferFull);
        }
      } else if (!held.empty()) {
        std::swap(held.front(), held[random.below(static_cast<uint32_t>(held.size()))]);  // packets leave in any order
        buffer.release(held.front().port, held.front().tc, held.front().bytes);
        held.pop_front();
      }
      ASSERT_NO_FATAL_FAILURE(expect_balanced(buffer, settings, held)) << "seed " << seed << " step " << step;
    }
    for (const Held& packet : held) buffer.release(packet.port, packet.tc, packet.bytes);
    ASSERT_NO_FATAL_FAILURE(expect_balanced(buffer, settings, {})) << "seed " << seed;
  }
}

// Three lcores, a port each; packets leave by a port of any of them. After everyone has read the others' ledgers, all
// agree on what the pool holds, whoever released what.
TEST(SharedBuffer, LcoresThatShareAPoolAgreeOnceTheyHaveSettled) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    BufferSettings settings = settings_of(2'000'000, {});
    for (auto& port : settings.groups) {
      for (GroupSettings& group : port) group = random_group(random);
    }
    std::vector<std::unique_ptr<BufferLedger>> ledgers;
    std::vector<BufferLedger*> all;
    for (unsigned i = 0; i < kPorts; ++i)
      all.push_back(ledgers.emplace_back(std::make_unique<BufferLedger>(kPorts)).get());
    std::vector<SharedBuffer> buffers(kPorts);
    for (unsigned i = 0; i < kPorts; ++i) {
      std::vector<bool> mine(kPorts, false);
      mine[i] = true;
      buffers[i].configure(settings, mine, all, i);
    }
    const auto settle_all = [&] {
      for (int round = 0; round < 2; ++round) {
        for (SharedBuffer& buffer : buffers) buffer.settle();
      }
    };
    std::deque<Held> held;
    int64_t most_overshoot = 0;
    for (int step = 0; step < 4000; ++step) {
      const auto lcore = static_cast<PortId>(random.below(kPorts));
      if (step % 32 == 0) settle_all();
      if (random.below(10) < ((step / 1000) % 2 == 0 ? 8 : 2)) {
        const Held packet{lcore, random.below(8), 60 + random.below(9000)};
        if (buffers[lcore].charge(packet.port, packet.tc, packet.bytes) == DropReason::kNone) held.push_back(packet);
      } else if (!held.empty()) {
        buffers[lcore].release(held.front().port, held.front().tc, held.front().bytes);
        held.pop_front();
      }
      if (step % 100 != 99) continue;
      settle_all();
      std::array<std::array<uint64_t, kTrafficClasses>, kPorts> bytes{};
      for (const Held& packet : held) bytes[packet.port][packet.tc] += packet.bytes;
      int64_t shared = 0;
      for (PortId port = 0; port < kPorts; ++port) {
        for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
          const auto group = buffers[port].occupancy(port, tc);
          ASSERT_EQ(group.bytes(), bytes[port][tc]) << "seed " << seed << " step " << step;
          shared += static_cast<int64_t>(group.shared);
        }
      }
      for (const SharedBuffer& buffer : buffers) ASSERT_EQ(buffer.shared_free(), settings.shared_bytes() - shared);
      most_overshoot = std::max(most_overshoot, shared - settings.shared_bytes());
    }
    EXPECT_LE(most_overshoot, int64_t{kPorts} * 32 * 9060) << "one burst each";
    while (!held.empty()) {
      buffers[random.below(kPorts)].release(held.front().port, held.front().tc, held.front().bytes);
      held.pop_front();
    }
    settle_all();
    for (PortId port = 0; port < kPorts; ++port) {
      EXPECT_EQ(buffers[port].shared_free(), settings.shared_bytes());
      EXPECT_EQ(buffers[port].xoff(port), 0);
    }
  }
}

}  // namespace
}  // namespace heddle::dataplane
