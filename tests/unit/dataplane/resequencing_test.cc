// The resequencer in its place: in front of a host's port, within the whole pipeline.
#include <gtest/gtest.h>

#include "tests/support/test_switch.h"

namespace heddle::support {
namespace {

constexpr Duration kHold = 50 * kMicrosecond;

SwitchPlan plan_with_host() {
  SwitchPlan plan;
  plan.ports[kPlainPort].resequence = true;
  plan.resequencer = {.enabled = true, .hold_time = kHold};
  return plan;
}

class Resequencing : public testing::Test {
 protected:
  // Forwards one packet of a queue pair to 10.`net`.0.9.
  void send(uint32_t psn, Time now, uint8_t opcode = 0x07, unsigned net = 2) {
    packets_.push_back(
        make_packet(ethernet({}, ipv4({.destination = ip4(10, net, 0, 9)},
                                      udp({}, roce({.opcode = opcode, .dest_qp = 7, .psn = psn}, pattern(100)))))));
    std::vector<Packet*> burst{packets_.back().get()};
    const unsigned kept = device.ingress(burst, now);
    ASSERT_EQ(kept, 1U);
    device.pipeline().forward(burst.data(), kept, now);
  }
  // PSNs that leave the port now.
  std::vector<uint32_t> leaving(PortId port, Time now) {
    std::vector<uint32_t> psns;
    for (const Packet* packet : device.egress(port, now)) {
      psns.push_back(net::header_at<net::Bth>(frame_of(packet), psns_at(packet))->psn);
    }
    return psns;
  }
  static size_t psns_at(const Packet* packet) { return ip_offset(content_of(packet)) + 20 + 8; }

  TestSwitch device{plan_with_host()};

 private:
  std::vector<OwnedPacket> packets_;
};

using Psns = std::vector<uint32_t>;

TEST_F(Resequencing, PacketsLeaveInOrder) {
  send(0, kMillisecond, 0x06);
  for (const uint32_t psn : {3U, 1U, 4U, 2U}) send(psn, kMillisecond);
  EXPECT_EQ(leaving(kPlainPort, kMillisecond), (Psns{0, 1, 2, 3, 4}));
  EXPECT_EQ(device.pipeline().held_packets(), 0U);
  EXPECT_EQ(device.pipeline().resequencer()->counters().held.get(), 2U);
}

TEST_F(Resequencing, AGapIsGivenUpWhenThePipelineIsAttended) {
  send(0, kMillisecond, 0x06);
  send(2, kMillisecond + kMicrosecond);
  EXPECT_EQ(leaving(kPlainPort, kMillisecond + kMicrosecond), (Psns{0}));
  ASSERT_TRUE(device.pipeline().has_attention());
  const Time due = device.pipeline().next_attention();
  EXPECT_EQ(due, kMillisecond + kMicrosecond + kHold);
  EXPECT_FALSE(device.pipeline().needs_attention(due - 1));
  device.pipeline().attend(due);
  std::vector<PortId> awake;
  device.pipeline().take_awakened([&](PortId port) { awake.push_back(port); });
  EXPECT_EQ(awake, std::vector<PortId>{kPlainPort});
  EXPECT_EQ(leaving(kPlainPort, due), (Psns{2}));
  EXPECT_FALSE(device.pipeline().needs_attention(due + kSecond));
}

TEST_F(Resequencing, OtherPortsAreLeftAlone) {
  send(0, kMillisecond, 0x06, 3);
  send(2, kMillisecond, 0x07, 3);
  send(1, kMillisecond, 0x07, 3);
  EXPECT_EQ(leaving(kTaggedPort, kMillisecond).size(), 3U);
  EXPECT_EQ(device.pipeline().held_packets(), 0U);
}

TEST_F(Resequencing, WhatIsHeldWhenTheSwitchStopsIsDroppedByName) {
  send(0, kMillisecond, 0x06);
  send(2, kMillisecond);
  device.pipeline().drop_held(DropReason::kShutdown);
  EXPECT_EQ(device.drops(kPlainPort, DropReason::kShutdown), 1U);
  EXPECT_EQ(device.pipeline().held_packets(), 0U);
}

}  // namespace
}  // namespace heddle::support
