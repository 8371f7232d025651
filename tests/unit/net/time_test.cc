// Time: order and differences hold across the wrap of the 64-bit picosecond clock (213 days).
#include "net/time.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

constexpr Time kLast = ~Time{0};
constexpr Duration kDay = 86'400 * kSecond;

struct Pair {
  const char* description;
  Time earlier;
  Time later;
  Duration apart;
};

class OrderedTimes : public testing::TestWithParam<Pair> {};

TEST_P(OrderedTimes, EarlierComesBeforeLater) {
  const Pair& pair = GetParam();
  EXPECT_TRUE(before(pair.earlier, pair.later)) << pair.description;
  EXPECT_FALSE(before(pair.later, pair.earlier)) << pair.description;
  EXPECT_EQ(elapsed(pair.later, pair.earlier), pair.apart) << pair.description;
  EXPECT_EQ(elapsed(pair.earlier, pair.later), 0U) << "nothing has passed since a time that lies ahead";
  EXPECT_EQ(later_of(pair.earlier, pair.later), pair.later);
  EXPECT_EQ(later_of(pair.later, pair.earlier), pair.later);
}

INSTANTIATE_TEST_SUITE_P(
    Table, OrderedTimes,
    testing::Values(Pair{"neighbours at the start", 0, 1, 1}, Pair{"a second apart", kSecond, 2 * kSecond, kSecond},
                    Pair{"the wrap itself", kLast, 0, 1},
                    Pair{"10 us across the wrap", kLast - 4 * kMicrosecond + 1, 6 * kMicrosecond, 10 * kMicrosecond},
                    Pair{"106 days apart", 5, 5 + 106 * kDay, 106 * kDay},
                    Pair{"106 days across the wrap", kLast - 50 * kDay + 1, 56 * kDay, 106 * kDay},
                    Pair{"across half of the range", (Time{1} << 63U) - 1, Time{1} << 63U, 1}));

TEST(Time, ATimeIsNotBeforeItself) {
  for (const Time t : {Time{0}, Time{7}, kLast}) {
    EXPECT_FALSE(before(t, t));
    EXPECT_EQ(elapsed(t, t), 0U);
    EXPECT_EQ(later_of(t, t), t);
  }
}

TEST(Time, UnitsAreThousandsOfEachOther) {
  EXPECT_EQ(kNanosecond, 1000 * kPicosecond);
  EXPECT_EQ(kSecond, 1'000'000'000'000U);
  EXPECT_DOUBLE_EQ(to_microseconds(2'500'000), 2.5);
  EXPECT_DOUBLE_EQ(to_seconds(1'500 * kMillisecond), 1.5);
}

}  // namespace
}  // namespace heddle
