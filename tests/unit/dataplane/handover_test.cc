// The ring between two lcores: nothing lost, nothing overtaken, a full ring refuses. Also built with ThreadSanitizer.
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "dataplane/handover_ring.h"
#include "tests/support/packets.h"

namespace heddle::dataplane {
namespace {

std::vector<support::OwnedPacket> make_packets(size_t count) {
  std::vector<support::OwnedPacket> packets;
  for (size_t i = 0; i < count; ++i) {
    packets.push_back(support::make_queued(0, 64));
    meta_of(packets.back().get()).owner = i;
  }
  return packets;
}

TEST(HandoverRing, ARingHoldsWhatItWasMadeForAndThenRefuses) {
  for (const uint32_t size : {1U, 2U, 31U, 32U, 1000U, 1024U}) {
    HandoverRing ring(size);
    const auto packets = make_packets(4 * size + 8);
    uint32_t taken = 0;
    for (const auto& packet : packets) {
      Packet* const one = packet.get();
      taken += ring.push(&one, 1);
    }
    EXPECT_GE(taken, size) << "ring of " << size;
    EXPECT_LT(taken, packets.size()) << "ring of " << size << " never filled";
    Packet* out[kBurst];
    uint32_t given = 0;
    while (const unsigned n = ring.pop(out, kBurst)) {
      for (unsigned i = 0; i < n; ++i) EXPECT_EQ(meta_of(out[i]).owner, given++);
    }
    EXPECT_EQ(given, taken);
    EXPECT_TRUE(ring.empty());
  }
}

TEST(HandoverRing, TwoLcoresHandOverEveryPacketInOrderWithItsMetadata) {
  constexpr uint64_t kPackets = 100'000;
  HandoverRing ring(256);
  // More packets than the ring (511) and the consumer's hand hold: one that is sent again has long come back.
  const auto packets = make_packets(1024);
  std::thread producer([&] {
    for (uint64_t i = 0; i < kPackets;) {
      Packet* packet = packets[i % packets.size()].get();
      meta_of(packet).out_port = static_cast<PortId>(i % 7);
      meta_of(packet).flow_hash = static_cast<uint32_t>(i);
      if (ring.push(&packet, 1) == 1) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  uint64_t next = 0;
  Packet* out[kBurst];
  while (next < kPackets) {
    const unsigned n = ring.pop(out, kBurst);
    if (n == 0) std::this_thread::yield();
    for (unsigned i = 0; i < n; ++i, ++next) {
      ASSERT_EQ(meta_of(out[i]).flow_hash, static_cast<uint32_t>(next));
      ASSERT_EQ(meta_of(out[i]).out_port, next % 7);
    }
  }
  producer.join();
  EXPECT_TRUE(ring.empty());
}

TEST(HandoverOut, OffersToTheOwnerOfTheEgressPortAndReportsAFullRing) {
  HandoverRing to_one(4);
  HandoverRing to_two(4);
  HandoverOut out({0, 1, 2, 1}, {nullptr, &to_one, &to_two});
  const auto packets = make_packets(32);
  std::vector<Packet*> burst;
  for (const PortId port : {PortId{1}, PortId{2}, PortId{3}}) {
    burst.push_back(packets[port].get());
    meta_of(burst.back()).out_port = port;
  }
  EXPECT_EQ(out.offer(burst.data(), 3), 0U);
  Packet* got[kBurst];
  ASSERT_EQ(to_one.pop(got, kBurst), 2U);
  EXPECT_EQ(meta_of(got[0]).out_port, 1);
  EXPECT_EQ(meta_of(got[1]).out_port, 3);
  ASSERT_EQ(to_two.pop(got, kBurst), 1U);
}

TEST(HandoverOut, WhatAFullRingRefusesComesBackInOrderAndOtherRingsGetTheirs) {
  HandoverRing to_one(2);
  HandoverRing to_two(64);
  HandoverOut out({0, 1, 2}, {nullptr, &to_one, &to_two});
  const auto packets = make_packets(kBurst);
  std::vector<Packet*> burst;
  for (const auto& packet : packets) {
    burst.push_back(packet.get());
    meta_of(packet.get()).out_port = burst.size() % 4 == 0 ? 2 : 1;
  }
  const std::vector<Packet*> offered = burst;
  const unsigned refused = out.offer(burst.data(), kBurst);
  Packet* one[kBurst];
  const unsigned to_first = to_one.pop(one, kBurst);
  EXPECT_GE(to_first, 2U);
  ASSERT_EQ(to_first + refused, kBurst - kBurst / 4);
  std::vector<Packet*> of_one(one, one + to_first);
  of_one.insert(of_one.end(), burst.begin(), burst.begin() + refused);
  Packet* two[kBurst];
  const unsigned to_second = to_two.pop(two, kBurst);
  const std::vector<Packet*> of_two(two, two + to_second);
  std::vector<Packet*> expected_one;
  std::vector<Packet*> expected_two;
  for (Packet* packet : offered) (meta_of(packet).out_port == 1 ? expected_one : expected_two).push_back(packet);
  EXPECT_EQ(of_one, expected_one);
  EXPECT_EQ(of_two, expected_two);
}

}  // namespace
}  // namespace heddle::dataplane
