// What a capture makes of the lab's packets, whose payload is only a length.
#include "lab/engine/capture.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "lab/engine/packet_arena.h"
#include "net/icrc.h"

namespace heddle::lab {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kIp = 14;

// 1, 2, 3, … but for where an IPv4 header begins.
Bytes counting(size_t n) {
  Bytes bytes(n);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  bytes[kIp] = 0x45;
  return bytes;
}

// The file that a capture of one frame leaves, of which `at_hand` bytes are there.
Bytes captured(uint16_t at_hand, uint32_t frame_bytes) {
  const std::string file = std::filesystem::path(testing::TempDir()) / "one-frame.pcapng";
  PacketArena arena(448);
  PacketArena::Cache cache(arena);
  Packet* packet = cache.take();
  packet->data_len = at_hand;
  packet->pkt_len = frame_bytes;
  const Bytes frame = counting(at_hand);
  std::copy(frame.begin(), frame.end(), frame_of(packet));
  {
    Capture capture(file, "port", 0);
    capture.outbound().add(packet, kMicrosecond);
    capture.write(~Time{0});
  }
  cache.put(packet);
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool contains(const Bytes& file, const Bytes& part) {
  return std::search(file.begin(), file.end(), part.begin(), part.end()) != file.end();
}

// Pause frames, and path probes, which are longer than any header.
TEST(Capture, FramesThatAreThereWholeStayAsTheyAre) {
  for (const uint16_t bytes : {uint16_t{60}, uint16_t{218}}) {
    EXPECT_TRUE(contains(captured(bytes, bytes), counting(bytes))) << bytes;
  }
}

TEST(Capture, PayloadBecomesZerosAndTheIcrcFits) {
  Bytes frame = counting(54);
  frame.resize(54 + 100);
  const uint32_t crc = net::icrc(frame.data() + kIp, 54 - kIp, 100);
  for (unsigned i = 0; i < 4; ++i) frame.push_back(static_cast<uint8_t>(crc >> 8U * i));
  EXPECT_TRUE(contains(captured(54, 158), frame));
}

}  // namespace
}  // namespace heddle::lab
