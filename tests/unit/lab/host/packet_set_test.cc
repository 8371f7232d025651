#include "lab/host/packet_set.h"

#include <set>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::lab {
namespace {

// Against std::set, with a first packet that moves as a queue pair's does: sometimes by one, sometimes far.
TEST(PacketSet, HoldsWhatAStdSetHolds) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    PacketSet packets;
    std::set<uint64_t> expected;
    uint64_t first = random.below(3) * 63;  // also beside and in the middle of a word
    packets.advance_to(first);
    const uint32_t reach = 1U << (3 + random.below(9));
    for (int step = 0; step < 20'000; ++step) {
      const uint64_t psn = first + random.below(reach);
      switch (random.below(8)) {
        case 0:
          first += random.below(3) == 0 ? random.below(reach) : 1;
          packets.advance_to(first);
          expected.erase(expected.begin(), expected.lower_bound(first));
          break;
        case 1:
          ASSERT_EQ(packets.take(psn), expected.erase(psn) != 0);
          break;
        case 2:
        case 3:
        case 4:
          packets.insert(psn);
          expected.insert(psn);
          break;
        default:
          ASSERT_EQ(packets.contains(psn), expected.count(psn) != 0) << "seed " << seed << ", step " << step;
      }
      ASSERT_EQ(packets.empty(), expected.empty()) << "seed " << seed << ", step " << step;
      ASSERT_EQ(packets.first(), first);
    }
    for (uint64_t psn = first > 200 ? first - 200 : 0; psn < first + 2 * reach; ++psn) {
      ASSERT_EQ(packets.contains(psn), expected.count(psn) != 0) << "seed " << seed << ", PSN " << psn;
    }
  }
}

TEST(PacketSet, IsEmptyAgainOnceAllIsTaken) {
  PacketSet packets;
  EXPECT_TRUE(packets.empty());
  EXPECT_FALSE(packets.contains(0));
  EXPECT_FALSE(packets.take(0));
  for (const uint64_t psn : {0U, 63U, 64U, 4095U}) packets.insert(psn);
  for (const uint64_t psn : {4095U, 0U, 64U}) EXPECT_TRUE(packets.take(psn));
  EXPECT_FALSE(packets.empty());
  EXPECT_TRUE(packets.take(63));
  EXPECT_TRUE(packets.empty());
}

}  // namespace
}  // namespace heddle::lab
