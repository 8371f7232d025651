// InfiniBand's congestion control: marking by threshold and rate, and the sender's index over time, against traces
// worked out by hand.
#include "flowctl/ib_congestion.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::flowctl {
namespace {

// --- switches

struct ThresholdRow {
  const char* description;
  uint8_t threshold;
  uint64_t above;  // of a buffer of 128 KiB
};

TEST(FecnSettings, LowersItsThresholdEvenly) {
  for (const ThresholdRow& row : {ThresholdRow{"the most aggressive: a sixteenth", 15, 8 * 1024},
                                  ThresholdRow{"half", 8, 64 * 1024}, ThresholdRow{"the least", 1, 120 * 1024}}) {
    SCOPED_TRACE(row.description);
    const FecnSettings settings{.threshold = row.threshold};
    const WredCurve curve = settings.curve(128 * 1024);
    EXPECT_EQ(curve.min_bytes, row.above);
    Random random(1);
    const Wred wred(curve);
    EXPECT_FALSE(wred.strikes(row.above, random));
    EXPECT_TRUE(wred.strikes(row.above + 1, random)) << "marking rate 0: every packet";
  }
  EXPECT_FALSE((FecnSettings{.threshold = 0}.curve(128 * 1024).is_on()));
}

TEST(FecnSettings, LeavesAsManyPacketsAloneAsItsRateSays) {
  for (const uint16_t rate : {0, 1, 10, 999}) {
    SCOPED_TRACE(rate);
    const Wred wred(FecnSettings{.marking_rate = rate}.curve(128 * 1024));
    Random random(7);
    constexpr unsigned kPackets = 200'000;
    unsigned marked = 0;
    for (unsigned i = 0; i < kPackets; ++i) marked += wred.strikes(100'000, random) ? 1 : 0;
    const double expected = kPackets / (rate + 1.0);
    EXPECT_NEAR(marked, expected, rate == 0 ? 0 : 4 * std::sqrt(expected));
  }
}

// --- the table

TEST(CctEntry, DelaysByTheShiftedPacketTimeTimesTheMultiplier) {
  constexpr Duration kPacket = 329'760;  // 4122 bytes at 100G
  EXPECT_EQ((CctEntry{0, 0}.delay_after(kPacket)), 0U);
  EXPECT_EQ((CctEntry{0, 1}.delay_after(kPacket)), kPacket);
  EXPECT_EQ((CctEntry{3, 1}.delay_after(kPacket)), kPacket / 8);
  EXPECT_EQ((CctEntry{2, 6}.delay_after(kPacket)), kPacket / 4 * 6);
  EXPECT_EQ((CctEntry{0, 0x3fff}.delay_after(kPacket)), kPacket * 16'383);
}

TEST(QuadraticCct, GrowsToWhatAllHostsTogetherNeed) {
  const std::vector<CctEntry> table = quadratic_cct(4, 16);
  // 16 × (i/4)² packet times, in eighths: 0, 1, 4, 9, 16.
  EXPECT_EQ(table, (std::vector<CctEntry>{{3, 0}, {3, 8}, {3, 32}, {3, 72}, {3, 128}}));
  const std::vector<CctEntry> large = quadratic_cct(127, 15'999);  // eighths, quarters and halves do not fit
  EXPECT_EQ(large.size(), 128U);
  EXPECT_EQ(large.back(), (CctEntry{0, 15'999}));
  EXPECT_EQ(quadratic_cct(127, 100'000).back().multiplier, CctEntry::kMaxMultiplier);
  EXPECT_EQ(quadratic_cct(0, 100), (std::vector<CctEntry>{{3, 0}}));
}

// --- senders

CctiSettings settings_of(uint8_t increase, uint16_t limit, uint16_t min, Duration timer) {
  CctiSettings settings{.increase = increase, .limit = limit, .min = min, .timer = timer};
  for (uint16_t i = 0; i <= limit; ++i) settings.table.push_back({0, i});  // index = delay in packet times
  return settings;
}

struct Step {
  const char* description;
  Duration at;  // µs
  bool becn;
  uint16_t index;  // from then on
};

void expect_trace(const CctiSettings& settings, const std::vector<Step>& steps) {
  InjectionPoint point(settings);
  for (const Step& step : steps) {
    SCOPED_TRACE(step.description);
    const Time now = step.at * kMicrosecond;
    if (step.becn) point.on_becn(now);
    EXPECT_EQ(point.delay_after(1000, now), step.index * Duration{1000});
    EXPECT_EQ(point.index(), step.index);
  }
}

TEST(InjectionPoint, RisesWithBecnsAndFallsWithTime) {
  expect_trace(settings_of(1, 10, 0, 10 * kMicrosecond), {
                                                             {"no BECN, no delay", 5, false, 0},
                                                             {"the first starts the timer", 7, true, 1},
                                                             {"the second does not restart it", 12, true, 2},
                                                             {"a moment before its end at 17", 16, false, 2},
                                                             {"one less", 17, false, 1},
                                                             {"until 27", 26, false, 1},
                                                             {"the lowest: the timer stops", 27, false, 0},
                                                             {"so that it begins anew", 40, true, 1},
                                                             {"at 50", 49, false, 1},
                                                             {"and falls then", 50, false, 0},
                                                         });
}

TEST(InjectionPoint, MakesUpForWhatNobodyAskedAbout) {
  expect_trace(settings_of(4, 10, 0, 10 * kMicrosecond), {
                                                             {"four at once", 0, true, 4},
                                                             {"three ends: 10, 20, 30", 35, false, 1},
                                                             {"a BECN after a fourth, at 40", 45, true, 4},
                                                             {"the timer began anew at 45", 54, false, 4},
                                                             {"and ends at 55", 55, false, 3},
                                                             {"long after", 1'000'000, false, 0},
                                                         });
}

TEST(InjectionPoint, StaysBetweenItsBounds) {
  expect_trace(settings_of(4, 10, 2, 10 * kMicrosecond), {
                                                             {"it begins at the lowest", 0, false, 2},
                                                             {"one", 0, true, 6},
                                                             {"two", 0, true, 10},
                                                             {"three: at the limit", 1, true, 10},
                                                             {"nine ends", 91, false, 2},
                                                             {"never below", 500, false, 2},
                                                         });
}

TEST(InjectionPoint, RemembersTheHighestIndex) {
  const CctiSettings settings = settings_of(3, 100, 0, kMicrosecond);
  InjectionPoint point(settings);
  EXPECT_EQ(point.peak(), 0U);
  point.on_becn(0);
  point.on_becn(0);
  point.on_becn(50 * kMicrosecond);
  EXPECT_EQ(point.index(), 3U);
  EXPECT_EQ(point.peak(), 6U);
}

}  // namespace
}  // namespace heddle::flowctl
