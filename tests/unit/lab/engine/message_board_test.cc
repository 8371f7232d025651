#include "lab/engine/message_board.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "lab/workload/builder.h"

namespace heddle::lab {
namespace {

Workload messages_of(const std::vector<uint64_t>& sizes) {
  WorkloadBuilder builder(2);
  builder.add_job("job", false);
  for (const uint64_t bytes : sizes) builder.add_message(0, 1, bytes);
  return builder.finish();
}

TEST(MessageBoard, PartsAddUpDifferByAByteAtMostAndAreNeverEmpty) {
  const std::vector<uint64_t> sizes{1, 2, 3, 7, 8, 9, 100, 4096, 10'001, 2'000'000, kMaxMessageBytes};
  const Workload workload = messages_of(sizes);
  for (const uint32_t parts : {1U, 2U, 3U, 8U, 64U, 1024U}) {
    const MessageBoard board(workload, parts);
    for (MessageId m = 0; m < sizes.size(); ++m) {
      SCOPED_TRACE(testing::Message() << sizes[m] << " bytes in up to " << parts << " parts");
      const uint32_t n = board.parts_of(m);
      EXPECT_EQ(n, std::min<uint64_t>(parts, sizes[m]));
      uint64_t sum = 0;
      uint64_t least = ~uint64_t{0};
      for (uint32_t i = 0; i < n; ++i) {
        sum += board.part_bytes(m, i);
        least = std::min(least, board.part_bytes(m, i));
        if (i != 0) {
          EXPECT_LE(board.part_bytes(m, i), board.part_bytes(m, i - 1));
        }
      }
      EXPECT_EQ(sum, sizes[m]);
      EXPECT_GE(least, 1U);
      EXPECT_LE(board.part_bytes(m, 0), least + 1);
    }
  }
}

TEST(MessageBoard, AMessageIsDoneWithItsLastPart) {
  const Workload workload = messages_of({3, 100});
  MessageBoard board(workload, 4);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(board.part_received(0, 10 + i), i == 2);
    EXPECT_EQ(board.part_sent(0, 20 + i), i == 2);
  }
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(board.part_received(1, 30 + i), i == 3);
  board.released(0, 5);
  const std::vector<MessageTimes> times = board.take_times();
  EXPECT_EQ(times[0].released, 5U);
  EXPECT_EQ(times[0].received, 12U);
  EXPECT_EQ(times[0].sent, 22U);
  EXPECT_EQ(times[1].released, kNever);
  EXPECT_EQ(times[1].received, 33U);
  EXPECT_EQ(times[1].sent, kNever);
}

TEST(MessageBoard, ReleasesOnceAndIgnoresLateTriggers) {
  WorkloadBuilder builder(2);
  builder.add_job("job", false);
  const MessageId waiting = builder.add_message(0, 1, 100);
  for (unsigned i = 0; i < 4; ++i) builder.add_trigger({builder.add_message(1, 0, 1)}, waiting);
  builder.release_after(waiting, 2);
  const Workload workload = builder.finish();
  MessageBoard board(workload, 1);
  EXPECT_FALSE(board.count_trigger(waiting));
  EXPECT_TRUE(board.count_trigger(waiting));
  EXPECT_FALSE(board.count_trigger(waiting));
  EXPECT_FALSE(board.count_trigger(waiting));
}

}  // namespace
}  // namespace heddle::lab
