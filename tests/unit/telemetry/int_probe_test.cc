// The probe's wire format: what is written can be read, every length is checked, and nothing outside the frame is
// touched. Frames lie in buffers of exactly their size, so that AddressSanitizer sees the first byte too far.
#include "telemetry/int_probe.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/checksum.h"
#include "net/random.h"

namespace heddle::telemetry {
namespace {

constexpr uint32_t kIpAt = 14;
constexpr uint32_t kUdpAt = 34;
using Bytes = std::vector<uint8_t>;

Bytes probe_with(unsigned hops) {
  Bytes frame(probe_frame_bytes(hops));
  EXPECT_TRUE(write_probe(frame, {.source = 0x0a800001,
                                  .destination = 0x0a800002,
                                  .source_port = 50'000,
                                  .dscp = 26,
                                  .hops = hops,
                                  .target = 7,
                                  .member = 3,
                                  .sequence = 99,
                                  .sent = 5 * kMicrosecond}));
  return frame;
}

std::optional<ProbeView> find(std::span<const uint8_t> frame) { return find_probe(frame, kIpAt, kUdpAt); }

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
  EXPECT_EQ(net::header_at<net::UdpHeader>(frame.data(), kUdpAt)->length + kUdpAt, frame.size());
}

// Bytes as the specification draws them (5.7.2, 5.8), after one hop.
TEST(IntProbe, LiesAsTheSpecificationDrawsIt) {
  Bytes frame = probe_with(2);
  push_hop(frame, *find(frame), hop_of(1, 700 * kNanosecond, Rate::gbps(100)));
  const Bytes shim_and_md(frame.begin() + 42, frame.begin() + 58);
  EXPECT_EQ(shim_and_md, (Bytes{0x14, 12, 0x7f, 0xfe,    // INT-MD, NPT 1, 3 + 9 words, the original port
                                0x28, 0, 9, 1,           // version 2, D, Hop ML 9, one hop left
                                0xfc, 0x00, 0x68, 0x64,  // bits 0–5, our domain
                                0x80, 0x00, 0x00, 0x00}));
  const Bytes hop(frame.begin() + 58, frame.begin() + 94);
  EXPECT_EQ(
      hop,
      (Bytes{0, 0, 0,    1,   0, 2, 0,    3,    0, 0, 0x02, 0xbc, 3, 0, 0x03, 0xe8,  // node, ports, 700 ns, 1000 bytes
             0, 0, 0,    0,   0, 0, 0x03, 0xe8, 0, 0, 0,    0,    0, 0, 0x06, 0xa4,  // 1000 and 1700 ns
             0, 1, 0x86, 0xa0}));                                                    // 100,000 Mb/s
}

TEST(IntProbe, CarriesItsSendersNotesAndTheSumOfItsHops) {
  Bytes frame = probe_with(4);
  push_hop(frame, *find(frame), hop_of(1, 3 * kMicrosecond, Rate::gbps(100)));
  push_hop(frame, *find(frame), hop_of(2, 4 * kMicrosecond, Rate::gbps(10)));
  push_hop(frame, *find(frame), hop_of(3, 0, Rate::unlimited()));
  const ProbeView view = *find(frame);
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
  Bytes frame = probe_with(3);
  push_hop(frame, *find(frame), hop_of(1, kMicrosecond, Rate::gbps(100)));
  ASSERT_TRUE(find(frame));
  GetParam().change(frame);
  EXPECT_FALSE(find(frame)) << GetParam().what;
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
}

// Random bytes over a probe, cut at random, in a buffer of exactly that size: what is found lies inside it.
TEST(IntProbe, NeverReadsOrWritesOutsideTheFrame) {
  Random random(5);
  unsigned found = 0;
  for (int round = 0; round < 200'000; ++round) {
    Bytes whole = probe_with(1 + random.below(4));
    const unsigned changes = random.below(4);
    for (unsigned i = 0; i < changes; ++i) {
      whole[kUdpAt + random.below(static_cast<uint32_t>(whole.size()) - kUdpAt)] = static_cast<uint8_t>(random.next());
    }
    const size_t size = random.below(3) == 0 ? random.below(static_cast<uint32_t>(whole.size()) + 1) : whole.size();
    const auto exact = std::make_unique<uint8_t[]>(size);
    std::copy_n(whole.begin(), size, exact.get());
    const std::span<uint8_t> frame(exact.get(), size);
    const std::optional<ProbeView> view = find(frame);
    if (!view) continue;
    ++found;
    ASSERT_LE(view->body + sizeof(ProbeBody), view->end);
    ASSERT_LE(view->end, size);
    push_hop(frame, *view, hop_of(1, kMicrosecond, Rate::gbps(100)));
    const std::optional<ProbeView> after = find(frame);
    ASSERT_TRUE(after);
    ASSERT_LE(after->hops, view->hops + 1);
    read_path(frame, *after);
    turn_round(frame, *after, 48, kMillisecond);
  }
  EXPECT_GT(found, 20'000U);
}

}  // namespace
}  // namespace heddle::telemetry
