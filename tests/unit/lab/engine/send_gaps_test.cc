// Pauses between packets, by their length.
#include "lab/engine/send_gaps.h"

#include <array>

#include <gtest/gtest.h>

namespace heddle::lab {
namespace {

TEST(SendGaps, AreCountedByTheLengthTheyReach) {
  SendGaps gaps;
  for (const Duration gap : {Duration{0}, kMicrosecond - 1, kMicrosecond, 3 * kMicrosecond, 4 * kMicrosecond,
                             1023 * kMicrosecond, 1024 * kMicrosecond, kSecond}) {
    gaps.note(gap);
  }
  SendGaps twice = gaps;
  twice += gaps;
  const std::array<uint64_t, SendGaps::kLengths> expected{6, 5, 4, 3, 3, 3, 3, 3, 3, 3, 2};
  for (unsigned i = 0; i < SendGaps::kLengths; ++i) {
    EXPECT_EQ(SendGaps::length(i), kMicrosecond << i);
    EXPECT_EQ(gaps.at_least(i), expected[i]) << i;
    EXPECT_EQ(twice.at_least(i), 2 * expected[i]) << i;
  }
}

}  // namespace
}  // namespace heddle::lab
