// Path probes in the pipeline: stamped as they leave, hashed where data is sprayed, turned round or taken in where they
// end; and what only looks like one is forwarded like any packet.
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "net/ip_address.h"
#include "telemetry/int_probe.h"
#include "tests/support/test_switch.h"

namespace heddle::support {
namespace {

using telemetry::ProbeView;

using net::IpAddress;
using net::IpFamily;

constexpr uint8_t kReturnDscp = 48;

// 10.`net`.0.`host` or 2001:db8:`net`::`host`, which lead to the same places.
IpAddress address(IpFamily family, uint8_t net, uint8_t host) {
  if (family == IpFamily::kIpv4) return ip4(10, net, 0, host);
  return {family, ip6(net, host)};
}
// Offset of the UDP header.
constexpr uint32_t udp_at(IpFamily family) { return family == IpFamily::kIpv4 ? 34 : 54; }

class Receiver : public telemetry::ProbeReceiver {
 public:
  void receive_probe(std::span<const uint8_t> frame, const ProbeView& probe, Time now) override {
    sequences.push_back(telemetry::body_of(frame, probe).sequence);
    last = now;
  }
  std::vector<uint32_t> sequences;
  Time last = 0;
};

class Probes : public testing::TestWithParam<IpFamily> {
 protected:
  Probes() { device.pipeline().use_probes({.address = ours, .node_id = 42, .receiver = &receiver}); }

  Bytes probe_to(const IpAddress& destination, uint16_t source_port = 50'000, uint32_t sequence = 5) const {
    return probe(sender, destination, source_port, sequence);
  }
  static Bytes probe(const IpAddress& source, const IpAddress& destination, uint16_t source_port, uint32_t sequence) {
    Bytes frame(telemetry::probe_frame_bytes(3, GetParam()));
    EXPECT_TRUE(telemetry::write_probe(frame, {.source = source,
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
  static std::optional<ProbeView> probe_in(const Bytes& frame) {
    return telemetry::find_probe(frame, 14, udp_at(GetParam()));
  }
  // DSCP of a frame, and whether its UDP checksum is right.
  static unsigned dscp_of(const Bytes& frame) {
    return GetParam() == IpFamily::kIpv4 ? frame[15] >> 2U : (frame[14] & 0xfU) << 2U | frame[15] >> 6U;
  }
  static bool is_right(const Bytes& frame) { return telemetry::is_intact(frame, *probe_in(frame)); }

  const IpAddress ours = address(GetParam(), 9, 1);
  const IpAddress sender = address(GetParam(), 2, 1);  // leads to the plain port
  const IpAddress plain = address(GetParam(), 2, 9);
  const IpAddress both = address(GetParam(), 7, 9);
  TestSwitch device;
  Receiver receiver;

 private:
  std::vector<OwnedPacket> packets_;
};

TEST_P(Probes, AreStampedOnTheirWay) {
  pass(probe_to(plain));
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
  EXPECT_EQ(out.size(), telemetry::probe_frame_bytes(3, GetParam()));
  EXPECT_TRUE(is_right(out));
  EXPECT_EQ(device.pipeline().probe_bytes(kPlainPort), out.size() + kEthernetOverhead);
}

TEST_P(Probes, SayHowLongTheyWaited) {
  const OwnedPacket packet = make_packet(probe_to(plain));
  std::vector<Packet*> burst{packet.get()};
  ASSERT_EQ(device.ingress(burst, kMillisecond), 1U);
  device.pipeline().forward(burst.data(), 1, kMillisecond);
  ASSERT_EQ(device.egress(kPlainPort, kMillisecond + 7 * kMicrosecond).size(), 1U);
  const Bytes out = content_of(packet.get());
  EXPECT_EQ(telemetry::read_path(out, *probe_in(out)).delay, 7 * kMicrosecond);
}

TEST_P(Probes, AreHashedWhereDataIsSprayed) {
  device.schedule_by("rps");
  for (int i = 0; i < 20; ++i) pass(probe_to(both));
  std::set<PortId> ports;
  for (const TestSwitch::Sent& sent : device.sent) ports.insert(sent.port);
  EXPECT_EQ(device.sent.size(), 20U);
  EXPECT_EQ(ports.size(), 1U) << "one source port, one path";
  for (uint16_t i = 0; i < 40; ++i) pass(probe_to(both, static_cast<uint16_t>(50'000 + i)));
  for (const TestSwitch::Sent& sent : device.sent) ports.insert(sent.port);
  EXPECT_EQ(ports.size(), 2U) << "other source ports, other paths";
}

TEST_P(Probes, ThatEndHereAreTurnedRound) {
  pass(probe_to(ours));
  ASSERT_EQ(device.sent.size(), 1U);
  EXPECT_EQ(device.sent[0].port, kPlainPort);
  const Bytes out = content_of(device.sent[0].packet);
  const auto probe = probe_in(out);
  ASSERT_TRUE(probe);
  EXPECT_EQ(telemetry::body_of(out, *probe).kind, telemetry::ProbeKind::kReturned);
  EXPECT_EQ(probe->hops, 0U) << "the way back is not measured";
  EXPECT_TRUE(is_right(out));
  EXPECT_EQ(dscp_of(out), kReturnDscp);
  EXPECT_EQ(meta_of(device.sent[0].packet).traffic_class, 6) << "of DSCP 48";
  EXPECT_TRUE(net::is_destination(sender, out.data() + 14));
  EXPECT_EQ(telemetry::body_of(out, *probe).at_ns, kMillisecond / kNanosecond)
      << "when it came, by this switch's clock";
  EXPECT_EQ(device.pipeline().turned_round(), 1U);
  EXPECT_TRUE(receiver.sequences.empty());
}

TEST_P(Probes, ThatComeBackAreTakenIn) {
  Bytes frame = probe(ours, sender, 50'000, 77);
  telemetry::push_hop(frame, *probe_in(frame), {.node_id = 1, .arrival = 0, .departure = kMicrosecond});
  // As its far switch sends it: to us.
  telemetry::turn_round(frame, *probe_in(frame), kReturnDscp, kMicrosecond);
  pass(frame);
  EXPECT_TRUE(device.sent.empty());
  EXPECT_EQ(receiver.sequences, (std::vector<uint32_t>{77}));
  EXPECT_EQ(receiver.last, kMillisecond);
  EXPECT_EQ(device.all_drops(), 0U);
  EXPECT_EQ(device.sink.taken.size(), 1U);
}

TEST_P(Probes, WithNoWayBackAreDroppedByName) {
  pass(probe(address(GetParam(), 99, 1), ours, 50'000, 5));  // from an address that no route leads to
  EXPECT_TRUE(device.sent.empty());
  EXPECT_EQ(device.drops(kInPort, DropReason::kNoRoute), 1U);
}

TEST_P(Probes, OtherPacketsToTheirPortAreForwarded) {
  Bytes frame = probe_to(plain);
  frame[udp_at(GetParam()) + 8] = 0x34;  // INT-MX, which we do not know
  pass(frame);
  ASSERT_EQ(device.sent.size(), 1U);
  EXPECT_EQ(content_of(device.sent[0].packet), routed(frame, kPlainPort, std::nullopt));
}

TEST_P(Probes, OfOursLeaveOverTheMemberTheyAreFor) {
  Bytes frame = probe_to(both);
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

// The class of the data that they measure, by their DSCP: a tag and a router MAC that are to come, or what the port
// makes of others' packets, have no part in it.
TEST_P(Probes, OfOursTravelInTheClassOfTheirDscp) {
  struct Port {
    const char* description;
    void (*change)(dataplane::IngressPort& port);
  };
  for (const Port& row :
       {Port{"plain", [](dataplane::IngressPort&) {}},
        Port{"tagged frames only", [](dataplane::IngressPort& port) { port.untagged = false; }},
        Port{"a VLAN with a MAC of its own",
             [](dataplane::IngressPort& port) {
               port.vlan_macs = {{kOutVlan, {2, 0, 0, 0, 9, 9}}};
             }},
        Port{"PCP trusted", [](dataplane::IngressPort& port) { port.trust = dataplane::Trust::kPcp; }}}) {
    SCOPED_TRACE(row.description);
    SwitchPlan plan;
    plan.ports[kTaggedPort].ingress.vlans.set(kOutVlan);
    row.change(plan.ports[kTaggedPort].ingress);
    TestSwitch probing(plan);
    probing.pipeline().use_probes({.address = ours, .node_id = 42});
    const OwnedPacket packet = make_packet(probe_to(both));
    const lb::NextHop next{
        .rewrite = {.destination = neighbour_mac(kTaggedPort), .source = port_mac(kTaggedPort), .vlan_id = kOutVlan},
        .port = kTaggedPort};
    probing.pipeline().send_probe(packet.get(), next, kMillisecond);
    const std::vector<Packet*> out = probing.egress(kTaggedPort, kMillisecond);
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(meta_of(out[0]).traffic_class, 3);
    EXPECT_EQ(content_of(out[0])[14] >> 5U, 3) << "PCP";
  }
}

TEST_P(Probes, DamagedOnesAreNotBelieved) {
  Bytes frame = probe_to(ours);
  auto* udp = net::header_at<net::UdpHeader>(frame.data(), udp_at(GetParam()));
  udp->checksum = static_cast<uint16_t>(udp->checksum + 1U);  // over IPv4 there was none, and 1 is wrong
  pass(frame);
  EXPECT_TRUE(device.sent.empty());
  EXPECT_EQ(device.pipeline().turned_round(), 0U);
  EXPECT_EQ(device.drops(kInPort, DropReason::kNoRoute), 1U);
}

TEST_P(Probes, OfTheOtherFamilyAreNotForUs) {
  const IpFamily other = GetParam() == IpFamily::kIpv4 ? IpFamily::kIpv6 : IpFamily::kIpv4;
  Bytes frame(telemetry::probe_frame_bytes(3, other));
  ASSERT_TRUE(telemetry::write_probe(
      frame, {.source = address(other, 9, 1), .destination = address(other, 2, 9), .source_port = 1, .hops = 3}));
  const net::Mac to = port_mac(kInPort);
  std::copy(to.begin(), to.end(), frame.begin());
  pass(frame);
  ASSERT_EQ(device.sent.size(), 1U) << "a switch stamps probes of either";
  const auto probe = telemetry::find_probe(content_of(device.sent[0].packet), 14, udp_at(other));
  ASSERT_TRUE(probe);
  EXPECT_EQ(probe->hops, 1U);
}

INSTANTIATE_TEST_SUITE_P(Families, Probes, testing::Values(IpFamily::kIpv4, IpFamily::kIpv6),
                         [](const auto& row) { return row.param == IpFamily::kIpv4 ? "ipv4" : "ipv6"; });

TEST(ProbesOff, AProbeIsAPacketLikeOthers) {
  TestSwitch device;
  Bytes frame(telemetry::probe_frame_bytes(2));
  ASSERT_TRUE(telemetry::write_probe(frame, {.source = ip4(10, 2, 0, 1), .destination = ip4(10, 2, 0, 9), .hops = 2}));
  const net::Mac to = port_mac(kInPort);
  std::copy(to.begin(), to.end(), frame.begin());
  const OwnedPacket packet = make_packet(frame);
  device.pass(packet.get());
  ASSERT_EQ(device.sent.size(), 1U);
  EXPECT_EQ(content_of(device.sent[0].packet), routed(frame, kPlainPort, std::nullopt));
}

}  // namespace
}  // namespace heddle::support
