// EgressQueue: order through growth, limits in bytes and in packets, honest byte counts.
#include "dataplane/egress_queue.h"

#include <gtest/gtest.h>

#include "tests/support/queued.h"

namespace heddle::dataplane {
namespace {

using support::Stock;

TEST(EgressQueue, StartsEmpty) {
  const EgressQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.packets(), 0U);
  EXPECT_EQ(queue.bytes(), 0U);
  EXPECT_EQ(queue.peak_bytes(), 0U);
}

// The ring doubles while its oldest packet stands at any place of it (an empty one starts again at the first).
TEST(EgressQueue, KeepsOrderThroughGrowthFromEveryPosition) {
  for (unsigned shift = 0; shift < 40; ++shift) {
    Stock stock;
    EgressQueue queue;
    ASSERT_TRUE(queue.push(stock.make(0, 64)));
    for (unsigned i = 0; i < shift; ++i) {
      ASSERT_TRUE(queue.push(stock.make(0, 64)));
      queue.pop();
    }
    for (unsigned i = 1; i < 300; ++i) ASSERT_TRUE(queue.push(stock.make(0, 64)));
    EXPECT_EQ(queue.packets(), 300U);
    for (unsigned i = 0; i < 300; ++i) {
      ASSERT_EQ(support::serial_of(queue.front()), shift + i);
      ASSERT_EQ(support::serial_of(queue.pop().packet()), shift + i);
    }
    EXPECT_TRUE(queue.empty());
  }
}

TEST(EgressQueue, KeepsOrderWhenReservedLater) {
  Stock stock;
  EgressQueue queue;
  for (unsigned i = 0; i < 10; ++i) queue.push(stock.make(0, 100));
  for (unsigned i = 0; i < 7; ++i) queue.pop();
  queue.reserve(100);  // not a power of two
  queue.reserve(3);    // less than there is
  for (unsigned i = 10; i < 120; ++i) ASSERT_TRUE(queue.push(stock.make(0, 100)));
  for (unsigned i = 7; i < 120; ++i) ASSERT_EQ(support::serial_of(queue.pop().packet()), i);
  EXPECT_EQ(queue.bytes(), 0U);
}

struct Limits {
  const char* description;
  uint64_t bytes;
  uint32_t packets;
  uint32_t frame;
  unsigned fit;  // how many frames of that size
};

class QueueLimits : public testing::TestWithParam<Limits> {};

TEST_P(QueueLimits, HoldExactlyWhatFits) {
  const Limits& row = GetParam();
  for (const bool reserved : {false, true}) {
    Stock stock;
    EgressQueue queue;
    queue.configure(row.bytes, row.packets);
    if (reserved) queue.reserve(row.packets);
    unsigned held = 0;
    while (held < 1000 && queue.push(stock.make(0, row.frame))) ++held;
    EXPECT_EQ(held, row.fit) << row.description;
    EXPECT_EQ(queue.packets(), row.fit);
    EXPECT_EQ(queue.bytes(), uint64_t{row.fit} * row.frame) << "a refused packet is not counted";
    EXPECT_EQ(queue.peak_bytes(), uint64_t{row.fit} * row.frame);
    if (held == 0) continue;
    queue.pop();  // room for one again
    EXPECT_TRUE(queue.push(stock.make(0, row.frame)));
    EXPECT_FALSE(queue.push(stock.make(0, row.frame)));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, QueueLimits,
                         testing::Values(Limits{"bytes, exactly full", 10'000, 500, 1000, 10},
                                         Limits{"bytes, a byte short of one more", 10'999, 500, 1000, 10},
                                         Limits{"one frame", 1500, 500, 1500, 1},
                                         Limits{"less than one frame", 1499, 500, 1500, 0},
                                         Limits{"nothing at all", 0, 500, 60, 0},
                                         Limits{"packets before bytes", 1'000'000, 16, 60, 16},
                                         Limits{"packets, no power of two", 1'000'000, 100, 60, 100},
                                         Limits{"one packet", EgressQueue::kUnlimited, 1, 9000, 1}));

TEST(EgressQueue, SmallFramesFitWhereLargeOnesDoNot) {
  Stock stock;
  EgressQueue queue;
  queue.configure(2000, 100);
  EXPECT_TRUE(queue.push(stock.make(0, 1500)));
  EXPECT_FALSE(queue.push(stock.make(0, 1500)));
  EXPECT_TRUE(queue.push(stock.make(0, 500)));
  EXPECT_FALSE(queue.push(stock.make(0, 1)));
  EXPECT_EQ(queue.bytes(), 2000U);
}

TEST(EgressQueue, PeakStaysAfterTheQueueDrains) {
  Stock stock;
  EgressQueue queue;
  for (int i = 0; i < 5; ++i) queue.push(stock.make(0, 1000));
  for (int i = 0; i < 5; ++i) queue.pop();
  queue.push(stock.make(0, 1000));
  EXPECT_EQ(queue.bytes(), 1000U);
  EXPECT_EQ(queue.peak_bytes(), 5000U);
}

}  // namespace
}  // namespace heddle::dataplane
