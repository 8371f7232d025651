// Rate: serialisation times, exact where a byte is a whole number of picoseconds, bounded where it is not.
#include "net/rate.h"

#include <cmath>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle {
namespace {

struct ExactRate {
  uint64_t gbps;
  uint64_t ps_per_byte;  // 8 bits ÷ rate
};

class ExactRates : public testing::TestWithParam<ExactRate> {};

TEST_P(ExactRates, AByteTakesAWholeNumberOfPicoseconds) {
  const Rate rate = Rate::gbps(GetParam().gbps);
  for (const uint64_t bytes : {0, 1, 64, 84, 1082, 1518, 4178, 9216, 65'535}) {
    EXPECT_EQ(rate.time_for(bytes), bytes * GetParam().ps_per_byte) << bytes << " bytes";
    EXPECT_EQ(rate.long_time_for(bytes), bytes * GetParam().ps_per_byte) << bytes << " bytes";
  }
  EXPECT_EQ(rate.time_for((1U << 24U) - 1), ((1U << 24U) - 1) * GetParam().ps_per_byte) << "16 MiB, at 8M and more";
}

INSTANTIATE_TEST_SUITE_P(EthernetAndInfiniBand, ExactRates,
                         testing::Values(ExactRate{1, 8000}, ExactRate{10, 800}, ExactRate{25, 320}, ExactRate{40, 200},
                                         ExactRate{50, 160}, ExactRate{100, 80}, ExactRate{200, 40}, ExactRate{400, 20},
                                         ExactRate{800, 10}, ExactRate{1600, 5}),
                         [](const auto& row) { return std::to_string(row.param.gbps) + "G"; });

TEST(Rate, AnyOtherRateIsShortByLessThanOnePicosecondAndAMillionthOfAByteTime) {
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto bits_per_second = static_cast<uint64_t>(std::pow(10.0, 7 + random.uniform() * 5));  // 10M … 1000G
    const Rate rate(bits_per_second);
    const uint64_t bytes = 1 + random.below(65'535);
    const double ps_per_byte = 8e12 / static_cast<double>(bits_per_second);
    const double exact = static_cast<double>(bytes) * ps_per_byte;
    const auto taken = static_cast<double>(rate.time_for(bytes));
    EXPECT_LE(taken, exact * (1 + 1e-12)) << bits_per_second << " bit/s, " << bytes << " bytes";
    EXPECT_GE(taken, exact - 1 - static_cast<double>(bytes) * ps_per_byte * 1e-6);
  }
}

TEST(Rate, AFrameFitsTheArithmeticDownToOneMegabit) {
  const Rate slow(1'000'000);
  EXPECT_EQ(slow.time_for(1), 8 * kMicrosecond);
  EXPECT_EQ(slow.time_for(65'535), 65'535 * 8 * kMicrosecond);
  EXPECT_EQ(slow.time_for(1U << 21U), (1U << 21U) * 8 * kMicrosecond) << "what is promised at 1M";
}

TEST(Rate, LongTimesAreTheSameArithmeticAndFurther) {
  Random random(2);
  for (int i = 0; i < 10'000; ++i) {
    const Rate rate(static_cast<uint64_t>(std::pow(10.0, 6 + random.uniform() * 7)));  // 1M … 10T
    const uint64_t bytes = random.below(1U << 21U);
    EXPECT_EQ(rate.long_time_for(bytes), rate.time_for(bytes)) << rate.bits_per_second() << " bit/s, " << bytes;
  }
  const Rate slow(1'000'000);
  EXPECT_EQ(slow.long_time_for(65'535 * 64), 65'535 * 64 * 8 * kMicrosecond) << "a whole pause";
  EXPECT_EQ(slow.long_time_for(uint64_t{1} << 40U), (uint64_t{1} << 40U) * 8 * kMicrosecond);
  EXPECT_EQ(Rate::unlimited().long_time_for(uint64_t{1} << 40U), 0U);
}

TEST(Rate, ZeroIsUnlimitedAndTakesNoTime) {
  EXPECT_TRUE(Rate().is_unlimited());
  EXPECT_TRUE(Rate::unlimited().is_unlimited());
  EXPECT_EQ(Rate::unlimited().time_for(9000), 0U);
  EXPECT_FALSE(Rate(1).is_unlimited());
  EXPECT_EQ(Rate::unlimited(), Rate(0));
}

TEST(Rate, BytesInATimeAreThoseThatTakeIt) {
  for (const uint64_t gbps : {1, 10, 100, 400, 1600}) {
    const Rate rate = Rate::gbps(gbps);
    EXPECT_EQ(rate.bytes_in(kMicrosecond), gbps * 125) << gbps << "G";
    EXPECT_EQ(rate.bytes_in(rate.time_for(1500) - 1), 1499U) << gbps << "G";
    EXPECT_EQ(rate.bytes_in(0), 0U);
  }
}

TEST(Rate, SaysWhatItWasMadeOf) {
  EXPECT_EQ(Rate::gbps(25).bits_per_second(), 25'000'000'000U);
  EXPECT_DOUBLE_EQ(Rate(2'500'000'000).gbps(), 2.5);
  EXPECT_NE(Rate::gbps(10), Rate::gbps(25));
}

}  // namespace
}  // namespace heddle
