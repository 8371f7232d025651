// PathDelay: what is heard becomes shares. The closed loop is checked against queues that integrate what the shares
// send, as real ones do.
#include "telemetry/path_delay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::telemetry {
namespace {

constexpr Duration kPeriod = kMillisecond;

PathReading reading_of(Duration delay, Rate rate = Rate::gbps(100)) {
  return {.delay = delay, .beyond = delay, .bottleneck = rate, .hops = 2};
}

PathDelay group_of(std::vector<uint32_t> initial, PathDelaySettings settings = {}) {
  return PathDelay(settings, initial);
}

uint32_t moved(const std::vector<uint32_t>& before, const std::vector<uint32_t>& after) {
  uint32_t gained = 0;
  for (size_t i = 0; i < before.size(); ++i) gained += after[i] > before[i] ? after[i] - before[i] : 0;
  return gained;
}

std::vector<bool> bad_of(const PathDelay& paths) {
  std::vector<bool> bad;
  for (unsigned i = 0; i < paths.size(); ++i) bad.push_back(paths.member(i).bad);
  return bad;
}

TEST(PathDelay, BeginsWithTheSharesItIsGiven) {
  EXPECT_EQ(group_of({1, 1, 1, 1}).shares(), (std::vector<uint32_t>{1024, 1024, 1024, 1024}));
  EXPECT_EQ(group_of({3, 1}).shares(), (std::vector<uint32_t>{3072, 1024}));
  EXPECT_EQ(group_of({0, 0}).shares(), (std::vector<uint32_t>{2048, 2048}));
}

// Whatever is heard: all slots belong to somebody, and no update moves more than an eighth.
TEST(PathDelay, AnUpdateMovesAnEighthAtMost) {
  Random random(1);
  for (int group = 0; group < 200; ++group) {
    const unsigned n = 1 + random.below(64);
    std::vector<uint32_t> initial;
    for (unsigned i = 0; i < n; ++i) initial.push_back(random.below(1000));
    PathDelay paths = group_of(initial);
    Time now = kSecond;
    for (int step = 0; step < 50; ++step, now += kPeriod) {
      for (unsigned i = 0; i < n; ++i) {
        const uint32_t sequence = paths.send(i, now);
        if (random.below(4) == 0) continue;  // lost
        const Duration delay = random.below(3) == 0 ? 0 : random.next() % (random.below(2) == 0 ? kSecond : kPeriod);
        paths.receive(i, sequence, reading_of(delay, Rate(random.below(3) * 100'000'000'000)), now + delay);
      }
      const std::vector<uint32_t> before = paths.shares();
      const std::vector<bool> bad = bad_of(paths);
      const bool changed = paths.update(now, kPeriod);
      const std::vector<uint32_t>& after = paths.shares();
      ASSERT_EQ(std::accumulate(after.begin(), after.end(), 0U), kShareSlots);
      ASSERT_LE(moved(before, after), kMostMoved);
      ASSERT_TRUE(changed || before == after);
      ASSERT_TRUE(changed || bad == bad_of(paths));
    }
  }
}

TEST(PathDelay, SharesFollowCapacity) {
  PathDelay paths = group_of({1, 1, 1, 1});
  Time now = kSecond;
  for (int step = 0; step < 20; ++step, now += kPeriod) {
    for (unsigned i = 0; i < 4; ++i) {
      paths.receive(i, paths.send(i, now), reading_of(0, Rate::gbps(i == 2 ? 10 : 100)), now);
    }
    paths.update(now, kPeriod);
  }
  const double part = kShareSlots / 3.1;
  for (unsigned i = 0; i < 4; ++i) EXPECT_NEAR(paths.shares()[i], i == 2 ? part / 10 : part, kLeastMoved) << i;
  EXPECT_EQ(paths.bands_below_best(0), 0U);
  EXPECT_EQ(paths.bands_below_best(2), 3U);  // a tenth lies between an eighth and a sixteenth
}

TEST(PathDelay, EqualPathsStayEqual) {
  PathDelay paths = group_of({1, 1, 1, 1, 1});
  const std::vector<uint32_t> initial = paths.shares();
  Random random(2);
  Time now = kSecond;
  for (int step = 0; step < 200; ++step, now += kPeriod) {
    for (unsigned i = 0; i < 5; ++i) {
      paths.receive(i, paths.send(i, now), reading_of(random.below(20) * kMicrosecond), now);
    }
    EXPECT_FALSE(paths.update(now, kPeriod)) << "noise of 20 µs is not worth a move";
  }
  EXPECT_EQ(paths.shares(), initial);
}

TEST(PathDelay, MeasuresDelayJitterAndLoss) {
  PathDelay paths = group_of({1, 1});
  Time now = kSecond;
  for (int i = 0; i < 400; ++i, now += 20 * kMillisecond) {
    const uint32_t sequence = paths.send(0, now);
    if (i % 4 == 3) continue;
    paths.receive(0, sequence, reading_of(i % 2 == 0 ? 10 * kMicrosecond : 30 * kMicrosecond), now + kMicrosecond);
  }
  const PathDelay::Member& member = paths.member(0);
  EXPECT_NEAR(static_cast<double>(member.delay), 20e6, 8e6);
  EXPECT_GT(member.jitter, 8 * kMicrosecond);
  EXPECT_LT(member.jitter, 20 * kMicrosecond);
  EXPECT_NEAR(member.loss, 0.25, 0.2);
  EXPECT_EQ(member.sent, 400U);
  EXPECT_EQ(member.returned, 300U);
  EXPECT_NEAR(static_cast<double>(member.lost), 100, 1);
  EXPECT_FALSE(member.bad);
  EXPECT_FALSE(paths.member(1).measured);
}

TEST(PathDelay, AMemberWhoseProbesVanishIsBadUntilTheyComeBack) {
  PathDelay paths = group_of({1, 1, 1});
  Time now = kSecond;
  const auto step = [&](bool lost) {
    for (unsigned i = 0; i < 3; ++i) {
      const uint32_t sequence = paths.send(i, now);
      if (i != 1 || !lost) paths.receive(i, sequence, reading_of(kMicrosecond), now + kMicrosecond);
    }
    now += kPeriod;
    paths.update(now, kPeriod);
  };
  for (int i = 0; i < 10; ++i) step(false);
  for (int i = 0; i < 13; ++i) step(true);  // lost after the time-out of 10 ms, bad after three
  EXPECT_TRUE(paths.member(1).bad);
  for (int i = 0; i < 10; ++i) step(true);
  EXPECT_EQ(paths.shares()[1], 0U);
  for (int i = 0; i < 3; ++i) step(false);
  EXPECT_FALSE(paths.member(1).bad);
  for (int i = 0; i < 40; ++i) step(false);
  EXPECT_NEAR(paths.shares()[1], kShareSlots / 3.0, 2.0 * kLeastMoved);
}

TEST(PathDelay, WhenAllAreBadAllAreUsed) {
  PathDelay paths = group_of({1, 1});
  Time now = kSecond;
  for (int i = 0; i < 40; ++i, now += kPeriod) {
    paths.send(0, now);
    paths.send(1, now);
    paths.update(now, kPeriod);
  }
  EXPECT_TRUE(paths.member(0).bad && paths.member(1).bad);
  EXPECT_EQ(paths.shares(), (std::vector<uint32_t>{2048, 2048}));
}

TEST(PathDelay, ForgetsWhatIsOld) {
  PathDelay paths = group_of({1, 1});
  Time now = kSecond;
  for (int i = 0; i < 30; ++i, now += kPeriod) {
    paths.receive(0, paths.send(0, now), reading_of(0, Rate::gbps(10)), now);
    paths.receive(1, paths.send(1, now), reading_of(0), now);
    paths.update(now, kPeriod);
  }
  EXPECT_LT(paths.shares()[0], 500U);
  now += PathDelaySettings().max_age + kPeriod;
  for (int i = 0; i < 30; ++i) paths.update(now, kPeriod);
  EXPECT_FALSE(paths.member(0).measured);
  EXPECT_EQ(paths.shares(), (std::vector<uint32_t>{2048, 2048}));
}

TEST(PathDelay, AnAnswerThatComesTooLateStillSpeaks) {
  PathDelay paths = group_of({1, 1});
  const uint32_t sequence = paths.send(0, kSecond);
  paths.update(kSecond + 50 * kMillisecond, kPeriod);
  EXPECT_EQ(paths.member(0).lost, 1U);
  paths.receive(0, sequence, reading_of(50 * kMillisecond), kSecond + 50 * kMillisecond);
  EXPECT_EQ(paths.member(0).delay, 50 * kMillisecond);
  EXPECT_EQ(paths.member(0).returned, 0U);
  paths.receive(0, sequence + 5, reading_of(kMillisecond), kSecond + 50 * kMillisecond);  // never sent
  EXPECT_EQ(paths.member(0).delay, 50 * kMillisecond);
}

// Late is not lost: what comes back after its time-out, every time, is slow, and something gets through.
TEST(PathDelay, AMemberWhoseAnswersAreLateIsNotBad) {
  PathDelay paths = group_of({1, 1});
  Time now = kSecond;
  std::vector<uint32_t> out;
  for (int i = 0; i < 60; ++i, now += kPeriod) {
    out.push_back(paths.send(0, now));
    if (i >= 14) paths.receive(0, out[static_cast<size_t>(i) - 14], reading_of(14 * kMillisecond), now);
    paths.receive(1, paths.send(1, now), reading_of(0), now);
    paths.update(now, kPeriod);
    EXPECT_FALSE(i > 20 && paths.member(0).bad) << i;
  }
  EXPECT_GT(paths.member(0).lost, 40U);
  EXPECT_LT(paths.shares()[0], kShareSlots / 4);
}

TEST(PathDelay, AProbeThatLaterOnesOvertakeIsLostBeforeItsTimeIsUp) {
  for (const unsigned overtaken : {0U, 3U}) {
    PathDelay paths = group_of({1, 1}, {.timeout = kSecond, .overtaken = overtaken});
    Time now = kSecond;
    std::vector<uint32_t> sent;
    for (int i = 0; i < 12; ++i, now += kPeriod) {
      sent.push_back(paths.send(0, now));
      if (i == 4 || i == 5) continue;  // lost
      if (i == 9) {                    // 8 comes back after 9
        paths.receive(0, sent[9], reading_of(0), now);
        paths.receive(0, sent[8], reading_of(0), now);
      } else if (i != 8) {
        paths.receive(0, sent.back(), reading_of(0), now);
      }
      EXPECT_EQ(paths.member(0).lost, overtaken == 0 || i < 7 ? 0U : i < 9 ? 1U : 2U) << i;
    }
    EXPECT_EQ(paths.member(0).returned, 10U) << "one out of order is not lost";
    EXPECT_FALSE(paths.member(0).bad);
  }
}

TEST(PathDelay, SaysThatAMemberHasGoneBadEvenIfNoShareMoves) {
  PathDelay paths = group_of({0, 1});
  Time now = kSecond;
  bool said = false;
  for (int i = 0; i < 20; ++i, now += kPeriod) {
    paths.send(0, now);
    paths.receive(1, paths.send(1, now), reading_of(0), now);
    const bool changed = paths.update(now, kPeriod);
    EXPECT_FALSE(said && changed) << "once";
    said = said || changed;
    EXPECT_EQ(said, paths.member(0).bad) << i;
  }
  EXPECT_TRUE(said);
}

// The far switch's clock is seconds away from ours, wraps between, and runs at another speed: what members take between
// switches still comes out as how they differ.
struct Clocks {
  const char* what;
  Time far;      // reading when ours is at kSecond
  double speed;  // of the far clock
};

class Wires : public testing::TestWithParam<Clocks> {};

TEST_P(Wires, ShowAsWhatAMemberTakesMoreThanTheQuickest) {
  const std::array<Duration, 4> wires{3 * kMillisecond, 3 * kMillisecond, 40 * kMillisecond, 3 * kMillisecond};
  PathDelay paths = group_of({1, 1, 1, 1}, {.wires = true});
  Time now = kSecond;
  for (int i = 0; i < 60; ++i, now += kPeriod) {
    for (unsigned m = 0; m < 4; ++m) {
      const Duration latency = 100 * kMicrosecond;
      const auto passed = static_cast<double>(now + latency + wires[m] - kSecond) * GetParam().speed;
      PathReading reading = reading_of(latency);
      reading.transit = GetParam().far + static_cast<Duration>(passed) - now;
      paths.receive(m, paths.send(m, now), reading, now);
    }
    paths.update(now, kPeriod);
  }
  for (unsigned m = 0; m < 4; ++m) {
    const double more = m == 2 ? 37e9 : 0;
    EXPECT_NEAR(static_cast<double>(paths.member(m).wire), more, 0.3e9) << m;
    EXPECT_EQ(paths.member(m).delay, 100 * kMicrosecond) << "its own number";
  }
  // base is 8 ms: 8.1 / 45.1 of what the others have.
  EXPECT_NEAR(paths.shares()[2], paths.shares()[0] * 8.1 / 45.1, 2 * kLeastMoved);
  EXPECT_LT(paths.member(0).jitter, 50 * kMicrosecond);
}

INSTANTIATE_TEST_SUITE_P(Table, Wires,
                         testing::Values(Clocks{"the same clock", kSecond, 1},
                                         Clocks{"a day ahead", 86'400 * kSecond, 1}, Clocks{"behind", 0, 1},
                                         Clocks{"about to wrap", ~Time{0} - 20 * kMillisecond, 1},
                                         Clocks{"2000 ppm faster", 5 * kSecond, 1.002},
                                         Clocks{"2000 ppm slower", 5 * kSecond, 0.998}));

// Without `wires`, what clocks of others say is not looked at.
TEST(PathDelay, WithoutWiresTheFarClockMeansNothing) {
  PathDelay paths = group_of({1, 1});
  Time now = kSecond;
  Random random(3);
  for (int i = 0; i < 30; ++i, now += kPeriod) {
    for (unsigned m = 0; m < 2; ++m) {
      PathReading reading = reading_of(kMicrosecond);
      reading.transit = random.next();
      paths.receive(m, paths.send(m, now), reading, now);
    }
    EXPECT_FALSE(paths.update(now, kPeriod));
  }
  EXPECT_EQ(paths.member(0).wire, 0U);
  EXPECT_EQ(paths.member(0).jitter, 0U);
}

// Queues integrate: what the shares send beyond a path's rate waits there. Nobody says what the rates are, so delay
// alone must find the shares; they must come to rest, from whatever queues there were.
struct Loop {
  const char* what;
  std::vector<double> rates;  // of the load, which is 1
  std::vector<double> queues_ms;
};

class ClosedLoop : public testing::TestWithParam<Loop> {};

TEST_P(ClosedLoop, ComesToRest) {
  const Loop& loop = GetParam();
  const size_t n = loop.rates.size();
  PathDelay paths = group_of(std::vector<uint32_t>(n, 1));
  std::vector<double> queues = loop.queues_ms;  // in ms of the path's own rate
  Time now = kSecond;
  std::vector<uint32_t> lowest(n, kShareSlots);  // share from the 300th update on
  std::vector<uint32_t> highest(n, 0);
  for (int step = 0; step < 400; ++step, now += kPeriod) {
    for (unsigned i = 0; i < n; ++i) {
      const double load = paths.shares()[i] / static_cast<double>(kShareSlots);
      const auto delay = static_cast<Duration>(queues[i] * static_cast<double>(kMillisecond));
      paths.receive(i, paths.send(i, now), reading_of(delay, Rate::unlimited()), now);
      queues[i] = std::max(0.0, queues[i] + (load - loop.rates[i]) / loop.rates[i]);  // over one period
    }
    paths.update(now, kPeriod);
    for (size_t i = 0; i < n && step >= 300; ++i) {
      lowest[i] = std::min(lowest[i], paths.shares()[i]);
      highest[i] = std::max(highest[i], paths.shares()[i]);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    EXPECT_LE(highest[i] - lowest[i], 2 * kLeastMoved) << "path " << i << " has not come to rest";
    EXPECT_LE(paths.shares()[i] / static_cast<double>(kShareSlots), loop.rates[i] * 1.05 + 0.01) << "path " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ClosedLoop,
                         testing::Values(Loop{"two paths, one at a quarter of the other's rate", {0.9, 0.225}, {0, 0}},
                                         Loop{"two equal paths, one with a queue", {0.55, 0.55}, {5, 0}},
                                         Loop{"eight paths, one slow",
                                              {0.15, 0.15, 0.15, 0.15, 0.15, 0.15, 0.15, 0.03},
                                              std::vector(8, 0.0)},
                                         Loop{"four paths, queues everywhere", {0.3, 0.3, 0.3, 0.3}, {20, 0, 10, 1}}));

TEST(PathDelay, ApportionsWholeSlots) {
  EXPECT_EQ(apportion({1, 1, 1}, 4096), (std::vector<uint32_t>{1366, 1365, 1365}));
  EXPECT_EQ(apportion({0, 1}, 4096), (std::vector<uint32_t>{0, 4096}));
  EXPECT_EQ(apportion({1e-12, 1}, 4096), (std::vector<uint32_t>{0, 4096}));
}

}  // namespace
}  // namespace heddle::telemetry
