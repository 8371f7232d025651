// Arrivals in order of time: the same as a sort by comparison, however the times lie in the window.
#include "lab/engine/time_order.h"

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::lab {
namespace {

constexpr unsigned kBits = 36;  // a window of a microsecond, and the port

struct Case {
  std::string what;
  size_t count;
  std::function<uint64_t(Random&, size_t)> order;  // of the i-th arrival
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.what; }

uint64_t anywhere(Random& random, size_t /*i*/) { return random.next() >> (64U - kBits); }

class TimeOrderOf : public testing::TestWithParam<Case> {};

TEST_P(TimeOrderOf, IsThatOfAComparisonSort) {
  Random random(1);
  TimeOrder order;  // one for all rounds, as a switch has
  for (int round = 0; round < 50; ++round) {
    std::vector<Arrival> arrivals;
    std::vector<uint64_t> wanted;
    for (size_t i = 0; i < GetParam().count; ++i) {
      const uint64_t at = GetParam().order(random, i);
      if (std::find(wanted.begin(), wanted.end(), at) != wanted.end()) continue;  // no two are alike
      wanted.push_back(at);
      arrivals.push_back({at, reinterpret_cast<Packet*>(at)});  // NOLINT(performance-no-int-to-ptr): a mark
    }
    std::sort(wanted.begin(), wanted.end());
    order.sort(arrivals, kBits);
    ASSERT_EQ(arrivals.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(arrivals[i].order, wanted[i]) << "place " << i;
      ASSERT_EQ(reinterpret_cast<uint64_t>(arrivals[i].packet), wanted[i]) << "the packet goes with its time";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, TimeOrderOf,
    testing::Values(Case{"none", 0, anywhere}, Case{"one", 1, anywhere}, Case{"as few as need no slots", 8, anywhere},
                    Case{"one more", 9, anywhere}, Case{"as many as a switch of 16 ports has", 60, anywhere},
                    Case{"more than there are slots", 1500, anywhere},
                    Case{"all in one slot", 300, [](Random& r, size_t /*i*/) { return r.next() >> 50U; }},
                    Case{"the latest that there can be", 100,
                         [](Random& r, size_t /*i*/) { return (uint64_t{1} << kBits) - 1 - (r.next() >> 40U); }},
                    Case{"port by port, each in order", 640,
                         [](Random& /*r*/, size_t i) { return (i % 40) * (uint64_t{1} << 30U) | i / 40; }}));

TEST(TimeOrder, OfAWindowShorterThanItsSlots) {
  TimeOrder order;
  std::vector<Arrival> arrivals;
  for (uint64_t i = 0; i < 20; ++i) arrivals.push_back({19 - i, nullptr});
  order.sort(arrivals, 5);
  for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(arrivals[i].order, i);
}

}  // namespace
}  // namespace heddle::lab
