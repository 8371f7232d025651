// The short cut for plain RoCE and the stages one by one are two ways to the same verdict: whatever the frame, both
// drop it for the same reason or find the same in it.
#include "dataplane/plain_roce.h"

#include <cstring>

#include <gtest/gtest.h>

#include "net/random.h"
#include "tests/support/rows.h"

namespace heddle::support {
namespace {

constexpr net::Mac kOtherMac{0x02, 0, 0, 0, 0x01, 0x99};

// The short cut knows a port's first MAC only: with another one in front, the same frames take the stages.
SwitchPlan with_macs(std::vector<net::Mac> macs) {
  SwitchPlan plan;
  plan.ports[kInPort].ingress.macs = std::move(macs);
  return plan;
}

bool takes_short_cut(const SwitchPlan& plan, const Packet* packet) {
  const dataplane::IngressPort& port = plan.ports[kInPort].ingress;
  const dataplane::PlainRoce::Facts facts = dataplane::PlainRoce::facts_of(port);
  return dataplane::PlainRoce(port, &facts).matches(packet, frame_of(packet));
}

struct Outcome {
  std::array<uint64_t, kDropReasons> drops{};
  bool kept = false;
  HeaderFacts facts;
  uint32_t flow_hash = 0;
  uint32_t route = 0;
};

Outcome outcome_of(const SwitchPlan& plan, Packet* packet) {
  TestSwitch device(plan);
  std::vector<Packet*> burst{packet};
  Outcome outcome;
  outcome.kept = device.ingress(burst) == 1;
  for (size_t reason = 0; reason < kDropReasons; ++reason) {
    outcome.drops[reason] = device.drops(kInPort, static_cast<DropReason>(reason));
  }
  if (!outcome.kept) return outcome;
  const PacketMeta& meta = meta_of(packet);
  outcome.facts = meta;
  outcome.flow_hash = meta.flow_hash;
  outcome.route = meta.route;
  return outcome;
}

void expect_same(const SwitchPlan& plan, const SwitchPlan& stages, const Bytes& frame) {
  const OwnedPacket a = make_packet(frame);
  const OwnedPacket b = make_packet(frame);
  ASSERT_FALSE(takes_short_cut(stages, b.get()));
  const Outcome fast = outcome_of(plan, a.get());
  const Outcome slow = outcome_of(stages, b.get());
  ASSERT_EQ(fast.kept, slow.kept);
  ASSERT_EQ(fast.drops, slow.drops);
  ASSERT_EQ(fast.route, slow.route);
  ASSERT_EQ(fast.flow_hash, slow.flow_hash);
  ASSERT_EQ(std::memcmp(&fast.facts, &slow.facts, sizeof(HeaderFacts)), 0);
}

TEST(PlainRoce, IsRecognised) {
  const SwitchPlan plan;
  const OwnedPacket packet = make_packet(roce4());
  EXPECT_TRUE(takes_short_cut(plan, packet.get()));
}

struct Usable {
  const char* description;
  void (*change)(dataplane::IngressPort& port);
  bool short_cut;
};

class PlainRocePorts : public testing::TestWithParam<Usable> {};

TEST_P(PlainRocePorts, AgreeWithTheStages) {
  SwitchPlan plan = with_macs({kRouterMac, kOtherMac});
  SwitchPlan stages = with_macs({kOtherMac, kRouterMac});
  GetParam().change(plan.ports[kInPort].ingress);
  GetParam().change(stages.ports[kInPort].ingress);
  const Bytes frame = roce4();
  EXPECT_EQ(takes_short_cut(plan, make_packet(frame).get()), GetParam().short_cut) << GetParam().description;
  for (unsigned dscp = 0; dscp < 64; ++dscp) {
    expect_same(plan, stages, roce4({.tos = static_cast<uint8_t>(dscp << 2U)}));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, PlainRocePorts,
                         testing::Values(Usable{"as it is", [](dataplane::IngressPort&) {}, true},
                                         Usable{"PCP trusted: no tag, default class",
                                                [](dataplane::IngressPort& port) {
                                                  port.trust = dataplane::Trust::kPcp;
                                                  port.default_class = 5;
                                                },
                                                true},
                                         Usable{"nothing trusted",
                                                [](dataplane::IngressPort& port) {
                                                  port.trust = dataplane::Trust::kNone;
                                                  port.default_class = 2;
                                                },
                                                true},
                                         Usable{"only tagged frames",
                                                [](dataplane::IngressPort& port) { port.untagged = false; }, false},
                                         Usable{"a DSCP map of its own",
                                                [](dataplane::IngressPort& port) {
                                                  for (unsigned dscp = 0; dscp < 64; ++dscp) {
                                                    port.class_of_dscp[dscp] =
                                                        static_cast<uint8_t>(dscp % kTrafficClasses);
                                                  }
                                                },
                                                true}));

// Frames near the plain one, where a comparison that is missing or off by one would show.
TEST(PlainRoce, EverySingleBitFlippedAgreesWithTheStages) {
  const SwitchPlan plan = with_macs({kRouterMac, kOtherMac});
  const SwitchPlan stages = with_macs({kOtherMac, kRouterMac});
  const Bytes plain = roce4();
  unsigned short_cuts = 0;
  for (size_t bit = 0; bit < 8 * plain.size(); ++bit) {
    for (const bool right_checksum : {false, true}) {
      Bytes frame = plain;
      frame[bit / 8] = static_cast<uint8_t>(frame[bit / 8] ^ (1U << (bit % 8)));
      if (right_checksum) {
        frame[24] = frame[25] = 0;
        const uint16_t sum = internet_checksum(std::span(frame).subspan(14, 20));
        frame[24] = static_cast<uint8_t>(sum >> 8U);
        frame[25] = static_cast<uint8_t>(sum);
      }
      SCOPED_TRACE(testing::Message() << "bit " << bit << (right_checksum ? ", checksum made right" : ""));
      expect_same(plan, stages, frame);
      short_cuts += takes_short_cut(plan, make_packet(frame).get()) ? 1U : 0U;
    }
  }
  EXPECT_GT(short_cuts, 16 * (plain.size() - 54)) << "the payload's bits and more";
  EXPECT_LT(short_cuts, 16 * plain.size());
}

// Every byte of the headers at values that matter, two at a time, and frames cut short anywhere.
TEST(PlainRoce, MutatedFramesAgreeWithTheStages) {
  const SwitchPlan plan = with_macs({kRouterMac, kOtherMac});
  const SwitchPlan stages = with_macs({kOtherMac, kRouterMac});
  constexpr std::array<uint8_t, 16> kValues{0, 1, 2, 4, 17, 24, 44, 58, 0x45, 64, 78, 126, 127, 128, 223, 224};
  Random random(1);
  unsigned short_cuts = 0;
  for (int i = 0; i < 50'000; ++i) {
    Bytes frame = roce4({}, {}, random.below(40));
    for (unsigned mutations = random.below(3); mutations-- > 0;) {
      frame[random.below(54)] = kValues[random.below(kValues.size())];
    }
    if (random.below(4) != 0 && frame[14] == 0x45) {
      frame[24] = frame[25] = 0;
      const uint16_t sum = internet_checksum(std::span(frame).subspan(14, 20));
      frame[24] = static_cast<uint8_t>(sum >> 8U);
      frame[25] = static_cast<uint8_t>(sum);
    }
    if (random.below(8) == 0) frame.resize(random.below(static_cast<uint32_t>(frame.size())) + 1);
    if (random.below(8) == 0) frame.resize(frame.size() + random.below(20));  // padding
    SCOPED_TRACE(testing::Message() << "case " << i);
    expect_same(plan, stages, frame);
    short_cuts += takes_short_cut(plan, make_packet(frame).get()) ? 1U : 0U;
  }
  EXPECT_GT(short_cuts, 10'000U);
  EXPECT_LT(short_cuts, 40'000U);
}

}  // namespace
}  // namespace heddle::support
