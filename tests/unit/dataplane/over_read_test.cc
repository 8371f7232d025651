// A planted over-read, to prove that the row tests and the fuzzer would notice a real one: the pipeline is told that a
// frame is longer than it is, and AddressSanitizer must end the program. The frame lies as it does in all those tests.
#include <gtest/gtest.h>

#include "tests/support/rows.h"
#include "tests/support/sanitizer.h"

namespace heddle::support {
namespace {

struct Plant {
  const char* first_missing;
  size_t real_bytes;  // of an IPv4 RoCE frame
};

class OverRead : public testing::TestWithParam<Plant> {};

TEST_P(OverRead, IsNoticed) {
  if (!kAddressSanitizer) GTEST_SKIP() << "needs a build with AddressSanitizer";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // other tests may have started DPDK's threads
  const Bytes whole = roce4();
  const OwnedPacket packet = make_packet(std::span(whole).first(GetParam().real_bytes));
  packet->data_len = static_cast<uint16_t>(whole.size());
  packet->pkt_len = packet->data_len;
  TestSwitch device;
  EXPECT_DEATH(device.pass(packet.get()), "AddressSanitizer") << GetParam().first_missing;
}

INSTANTIATE_TEST_SUITE_P(Planted, OverRead,
                         testing::Values(Plant{"byte of the destination MAC", 5}, Plant{"byte of the ether type", 13},
                                         Plant{"byte of the IP destination", 33}, Plant{"byte of the UDP length", 39},
                                         Plant{"byte of the BTH's version", 43}));

TEST(OverRead, PastTheFirstSegmentIsNoticedToo) {
  if (!kAddressSanitizer) GTEST_SKIP() << "needs a build with AddressSanitizer";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // other tests may have started DPDK's threads
  const Bytes whole = roce4();
  const OwnedPacket packet = make_packet(whole, {.first_segment = 30});
  packet->data_len = static_cast<uint16_t>(whole.size());  // a driver that lies about its segment
  TestSwitch device;
  EXPECT_DEATH(device.pass(packet.get()), "AddressSanitizer");
}

}  // namespace
}  // namespace heddle::support
