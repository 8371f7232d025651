// PacketArena: where a packet's parts lie.
#include "lab/engine/packet_arena.h"

#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::lab {
namespace {

class PacketArenaTest : public testing::TestWithParam<uint16_t> {};

// The fields that the packet path uses, the metadata and as many header bytes as there is room for are each packet's
// own, wherever the headers lie.
TEST_P(PacketArenaTest, PartsOfPacketsDoNotOverlap) {
  const uint16_t room = GetParam();
  PacketArena arena(room);
  PacketArena::Cache cache(arena);
  constexpr unsigned kPackets = 1000;
  std::vector<Packet*> packets;
  for (unsigned i = 0; i < kPackets; ++i) packets.push_back(cache.take());
  for (unsigned i = 0; i < kPackets; ++i) {
    Packet* packet = packets[i];
    EXPECT_EQ(packet->buf_len, room);
    packet->pkt_len = i;
    packet->data_len = room;
    packet->buf_iova = i;
    meta_of(packet).owner = i;
    meta_of(packet).route = i;
    std::memset(frame_of(packet), static_cast<int>(i % 251), room);
  }
  for (unsigned i = 0; i < kPackets; ++i) {
    const Packet* packet = packets[i];
    EXPECT_EQ(packet->pkt_len, i);
    EXPECT_EQ(packet->data_len, room);
    EXPECT_EQ(packet->buf_iova, i);
    EXPECT_EQ(packet->refcnt, 1);
    EXPECT_EQ(meta_of(packet).owner, i);
    EXPECT_EQ(meta_of(packet).route, i);
    const std::vector<uint8_t> expected(room, static_cast<uint8_t>(i % 251));
    EXPECT_EQ(std::memcmp(frame_of(packet), expected.data(), room), 0) << "packet " << i;
  }
}

// One line for the mbuf, one for the metadata, and the headers' own.
TEST_P(PacketArenaTest, PacketsTakeAsManyBytesAsIsSaid) {
  PacketArena arena(GetParam());
  PacketArena::Cache cache(arena);
  std::set<const Packet*> packets;
  for (unsigned i = 0; i < 256; ++i) packets.insert(cache.take());
  const Packet* before = nullptr;
  for (const Packet* packet : packets) {
    if (before != nullptr) {
      const auto apart = reinterpret_cast<const std::byte*>(packet) - reinterpret_cast<const std::byte*>(before);
      EXPECT_EQ(static_cast<size_t>(apart), PacketArena::packet_bytes(GetParam()));
    }
    before = packet;
  }
}

INSTANTIATE_TEST_SUITE_P(Rooms, PacketArenaTest, testing::Values(58, kHeaderRoomInMbuf, kHeaderRoom, 200));

}  // namespace
}  // namespace heddle::lab
