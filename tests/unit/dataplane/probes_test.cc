// Path probes in the pipeline: stamped as they leave, hashed where data is sprayed, turned round or taken in where they
// end; and what only looks like one is forwarded like any packet.
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "telemetry/int_probe.h"
#include "tests/support/test_switch.h"

namespace heddle::support {
namespace {

using telemetry::ProbeView;

constexpr uint32_t kOurs = ip4(10, 9, 0, 1);
constexpr uint32_t kSender = ip4(10, 2, 0, 1);  // leads to the plain port
constexpr uint8_t kReturnDscp = 48;

class Receiver : public telemetry::ProbeReceiver {
 public:
  void receive_probe(std::span<const uint8_t> frame, const ProbeView& probe, Time now) override {
    sequences.push_back(telemetry::body_of(frame, probe).sequence);
    last = now;
  }
  std::vector<uint32_t> sequences;
  Time last = 0;
};

class Probes : public testing::Test {
 protected:
  Probes() { device.pipeline().use_probes({.address = kOurs, .node_id = 42, .receiver = &receiver}); }

  static Bytes probe_to(uint32_t destination, uint16_t source_port = 50'000, uint32_t sequence = 5) {
    Bytes frame(telemetry::probe_frame_bytes(3));
    EXPECT_TRUE(telemetry::write_probe(frame, {.source = kSender,
                                               .destination = destination,
                                               .source_port = source_port,
                                               .dscp = 26,
                                               .hops = 3,
                                               .sequence = sequence}));
    const net::Mac to = port_mac(kInPort);
    std::copy(to.begin(), to.end(), frame.begin());
    return frame;
  }
  // The packet that comes in, all the way.
  void pass(const Bytes& frame, Time now = kMillisecond) {
    packets_.push_back(make_packet(frame));
    device.pass(packets_.back().get(), now);
  }
  static std::optional<ProbeView> probe_in(const Bytes& frame) { return telemetry::find_probe(frame, 14, 34); }

  TestSwitch device;
  Receiver receiver;

 private:
  std::vector<OwnedPacket> packets_;
};

TEST_F(Probes, AreStampedOnTheirWay) {
  pass(probe_to(ip4(10, 2, 0, 9)));
  ASSERT_EQ(device.sent.size(), 1U);
  const Bytes out = content_of(device.sent[0].packet);
  const auto probe = probe_in(out);
  ASSERT_TRUE(probe);
  ASSERT_EQ(probe->hops, 1U);
  const auto* hop = net::header_at<telemetry::IntHop>(out.data(), probe->stack);
  EXPECT_EQ(hop->node_id, 42U);
  EXPECT_EQ(hop->ingress_port, kInPort);
  EXPECT_EQ(hop->egress_port, kPlainPort);
  EXPECT_EQ(hop->queue_id, 3);  // the class of DSCP 26
  EXPECT_EQ(hop->ingress_ns, kMillisecond / kNanosecond);
  EXPECT_EQ(out.size(), telemetry::probe_frame_bytes(3));
  EXPECT_EQ(device.pipeline().probe_bytes(kPlainPort), out.size() + kEthernetOverhead);
}

TEST_F(Probes, SayHowLongTheyWaited) {
  const OwnedPacket packet = make_packet(probe_to(ip4(10, 2, 0, 9)));
  std::vector<Packet*> burst{packet.get()};
  ASSERT_EQ(device.ingress(burst, kMillisecond), 1U);
  device.pipeline().forward(burst.data(), 1, kMillisecond);
  ASSERT_EQ(device.egress(kPlainPort, kMillisecond + 7 * kMicrosecond).size(), 1U);
  const Bytes out = content_of(packet.get());
  EXPECT_EQ(telemetry::read_path(out, *probe_in(out)).delay, 7 * kMicrosecond);
}

TEST_F(Probes, AreHashedWhereDataIsSprayed) {
  device.schedule_by("rps");
  for (int i = 0; i < 20; ++i) pass(probe_to(ip4(10, 7, 0, 9)));
  std::set<PortId> ports;
  for (const TestSwitch::Sent& sent : device.sent) ports.insert(sent.port);
  EXPECT_EQ(device.sent.size(), 20U);
  EXPECT_EQ(ports.size(), 1U) << "one source port, one path";
  for (uint16_t i = 0; i < 40; ++i) pass(probe_to(ip4(10, 7, 0, 9), static_cast<uint16_t>(50'000 + i)));
  for (const TestSwitch::Sent& sent : device.sent) ports.insert(sent.port);
  EXPECT_EQ(ports.size(), 2U) << "other source ports, other paths";
}

TEST_F(Probes, ThatEndHereAreTurnedRound) {
  pass(probe_to(kOurs));
  ASSERT_EQ(device.sent.size(), 1U);
  EXPECT_EQ(device.sent[0].port, kPlainPort);
  const Bytes out = content_of(device.sent[0].packet);
  const auto probe = probe_in(out);
  ASSERT_TRUE(probe);
  EXPECT_EQ(telemetry::body_of(out, *probe).kind, telemetry::ProbeKind::kReturned);
  EXPECT_EQ(probe->hops, 0U) << "the way back is not measured";
  EXPECT_EQ(out[15], kReturnDscp << 2);
  const auto* ip = net::header_at<net::Ipv4Header>(out.data(), 14);
  EXPECT_EQ(ip->source, kOurs);
  EXPECT_EQ(ip->destination, kSender);
  EXPECT_EQ(telemetry::body_of(out, *probe).at_ns, kMillisecond / kNanosecond)
      << "when it came, by this switch's clock";
  EXPECT_EQ(device.pipeline().turned_round(), 1U);
  EXPECT_TRUE(receiver.sequences.empty());
}

TEST_F(Probes, ThatComeBackAreTakenIn) {
  Bytes frame = probe_to(kSender, 50'000, 77);
  telemetry::push_hop(frame, *probe_in(frame), {.node_id = 1, .arrival = 0, .departure = kMicrosecond});
  // As its far switch would have sent it: to us.
  frame[26] = 10, frame[27] = 9, frame[28] = 0, frame[29] = 1;
  telemetry::turn_round(frame, *probe_in(frame), kReturnDscp, kMicrosecond);
  pass(frame);
  EXPECT_TRUE(device.sent.empty());
  EXPECT_EQ(receiver.sequences, (std::vector<uint32_t>{77}));
  EXPECT_EQ(receiver.last, kMillisecond);
  EXPECT_EQ(device.all_drops(), 0U);
  EXPECT_EQ(device.sink.taken.size(), 1U);
}

TEST_F(Probes, WithNoWayBackAreDroppedByName) {
  Bytes frame = probe_to(kOurs);
  frame[26] = 99;  // from an address that no route leads to
  frame[24] = frame[25] = 0;
  const uint16_t sum = internet_checksum(std::span(frame).subspan(14, 20));
  frame[24] = static_cast<uint8_t>(sum >> 8U);
  frame[25] = static_cast<uint8_t>(sum);
  pass(frame);
  EXPECT_TRUE(device.sent.empty());
  EXPECT_EQ(device.drops(kInPort, DropReason::kNoRoute), 1U);
}

TEST_F(Probes, OtherPacketsToTheirPortAreForwarded) {
  Bytes frame = probe_to(ip4(10, 2, 0, 9));
  frame[42] = 0x34;  // INT-MX, which we do not know
  pass(frame);
  ASSERT_EQ(device.sent.size(), 1U);
  EXPECT_EQ(content_of(device.sent[0].packet), routed(frame, kPlainPort, std::nullopt));
}

TEST_F(Probes, OfOursLeaveOverTheMemberTheyAreFor) {
  Bytes frame = probe_to(ip4(10, 7, 0, 9));
  const OwnedPacket packet = make_packet(frame);
  const lb::NextHop next{.rewrite = {.destination = neighbour_mac(kTaggedPort), .source = port_mac(kTaggedPort)},
                         .port = kTaggedPort,
                         .counter = 1};
  device.pipeline().send_probe(packet.get(), next, kMillisecond);
  const std::vector<Packet*> out = device.egress(kTaggedPort, kMillisecond + kMicrosecond);
  ASSERT_EQ(out.size(), 1U);
  const Bytes sent = content_of(out[0]);
  EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + 6, neighbour_mac(kTaggedPort).begin()));
  EXPECT_EQ(telemetry::read_path(sent, *probe_in(sent)).delay, kMicrosecond);
}

TEST(ProbesOff, AProbeIsAPacketLikeOthers) {
  TestSwitch device;
  Bytes frame(telemetry::probe_frame_bytes(2));
  ASSERT_TRUE(telemetry::write_probe(frame, {.source = kSender, .destination = ip4(10, 2, 0, 9), .hops = 2}));
  const net::Mac to = port_mac(kInPort);
  std::copy(to.begin(), to.end(), frame.begin());
  const OwnedPacket packet = make_packet(frame);
  device.pass(packet.get());
  ASSERT_EQ(device.sent.size(), 1U);
  EXPECT_EQ(content_of(device.sent[0].packet), routed(frame, kPlainPort, std::nullopt));
}

}  // namespace
}  // namespace heddle::support
