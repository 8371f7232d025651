// The reaction point against traces worked out by hand, and the rules that hold for any sequence of CNPs.
#include "flowctl/dcqcn.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::flowctl {
namespace {

constexpr Rate kLine = Rate::gbps(100);
constexpr uint64_t kMega = 1'000'000;

// Numbers that can be halved by hand: alpha moves by 1/2, a cut every 4 µs, an increase every 10 µs.
DcqcnSettings round_numbers() {
  DcqcnSettings settings;
  settings.g = 0.5;
  settings.alpha_interval = kMicrosecond;
  settings.cut_interval = 4 * kMicrosecond;
  settings.increase_interval = 10 * kMicrosecond;
  settings.fast_recovery_steps = 2;
  settings.additive = Rate(1000 * kMega);
  settings.hyper = Rate(4000 * kMega);
  settings.min_rate = Rate(1000 * kMega);
  return settings;
}

struct TraceRow {
  const char* what;
  double at_us;
  bool cnp;       // one comes at this time
  uint64_t mbps;  // the rate right after
};

void follow(ReactionPoint& point, const std::vector<TraceRow>& trace) {
  for (const TraceRow& row : trace) {
    const auto now = static_cast<Time>(row.at_us * 1e6);
    if (row.cnp) point.on_cnp(now);
    EXPECT_EQ(point.rate(now).bits_per_second() / kMega, row.mbps) << row.what << " at " << row.at_us << " us";
  }
}

// alpha is 1 at the first CNP (100 us) and halves at 101, 102, 103, 104 us as no other comes: 1/16 at the cut of 104
// us.
TEST(ReactionPoint, OneCnpByHand) {
  const DcqcnSettings settings = round_numbers();
  ReactionPoint point(settings, kLine);
  follow(point, {
                    {"line rate before any CNP", 0, false, 100'000},
                    {"the CNP only takes note", 100, true, 100'000},
                    {"still", 103.9, false, 100'000},
                    {"100 G × (1 − 1/32)", 104, false, 96'875},
                    {"until the first increase", 113.9, false, 96'875},
                    {"fast recovery: half the way back to 100 G", 114, false, 98'437},
                    {"and again", 124, false, 99'218},
                    {"additive, but the target is the line's rate already", 134, false, 99'609},
                    {"hyper, likewise", 144, false, 99'804},
                });
  EXPECT_EQ(point.target(), kLine);
  EXPECT_DOUBLE_EQ(point.alpha(), 1.0 / 16);
  EXPECT_EQ(point.cuts(), 1U);
  EXPECT_TRUE(point.is_limited());
  EXPECT_EQ(point.rate(kMillisecond), kLine) << "at last the line's rate is reached";
  EXPECT_FALSE(point.is_limited());
}

// Two cuts in a row, then increases from below the line's rate: all three phases.
// Interval ends of alpha: 101, 102, …; of cuts: 104, 108, 112, ….
//   alpha: 1 → 101: 1/2 → 102: 1/4 → 103: 1/8 → 104: 1/16. Cut: 100 000 × (1 − 1/32) = 96 875; the target stays 100
//   000. CNPs at 104.5, 105.5, 106.5, 107.5: 105: 17/32, 106: 49/64, 107: 113/128, 108: 241/256. Cut: 96 875 × (1 −
//   241/512) = 51 275.6; no increase since the last cut: the target stays 100 000. 118 and 128: fast recovery towards
//   100 000: 75 637.8, 87 818.9. A CNP at 128.2; alpha halves at 109, …, 128 (20 times) and goes to ~1/2 at 129, then
//   to ~1/8 by 131 and ~1/16 at 132. Cut at 132: target := 87 818.9; rate 87 818.9 × (1 − ~1/32) = 85 074.5. 142, 152:
//   fast recovery: 86 446.7, 87 132.8. 162: additive: target 88 818.9, rate 87 975.9. 172, 182: hyper: targets 92
//   818.9, 96 818.9; rates 90 397.4, 93 608.1.
TEST(ReactionPoint, AllPhasesByHand) {
  const DcqcnSettings settings = round_numbers();
  ReactionPoint point(settings, kLine);
  follow(point, {
                    {"first CNP", 100, true, 100'000},
                    {"first cut", 104, false, 96'875},
                    {"steady CNPs", 104.5, true, 96'875},
                    {"", 105.5, true, 96'875},
                    {"", 106.5, true, 96'875},
                    {"", 107.5, true, 96'875},
                    {"second cut, deeper", 108, false, 51'275},
                    {"fast recovery", 118, false, 75'637},
                    {"fast recovery", 128, false, 87'818},
                    {"a CNP again", 128.2, true, 87'818},
                    {"third cut: the rate before becomes the target", 132, false, 85'074},
                    {"fast recovery to 87.8 G", 142, false, 86'446},
                    {"fast recovery", 152, false, 87'132},
                    {"additive increase", 162, false, 87'975},
                    {"hyper increase", 172, false, 90'397},
                    {"hyper increase", 182, false, 93'608},
                });
  EXPECT_EQ(point.target().bits_per_second() / kMega, 96'818U);
  EXPECT_EQ(point.cuts(), 3U);
}

// Looking in between changes nothing: a rate asked for once equals one asked for every 100 ns.
TEST(ReactionPoint, DoesNotDependOnWhenItIsAsked) {
  for (const DcqcnSet& set : dcqcn_sets()) {
    const DcqcnSettings settings = set.at(kLine);
    ReactionPoint watched(settings, kLine);
    ReactionPoint alone(settings, kLine);
    Random random(7);
    Time now = 0;
    for (int i = 0; i < 300; ++i) {
      const Time cnp = now + random.below(400) * kMicrosecond + random.below(1'000'000);
      for (; now < cnp; now += 100 * kNanosecond) watched.rate(now);
      now = cnp;
      watched.on_cnp(now);
      alone.on_cnp(now);
      ASSERT_EQ(watched.rate(now), alone.rate(now)) << set.name;
      ASSERT_EQ(watched.target(), alone.target()) << set.name;
    }
  }
}

TEST(ReactionPoint, ClampTakesEveryRateBeforeACutAsTarget) {
  DcqcnSettings settings = round_numbers();
  settings.clamp_target = true;
  ReactionPoint point(settings, kLine);
  point.on_cnp(0);
  point.on_cnp(5 * kMicrosecond);  // cuts at 4 and 8 us
  EXPECT_LT(point.rate(8 * kMicrosecond).bits_per_second(), 96'875 * kMega);
  EXPECT_EQ(point.target().bits_per_second(), 96'875 * kMega);
}

// The byte counter alone: timer of a second, an increase each 1 MB. Two steps of fast recovery, then additive for ever:
// hyper increase wants both counters beyond fast recovery.
TEST(ReactionPoint, ByteCounterIncreases) {
  DcqcnSettings settings = round_numbers();
  settings.increase_interval = kSecond;
  settings.byte_counter = 1'000'000;
  ReactionPoint point(settings, kLine);
  Time now = 0;
  const auto cnps = [&](int n) {
    for (int i = 0; i < n; ++i, now += kMicrosecond) point.on_cnp(now);
  };
  cnps(40);  // alpha stays near 1: ten cuts by about half
  point.rate(now + 4 * kMicrosecond);
  EXPECT_EQ(point.rate(now).bits_per_second(), 1000 * kMega) << "never below min_rate";
  now += 10 * kMicrosecond;
  point.on_sent(999'999, now);
  EXPECT_EQ(point.rate(now).bits_per_second(), 1000 * kMega);
  point.on_sent(1, now);
  EXPECT_EQ(point.rate(now).bits_per_second(), 50'500 * kMega) << "fast recovery: the target is still 100 G";
  point.on_cnp(now);  // alpha has decayed; target := 50.5 G
  now += 4 * kMicrosecond;
  const uint64_t low = point.rate(now).bits_per_second();
  EXPECT_LT(low, 50'500 * kMega);
  point.on_sent(2'000'000, now);  // two steps of fast recovery
  EXPECT_EQ(point.target().bits_per_second(), 50'500 * kMega);
  for (uint64_t i = 1; i <= 5; ++i) {
    point.on_sent(1'000'000, now);
    EXPECT_EQ(point.target().bits_per_second(), (50'500 + i * 1000) * kMega) << "additive step " << i;
  }
}

// Whatever comes: min ≤ rate ≤ line, target ≤ line, 0 ≤ alpha ≤ 1, and after a second of silence nearer to the line.
TEST(ReactionPoint, StaysWithinBounds) {
  for (const DcqcnSet& set : dcqcn_sets()) {
    const DcqcnSettings settings = set.at(kLine);
    Random random(3);
    ReactionPoint point(settings, kLine);
    Time now = 0;
    for (int i = 0; i < 20'000; ++i) {
      now += random.below(1U << random.below(28));
      if (random.below(3) != 0) point.on_cnp(now);
      point.on_sent(random.below(70'000), now);
      const uint64_t rate = point.rate(now).bits_per_second();
      ASSERT_GE(rate, settings.min_rate.bits_per_second()) << set.name;
      ASSERT_LE(rate, kLine.bits_per_second()) << set.name;
      ASSERT_LE(point.target().bits_per_second(), kLine.bits_per_second()) << set.name;
      ASSERT_GE(point.alpha(), 0) << set.name;
      ASSERT_LE(point.alpha(), 1) << set.name;
    }
    EXPECT_GT(point.cuts(), 1000U) << set.name;
    const uint64_t before = point.rate(now + 4 * kMicrosecond).bits_per_second();
    EXPECT_GT(point.rate(now + kSecond).bits_per_second(), before) << set.name;
  }
}

struct CnpRow {
  const char* what;
  Duration interval;
  std::vector<double> marked_us;
  std::vector<double> cnps_us;
};

TEST(NotificationPoint, KeepsItsInterval) {
  const CnpRow rows[] = {
      {"without an interval each is answered", 0, {0, 0.1, 0.1, 7}, {0, 0.1, 0.1, 7}},
      {"the first at once, then not before 4 us later", 4 * kMicrosecond, {1, 2, 4.9, 5, 5.1, 9}, {1, 5, 9}},
      {"the interval runs from the CNP, not on a grid", 50 * kMicrosecond, {10, 70, 119, 121}, {10, 70, 121}},
  };
  for (const CnpRow& row : rows) {
    NotificationPoint point;
    std::vector<double> cnps;
    for (const double at : row.marked_us) {
      if (point.on_marked(static_cast<Time>(at * 1e6), row.interval)) cnps.push_back(at);
    }
    EXPECT_EQ(cnps, row.cnps_us) << row.what;
  }
}

struct SetRow {
  const char* name;
  uint64_t line_gbps;
  uint64_t additive_mbps;
  uint64_t hyper_mbps;
  uint64_t min_mbps;
};

// The authors' scripts: HPCC AI 5 × bw/25, HAI 50 × bw/25; ConWeave AI 10 × bw/25, HAI 25 × bw/25. A NIC's are fixed.
TEST(DcqcnSets, ScaleAsTheirAuthorsDo) {
  for (const SetRow& row :
       {SetRow{"hpcc", 100, 20, 200, 1000}, SetRow{"hpcc", 25, 5, 50, 1000}, SetRow{"conweave", 100, 40, 100, 100},
        SetRow{"conweave", 400, 160, 400, 100}, SetRow{"paper", 50, 10, 100, 1000}, SetRow{"nvidia", 400, 5, 50, 1}}) {
    const DcqcnSet* set = find_dcqcn_set(row.name);
    ASSERT_NE(set, nullptr) << row.name;
    const DcqcnSettings settings = set->at(Rate::gbps(row.line_gbps));
    EXPECT_EQ(settings.additive.bits_per_second(), row.additive_mbps * kMega) << row.name;
    EXPECT_EQ(settings.hyper.bits_per_second(), row.hyper_mbps * kMega) << row.name;
    EXPECT_EQ(settings.min_rate.bits_per_second(), row.min_mbps * kMega) << row.name;
  }
  EXPECT_EQ(find_dcqcn_set("dctcp"), nullptr);
}

}  // namespace
}  // namespace heddle::flowctl
