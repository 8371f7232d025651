// Sending by one transmit queue per class: a queue that the NIC has stopped holds up its class, and nothing else.
#include "dataplane/class_sender.h"

#include <gtest/gtest.h>

#include "tests/support/lossless_switch.h"
#include "tests/support/queue_device.h"

namespace heddle::dataplane {
namespace {

using support::kInPort;
using support::kPlainPort;
using support::kRoceBit;
using support::kRoceClass;
using support::Lossless;
using support::QueueDevice;

constexpr uint16_t kEthdev = RTE_MAX_ETHPORTS - 1;
constexpr unsigned kBursts = 8;

support::SwitchPlan by_nic_plan() {
  support::SwitchPlan plan = support::lossless_plan();
  for (auto& port : plan.ports) {
    port.pfc = {.by_nic = kRoceBit};
    port.egress.rate = Rate::unlimited();
  }
  return plan;
}

// Queue of a class on its way out.
constexpr unsigned out_queue(unsigned traffic_class) { return 7 - traffic_class; }

class ClassSenders : public testing::Test {
 protected:
  unsigned send(Time now, bool up = true) { return sender.send(pipeline(), kBursts, up, now); }
  Pipeline& pipeline() { return lossless.device.pipeline(); }
  // RoCE data of class 3, or of class 0.
  void arrive(unsigned count, Time now, bool roce = true) {
    for (unsigned i = 0; i < count; ++i) lossless.arrive(now, roce ? 26U << 2U : 0);
  }

  QueueDevice device{kEthdev};
  Lossless lossless{by_nic_plan()};
  ClassSender sender{kPlainPort, kEthdev, QueueDevice::queues(kRoceBit)};
};

TEST_F(ClassSenders, EachClassLeavesByItsQueue) {
  arrive(5, 0);
  arrive(7, 0, false);
  EXPECT_EQ(send(1), 12U);
  EXPECT_EQ(device.sent(out_queue(kRoceClass)).size(), 5U);
  EXPECT_EQ(device.sent(out_queue(0)).size(), 7U);
  EXPECT_TRUE(sender.empty());
  EXPECT_EQ(lossless.held(), 0U);
}

TEST_F(ClassSenders, AStoppedQueueHoldsUpItsClassAlone) {
  device.set_room(out_queue(kRoceClass), 2);
  arrive(10, 0);
  arrive(10, 0, false);
  EXPECT_EQ(send(10), 12U);
  EXPECT_TRUE(sender.is_held(kRoceClass));
  EXPECT_FALSE(sender.is_held(0));
  arrive(3, 20);
  arrive(3, 20, false);
  EXPECT_EQ(send(30), 3U) << "class 0 only";
  EXPECT_EQ(device.sent(out_queue(0)).size(), 13U);
  EXPECT_EQ(pipeline().port(kPlainPort).queue(kRoceClass).packets(), 3U) << "the scheduler gives out no more of it";
  EXPECT_FALSE(sender.empty());

  device.set_room(out_queue(kRoceClass), SIZE_MAX);
  EXPECT_EQ(send(1010), 11U);
  EXPECT_EQ(sender.held_time(kRoceClass, 5000), 1000U) << "from 10 to 1010";
  EXPECT_EQ(sender.held_time(0, 5000), 0U);
  std::vector<Packet*> in_order;
  for (const auto& packet : lossless.packets) {
    if (meta_of(packet.get()).traffic_class == kRoceClass) in_order.push_back(packet.get());
  }
  EXPECT_EQ(device.sent(out_queue(kRoceClass)), in_order);
  EXPECT_EQ(lossless.device.all_drops(), 0U);
  EXPECT_TRUE(sender.empty());
}

TEST_F(ClassSenders, HeldTimeRunsWhileHeld) {
  device.set_room(out_queue(kRoceClass), 0);
  arrive(1, 0);
  send(100);
  EXPECT_EQ(sender.held_time(kRoceClass, 700), 600U);
}

struct Stuck {
  const char* description;
  bool roce;
  bool up;
  uint64_t lost_after_150_ms;
  DropReason reason;
};
void PrintTo(const Stuck& stuck, std::ostream* out) { *out << stuck.description; }

class StuckQueues : public ClassSenders, public testing::WithParamInterface<Stuck> {};

TEST_P(StuckQueues, GiveUpOnlyWhatMayBeLost) {
  const Stuck& stuck = GetParam();
  device.set_room(out_queue(stuck.roce ? kRoceClass : 0), 0);
  arrive(5, 0, stuck.roce);
  send(0, stuck.up);
  EXPECT_EQ(lossless.device.all_drops(), 0U);
  send(99 * kMillisecond, stuck.up);
  EXPECT_EQ(lossless.device.all_drops(), 0U) << "within 100 ms";
  send(150 * kMillisecond, stuck.up);
  EXPECT_EQ(lossless.device.all_drops(), stuck.lost_after_150_ms);
  if (stuck.lost_after_150_ms != 0) {
    EXPECT_EQ(lossless.device.drops(kPlainPort, stuck.reason), stuck.lost_after_150_ms);
  }
  EXPECT_EQ(sender.empty(), stuck.lost_after_150_ms == 5);
}

INSTANTIATE_TEST_SUITE_P(
    Table, StuckQueues,
    testing::Values(Stuck{"lossless, link up: it waits for its pause", true, true, 0, DropReason::kNone},
                    Stuck{"lossless, link down", true, false, 5, DropReason::kPortDown},
                    Stuck{"lossy, link up: the frame at the head", false, true, 1, DropReason::kTransmitFailed},
                    Stuck{"lossy, link down", false, false, 5, DropReason::kPortDown}));

TEST_F(ClassSenders, WhatIsLeftAtTheEndIsNamed) {
  device.set_room(out_queue(kRoceClass), 0);
  arrive(4, 0);
  send(0);
  sender.drop_all(pipeline(), DropReason::kShutdown);
  EXPECT_EQ(lossless.device.drops(kPlainPort, DropReason::kShutdown), 4U);
  EXPECT_TRUE(sender.empty());
}

// The gate is the frames backend's decision: closed above XOFF, open below XON. No frame of ours is sent.
TEST_F(ClassSenders, ReceiveQueuesCloseAtXoffAndOpenAtXon) {
  arrive(20, 0);  // 1,000 bytes each; XOFF is at 20,000
  EXPECT_EQ(pipeline().closed(kInPort), 0);
  arrive(1, 1);
  EXPECT_EQ(pipeline().closed(kInPort), kRoceBit);
  EXPECT_EQ(pipeline().closed(kPlainPort), 0) << "only where they come from";
  for (unsigned held = 21; held > 15; --held) {
    EXPECT_EQ(pipeline().closed(kInPort), kRoceBit) << held << " held, XON is 5,000 below XOFF";
    ASSERT_NE(lossless.next(kPlainPort, 2), nullptr);
  }
  EXPECT_EQ(pipeline().closed(kInPort), 0);
  EXPECT_FALSE(pipeline().has_work(kInPort, kSecond)) << "the NIC pauses the peer, not we";
  EXPECT_EQ(lossless.counters(kInPort).tx_frames.get(), 0U);
  EXPECT_TRUE(lossless.source.made.empty());
}

}  // namespace
}  // namespace heddle::dataplane
