#include "net/management.h"

#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::net {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes written(const ReachNotice& notice) {
  Bytes packet(kNoticeHeaders, 0xaa);
  write_reach_notice(packet.data(), 0x0123, 0x456789, notice);
  return packet;
}

const ReachNotice kNotice{.sweep = 7, .restored = false, .count = 2, .ranges = {LidRange{0x10, 3}, LidRange{0x200, 1}}};

// Offsets as IBTA 7.7, 9.2, 9.3.1, 13.4.2 and 14.2.1 draw them.
TEST(Management, LiesOnTheWireAsTheStandardDrawsIt) {
  const Bytes packet = written(kNotice);
  EXPECT_EQ(packet[0], 0xf0) << "VL15";
  EXPECT_EQ(packet[1], 0x02) << "SL 0, a BTH follows";
  EXPECT_EQ(packet[2] << 8U | packet[3], 0xffff) << "the permissive LID";
  EXPECT_EQ(packet[4] << 8U | packet[5], (8 + 12 + 8 + 256 + 4) / 4) << "words up to the VCRC";
  EXPECT_EQ(packet[6] << 8U | packet[7], 0x0123);
  EXPECT_EQ(packet[8], 0x64) << "UD SEND only";
  EXPECT_EQ(packet[10] << 8U | packet[11], 0xffff) << "the default P_Key";
  EXPECT_EQ(packet[13] | packet[14] | packet[15], 0) << "QP 0";
  EXPECT_EQ(packet[28], 1) << "base version";
  EXPECT_EQ(packet[29], 1) << "subnet management, LID routed";
  EXPECT_EQ(packet[31], 5) << "Trap";
  EXPECT_EQ(packet[44] << 8U | packet[45], 2) << "Notice";
  EXPECT_EQ(kManagementFrame, 8U + 12 + 8 + 256 + 4 + 2);
}

TEST(Management, WhatIsWrittenIsRead) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    ReachNotice notice;
    notice.sweep = static_cast<uint16_t>(random.next());
    notice.restored = random.below(2) == 1;
    notice.count = static_cast<uint8_t>(random.below(ReachNotice::kMostRanges + 1));
    for (size_t i = 0; i < notice.count; ++i) {
      notice.ranges[i] = {static_cast<uint16_t>(random.below(0xc000)), static_cast<uint16_t>(random.below(0x4000))};
    }
    const Bytes packet = written(notice);
    ReachNotice read;
    ASSERT_TRUE(parse_reach_notice(packet.data(), packet.size(), read));
    EXPECT_EQ(read, notice);
  }
}

TEST(Management, WhatIsNoNoticeIsRefused) {
  ReachNotice read;
  const Bytes good = written(kNotice);
  EXPECT_FALSE(parse_reach_notice(good.data(), good.size() - 1, read)) << "too short";
  struct Row {
    const char* description;
    size_t at;
    uint8_t value;
  };
  for (const Row& row :
       {Row{"a data lane", 0, 0x10}, Row{"another opcode", 8, 0x04}, Row{"performance class", 29, 0x04},
        Row{"a Get", 31, 0x01}, Row{"another attribute", 45, 0x11}, Row{"a generic notice", 92, 0x81},
        Row{"another vendor's", 93, 0x00}, Row{"neither lost nor restored", 102, 2},
        Row{"more ranges than there are", 103, 7}, Row{"a range beyond all LIDs", 106, 0xff}}) {
    Bytes bad = good;
    bad[row.at] = row.value;
    if (row.at == 106) bad[104] = 0xff;
    EXPECT_FALSE(parse_reach_notice(bad.data(), bad.size(), read)) << row.description;
  }
}

}  // namespace
}  // namespace heddle::net
