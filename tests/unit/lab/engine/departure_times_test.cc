#include "lab/engine/departure_times.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::lab {
namespace {

TEST(DepartureTimes, FirstIsTheEarliestAndOfEqualsTheLowestPort) {
  for (const size_t ports : {1U, 2U, 3U, 5U, 16U, 17U, 64U, 100U}) {
    SCOPED_TRACE(ports);
    DepartureTimes times(ports, true);
    std::vector<Time> expected(ports, kNever);
    EXPECT_EQ(times.first_time(), kNever);
    Random random(ports);
    for (int step = 0; step < 2000; ++step) {
      const auto port = static_cast<PortId>(random.below(static_cast<uint32_t>(ports)));
      const Time at = random.below(4) == 0 ? kNever : Time{random.below(50)};  // so few that many are equal
      times.set(port, at);
      expected[port] = at;
      const auto first = std::min_element(expected.begin(), expected.end());
      ASSERT_EQ(times.first_time(), *first);
      if (*first != kNever) {
        ASSERT_EQ(times.first(), first - expected.begin());
      }
      ASSERT_EQ(times.at(port), at);
    }
  }
}

TEST(DepartureTimes, KeepsEachPortsTimeWhereNobodyAsksForTheFirst) {
  DepartureTimes times(6, false);
  EXPECT_EQ(times.ports(), 6U);
  for (PortId port = 0; port < 6; ++port) EXPECT_EQ(times.at(port), kNever);
  times.set(4, 7);
  times.set(5, 3);
  EXPECT_EQ(times.at(4), 7U);
  EXPECT_EQ(times.at(5), 3U);
  times.prefetch();
}

}  // namespace
}  // namespace heddle::lab
