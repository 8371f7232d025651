// Wire layouts: big-endian fields at the byte the standards say.
#include "net/headers.h"

#include <type_traits>

#include <gtest/gtest.h>

namespace heddle::net {
namespace {

template <typename Field>
std::array<uint8_t, sizeof(Field)> bytes_of(const Field& field) {
  std::array<uint8_t, sizeof(Field)> bytes{};
  std::memcpy(bytes.data(), &field, sizeof field);
  return bytes;
}

TEST(BigEndian, MostSignificantByteLiesFirst) {
  EXPECT_EQ(bytes_of(Be16(0x1234)), (std::array<uint8_t, 2>{0x12, 0x34}));
  EXPECT_EQ(bytes_of(Be24(0x123456)), (std::array<uint8_t, 3>{0x12, 0x34, 0x56}));
  EXPECT_EQ(bytes_of(Be32(0x12345678)), (std::array<uint8_t, 4>{0x12, 0x34, 0x56, 0x78}));
}

TEST(BigEndian, ReadsBackEverySixteenBitValue) {
  for (unsigned value = 0; value <= 0xffff; ++value) {
    ASSERT_EQ(static_cast<uint16_t>(Be16(static_cast<uint16_t>(value))), value);
  }
}

TEST(BigEndian, ReadsBackTheEndsOfItsRange) {
  for (const uint32_t value : {0U, 1U, 0x7fffffU, 0x800000U, 0xffffffU}) EXPECT_EQ(uint32_t{Be24(value)}, value);
  for (const uint32_t value : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) EXPECT_EQ(uint32_t{Be32(value)}, value);
}

TEST(BigEndian, TwentyFourBitsKeepTheLowerThreeBytes) { EXPECT_EQ(uint32_t{Be24(0xab123456)}, 0x123456U); }

TEST(BigEndian, IsUnalignedAndPlain) {
  static_assert(alignof(Be32) == 1 && sizeof(Be24) == 3);
  static_assert(std::is_trivially_copyable_v<Be32>);
  std::array<uint8_t, 8> frame{0, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0};
  EXPECT_EQ(uint32_t{*header_at<Be32>(frame.data(), 1)}, 0xdeadbeefU);
  *header_at<Be32>(frame.data(), 3) = 0x01020304;
  EXPECT_EQ(frame, (std::array<uint8_t, 8>{0, 0xde, 0xad, 1, 2, 3, 4, 0}));
}

TEST(Headers, FieldsLieWhereTheStandardsPutThem) {
  // One frame's worth of numbered bytes: a field read at offset n must begin with byte n.
  std::array<uint8_t, 64> frame{};
  for (size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(header_at<Ipv4Header>(frame.data(), 0)->total_length, 0x0203) << "RFC 791 3.1";
  EXPECT_EQ(header_at<Ipv4Header>(frame.data(), 0)->protocol, 9);
  EXPECT_EQ(header_at<Ipv4Header>(frame.data(), 0)->checksum, 0x0a0b);
  EXPECT_EQ(header_at<Ipv6Header>(frame.data(), 0)->next_header, 6) << "RFC 8200 3";
  EXPECT_EQ(header_at<Ipv6Header>(frame.data(), 0)->destination[0], 24);
  EXPECT_EQ(header_at<UdpHeader>(frame.data(), 0)->length, 0x0405) << "RFC 768";
  EXPECT_EQ(uint32_t{header_at<Bth>(frame.data(), 0)->dest_qp}, 0x050607U) << "IBTA 9.2";
  EXPECT_EQ(uint32_t{header_at<Bth>(frame.data(), 0)->psn}, 0x090a0bU);
  EXPECT_EQ(uint32_t{header_at<Aeth>(frame.data(), 0)->msn}, 0x010203U) << "IBTA 9.3.5";
  EXPECT_EQ(uint32_t{header_at<Reth>(frame.data(), 0)->dma_length}, 0x0c0d0e0fU) << "IBTA 9.3.3";
  EXPECT_EQ(header_at<PfcFrame>(frame.data(), 0)->quanta[0], 0x1213) << "802.1Q 36 / 802.3 annex 31D";
}

}  // namespace
}  // namespace heddle::net
