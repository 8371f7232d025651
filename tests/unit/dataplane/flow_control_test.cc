// The whole pipeline with a shared buffer, PFC and ECN: frames in, frames out, books balanced.
#include <array>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "net/random.h"
#include "tests/support/lossless_switch.h"

namespace heddle::dataplane {
namespace {

using support::Bytes;
using support::heard;
using support::kInPort;
using support::kPlainPort;
using support::kQuantum;
using support::kRate;
using support::kRoceBit;
using support::kRoceClass;
using support::Lossless;
using support::lossless_plan;
using support::pfc_frame;
using support::SwitchPlan;

TEST(PfcReceive, PausesTheNamedClassForItsQuantaAndNoLonger) {
  Lossless lossless;
  lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::pause(kRoceBit, 100)), 0);
  lossless.arrive(0);
  lossless.arrive(0, 0);  // class 0
  Packet* other = lossless.next(kPlainPort, 0);
  ASSERT_NE(other, nullptr) << "the other class goes on";
  EXPECT_EQ(meta_of(other).traffic_class, 0);
  EXPECT_EQ(lossless.next(kPlainPort, 90 * kQuantum), nullptr);

  Pipeline& pipeline = lossless.device.pipeline();
  ASSERT_TRUE(pipeline.has_attention());
  EXPECT_EQ(pipeline.next_attention(), 100 * kQuantum);
  EXPECT_FALSE(pipeline.needs_attention(100 * kQuantum - 1));
  ASSERT_TRUE(pipeline.needs_attention(100 * kQuantum));
  pipeline.attend(100 * kQuantum);
  EXPECT_FALSE(pipeline.has_attention());
  std::vector<PortId> awake;
  pipeline.take_awakened([&](PortId port) { awake.push_back(port); });
  EXPECT_EQ(awake, (std::vector<PortId>{kPlainPort}));
  EXPECT_NE(lossless.next(kPlainPort, 100 * kQuantum), nullptr);

  const auto& counters = lossless.counters(kPlainPort);
  EXPECT_EQ(counters.rx_frames.get(), 1U);
  EXPECT_EQ(counters.rx_pause[kRoceClass].get(), 1U);
  EXPECT_EQ(lossless.device.counters(kPlainPort).rx_packets.get(), 0U) << "pause frames are not traffic";
  EXPECT_EQ(lossless.device.all_drops(), 0U);
  EXPECT_EQ(lossless.device.sink.taken.size(), 1U) << "consumed";
  EXPECT_EQ(pipeline.pauses(kPlainPort).paused_time(kRoceClass, kSecond), 100 * kQuantum);
}

TEST(PfcReceive, ResumesAtOnce) {
  Lossless lossless;
  lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::pause(0xff, 0xffff)), 0);
  lossless.arrive(0);
  EXPECT_EQ(lossless.next(kPlainPort, 0), nullptr);
  lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::resume(kRoceBit)), kQuantum);
  EXPECT_NE(lossless.next(kPlainPort, kQuantum), nullptr);
}

TEST(PfcReceive, EachOfTheEightClassesCanBePaused) {
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    SwitchPlan eight = lossless_plan();
    for (auto& port : eight.ports) port.pfc.classes = 0xff;
    eight.ports[kInPort].ingress.class_of_dscp.fill(static_cast<uint8_t>(tc));
    Lossless lossless(eight);
    lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::pause(static_cast<uint8_t>(~(1U << tc)), 9)), 0);
    lossless.arrive(0);
    EXPECT_NE(lossless.next(kPlainPort, 0), nullptr) << tc;
    lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::pause(static_cast<uint8_t>(1U << tc), 9)), 0);
    lossless.arrive(0);
    EXPECT_EQ(lossless.next(kPlainPort, kQuantum), nullptr) << tc;
  }
}

TEST(PfcReceive, WhatIsNotForUsIsNamedAndPausesNothing) {
  SwitchPlan with_off = lossless_plan();
  with_off.ports[kPlainPort].pfc.classes = 0;
  Bytes global = pfc_frame(flowctl::PfcRequest::pause(0xff, 0xffff));
  global[15] = 0x01;
  global[14] = 0x00;
  Bytes tagged = pfc_frame(flowctl::PfcRequest::pause(0xff, 0xffff));
  tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x60, 0x00});
  Bytes cut = pfc_frame(flowctl::PfcRequest::pause(0xff, 0xffff));
  cut.resize(30);
  Bytes other_opcode = pfc_frame(flowctl::PfcRequest::pause(0xff, 0xffff));
  other_opcode[15] = 0x02;
  const struct {
    const char* what;
    SwitchPlan plan;
    Bytes frame;
    DropReason reason;
    unsigned global_pauses;
    unsigned malformed;
  } rows[] = {
      {"802.3x global pause", lossless_plan(), global, DropReason::kMacControl, 1, 0},
      {"behind a VLAN tag", lossless_plan(), tagged, DropReason::kLinkLocalControl, 0, 1},
      {"cut short", lossless_plan(), cut, DropReason::kMacControl, 0, 1},
      {"another opcode", lossless_plan(), other_opcode, DropReason::kMacControl, 0, 1},
      {"a port without PFC", with_off, pfc_frame(flowctl::PfcRequest::pause(0xff, 9)), DropReason::kMacControl, 0, 0},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    Lossless lossless(row.plan);
    lossless.hear(kPlainPort, row.frame, 0);
    EXPECT_EQ(lossless.device.drops(kPlainPort, row.reason), 1U);
    EXPECT_EQ(lossless.counters(kPlainPort).rx_global_pause.get(), row.global_pauses);
    EXPECT_EQ(lossless.counters(kPlainPort).rx_malformed.get(), row.malformed);
    EXPECT_EQ(lossless.counters(kPlainPort).rx_frames.get(), 0U);
    lossless.arrive(0);
    EXPECT_NE(lossless.next(kPlainPort, 0), nullptr);
  }
}

TEST(PfcReceive, AClassThatIsNotEnabledIsNotPaused) {
  Lossless lossless;
  lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::pause(0xff, 0xffff)), 0);
  lossless.arrive(0, 0);
  EXPECT_NE(lossless.next(kPlainPort, 0), nullptr) << "PFC is enabled for class 3 only";
}

TEST(PfcSend, XoffPrecedesQueuedDataAndXonFollowsTheDrain) {
  Lossless lossless;
  // Every port paused as far as it goes: our own pause frames are held back by none of it.
  for (PortId port = 0; port < 3; ++port) {
    lossless.hear(port, pfc_frame(flowctl::PfcRequest::pause(0xff, 0xffff)), 0);
  }
  for (int i = 0; i < 20; ++i) lossless.arrive(0);
  EXPECT_EQ(lossless.next(kInPort, 0), nullptr) << "at the threshold";
  lossless.arrive(0);
  Packet* xoff = lossless.next(kInPort, 0);
  ASSERT_NE(xoff, nullptr);
  EXPECT_EQ(xoff->pkt_len, 60U);
  EXPECT_EQ(heard(xoff).classes, kRoceBit);
  EXPECT_EQ(heard(xoff).quanta[kRoceClass], 1000);
  const auto* header = net::header_at<net::EthernetHeader>(frame_of(xoff), 0);
  EXPECT_EQ(header->source, support::port_mac(kInPort));
  EXPECT_EQ(header->destination, flowctl::kMacControlAddress);
  EXPECT_EQ(lossless.next(kInPort, kQuantum), nullptr) << "once is enough";

  lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::resume(0xff)), kMicrosecond);
  Time now = kMicrosecond;
  unsigned sent = 0;
  while (lossless.held() > 15'000) {
    ASSERT_NE(lossless.next(kPlainPort, now), nullptr);
    ++sent;
    ASSERT_EQ(lossless.next(kInPort, now) != nullptr, lossless.held() <= 15'000) << sent;
    now += kRate.time_for(1024);
  }
  EXPECT_EQ(sent, 6U);
  const auto& counters = lossless.counters(kInPort);
  EXPECT_EQ(counters.tx_frames.get(), 2U);
  EXPECT_EQ(counters.tx_pause[kRoceClass].get(), 1U);
  EXPECT_EQ(counters.tx_resume[kRoceClass].get(), 1U);
  EXPECT_EQ(lossless.device.counters(kInPort).tx_packets.get(), 0U) << "pause frames are not traffic";
  EXPECT_EQ(heard(lossless.source.made.back().get()).quanta[kRoceClass], 0);
}

TEST(PfcSend, IsRepeatedBeforeTheQuantaRunOut) {
  Lossless lossless;
  lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::pause(0xff, 0xffff)), 0);
  for (int i = 0; i < 21; ++i) lossless.arrive(0);
  ASSERT_NE(lossless.next(kInPort, 0), nullptr);
  Pipeline& pipeline = lossless.device.pipeline();
  Time covered = 1000 * kQuantum;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pipeline.has_attention());
    const Time at = pipeline.next_attention();
    ASSERT_LT(at, covered) << "the peer would have gone on";
    ASSERT_EQ(lossless.next(kInPort, at - 1), nullptr);
    pipeline.attend(at);
    std::vector<PortId> awake;
    pipeline.take_awakened([&](PortId port) { awake.push_back(port); });
    ASSERT_EQ(std::count(awake.begin(), awake.end(), kInPort), 1);
    ASSERT_TRUE(pipeline.has_work(kInPort, at));
    Packet* again = lossless.next(kInPort, at);
    ASSERT_NE(again, nullptr);
    ASSERT_EQ(heard(again).quanta[kRoceClass], 1000);
    ASSERT_FALSE(pipeline.has_work(kInPort, at));
    covered = at + 1000 * kQuantum;
    lossless.source.empty = true;  // no mbuf now: it goes out as soon as there is one
    ASSERT_EQ(lossless.next(kInPort, pipeline.next_attention()), nullptr);
    lossless.source.empty = false;
  }
}

TEST(PfcSend, WaitsForTheWireButNotForTheQueue) {
  // Port 1 sends back where it came from: its own queue is full of data when XOFF is due there.
  Lossless device;
  for (int i = 0; i < 20; ++i) device.arrive(0);
  ASSERT_NE(device.next(kPlainPort, 0), nullptr);  // the wire of port 1 is busy for 1,024 bytes
  for (int i = 0; i < 20; ++i) {
    const Bytes frame = support::ethernet({.destination = support::port_mac(kPlainPort)},
                                          support::ipv4({.destination = support::ip4(10, 2, 0, 9)},
                                                        support::udp({}, support::roce({}, support::pattern(942)))));
    device.hear(kPlainPort, frame, 0);
  }
  device.hear(kPlainPort,
              support::ethernet({.destination = support::port_mac(kPlainPort)},
                                support::ipv4({}, support::udp({}, support::roce({}, support::pattern(942))))),
              0);
  EXPECT_EQ(device.next(kPlainPort, kRate.time_for(1024) - 1), nullptr) << "a frame on the wire is not cut off";
  Packet* first = device.next(kPlainPort, kRate.time_for(1024));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->pkt_len, 60U) << "39 frames wait, the pause goes first";
  EXPECT_EQ(device.next(kPlainPort, kRate.time_for(1024)), nullptr) << "it takes its time on the wire";
  EXPECT_NE(device.next(kPlainPort, kRate.time_for(1024) + kRate.time_for(84)), nullptr);
}

TEST(LosslessClass, LosesNothingWithinItsHeadroomAndCountsWhatItLosesBeyond) {
  Lossless lossless;
  for (int i = 0; i < 30; ++i) lossless.arrive(0);
  EXPECT_EQ(lossless.device.all_drops(), 0U);
  for (int i = 0; i < 4; ++i) lossless.arrive(0);
  EXPECT_EQ(lossless.device.drops(kPlainPort, DropReason::kHeadroomFull), 4U);
  EXPECT_EQ(lossless.counters(kInPort).lossless_violations[kRoceClass].get(), 4U);
  EXPECT_EQ(lossless.held(), 30'000U);
}

TEST(LosslessClass, APortThatGoesDownGivesTheBufferBackAndItsPausesUp) {
  Lossless lossless;
  lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::pause(0xff, 0xffff)), 0);
  for (int i = 0; i < 25; ++i) lossless.arrive(0);
  ASSERT_NE(lossless.next(kInPort, 0), nullptr);
  lossless.device.pipeline().flush(kPlainPort, DropReason::kPortDown, kMicrosecond);
  EXPECT_EQ(lossless.held(), 0U);
  Packet* xon = lossless.next(kInPort, kMicrosecond);
  ASSERT_NE(xon, nullptr);
  EXPECT_EQ(heard(xon).quanta[kRoceClass], 0);
  lossless.arrive(kMicrosecond);
  EXPECT_NE(lossless.next(kPlainPort, kMicrosecond), nullptr) << "the new link knows nothing of the old pause";
}

// Any sequence of arrivals, departures, pauses, flushes: what the buffer holds is what the queues hold, and when all is
// drained nothing is left and no peer is paused.
TEST(LosslessClass, BufferAndQueuesAgreeThroughAnySequence) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    SwitchPlan some = lossless_plan();
    some.buffer.bytes = 60'000 * some.ports.size() + 40'000;
    for (auto& port : some.buffer.groups) port[0].shared = Threshold::dynamic(0.5);
    Lossless lossless(some);
    Time now = 0;
    std::map<PortId, uint8_t> told;
    const auto send_some = [&](PortId port) {
      Packet* packet = lossless.next(port, now);
      if (packet == nullptr || packet->pkt_len != 60) return packet != nullptr;
      const flowctl::PfcRequest request = heard(packet);
      for (unsigned tc = 0; tc < 8; ++tc) {
        if ((request.classes >> tc & 1U) == 0) continue;
        const auto bit = static_cast<uint8_t>(1U << tc);
        told[port] = static_cast<uint8_t>(request.quanta[tc] != 0 ? told[port] | bit : told[port] & ~bit);
      }
      return true;
    };
    for (int step = 0; step < 2000; ++step) {
      const uint32_t what = random.below(20);
      if (what < 10) lossless.arrive(now, static_cast<uint8_t>(random.below(2) * (26U << 2U)));
      if (what >= 10 && what < 17) send_some(kPlainPort);
      if (what == 17) {
        const auto quanta = static_cast<uint16_t>(random.below(2) * random.below(500));
        lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::pause(kRoceBit, quanta)), now);
      }
      if (what == 18) lossless.device.pipeline().attend(now);
      if (what == 19 && random.below(50) == 0) {
        lossless.device.pipeline().flush(kPlainPort, DropReason::kPortDown, now);
      }
      send_some(kInPort);
      now += random.below(100) * kNanosecond;
      uint64_t held = 0;
      for (unsigned tc = 0; tc < 8; ++tc) held += lossless.pipeline().buffer().occupancy(kInPort, tc).bytes();
      ASSERT_EQ(held, lossless.pipeline().port(kPlainPort).bytes()) << "seed " << seed << " step " << step;
    }
    lossless.hear(kPlainPort, pfc_frame(flowctl::PfcRequest::resume(0xff)), now);
    for (int i = 0; i < 2000; ++i, now += kMicrosecond) {
      send_some(kPlainPort);
      send_some(kInPort);
    }
    EXPECT_EQ(lossless.pipeline().buffer().shared_used(), 0U);
    EXPECT_EQ(lossless.held(), 0U);
    EXPECT_EQ(told[kInPort], 0) << "a peer was left paused";
    EXPECT_GT(lossless.counters(kInPort).tx_frames.get(), 0U) << "the test has tested nothing";
  }
}

// --- ECN
// --------------------------------------------------------------------------------------------------------------

// At each of 24 depths of a real queue: how many of the packets that leave are marked.
TEST(EcnAtDequeue, MarksAsOftenAsTheCurveSaysForTheQueueLeftBehind) {
  constexpr int kDepths = 24;
  constexpr int kPerDepth = 3000;
  SwitchPlan marking;
  flowctl::WredCurve& curve = marking.ports[kPlainPort].egress.classes[kRoceClass].mark;
  curve = {.min_bytes = 100'000, .max_bytes = 400'000, .max_probability = 0.2};
  Lossless device(marking);
  constexpr uint8_t kEct0 = (26U << 2U) | 2U;
  uint64_t depth = 0;
  uint64_t eligible = 0;
  for (int i = 1; i <= kDepths; ++i) {
    const uint64_t target = 60'000 + 15'000 * static_cast<uint64_t>(i);  // 75 kB to 420 kB
    for (; depth < target; depth += 1000) device.arrive(0, kEct0);
    const uint64_t before = device.counters(kPlainPort).ecn_marked[kRoceClass].get();
    for (int n = 0; n < kPerDepth; ++n) {
      device.arrive(0, kEct0);
      Packet* packet = device.next(kPlainPort, 0);  // leaves `target` bytes behind
      ASSERT_NE(packet, nullptr);
      const uint8_t* ip = frame_of(packet) + 14;
      ASSERT_TRUE(net::ipv4_header_is_intact(ip));
    }
    if (target > 100'000) eligible += kPerDepth;
    const double marked = static_cast<double>(device.counters(kPlainPort).ecn_marked[kRoceClass].get() - before);
    const double on_slope = (static_cast<double>(target) - 100'000) / 300'000 * 0.2;
    const double p = target <= 100'000 ? 0 : target >= 400'000 ? 1 : on_slope;
    EXPECT_NEAR(marked / kPerDepth, p, 4 * std::sqrt(p * (1 - p) / kPerDepth) + 1e-9) << target;
  }
  EXPECT_EQ(device.counters(kPlainPort).ecn_eligible[kRoceClass].get(), eligible);
  EXPECT_EQ(device.device.all_drops(), 0U);
}

TEST(EcnAtDequeue, OnlyCapablePacketsAreMarkedAndTheRestOfTheFrameStays) {
  for (const uint8_t ecn : {0, 1, 2, 3}) {
    SwitchPlan marking;
    marking.ports[kPlainPort].egress.classes[kRoceClass].mark = {.min_bytes = 0, .max_bytes = 1, .max_probability = 1};
    Lossless device(marking);
    const auto tos = static_cast<uint8_t>((26U << 2U) | ecn);
    const Bytes in =
        support::ethernet({}, support::ipv4({.tos = tos}, support::udp({}, support::roce({}, Bytes(100)))));
    device.hear(kInPort, in, 0);
    device.hear(kInPort, in, 0);  // stays behind: 176 bytes
    Packet* out = device.next(kPlainPort, 0);
    ASSERT_NE(out, nullptr);
    Bytes expected = support::routed(in, kPlainPort, std::nullopt);
    const bool capable = ecn == 1 || ecn == 2;
    if (capable) {  // as a router that had received CE would have sent it: the sum is worked out anew
      Bytes ce = in;
      ce[15] |= 3;
      expected = support::routed(ce, kPlainPort, std::nullopt);
    }
    EXPECT_EQ(support::content_of(out), expected) << int{ecn};
    EXPECT_EQ(device.counters(kPlainPort).ecn_marked[kRoceClass].get(), capable ? 1U : 0U);
    EXPECT_EQ(device.counters(kPlainPort).ecn_eligible[kRoceClass].get(), capable ? 1U : 0U) << "above Kmin";
    Packet* last = device.next(kPlainPort, 0);
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(frame_of(last)[15] & 3, ecn) << "an empty queue is left behind: never marked";
  }
}

TEST(EcnAtDequeue, Ipv6IsMarkedToo) {
  SwitchPlan marking;
  marking.ports[kPlainPort].egress.classes[kRoceClass].mark = {.min_bytes = 0, .max_bytes = 1, .max_probability = 1};
  Lossless device(marking);
  const Bytes in = support::ethernet(
      {.type = net::kTypeIpv6},
      support::ipv6({.traffic_class = (26U << 2U) | 2U}, support::udp({}, support::roce({}, Bytes(100)))));
  device.hear(kInPort, in, 0);
  device.hear(kInPort, in, 0);
  Packet* out = device.next(kPlainPort, 0);
  ASSERT_NE(out, nullptr);
  Bytes expected = support::routed(in, kPlainPort, std::nullopt);
  expected[15] |= 0x30;
  EXPECT_EQ(support::content_of(out), expected);
}

TEST(EarlyDrop, HasThresholdsOfItsOwnAndSparesNobody) {
  SwitchPlan dropping;
  dropping.ports[kPlainPort].egress.classes[kRoceClass].drop = {
      .min_bytes = 20'000, .max_bytes = 40'000, .max_probability = 0.5};
  Lossless device(dropping);
  for (int i = 0; i < 20; ++i) device.arrive(0, (26U << 2U) | 2U);
  EXPECT_EQ(device.device.all_drops(), 0U);
  for (int i = 0; i < 2000; ++i) device.arrive(0, (26U << 2U) | 2U);
  EXPECT_EQ(device.pipeline().port(kPlainPort).queue(kRoceClass).bytes(), 40'000U);
  EXPECT_EQ(device.device.drops(kPlainPort, DropReason::kWred), 2020U - 40U);
}

}  // namespace
}  // namespace heddle::dataplane
