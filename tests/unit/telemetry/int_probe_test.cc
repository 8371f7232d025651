// The probe's wire format: what is written can be read, every length is checked, and nothing outside the frame is
// touched. Frames lie in buffers of exactly their size, so that AddressSanitizer sees the first byte too far.
#include "telemetry/int_probe.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/checksum.h"
#include "net/ip_address.h"
#include "net/random.h"

namespace heddle::telemetry {
namespace {

using net::IpAddress;
using net::IpFamily;

constexpr uint32_t kIpAt = 14;
constexpr IpFamily kFamilies[] = {IpFamily::kIpv4, IpFamily::kIpv6};
using Bytes = std::vector<uint8_t>;

constexpr uint32_t udp_at(IpFamily family) { return family == IpFamily::kIpv4 ? 34 : 54; }
const char* name_of(IpFamily family) { return family == IpFamily::kIpv4 ? "IPv4" : "IPv6"; }

// 10.128.0.`last`, or 2001:db8::`last`.
IpAddress address(IpFamily family, uint8_t last) {
  if (family == IpFamily::kIpv4) return 0x0a800000U + last;
  return {family, {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
}

Bytes probe_with(unsigned hops, IpFamily family = IpFamily::kIpv4) {
  Bytes frame(probe_frame_bytes(hops, family));
  EXPECT_TRUE(write_probe(frame, {.source = address(family, 1),
                                  .destination = address(family, 2),
                                  .source_port = 50'000,
                                  .dscp = 26,
                                  .hops = hops,
                                  .target = 7,
                                  .member = 3,
                                  .sequence = 99,
                                  .sent = 5 * kMicrosecond}));
  return frame;
}

std::optional<ProbeView> find(std::span<const uint8_t> frame, IpFamily family = IpFamily::kIpv4) {
  return find_probe(frame, kIpAt, udp_at(family));
}

// Worked out word by word, as RFC 8200 8.1 and RFC 768 say it: over addresses, length, protocol, and the packet.
uint16_t udp_checksum(const Bytes& frame, IpFamily family) {
  const uint32_t udp = udp_at(family);
  const uint32_t addresses = family == IpFamily::kIpv4 ? kIpAt + 12 : kIpAt + 8;
  uint32_t sum = net::kProtocolUdp + static_cast<uint32_t>(frame.size() - udp);
  for (uint32_t i = addresses; i < udp; i += 2) sum += frame[i] * 256U + frame[i + 1];
  for (size_t i = udp; i < frame.size(); i += 2) {
    if (i != udp + 6) sum += frame[i] * 256U + (i + 1 < frame.size() ? frame[i + 1] : 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16U);
  return sum == 0xffff ? 0xffff : static_cast<uint16_t>(~sum);
}
uint16_t checksum_in(const Bytes& frame, IpFamily family) {
  return net::header_at<net::UdpHeader>(frame.data(), udp_at(family))->checksum;
}

HopRecord hop_of(uint32_t node, Duration stay, Rate rate) {
  return {.node_id = node,
          .ingress_port = static_cast<uint16_t>(node + 1),
          .egress_port = static_cast<uint16_t>(node + 2),
          .queue_id = 3,
          .queue_bytes = 1000 * node,
          .arrival = node * kMicrosecond,
          .departure = node * kMicrosecond + stay,
          .rate = rate};
}

TEST(IntProbe, IsAWholeIpv4Packet) {
  const Bytes frame = probe_with(4);
  const auto* ip = net::header_at<net::Ipv4Header>(frame.data(), kIpAt);
  EXPECT_EQ(net::ipv4_header_sum(ip, 20), 0xffff);
  EXPECT_EQ(ip->total_length + kIpAt, frame.size());
  EXPECT_EQ(ip->tos, 26 << 2);
  EXPECT_EQ(net::header_at<net::UdpHeader>(frame.data(), 34)->length + 34, frame.size());
}

TEST(IntProbe, IsAWholeIpv6Packet) {
  const Bytes frame = probe_with(4, IpFamily::kIpv6);
  const auto* ip = net::header_at<net::Ipv6Header>(frame.data(), kIpAt);
  EXPECT_EQ(frame[12], 0x86);
  EXPECT_EQ(frame[13], 0xdd);
  EXPECT_EQ(ip->version_class_label, 0x6U << 28U | 26U << 22U | 50'000U) << "version, DSCP, flow label";
  EXPECT_EQ(ip->next_header, net::kProtocolUdp);
  EXPECT_EQ(ip->hop_limit, 64);
  EXPECT_EQ(ip->payload_length + kIpAt + 40, frame.size());
  EXPECT_EQ(ip->source, address(IpFamily::kIpv6, 1).bytes);
  EXPECT_EQ(ip->destination, address(IpFamily::kIpv6, 2).bytes);
  EXPECT_EQ(net::header_at<net::UdpHeader>(frame.data(), 54)->length + 54U, frame.size());
  EXPECT_EQ(frame.size(), probe_with(4).size() + 20) << "but for the header, what IPv4's are";
}

// RFC 8200 8.1: there is one, and every change on the way keeps it right. RFC 768: none over IPv4, unless somebody put
// one there.
TEST(IntProbe, KeepsItsUdpChecksum) {
  struct Row {
    const char* what;
    void (*change)(Bytes& frame, IpFamily family);
  };
  const Row rows[] = {
      {"as it was made", [](Bytes&, IpFamily) {}},
      {"after a hop",
       [](Bytes& f, IpFamily of) { push_hop(f, *find(f, of), hop_of(1, kMicrosecond, Rate::gbps(100))); }},
      {"after a hop without room",
       [](Bytes& f, IpFamily of) {
         for (uint32_t i = 0; i < 4; ++i) push_hop(f, *find(f, of), hop_of(7 * i, kMicrosecond, Rate::gbps(10)));
       }},
      {"turned round", [](Bytes& f, IpFamily of) { turn_round(f, *find(f, of), 48, 77 * kMillisecond); }},
  };
  for (const IpFamily family : kFamilies) {
    for (const bool has_one : {false, true}) {
      for (const Row& row : rows) {
        Bytes frame = probe_with(3, family);
        if (family == IpFamily::kIpv4 && has_one) {
          net::header_at<net::UdpHeader>(frame.data(), 34)->checksum = udp_checksum(frame, family);
        }
        row.change(frame, family);
        const bool none = family == IpFamily::kIpv4 && !has_one;
        EXPECT_EQ(checksum_in(frame, family), none ? 0 : udp_checksum(frame, family)) << name_of(family) << row.what;
        EXPECT_TRUE(is_intact(frame, *find(frame, family))) << name_of(family) << row.what;
      }
    }
  }
}

// One of 65,536 packets sums up to what would be written as 0, which says that there is none.
TEST(IntProbe, AChecksumOfZeroIsWrittenAsItsOtherForm) {
  constexpr IpFamily kSix = IpFamily::kIpv6;
  Bytes frame = probe_with(2, kSix);
  const uint16_t first = checksum_in(frame, kSix);
  // The hop that is pushed takes up all that is missing to 0xffff: its queue's lower 16 bits are one word.
  Bytes with_hop = frame;
  HopRecord hop = hop_of(0, 0, Rate::gbps(100));
  push_hop(with_hop, *find(with_hop, kSix), hop);
  hop.queue_bytes = checksum_in(with_hop, kSix);
  push_hop(frame, *find(frame, kSix), hop);
  EXPECT_NE(first, 0xffff);
  EXPECT_EQ(checksum_in(frame, kSix), 0xffff);
  EXPECT_TRUE(is_intact(frame, *find(frame, kSix)));
}

TEST(IntProbe, DamageIsSeen) {
  Random random(11);
  for (int i = 0; i < 2000; ++i) {
    Bytes frame = probe_with(2, IpFamily::kIpv6);
    push_hop(frame, *find(frame, IpFamily::kIpv6), hop_of(3, kMicrosecond, Rate::gbps(100)));
    const uint32_t body = find(frame, IpFamily::kIpv6)->body + 1;  // past the kind: it stays a probe
    frame[body + random.below(static_cast<uint32_t>(frame.size()) - body)] ^=
        static_cast<uint8_t>(1 + random.below(255));
    ASSERT_FALSE(is_intact(frame, *find(frame, IpFamily::kIpv6))) << i;
  }
  Bytes none = probe_with(2, IpFamily::kIpv6);
  net::header_at<net::UdpHeader>(none.data(), 54)->checksum = 0;
  EXPECT_FALSE(is_intact(none, *find(none, IpFamily::kIpv6))) << "RFC 8200 8.1: receivers discard it";
}

// Bytes as the specification draws them (5.7.2, 5.8), after one hop.
TEST(IntProbe, LiesAsTheSpecificationDrawsIt) {
  for (const IpFamily family : kFamilies) {
    Bytes frame = probe_with(2, family);
    push_hop(frame, *find(frame, family), hop_of(1, 700 * kNanosecond, Rate::gbps(100)));
    const auto shim = frame.begin() + udp_at(family) + 8;
    const Bytes shim_and_md(shim, shim + 16);
    EXPECT_EQ(shim_and_md, (Bytes{0x14, 12, 0x7f, 0xfe,    // INT-MD, NPT 1, 3 + 9 words, the original port
                                  0x28, 0, 9, 1,           // version 2, D, Hop ML 9, one hop left
                                  0xfc, 0x00, 0x68, 0x64,  // bits 0–5, our domain
                                  0x80, 0x00, 0x00, 0x00}));
    const Bytes hop(shim + 16, shim + 52);
    EXPECT_EQ(hop, (Bytes{0, 0, 0,    1,    0, 2, 0,    3,
                          0, 0, 0x02, 0xbc, 3, 0, 0x03, 0xe8,  // node, ports, 700 ns, 1000 bytes
                          0, 0, 0,    0,    0, 0, 0x03, 0xe8,
                          0, 0, 0,    0,    0, 0, 0x06, 0xa4,  // 1000 and 1700 ns
                          0, 1, 0x86, 0xa0}));                 // 100,000 Mb/s
  }
}

TEST(IntProbe, CarriesItsSendersNotesAndTheSumOfItsHops) {
  for (const IpFamily family : kFamilies) {
    Bytes frame = probe_with(4, family);
    push_hop(frame, *find(frame, family), hop_of(1, 3 * kMicrosecond, Rate::gbps(100)));
    push_hop(frame, *find(frame, family), hop_of(2, 4 * kMicrosecond, Rate::gbps(10)));
    push_hop(frame, *find(frame, family), hop_of(3, 0, Rate::unlimited()));
    const ProbeView view = *find(frame, family);
    EXPECT_EQ(view.hops, 3U);
    const ProbeBody& body = body_of(frame, view);
    EXPECT_EQ(body.target, 7);
    EXPECT_EQ(body.member, 3);
    EXPECT_EQ(body.sequence, 99U);
    EXPECT_EQ(body.at_ns, 5000U);
    const PathReading path = read_path(frame, view);
    EXPECT_EQ(path.delay, 7 * kMicrosecond);
    EXPECT_EQ(path.beyond, 4 * kMicrosecond);  // without the sender's own queue, which was pushed first
    EXPECT_EQ(path.bottleneck, Rate::gbps(10));
    EXPECT_TRUE(path.complete);
  }
}

TEST(IntProbe, TurnsRound) {
  Bytes frame = probe_with(1);
  turn_round(frame, *find(frame), 48, kMillisecond);
  const auto* ip = net::header_at<net::Ipv4Header>(frame.data(), kIpAt);
  EXPECT_EQ(ip->source, 0x0a800002U);
  EXPECT_EQ(ip->destination, 0x0a800001U);
  EXPECT_EQ(ip->tos, 48 << 2);
  EXPECT_EQ(net::ipv4_header_sum(ip, 20), 0xffff);
  EXPECT_EQ(body_of(frame, *find(frame)).kind, ProbeKind::kReturned);
  EXPECT_EQ(body_of(frame, *find(frame)).at_ns, 1'000'000U);
}

TEST(IntProbe, TurnsRoundOverIpv6) {
  Bytes frame = probe_with(1, IpFamily::kIpv6);
  frame[kIpAt + 7] = 61;  // three hops later
  turn_round(frame, *find(frame, IpFamily::kIpv6), 48, kMillisecond);
  const auto* ip = net::header_at<net::Ipv6Header>(frame.data(), kIpAt);
  EXPECT_EQ(ip->source, address(IpFamily::kIpv6, 2).bytes);
  EXPECT_EQ(ip->destination, address(IpFamily::kIpv6, 1).bytes);
  EXPECT_EQ(ip->version_class_label, 0x6U << 28U | 48U << 22U | 50'000U) << "another class, the same flow label";
  EXPECT_EQ(ip->hop_limit, 64);
  EXPECT_EQ(body_of(frame, *find(frame, IpFamily::kIpv6)).kind, ProbeKind::kReturned);
}

TEST(IntProbe, ComesBackWithTheTimeItTookByTheClocksOfBothEnds) {
  Bytes frame = probe_with(2);
  push_hop(frame, *find(frame), {.arrival = 5 * kMillisecond, .departure = 6 * kMillisecond});
  push_hop(frame, *find(frame), {.arrival = 90 * kSecond, .departure = 91 * kSecond});  // a clock that nobody reads
  turn_round(frame, *find(frame), 48, 3 * kMillisecond);
  const PathReading path = read_path(frame, *find(frame));
  EXPECT_EQ(path.sent, 5 * kMillisecond);
  EXPECT_EQ(path.transit, Duration{0} - 2 * kMillisecond) << "the far clock is behind: it wraps";
}

TEST(IntProbe, AHopWithoutRoomSaysSo) {
  for (const unsigned room : {1U, 2U, kMaxIntHops}) {
    Bytes frame = probe_with(room);
    for (unsigned i = 0; i < room; ++i) push_hop(frame, *find(frame), hop_of(i, kMicrosecond, Rate::gbps(100)));
    EXPECT_TRUE(read_path(frame, *find(frame)).complete);
    const Bytes full = frame;
    push_hop(frame, *find(frame), hop_of(9, kMicrosecond, Rate::gbps(100)));
    const PathReading path = read_path(frame, *find(frame));
    EXPECT_FALSE(path.complete);
    EXPECT_EQ(path.delay, room * kMicrosecond);
    frame[46] = full[46];  // but for E, nothing has changed
    EXPECT_EQ(frame, full);
  }
}

TEST(IntProbe, LongStaysAndQueuesSaturate) {
  Bytes frame = probe_with(1);
  HopRecord hop = hop_of(1, 10 * kSecond, Rate(500'000));
  hop.queue_bytes = uint64_t{1} << 40U;
  push_hop(frame, *find(frame), hop);
  const auto* record = net::header_at<IntHop>(frame.data(), 58);
  EXPECT_EQ(record->latency_ns, kIntUnavailable - 1);
  EXPECT_EQ(record->queue_bytes, 0xffffffU);
  EXPECT_EQ(record->egress_mbps, 1U);  // below the unit
}

struct Broken {
  const char* what;
  void (*change)(Bytes& frame);
};

class BrokenProbe : public testing::TestWithParam<Broken> {};

TEST_P(BrokenProbe, IsNone) {
  for (const IpFamily family : kFamilies) {
    Bytes frame = probe_with(3, family);
    push_hop(frame, *find(frame, family), hop_of(1, kMicrosecond, Rate::gbps(100)));
    ASSERT_TRUE(find(frame, family));
    // Changes are by their place in an IPv4 frame: the 20 bytes more of IPv6 stand aside meanwhile.
    const uint32_t udp = udp_at(family);
    const Bytes front(frame.begin(), frame.begin() + udp - 34);
    frame.erase(frame.begin(), frame.begin() + udp - 34);
    GetParam().change(frame);
    frame.insert(frame.begin(), front.begin(), front.end());
    EXPECT_FALSE(find(frame, family)) << name_of(family) << ": " << GetParam().what;
  }
}

TEST(IntProbe, IsNoneWithoutAnIpHeaderInFrontOfUdp) {
  Bytes frame = probe_with(2);
  ASSERT_TRUE(find(frame));
  frame[kIpAt] = 0x65;
  EXPECT_FALSE(find(frame)) << "40 bytes do not fit in between";
  frame[kIpAt] = 0x55;
  EXPECT_FALSE(find(frame)) << "neither version";
  EXPECT_FALSE(find_probe({}, 0, 34));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BrokenProbe,
    testing::Values(Broken{"another UDP port", [](Bytes& f) { f[37] ^= 1; }},
                    Broken{"a UDP length beyond the frame", [](Bytes& f) { f[38] = 0xff; }},
                    Broken{"a UDP length before the body's end", [](Bytes& f) { f[38] = 0, f[39] = 75; }},
                    Broken{"a frame cut by a byte", [](Bytes& f) { f.pop_back(); }},
                    Broken{"a frame that ends with the UDP header", [](Bytes& f) { f.resize(42); }},
                    Broken{"INT-MX instead of INT-MD", [](Bytes& f) { f[42] = 0x34; }},
                    Broken{"a length that is no whole hop", [](Bytes& f) { f[43]++; }},
                    Broken{"a length below the header's", [](Bytes& f) { f[43] = 2; }},
                    Broken{"a stack beyond the frame", [](Bytes& f) { f[43] = 3 + 9 * 8; }},
                    Broken{"INT version 1", [](Bytes& f) { f[46] = 0x18; }},
                    Broken{"another Hop ML", [](Bytes& f) { f[48] = 8; }},
                    Broken{"other instructions", [](Bytes& f) { f[50] = 0xf8; }},
                    Broken{"another domain", [](Bytes& f) { f[53] ^= 1; }},
                    Broken{"other instructions of our domain", [](Bytes& f) { f[55] = 1; }},
                    Broken{"a body of no kind", [](Bytes& f) { f[58 + 36] = 9; }}));

TEST(IntProbe, WantsRoomForItsHops) {
  Bytes small(probe_frame_bytes(2) - 1);
  EXPECT_FALSE(write_probe(small, {.hops = 2}));
  Bytes large(4096);
  EXPECT_FALSE(write_probe(large, {.hops = 0}));
  EXPECT_FALSE(write_probe(large, {.hops = kMaxIntHops + 1}));
  EXPECT_TRUE(write_probe(large, {.hops = kMaxIntHops}));
  EXPECT_FALSE(write_probe(large, {.source = address(IpFamily::kIpv6, 1), .destination = 2, .hops = 1}))
      << "from one family to the other";
  Bytes of_ipv4(probe_frame_bytes(2));
  EXPECT_FALSE(write_probe(
      of_ipv4, {.source = address(IpFamily::kIpv6, 1), .destination = address(IpFamily::kIpv6, 2), .hops = 2}));
}

// Random bytes over a probe, cut at random, in a buffer of exactly that size: what is found lies inside it.
TEST(IntProbe, NeverReadsOrWritesOutsideTheFrame) {
  Random random(5);
  unsigned found = 0;
  for (int round = 0; round < 200'000; ++round) {
    const IpFamily family = kFamilies[round % 2];
    Bytes whole = probe_with(1 + random.below(4), family);
    const unsigned changes = random.below(4);
    for (unsigned i = 0; i < changes; ++i) {
      const uint32_t udp = udp_at(family);
      whole[udp + random.below(static_cast<uint32_t>(whole.size()) - udp)] = static_cast<uint8_t>(random.next());
    }
    const size_t size = random.below(3) == 0 ? random.below(static_cast<uint32_t>(whole.size()) + 1) : whole.size();
    const auto exact = std::make_unique<uint8_t[]>(size);
    std::copy_n(whole.begin(), size, exact.get());
    const std::span<uint8_t> frame(exact.get(), size);
    const std::optional<ProbeView> view = find(frame, family);
    if (!view) continue;
    ++found;
    ASSERT_LE(view->body + sizeof(ProbeBody), view->end);
    ASSERT_LE(view->end, size);
    push_hop(frame, *view, hop_of(1, kMicrosecond, Rate::gbps(100)));
    const std::optional<ProbeView> after = find(frame, family);
    ASSERT_TRUE(after);
    ASSERT_LE(after->hops, view->hops + 1);
    read_path(frame, *after);
    is_intact(frame, *after);
    turn_round(frame, *after, 48, kMillisecond);
  }
  EXPECT_GT(found, 20'000U);
}

}  // namespace
}  // namespace heddle::telemetry
