// Which of two ports the whole pipeline takes: schedulers by class and for control packets, and choice by the queues as
// they are at the packet's time.
#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/test_switch.h"

namespace heddle::support {
namespace {

constexpr Rate kRate = Rate::gbps(10);

SwitchPlan paced() {
  SwitchPlan plan;
  for (dataplane::PortSettings& port : plan.ports) {
    port.egress.rate = kRate;
    port.max_frame = 9000;
  }
  return plan;
}

class PathChoice : public testing::Test {
 protected:
  // Forwards a frame to the group of two members; the port it waits at.
  PortId port_of(const Bytes& frame, Time now) {
    packets_.push_back(make_packet(frame));
    std::vector<Packet*> burst{packets_.back().get()};
    const unsigned kept = device.ingress(burst, now);
    EXPECT_EQ(kept, 1U);
    device.pipeline().forward(burst.data(), kept, now);
    return meta_of(burst[0]).out_port;
  }
  Bytes frame(uint32_t qp, uint8_t opcode = 0x07, uint8_t tos = 26 << 2, size_t payload = 1000) {
    return ethernet({}, ipv4({.tos = tos, .destination = ip4(10, 7, 0, 9)},
                             udp({}, roce({.opcode = opcode, .dest_qp = qp}, pattern(payload)))));
  }

  TestSwitch device{paced()};

 private:
  std::vector<OwnedPacket> packets_;
};

TEST_F(PathChoice, AdaptiveTakesTheShorterQueueAtThePacketsOwnTime) {
  device.schedule_by("adaptive");
  const Time now = kMillisecond;
  // Two members: the less loaded of two is the less loaded of all. Packets alternate but for ties.
  std::array<uint64_t, 2> queued{};
  for (uint32_t i = 0; i < 100; ++i) {
    const PortId port = port_of(frame(7), now);
    queued.at(port == kPlainPort ? 0 : 1)++;
    ASSERT_LE(queued[0], queued[1] + 1) << i;
    ASSERT_LE(queued[1], queued[0] + 1) << i;
  }
  // One of them sends; half a queue later it is the better one.
  const Time later = now + 30 * kMicrosecond;
  size_t sent = 0;
  for (Time at = now; at < later; at += 100 * kNanosecond) sent += device.egress(kPlainPort, at).size();
  ASSERT_GT(sent, 10U);
  for (size_t i = 0; i + 4 < sent; ++i) ASSERT_EQ(port_of(frame(7), later), kPlainPort) << i;
}

TEST_F(PathChoice, TheFrameOnTheWireCounts) {
  device.schedule_by("adaptive");
  const PortId first = port_of(frame(7), kMillisecond);
  device.egress(first, kMillisecond);  // its queue is empty again, its wire is not
  EXPECT_NE(port_of(frame(7), kMillisecond), first);
}

// A burst of one route; how many packets of it the plain port was given.
class BurstChoice : public PathChoice {
 protected:
  unsigned plain_ports_part(TestSwitch& to, unsigned count, Time now) {
    std::vector<Packet*> burst;
    for (uint32_t i = 0; i < count; ++i) {
      packets_.push_back(make_packet(frame(7)));
      burst.push_back(packets_.back().get());
    }
    const unsigned kept = to.ingress(burst, now);
    EXPECT_EQ(kept, count);
    to.pipeline().forward(burst.data(), kept, now);
    return static_cast<unsigned>(std::count_if(
        burst.begin(), burst.end(), [](const Packet* packet) { return meta_of(packet).out_port == kPlainPort; }));
  }

 private:
  std::vector<OwnedPacket> packets_;
};

TEST_F(BurstChoice, AdaptiveFollowsTheQueuesWithinABurst) {
  device.schedule_by("adaptive");
  const Time now = kMillisecond;
  EXPECT_EQ(plain_ports_part(device, 32, now), 16U);
  // The plain port sends eleven of its sixteen; they are the first that the next burst makes up for.
  size_t sent = 0;
  Time later = now;
  while (sent < 11) sent += device.egress(kPlainPort, later += 100 * kNanosecond).size();
  EXPECT_NEAR(plain_ports_part(device, 31, later), 21, 1);
}

// Their owner says what waits there once a round. Who went by that alone would give a whole burst to the one that was
// shorter by a nanosecond.
TEST_F(BurstChoice, AdaptiveSpreadsABurstOverPortsOfAnotherLcore) {
  struct All final : dataplane::Handover {
    unsigned offer(Packet** /*packets*/, unsigned /*count*/) override { return 0; }
  } handover;
  TestSwitch receiving(paced(), {true, false, false, true}, &handover);
  receiving.schedule_by("adaptive");
  receiving.states().set_load(kTaggedPort, kNanosecond, 0);
  EXPECT_EQ(plain_ports_part(receiving, 32, kMillisecond), 16U);
  // Twenty frames' time at 10 Gb/s behind: 26 against 6.
  const Duration frame_time = kRate.time_for(frame(7).size());
  receiving.states().set_load(kTaggedPort, 20 * frame_time, 0);
  EXPECT_EQ(plain_ports_part(receiving, 32, kMillisecond), 26U);
}

// With weight on the past alone, two ports that send alike share alike, whoever owns them: their owners say what they
// have sent.
TEST_F(BurstChoice, ThePastOfAnotherLcoresPortCountsToo) {
  class Neighbour final : public dataplane::Handover {
   public:
    unsigned offer(Packet** packets, unsigned count) override {
      for (unsigned i = 0; i < count; ++i) bytes += packets[i]->pkt_len + kEthernetOverhead;
      return 0;
    }
    uint64_t bytes = 0;
  } handover;
  SwitchPlan plan = paced();
  plan.ars.port_load_past_weight = 16;
  TestSwitch receiving(plan, {true, true, false, true}, &handover);
  receiving.schedule_by("adaptive");
  Time now = kMillisecond;
  unsigned here = 0;
  for (unsigned burst = 0; burst < 500; ++burst) {
    here += plain_ports_part(receiving, 8, now);
    for (now += 10 * kMicrosecond; !receiving.egress(kPlainPort, now).empty();) now += kMicrosecond;
    receiving.states().set_load(kTaggedPort, 0, handover.bytes);
  }
  EXPECT_NEAR(here, 2000, 200);
}

// However data packets and ACKs follow each other, neither a port's data packets nor its ACKs get ahead of the other's.
TEST_F(PathChoice, RoundRobinSharesOutLongFramesAndShortOnes) {
  device.schedule_by("round-robin");
  Random random(5);
  std::array<std::array<unsigned, 2>, 2> had{};  // by kind and port
  for (int i = 0; i < 300; ++i) {
    const bool ack = random.below(2) == 0;
    const PortId port = port_of(ack ? frame(9, 0x11, 26 << 2, 4) : frame(9), kMillisecond);
    std::array<unsigned, 2>& of_kind = had.at(ack ? 1 : 0);
    of_kind.at(port == kPlainPort ? 0 : 1)++;
    ASSERT_LE(of_kind[0], of_kind[1] + 1) << "packet " << i;
    ASSERT_LE(of_kind[1], of_kind[0] + 1) << "packet " << i;
  }
  EXPECT_GT(had[0][0] + had[0][1], 100U);
  EXPECT_GT(had[1][0] + had[1][1], 100U);
}

TEST_F(PathChoice, AClassMayHaveAnotherScheduler) {
  lb::SchedulerOverrides overrides;
  overrides.of_class[3] = lb::scheduler_named("round-robin");
  device.schedule_by("ecmp", overrides);
  std::array<unsigned, 2> of_class3{};
  const PortId of_class0 = port_of(frame(9, 0x07, 0), kMillisecond);
  for (int i = 0; i < 40; ++i) {
    of_class3.at(port_of(frame(9), kMillisecond) == kPlainPort ? 0 : 1)++;  // DSCP 26: class 3
    EXPECT_EQ(port_of(frame(9, 0x07, 0), kMillisecond), of_class0);
  }
  EXPECT_EQ(of_class3[0], 20U);
  EXPECT_EQ(of_class3[1], 20U);
}

TEST_F(PathChoice, AcksAndCnpsMayHaveAnotherScheduler) {
  lb::SchedulerOverrides overrides;
  overrides.of_control = lb::scheduler_named("ecmp");
  device.schedule_by("round-robin", overrides);
  for (const uint8_t opcode : {0x11, 0x81}) {
    const PortId first = port_of(frame(9, opcode), kMillisecond);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(port_of(frame(9, opcode), kMillisecond), first);
  }
  std::array<unsigned, 2> data{};
  for (int i = 0; i < 40; ++i) data.at(port_of(frame(9), kMillisecond) == kPlainPort ? 0 : 1)++;
  EXPECT_EQ(data[0], 20U);
}

TEST_F(PathChoice, FlowletsAreCounted) {
  device.schedule_by("flowlet");
  for (uint32_t round = 0; round < 50; ++round) {
    port_of(frame(9), kMillisecond + round * kMillisecond);
    port_of(frame(9), kMillisecond + round * kMillisecond + kMicrosecond);
  }
  EXPECT_EQ(device.pipeline().flowlets().flowlets.get(), 50U);
  EXPECT_GT(device.pipeline().flowlets().reroutes.get(), 10U);
  EXPECT_LT(device.pipeline().flowlets().reroutes.get(), 40U);
}

}  // namespace
}  // namespace heddle::support
