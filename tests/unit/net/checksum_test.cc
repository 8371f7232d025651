// The Internet checksum: an incremental update always equals the checksum computed anew, in every corner.
#include "net/checksum.h"

#include <array>

#include <gtest/gtest.h>

#include "net/random.h"
#include "tests/support/frames.h"

namespace heddle::net {
namespace {

using support::Bytes;
using support::internet_checksum;

// Wireshark's and RFC 1071's style of example: the header from Wikipedia's "IPv4 header checksum" page
// (45 00 00 73 … c0 a8 00 01 c0 a8 00 c7), whose checksum is b861.
constexpr std::array<uint8_t, 20> kKnownHeader{0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                               0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};

TEST(HeaderSum, IsAllOnesForARightChecksum) {
  EXPECT_EQ(ipv4_header_sum(kKnownHeader.data(), kKnownHeader.size()), 0xffff);
}

TEST(HeaderSum, ShowsEverySingleBitError) {
  for (size_t bit = 0; bit < 8 * kKnownHeader.size(); ++bit) {
    auto damaged = kKnownHeader;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
    EXPECT_NE(ipv4_header_sum(damaged.data(), damaged.size()), 0xffff) << "bit " << bit;
  }
}

TEST(HeaderSum, AgreesWithTheBookForEveryHeaderLength) {
  Random random(2);
  for (size_t bytes = 20; bytes <= 60; bytes += 4) {
    for (int round = 0; round < 2000; ++round) {
      Bytes header(bytes);
      // Rounds with extreme bytes carry most.
      for (uint8_t& byte : header) byte = round % 4 == 0 ? 0xff : static_cast<uint8_t>(random.next());
      const bool right = round % 2 == 0;
      if (right) {
        header[10] = header[11] = 0;
        const uint16_t checksum = internet_checksum(header);
        header[10] = static_cast<uint8_t>(checksum >> 8U);
        header[11] = static_cast<uint8_t>(checksum);
      }
      EXPECT_EQ(ipv4_header_sum(header.data(), bytes) == 0xffff, internet_checksum(header) == 0) << bytes << " bytes";
      if (right) {
        EXPECT_EQ(ipv4_header_sum(header.data(), bytes), 0xffff);
      }
    }
  }
}

// The checksum of a header whose words other than `word` sum up (one's complement) to `rest`.
uint16_t checksum_of(uint16_t rest, uint16_t word) {
  Bytes words;
  support::put16(words, rest);
  support::put16(words, word);
  return internet_checksum(words);
}

// The sum of a real header's other words is never 0: version and header length are not.
TEST(ChecksumUpdate, EqualsRecomputationForAll65536WordsBeforeAndAfter) {
  constexpr uint16_t kCorners[] = {0x0000, 0x0001, 0x00ff, 0x0100, 0x7fff, 0x8000, 0xfeff, 0xff00, 0xfffe, 0xffff};
  for (const uint16_t rest : {0x0001, 0x4500, 0x7fff, 0x8000, 0xfffe, 0xffff}) {
    for (unsigned before = 0; before <= 0xffff; ++before) {
      const uint16_t old_checksum = checksum_of(rest, static_cast<uint16_t>(before));
      for (const uint16_t after : kCorners) {
        ASSERT_EQ(update_checksum(old_checksum, static_cast<uint16_t>(before), after), checksum_of(rest, after))
            << "rest " << rest << ", " << before << " → " << after;
        // And the way back: from the corner to each of the 65,536.
        ASSERT_EQ(update_checksum(checksum_of(rest, after), after, static_cast<uint16_t>(before)), old_checksum)
            << "rest " << rest << ", " << after << " → " << before;
      }
    }
  }
}

TEST(ChecksumUpdate, HoldsForAll65536Checksums) {
  for (unsigned rest = 1; rest <= 0xffff; ++rest) {  // every rest gives another checksum, 0x0000 and 0xfffe among them
    for (const uint16_t word : {0x4011, 0x0111, 0xff11, 0x0000, 0xffff}) {
      const auto less = static_cast<uint16_t>(word - 0x100);  // a TTL less by one
      ASSERT_EQ(update_checksum(checksum_of(static_cast<uint16_t>(rest), word), word, less),
                checksum_of(static_cast<uint16_t>(rest), less))
          << "rest " << rest << ", word " << word;
    }
  }
}

TEST(ChecksumUpdate, ReproducesTheExampleOfRfc1624Section4) {
  // HC 0xdd2f, m 0x5555, m' 0x3285: the method of RFC 1141 gave 0xffff, right is 0x0000.
  EXPECT_EQ(update_checksum(0xdd2f, 0x5555, 0x3285), 0x0000);
}

TEST(ChecksumUpdate, IsTheSameInEitherByteOrder) {
  const auto swap = [](uint16_t x) { return static_cast<uint16_t>((x << 8U) | (x >> 8U)); };
  Random random(3);
  for (int i = 0; i < 100'000; ++i) {
    const auto checksum = static_cast<uint16_t>(random.next());
    const auto word = static_cast<uint16_t>(random.next());
    const auto changed = static_cast<uint16_t>(random.next());
    ASSERT_EQ(swap(update_checksum(checksum, word, changed)),
              update_checksum(swap(checksum), swap(word), swap(changed)));
  }
}

TEST(OnesSum, AgreesWithTheBookForEveryLength) {
  Random random(4);
  for (size_t bytes = 0; bytes <= 70; ++bytes) {
    for (int round = 0; round < 200; ++round) {
      Bytes data(bytes);
      for (uint8_t& byte : data) byte = round % 4 == 0 ? 0xff : static_cast<uint8_t>(random.next());
      const auto expected = static_cast<uint16_t>(~internet_checksum(data));
      EXPECT_EQ(__builtin_bswap16(ones_sum(data.data(), bytes)), expected) << bytes << " bytes";
    }
  }
}

// In two parts, of which the first is even, it is the same.
TEST(OnesSum, GoesOn) {
  const Bytes data = support::pattern(41);
  EXPECT_EQ(ones_sum(data.data() + 18, 23, ones_sum(data.data(), 18)), ones_sum(data.data(), 41));
}

}  // namespace
}  // namespace heddle::net
