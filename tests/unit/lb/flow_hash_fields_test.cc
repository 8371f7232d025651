// Which bits of a packet enter the flow hash: the configured fields, all of them, and nothing else.
#include <bit>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "lb/flow_hash.h"
#include "net/random.h"
#include "tests/support/flows.h"

namespace heddle::lb {
namespace {

using support::Bytes;
using support::Flow;

// A field's place in the frame, by layer: bytes from the IP header or from the transport header.
struct FieldPlace {
  HashField field;
  const char* name;
  bool in_transport;
  unsigned offset4;  // in IPv4, or from the transport header
  unsigned offset6;
  unsigned bytes;
};

constexpr FieldPlace kPlaces[] = {
    {kSourceIp, "source_ip4", false, 12, 0, 4},
    {kSourceIp, "source_ip6", false, 0, 8, 16},
    {kDestinationIp, "dest_ip4", false, 16, 0, 4},
    {kDestinationIp, "dest_ip6", false, 0, 24, 16},
    {kSourcePort, "source_port", true, 0, 0, 2},
    {kDestinationPort, "dest_port", true, 2, 2, 2},
    {kOpcode, "opcode", true, 8, 8, 1},
    {kDestQp, "dest_qp", true, 13, 13, 3},
    {kPsn, "psn", true, 17, 17, 3},
};

struct Traffic {
  const char* name;
  Flow flow;
};

std::vector<Traffic> traffic() {
  const Bytes roce = support::udp({}, support::roce({.dest_qp = 0x123456, .psn = 0x654321}, support::pattern(64)));
  const Bytes tcp = support::tcp(40'000, 443, support::pattern(64));
  return {{"roce4", support::flow4(PacketKind::kRoce, {}, roce)},
          {"roce6", support::flow6(PacketKind::kRoce, {}, roce)},
          {"tcp4", support::flow4(PacketKind::kTcpUdp, {.protocol = 6}, tcp)},
          {"tcp6", support::flow6(PacketKind::kTcpUdp, {.next_header = 6}, tcp)},
          {"fragment4", support::flow4(PacketKind::kIp, {.fragment = 0x2000}, roce)},
          {"fragment6", support::flow6(PacketKind::kIp, {}, roce)}};
}

// Which field a byte of the frame belongs to, 0 if none that parse found readable.
unsigned field_at(const PacketMeta& meta, size_t byte) {
  for (const FieldPlace& place : kPlaces) {
    if (place.in_transport && meta.kind == PacketKind::kIp) continue;
    if (place.in_transport && place.offset4 >= 8 && meta.kind != PacketKind::kRoce) continue;
    const bool v4 = meta.l3 == L3::kIpv4;
    const size_t at = (place.in_transport ? meta.l4_offset : meta.l3_offset) + (v4 ? place.offset4 : place.offset6);
    if ((v4 ? place.offset4 : place.offset6) == 0 && !place.in_transport) continue;  // the other protocol's address
    if (byte >= at && byte < at + place.bytes) return place.field;
  }
  return 0;
}

// Flips every bit of the frame in turn: the hash must change exactly where a bit belongs to a configured field.
void expect_only(uint16_t fields, const Traffic& traffic) {
  HashSettings settings;
  settings.fields = {fields, fields, fields};
  const FlowHasher hasher(settings);
  Flow flow = traffic.flow;
  const uint32_t before = hasher.hash(flow.frame.data(), flow.meta);
  for (size_t bit = 0; bit < 8 * flow.frame.size(); ++bit) {
    uint8_t& byte = flow.frame[bit / 8];
    byte = static_cast<uint8_t>(byte ^ (1U << (bit % 8)));
    const bool changed = hasher.hash(flow.frame.data(), flow.meta) != before;
    EXPECT_EQ(changed, (field_at(flow.meta, bit / 8) & fields) != 0)
        << traffic.name << ", fields " << fields << ", byte " << bit / 8 << " bit " << bit % 8;
    byte = static_cast<uint8_t>(byte ^ (1U << (bit % 8)));
  }
  for (unsigned bit = 0; bit < 8; ++bit) {
    flow.meta.protocol = static_cast<uint8_t>(traffic.flow.meta.protocol ^ (1U << bit));
    EXPECT_EQ(hasher.hash(flow.frame.data(), flow.meta) != before, (fields & kProtocol) != 0)
        << traffic.name << ", fields " << fields << ", protocol bit " << bit;
  }
}

TEST(HashFields, EachFieldAloneIsAllThatCounts) {
  for (const Traffic& of : traffic()) {
    for (unsigned field = kSourceIp; field <= kPsn; field <<= 1U) expect_only(static_cast<uint16_t>(field), of);
  }
}

TEST(HashFields, EachFieldCanBeLeftOut) {
  constexpr unsigned kAll = 2 * kPsn - 1U;
  for (const Traffic& of : traffic()) {
    expect_only(kAll, of);
    for (unsigned field = kSourceIp; field <= kPsn; field <<= 1U) expect_only(static_cast<uint16_t>(kAll & ~field), of);
  }
}

TEST(HashFields, NoFieldAtAllGivesOneHash) {
  for (const Traffic& of : traffic()) expect_only(0, of);
}

TEST(HashFields, DefaultsAreFlowsAndNeverPsnOrOpcode) {
  const HashSettings defaults;
  for (const uint16_t fields : defaults.fields) {
    EXPECT_EQ(fields & (kPsn | kOpcode), 0);
    EXPECT_EQ(fields & kIpFields, kIpFields);
  }
  for (const Traffic& of : traffic()) expect_only(defaults.fields[static_cast<size_t>(of.flow.meta.kind)], of);
}

TEST(HashFields, EachPacketKindHasItsOwnProfile) {
  HashSettings settings;
  settings.fields = {kSourceIp, kDestinationIp, kDestQp};
  const FlowHasher hasher(settings);
  const auto moves = [&](const char* name, size_t byte) {
    for (Traffic& of : traffic()) {
      if (std::string(name) != of.name) continue;
      const uint32_t before = hasher.hash(of.flow.frame.data(), of.flow.meta);
      of.flow.frame[byte] ^= 1U;
      return hasher.hash(of.flow.frame.data(), of.flow.meta) != before;
    }
    ADD_FAILURE() << "no traffic " << name;
    return false;
  };
  constexpr size_t kSource = 14 + 12;
  constexpr size_t kDestination = 14 + 16;
  constexpr size_t kQp = 34 + 13;
  EXPECT_TRUE(moves("fragment4", kSource));
  EXPECT_FALSE(moves("fragment4", kDestination));
  EXPECT_FALSE(moves("tcp4", kSource));
  EXPECT_TRUE(moves("tcp4", kDestination));
  EXPECT_FALSE(moves("roce4", kSource));
  EXPECT_FALSE(moves("roce4", kDestination));
  EXPECT_TRUE(moves("roce4", kQp));
}

TEST(HashFields, BothDirectionsOfAConnectionAreDifferentFlows) {
  const FlowHasher hasher({});
  const Flow there =
      support::flow4(PacketKind::kTcpUdp, {.protocol = 6, .source = 1, .destination = 2}, support::tcp(1000, 2000, {}));
  const Flow back =
      support::flow4(PacketKind::kTcpUdp, {.protocol = 6, .source = 2, .destination = 1}, support::tcp(2000, 1000, {}));
  EXPECT_NE(hasher.hash(there.frame.data(), there.meta), hasher.hash(back.frame.data(), back.meta));
}

// -- quality of the mixing --------------------------------------------------------------------------------------------

// How often flipping `bit` of the frame flips each bit of the hash, over `samples` packets with random field values.
std::array<unsigned, 32> flips_by(const FlowHasher& hasher, Flow flow, size_t bit, unsigned samples, Random& random) {
  std::vector<size_t> variable;
  for (size_t byte = 0; byte < flow.frame.size(); ++byte) {
    if (field_at(flow.meta, byte) != 0) variable.push_back(byte);
  }
  std::array<unsigned, 32> flips{};
  for (unsigned sample = 0; sample < samples; ++sample) {
    for (const size_t byte : variable) flow.frame[byte] = static_cast<uint8_t>(random.next());
    const uint32_t before = hasher.hash(flow.frame.data(), flow.meta);
    flow.frame[bit / 8] = static_cast<uint8_t>(flow.frame[bit / 8] ^ (1U << (bit % 8)));
    const uint32_t differs = before ^ hasher.hash(flow.frame.data(), flow.meta);
    for (unsigned out = 0; out < 32; ++out) flips[out] += (differs >> out) & 1U;
  }
  return flips;
}

TEST(HashMixing, EveryInputBitFlipsEveryOutputBitInHalfOfAllCases) {
  constexpr unsigned kSamples = 1024;
  const FlowHasher hasher({.seed = 7});
  Random random(11);
  for (const Traffic& of : traffic()) {
    const uint16_t fields = HashSettings{}.fields[static_cast<size_t>(of.flow.meta.kind)];
    for (size_t bit = 0; bit < 8 * of.flow.frame.size(); ++bit) {
      if ((field_at(of.flow.meta, bit / 8) & fields) == 0) continue;
      const std::array<unsigned, 32> flips = flips_by(hasher, of.flow, bit, kSamples, random);
      for (unsigned out = 0; out < 32; ++out) {
        EXPECT_NEAR(flips[out], kSamples / 2.0, 5 * std::sqrt(kSamples / 4.0))
            << of.name << ": input byte " << bit / 8 << " bit " << bit % 8 << " → output bit " << out;
      }
    }
  }
}

TEST(HashMixing, AnotherSeedIsAnotherHash) {
  // Not a constant XOR or sum apart: the difference of two seeds' hashes varies from flow to flow.
  const Traffic of = traffic()[0];
  const FlowHasher a({.seed = 1});
  const FlowHasher b({.seed = 2});
  Flow flow = of.flow;
  uint32_t xors_and = ~0U;
  uint32_t xors_or = 0;
  for (unsigned i = 0; i < 64; ++i) {
    flow.frame[29] = static_cast<uint8_t>(i);
    const uint32_t differs = a.hash(flow.frame.data(), flow.meta) ^ b.hash(flow.frame.data(), flow.meta);
    xors_and &= differs;
    xors_or |= differs;
  }
  EXPECT_EQ(xors_and, 0U);
  EXPECT_EQ(xors_or, ~0U);
}

}  // namespace
}  // namespace heddle::lb
