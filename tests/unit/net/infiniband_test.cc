// Local route headers, and the three CRCs of an InfiniBand link against implementations that work bit by bit, from the
// highest power of the polynomial down, as the standard draws them.
#include "net/infiniband.h"

#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"
#include "tests/support/infiniband.h"

namespace heddle::net {
namespace {

using Bytes = std::vector<uint8_t>;
using support::book_icrc;
using support::book_vcrc;

TEST(Lrh, LiesOnTheWireAsTheStandardDrawsIt) {
  // VL 3, LVer 0; SL 5, LNH 2; DLID 0x1234; 0x106 words; SLID 0xabcd.
  const Bytes wire{0x30, 0x52, 0x12, 0x34, 0x01, 0x06, 0xab, 0xcd};
  const auto* lrh = header_at<Lrh>(wire.data(), 0);
  EXPECT_EQ(virtual_lane(*lrh), 3);
  EXPECT_EQ(service_level(*lrh), 5);
  EXPECT_EQ(lrh->sl_next & 3U, kLnhBth);
  EXPECT_EQ(lrh->destination, 0x1234);
  EXPECT_EQ(lrh->length & kPacketLengthMask, 0x106);
  EXPECT_EQ(lrh->source, 0xabcd);
}

// A packet whose headers are random but for LNH.
Bytes random_packet(Random& random, bool global, size_t payload) {
  Bytes packet(8 + (global ? 40 : 0) + 12 + payload);
  for (uint8_t& byte : packet) byte = static_cast<uint8_t>(random.next());
  packet[1] = static_cast<uint8_t>((packet[1] & 0xf0U) | (global ? kLnhGrh : kLnhBth));
  return packet;
}

TEST(Icrc, IsTheBooks) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    const bool global = round % 3 == 0;
    Bytes packet = random_packet(random, global, 4 * random.below(64));
    EXPECT_EQ(infiniband_icrc(packet.data(), packet.size(), 0), book_icrc(packet)) << "round " << round;
    const size_t at_hand = packet.size();
    packet.resize(at_hand + 4 * random.below(1024));
    EXPECT_EQ(infiniband_icrc(packet.data(), at_hand, packet.size() - at_hand), book_icrc(packet)) << "zeros " << round;
  }
}

TEST(Icrc, CoversNothingThatSwitchesAndRoutersChange) {
  Random random(2);
  Bytes packet = random_packet(random, true, 32);
  const uint32_t before = infiniband_icrc(packet.data(), packet.size(), 0);
  packet[0] ^= 0xf0;           // VL
  packet[8] ^= 0x0f;           // GRH: traffic class
  packet[9] ^= 0xff;           // and flow label
  packet[11] ^= 0x01;          // flow label
  packet[15] ^= 0x40;          // hop limit
  packet[8 + 40 + 4] ^= 0xc0;  // FECN and BECN
  EXPECT_EQ(infiniband_icrc(packet.data(), packet.size(), 0), before);
  packet[1] ^= 0x10;  // SL is invariant
  EXPECT_NE(infiniband_icrc(packet.data(), packet.size(), 0), before);
}

TEST(LinkCrc, IsTheBooks) {
  Random random(3);
  for (int round = 0; round < 500; ++round) {
    Bytes packet(1 + random.below(200));
    for (uint8_t& byte : packet) byte = static_cast<uint8_t>(random.next());
    EXPECT_EQ(link_crc(packet.data(), packet.size()), book_vcrc(packet));
    const size_t head = random.below(static_cast<uint32_t>(packet.size()));
    Bytes longer(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(head));
    const size_t zeros = random.below(100);
    longer.resize(head + zeros);
    longer.insert(longer.end(), packet.begin() + static_cast<std::ptrdiff_t>(head), packet.end());
    EXPECT_EQ(link_crc(packet.data(), head, zeros, packet.data() + head, packet.size() - head), book_vcrc(longer));
  }
}

// A receiver that runs the CRC over a packet and its CRC finds the same remainder for every good packet.
TEST(LinkCrc, LeavesTheSameRemainderWithItsOwnBytesBehindIt) {
  Random random(4);
  uint16_t remainder = 0;
  for (int round = 0; round < 100; ++round) {
    Bytes packet(4 + random.below(60));
    for (uint8_t& byte : packet) byte = static_cast<uint8_t>(random.next());
    const uint16_t crc = link_crc(packet.data(), packet.size());
    packet.push_back(static_cast<uint8_t>(crc));
    packet.push_back(static_cast<uint8_t>(crc >> 8U));
    const uint16_t found = link_crc(packet.data(), packet.size());
    if (round == 0) remainder = found;
    EXPECT_EQ(found, remainder);
  }
}

}  // namespace
}  // namespace heddle::net
