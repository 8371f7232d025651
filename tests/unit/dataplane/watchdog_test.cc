// The PFC watchdog in the pipeline: one port's peer pauses it for ever. What is done about that, and what is not.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/lossless_switch.h"

namespace heddle::dataplane {
namespace {

using flowctl::WatchdogAction;
using support::kInPort;
using support::kPlainPort;
using support::kRoceBit;
using support::kRoceClass;
using support::kTaggedPort;
using support::Lossless;
using support::lossless_plan;
using support::SwitchPlan;

constexpr Duration kDetect = 200 * kMillisecond;
constexpr Duration kRestore = 400 * kMillisecond;
constexpr Duration kPoll = kDetect / 8;
constexpr uint8_t kSubnetOfTagged = 3;

SwitchPlan watched(WatchdogAction action) {
  SwitchPlan plan = lossless_plan();
  for (PortSettings& port : plan.ports) {
    port.pfc.quanta = flowctl::kMaxQuanta;
    port.pfc.watchdog = flowctl::WatchdogSettings{.detect = kDetect, .restore = kRestore, .action = action};
  }
  return plan;
}

// A switch and its peers over time, in steps of 100 us. The peer at kPlainPort pauses class 3 for ever while `storms`.
class Storm {
 public:
  explicit Storm(WatchdogAction action) : device(watched(action)) {}

  void run(Duration length) {
    for (const Time end = now + length; now < end; now += 100 * kMicrosecond) {
      if (storms) device.hear(kPlainPort, support::pfc_frame(flowctl::PfcRequest::pause(kRoceBit, 0xffff)), now);
      if (device.pipeline().needs_attention(now)) device.device.pipeline().attend(now);
    }
  }
  // Frames that leave a port now, pause frames aside.
  unsigned leave(PortId port) {
    unsigned n = 0;
    for (Time at = now; at < now + 100 * kMicrosecond; at += kMicrosecond) {
      if (Packet* packet = device.next(port, at); packet != nullptr && packet->pkt_len > 60) ++n;
    }
    now += 100 * kMicrosecond;
    return n;
  }
  uint64_t storms_found(PortId port) const { return device.counters(port).watchdog_storms[kRoceClass].get(); }
  uint64_t restores(PortId port) const { return device.counters(port).watchdog_restores[kRoceClass].get(); }
  uint64_t dropped(PortId port) const { return device.counters(port).watchdog_drops[kRoceClass].get(); }

  Lossless device;
  Time now = 0;
  bool storms = true;
};

TEST(Watchdog, DropsAStormedQueueAndGivesItsBytesBack) {
  Storm storm(WatchdogAction::kDrop);
  for (int i = 0; i < 25; ++i) storm.device.arrive(0);  // beyond XOFF
  ASSERT_NE(storm.device.next(kInPort, 0), nullptr) << "XOFF for the sender";
  storm.run(kDetect - 1);
  EXPECT_EQ(storm.storms_found(kPlainPort), 0U) << "not before the detection time";
  EXPECT_EQ(storm.device.held(), 25'000U);
  storm.run(2 * kPoll);
  EXPECT_EQ(storm.storms_found(kPlainPort), 1U);
  EXPECT_EQ(storm.device.held(), 0U) << "the ingress port is charged for nothing any more";
  Packet* xon = storm.device.next(kInPort, storm.now);
  ASSERT_NE(xon, nullptr);
  EXPECT_EQ(support::heard(xon).quanta[kRoceClass], 0) << "and lets its sender go on";
  EXPECT_EQ(storm.dropped(kPlainPort), 25U);

  // What comes now is dropped at once, of this class and for this port only.
  for (int i = 0; i < 3; ++i) storm.device.arrive(storm.now);
  EXPECT_EQ(storm.dropped(kPlainPort), 28U);
  EXPECT_EQ(storm.device.device.drops(kPlainPort, DropReason::kPfcStorm), 28U);
  EXPECT_EQ(storm.device.held(), 0U);
  EXPECT_EQ(storm.device.counters(kInPort).lossless_violations[kRoceClass].get(), 0U)
      << "a decision, not a lack of room";
  storm.device.arrive(storm.now, 0);
  EXPECT_EQ(storm.leave(kPlainPort), 1U) << "another class of the same port";
  for (int i = 0; i < 3; ++i) storm.device.arrive(storm.now, 26U << 2U, kSubnetOfTagged);
  EXPECT_EQ(storm.leave(kTaggedPort), 3U) << "the same class at another port";
  EXPECT_EQ(storm.device.device.all_drops(), 28U);

  // It lasts as long as the storm does, and the restoration time more.
  storm.run(kSecond);
  EXPECT_EQ(storm.restores(kPlainPort), 0U);
  storm.storms = false;
  storm.run(kRestore);
  EXPECT_EQ(storm.restores(kPlainPort), 0U);
  storm.run(3 * kPoll);
  EXPECT_EQ(storm.restores(kPlainPort), 1U);
  storm.device.arrive(storm.now);
  EXPECT_EQ(storm.leave(kPlainPort), 1U);
  EXPECT_EQ(storm.dropped(kPlainPort), 28U);
  EXPECT_FALSE(storm.device.pipeline().has_attention()) << "nothing left to look after";

  const auto& incidents = storm.device.pipeline().incidents();
  ASSERT_EQ(incidents.size(), 2U);
  EXPECT_EQ(incidents[0].event, flowctl::WatchdogEvent::kStormed);
  EXPECT_EQ(incidents[0].port, kPlainPort);
  EXPECT_EQ(incidents[0].traffic_class, kRoceClass);
  EXPECT_EQ(incidents[1].event, flowctl::WatchdogEvent::kRestored);
}

TEST(Watchdog, ForwardSendsInSpiteOfThePause) {
  Storm storm(WatchdogAction::kForward);
  for (int i = 0; i < 10; ++i) storm.device.arrive(0);
  storm.run(kDetect - 1);
  EXPECT_EQ(storm.leave(kPlainPort), 0U);
  storm.run(2 * kPoll);
  EXPECT_EQ(storm.leave(kPlainPort), 10U);
  storm.device.hear(kPlainPort, support::pfc_frame(flowctl::PfcRequest::pause(kRoceBit, 0xffff)), storm.now);
  storm.device.arrive(storm.now);
  EXPECT_EQ(storm.leave(kPlainPort), 1U) << "a new pause frame does not stop it again";
  EXPECT_EQ(storm.device.device.all_drops(), 0U);

  storm.storms = false;
  storm.run(kRestore + 3 * kPoll);
  EXPECT_EQ(storm.restores(kPlainPort), 1U);
  storm.device.hear(kPlainPort, support::pfc_frame(flowctl::PfcRequest::pause(kRoceBit, 0xffff)), storm.now);
  storm.device.arrive(storm.now);
  EXPECT_EQ(storm.leave(kPlainPort), 0U) << "pauses are obeyed again";
}

TEST(Watchdog, AlertOnlyCounts) {
  Storm storm(WatchdogAction::kAlert);
  for (int i = 0; i < 10; ++i) storm.device.arrive(0);
  storm.run(kSecond);
  EXPECT_EQ(storm.storms_found(kPlainPort), 1U);
  EXPECT_EQ(storm.device.held(), 10'000U);
  EXPECT_EQ(storm.leave(kPlainPort), 0U);
  EXPECT_EQ(storm.device.device.all_drops(), 0U);
}

TEST(Watchdog, AQueueThatMovesIsNotStormed) {
  Storm storm(WatchdogAction::kDrop);
  storm.storms = false;
  for (int i = 0; i < 10; ++i) storm.device.arrive(0);
  // Paused nearly all the time, but let go for one packet in every poll interval.
  for (int i = 0; i < 10; ++i) {
    storm.storms = true;
    storm.run(kPoll - kMillisecond);
    storm.storms = false;
    storm.device.hear(kPlainPort, support::pfc_frame(flowctl::PfcRequest::resume(kRoceBit)), storm.now);
    ASSERT_NE(storm.device.next(kPlainPort, storm.now), nullptr);
    storm.device.arrive(storm.now);
    storm.storms = true;
    storm.run(kMillisecond);
  }
  EXPECT_EQ(storm.storms_found(kPlainPort), 0U);
  EXPECT_EQ(storm.device.device.all_drops(), 0U);
}

TEST(Watchdog, APortThatGoesDownInAStormIsRestored) {
  Storm storm(WatchdogAction::kDrop);
  storm.device.arrive(0);
  storm.run(kDetect + 2 * kPoll);
  ASSERT_EQ(storm.storms_found(kPlainPort), 1U);
  storm.storms = false;
  storm.device.device.pipeline().flush(kPlainPort, DropReason::kPortDown, storm.now);
  storm.run(kRestore + 3 * kPoll);
  EXPECT_EQ(storm.restores(kPlainPort), 1U);
  storm.device.arrive(storm.now);
  EXPECT_EQ(storm.leave(kPlainPort), 1U);
}

}  // namespace
}  // namespace heddle::dataplane
