// A burst that is charged to the buffer as a whole must leave behind what its packets would have left one by one.
#include <gtest/gtest.h>

#include "net/random.h"
#include "tests/support/lossless_switch.h"

namespace heddle::dataplane {
namespace {

using support::Bytes;
using support::content_of;
using support::ip4;
using support::kInPort;
using support::kRoceClass;
using support::Lossless;

// --- the buffer alone

TEST(BurstCharge, WhatFitsTogetherIsTakenPacketByPacketWithoutAPause) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    BufferSettings settings;
    settings.bytes = 300'000;
    settings.packets = random.below(2) == 0 ? 0 : 500;
    settings.groups.resize(1);
    settings.groups[0].fill({.lossless = true,
                             .reserved = random.below(3) * 4000,
                             .shared = random.below(2) == 0 ? Threshold::fixed(random.below(100'000))
                                                            : Threshold::dynamic(0.0625 * (1U << random.below(6))),
                             .headroom = 5000});
    settings.queues.resize(1);
    SharedBuffer whole;
    whole.configure(settings, {}, {}, 0);
    SharedBuffer by_packet;
    by_packet.configure(settings, {}, {}, 0);
    unsigned fitting = 0;
    for (int burst = 0; burst < 300; ++burst) {
      const unsigned tc = random.below(kTrafficClasses);
      std::vector<uint32_t> frames(1 + random.below(kBurst));
      uint64_t charge = 0;
      for (uint32_t& bytes : frames) charge += whole.charge_of(bytes = 60 + random.below(1500));
      if (whole.fits(0, tc, charge)) {
        ++fitting;
        whole.charge_fitting(0, tc, charge);
        for (const uint32_t bytes : frames) ASSERT_EQ(by_packet.charge(0, tc, bytes), DropReason::kNone);
      } else {
        for (const uint32_t bytes : frames) ASSERT_EQ(whole.charge(0, tc, bytes), by_packet.charge(0, tc, bytes));
      }
      const SharedBuffer::Occupancy one = whole.occupancy(0, tc);
      const SharedBuffer::Occupancy other = by_packet.occupancy(0, tc);
      ASSERT_EQ(one.reserved, other.reserved) << "seed " << seed;
      ASSERT_EQ(one.shared, other.shared) << "seed " << seed;
      ASSERT_EQ(one.headroom, other.headroom) << "seed " << seed;
      ASSERT_EQ(whole.shared_free(), by_packet.shared_free()) << "seed " << seed;
      ASSERT_EQ(whole.xoff(0), by_packet.xoff(0)) << "seed " << seed;
    }
    EXPECT_GT(fitting, 0U) << "the test has tested nothing: seed " << seed;
  }
}

TEST(BurstCharge, NothingFitsThatIsNotOursOrNotLosslessOrPaused) {
  BufferSettings settings;
  settings.bytes = 100'000;
  settings.groups.resize(2);
  settings.queues.resize(2);
  for (auto& port : settings.groups) {
    port[kRoceClass] = {.lossless = true, .shared = Threshold::fixed(1000), .headroom = 10'000};
  }
  SharedBuffer buffer;
  BufferLedger ledger(2);
  buffer.configure(settings, {true, false}, {&ledger}, 0);
  EXPECT_TRUE(buffer.fits(0, kRoceClass, 1000));
  EXPECT_FALSE(buffer.fits(0, kRoceClass, 1001));
  EXPECT_FALSE(buffer.fits(0, 0, 100)) << "lossy: its queue is asked for every packet";
  EXPECT_FALSE(buffer.fits(1, kRoceClass, 100)) << "another's";
  EXPECT_EQ(buffer.charge(0, kRoceClass, 1500), DropReason::kNone);
  EXPECT_EQ(buffer.xoff(0), 1U << kRoceClass);
  EXPECT_FALSE(buffer.fits(0, kRoceClass, 100)) << "in headroom";
}

// --- the whole pipeline

// Mostly one class to places that exist; now and then another class, or a place that does not, or frames that change
// their length on the way: a priority tag goes, a tag comes, a short frame is padded.
std::vector<Bytes> random_burst(Random& random) {
  std::vector<Bytes> frames;
  const bool mixed = random.below(4) == 0;
  const unsigned short_frames = random.below(4) == 0 ? 3 : 100;
  const unsigned count = 1 + random.below(kBurst);
  for (unsigned i = 0; i < count; ++i) {
    const unsigned subnet = random.below(12) == 0 ? 4 + random.below(6) : random.below(2) == 0 ? 2U : 7U;
    const uint32_t bytes = random.below(40) == 0 ? 1600 : 20 + random.below(1000);
    const uint8_t tos = mixed && random.below(3) == 0 ? 0 : 26U << 2U;
    const auto port = static_cast<uint16_t>(0xc000 + random.below(100));
    const Bytes payload = random.below(short_frames) == 0
                              ? Bytes()
                              : support::udp({.source_port = port}, support::roce({}, support::pattern(bytes)));
    const Bytes ip = support::ipv4({.tos = tos, .destination = ip4(10, subnet, 0, 9)}, payload);
    const bool tagged = mixed && random.below(3) == 0;
    frames.push_back(tagged ? support::ethernet({.type = net::kTypeVlan}, support::vlan_tag(0, net::kTypeIpv4, ip))
                            : support::ethernet({}, ip));
  }
  return frames;
}

// One switch that is given bursts whole, or cut into packets.
struct Fed {
  Fed(const support::SwitchPlan& plan, bool whole_bursts) : lossless(plan), whole(whole_bursts) {}

  void receive(const std::vector<Bytes>& frames, Time now) {
    std::vector<Packet*> burst;
    for (const Bytes& frame : frames) {
      lossless.packets.push_back(support::make_packet(frame));
      burst.push_back(lossless.packets.back().get());
    }
    Pipeline& pipeline = lossless.device.pipeline();
    const size_t step = whole ? burst.size() : 1;
    for (size_t i = 0; i < burst.size(); i += step) {
      const unsigned kept = pipeline.ingress(kInPort, burst.data() + i, static_cast<unsigned>(step), now);
      pipeline.forward(burst.data() + i, kept, now);
    }
  }
  std::vector<Bytes> send(PortId port, unsigned room, Time now) {
    std::vector<Packet*> packets(room);
    packets.resize(lossless.device.pipeline().egress(port, packets.data(), room, now));
    std::vector<Bytes> frames;
    for (const Packet* packet : packets) frames.push_back(content_of(packet));
    return frames;
  }

  Lossless lossless;
  bool whole;
};

void expect_alike(const Fed& one, const Fed& other) {
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    const auto a = one.lossless.pipeline().buffer().occupancy(kInPort, tc);
    const auto b = other.lossless.pipeline().buffer().occupancy(kInPort, tc);
    ASSERT_EQ(a.shared, b.shared) << tc;
    ASSERT_EQ(a.headroom, b.headroom) << tc;
    ASSERT_EQ(a.peak, b.peak) << tc;
    ASSERT_EQ(one.lossless.counters(kInPort).lossless_violations[tc].get(),
              other.lossless.counters(kInPort).lossless_violations[tc].get())
        << tc;
  }
  for (PortId port = 0; port < 4; ++port) {
    for (unsigned reason = 0; reason < kDropReasons; ++reason) {
      ASSERT_EQ(one.lossless.device.drops(port, static_cast<DropReason>(reason)),
                other.lossless.device.drops(port, static_cast<DropReason>(reason)))
          << "port " << port << " reason " << reason;
    }
  }
}

TEST(BurstCharge, ASwitchTreatsABurstAsItTreatsItsPackets) {
  uint64_t violations = 0;
  uint64_t no_route = 0;
  uint64_t queue_full = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    support::SwitchPlan plan = support::lossless_plan();
    for (auto& port : plan.ports) {
      port.egress.limit_packets = seed % 2 == 0 ? 25 : 1000;
      port.egress.classes[kRoceClass].mark = {.min_bytes = 5000, .max_bytes = 20'000, .max_probability = 0.5};
    }
    Fed whole(plan, true);
    Fed cut(plan, false);
    Time now = 0;
    for (int step = 0; step < 400; ++step) {
      const std::vector<Bytes> frames = random_burst(random);
      whole.receive(frames, now);
      cut.receive(frames, now);
      ASSERT_NO_FATAL_FAILURE(expect_alike(whole, cut)) << "seed " << seed << " step " << step;
      now += random.below(3) * kMicrosecond;
      for (PortId port = 0; port < 3; ++port) {
        const unsigned room = 1 + random.below(kBurst);
        ASSERT_EQ(whole.send(port, room, now), cut.send(port, room, now)) << "seed " << seed << " step " << step;
      }
      ASSERT_NO_FATAL_FAILURE(expect_alike(whole, cut)) << "seed " << seed << " step " << step;
    }
    violations += whole.lossless.counters(kInPort).lossless_violations[kRoceClass].get();
    no_route += whole.lossless.device.drops(kInPort, DropReason::kNoRoute);
    queue_full += whole.lossless.device.drops(support::kPlainPort, DropReason::kQueueFull);
  }
  EXPECT_GT(violations, 0U);
  EXPECT_GT(no_route, 0U);
  EXPECT_GT(queue_full, 0U);
}

}  // namespace
}  // namespace heddle::dataplane
