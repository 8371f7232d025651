// Pipeline beyond single packets: bursts, order within flows, counters, tables that change, ports of other lcores.
#include "dataplane/pipeline.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/support/rows.h"

namespace heddle::support {
namespace {

// Packets that live as long as the test.
class Packets {
 public:
  Packet* add(const Bytes& frame) {
    all_.push_back(make_packet(frame));
    return all_.back().get();
  }

 private:
  std::vector<OwnedPacket> all_;
};

Bytes to_group(unsigned b, const Roce& bth = {}) { return roce4({.destination = ip4(10, b, 0, 9)}, bth); }

// -- golden -----------------------------------------------------------------------------------------------------------

Bytes from_hex(std::string_view text) {
  Bytes bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    if (text[i] == ' ') ++i;
    bytes.push_back(static_cast<uint8_t>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// Both frames were put together outside of this project's code (Python's zlib for the ICRC): an RC acknowledgement,
// TTL 64 → 63, checksum 2642 → 2742. Exact.
TEST(Golden, AnAcknowledgementByteForByte) {
  constexpr std::string_view kTransport = "c12112b7001c0000 1100ffff000000110000002a 00000005 0e1b7ab9";
  const Bytes in = join(
      {from_hex("020000000100 02000000aa01 0800 4568003000014000 40112642 0a010007 0a020009"), from_hex(kTransport)});
  const Bytes out = join(
      {from_hex("02000000bb01 020000000101 0800 4568003000014000 3f112742 0a010007 0a020009"), from_hex(kTransport)});
  TestSwitch device;
  Packets packets;
  Packet* packet = packets.add(in);
  device.pass(packet);
  EXPECT_EQ(content_of(packet), out);
  EXPECT_EQ(meta_of(packet).kind, PacketKind::kRoce);
}

TEST(Golden, TheSameFrameOntoVlan30InClass3) {
  constexpr std::string_view kBehindTtl = "c12112b7001c0000 1100ffff000000110000002a 00000005";
  const Bytes in = join({from_hex("020000000100 02000000aa01 0800 4568003000014000 40112640 0a010007 0a03000a"),
                         from_hex(kBehindTtl), Bytes(4)});
  const Bytes out =
      join({from_hex("02000000bb02 020000000102 8100 601e 0800 4568003000014000 3f112740 0a010007 0a03000a"),
            from_hex(kBehindTtl), Bytes(4)});
  TestSwitch device;
  Packets packets;
  Packet* packet = packets.add(in);
  device.pass(packet);
  EXPECT_EQ(content_of(packet), out);
}

// -- bursts -----------------------------------------------------------------------------------------------------------

TEST(Bursts, SurvivorsKeepTheirOrderAndDropsTheirNames) {
  TestSwitch device;
  Packets packets;
  std::vector<Packet*> burst;
  std::vector<Packet*> good;
  uint64_t bytes = 0;
  const auto add = [&](const Bytes& frame) {
    burst.push_back(packets.add(frame));
    bytes += frame.size();
    return burst.back();
  };
  for (int round = 0; round < 5; ++round) {
    good.push_back(add(to_group(2)));
    add(roce4({.ttl = 1}));
    good.push_back(add(roce6()));
    add(roce4({.checksum = 0x0bad}));
    add(ethernet({.type = 0x0806}, Bytes(46)));
    good.push_back(add(to_group(3)));
  }
  const unsigned kept = device.ingress(burst, 77);
  ASSERT_EQ(kept, good.size());
  EXPECT_TRUE(std::equal(good.begin(), good.end(), burst.begin()));
  EXPECT_EQ(device.counters(kInPort).rx_packets.get(), 30U);
  EXPECT_EQ(device.counters(kInPort).rx_bytes.get(), bytes);
  EXPECT_EQ(device.drops(kInPort, DropReason::kTtlExpired), 5U);
  EXPECT_EQ(device.drops(kInPort, DropReason::kIpv4Checksum), 5U);
  EXPECT_EQ(device.drops(kInPort, DropReason::kNotIp), 5U);
  EXPECT_EQ(device.all_drops(), 15U);
  EXPECT_EQ(device.sink.taken.size(), 15U);
  for (unsigned i = 0; i < kept; ++i) {
    EXPECT_EQ(meta_of(burst[i]).arrival, 77U);
    EXPECT_EQ(meta_of(burst[i]).in_port, kInPort);
  }
}

TEST(Bursts, WhereNothingSurvivesAreEmpty) {
  TestSwitch device;
  Packets packets;
  for (unsigned count = 1; count <= kBurst; ++count) {
    std::vector<Packet*> burst;
    for (unsigned i = 0; i < count; ++i) burst.push_back(packets.add(roce4({.ttl = 0})));
    device.sink.taken.clear();
    EXPECT_EQ(device.ingress(burst), 0U);
    EXPECT_EQ(device.sink.taken.size(), count);
  }
}

// Every mixture of the two protocols, so that neither lookup writes the other's results.
TEST(Bursts, OfBothProtocolsAreRoutedEachByItsOwnTable) {
  TestSwitch device;
  Random random(8);
  for (int trial = 0; trial < 200; ++trial) {
    Packets packets;
    std::vector<Packet*> burst;
    std::vector<unsigned> groups;
    const unsigned count = 1 + random.below(kBurst);
    for (unsigned i = 0; i < count; ++i) {
      groups.push_back(random.below(6));
      const auto net = static_cast<uint16_t>(2 + groups.back());
      const bool v4 = random.below(2) == 0;
      burst.push_back(packets.add(v4 ? to_group(net) : roce6({.destination = ip6(net, 1)})));
    }
    ASSERT_EQ(device.ingress(burst), count);
    for (unsigned i = 0; i < count; ++i) ASSERT_EQ(meta_of(burst[i]).route, groups[i]) << "packet " << i;
  }
}

// -- flows ------------------------------------------------------------------------------------------------------------

// 64 flows over two next hops, burst after burst: each flow by one port, in order, nothing lost.
TEST(Flows, KeepTheirPathAndTheirOrder) {
  TestSwitch device;
  Packets packets;
  Random random(5);
  std::map<uint32_t, uint32_t> next_psn;
  std::map<uint32_t, std::pair<PortId, uint32_t>> seen;  // queue pair → port, next PSN expected
  for (int round = 0; round < 100; ++round) {
    std::vector<Packet*> burst;
    for (unsigned i = 0; i < kBurst; ++i) {
      const uint32_t queue_pair = 0x11 + random.below(64);
      burst.push_back(packets.add(to_group(7, {.dest_qp = queue_pair, .psn = next_psn[queue_pair]++})));
    }
    device.pipeline().forward(burst.data(), device.ingress(burst), 0);
    for (const PortId port : {kPlainPort, kTaggedPort}) {
      for (const Packet* packet : device.egress(port)) {
        const size_t to_bth = ip_offset(content_of(packet)) + 28;
        const auto* bth = net::header_at<net::Bth>(frame_of(packet), to_bth);
        auto& [path, psn] = seen.try_emplace(bth->dest_qp, port, 0).first->second;
        ASSERT_EQ(path, port) << "queue pair " << bth->dest_qp << " changed its path";
        ASSERT_EQ(bth->psn, psn++) << "queue pair " << bth->dest_qp << " overtook itself";
      }
    }
  }
  unsigned by_plain_port = 0;
  for (const auto& [queue_pair, path] : seen) {
    EXPECT_EQ(path.second, next_psn[queue_pair]) << "packets lost";
    by_plain_port += path.first == kPlainPort ? 1U : 0U;
  }
  EXPECT_EQ(seen.size(), 64U);
  EXPECT_NEAR(by_plain_port, 32, 20) << "5 σ of a fair coin thrown 64 times";
}

TEST(Flows, AllFragmentsOfAPacketGoTheSameWay) {
  for (unsigned flow = 0; flow < 50; ++flow) {
    TestSwitch device;
    Packets packets;
    const Ipv4 ip{.source = ip4(10, 1, 0, 1) + flow, .destination = ip4(10, 7, 0, 1)};
    for (const uint16_t fragment : {0x2000, 0x2000 | 10, 20}) {
      Ipv4 piece = ip;
      piece.fragment = fragment;
      device.pass(packets.add(frame4(piece, fragment == 0x2000 ? udp({.length = 200}, pattern(72)) : pattern(80))));
    }
    ASSERT_EQ(device.sent.size(), 3U);
    EXPECT_EQ(device.sent[0].port, device.sent[1].port) << "flow " << flow;
    EXPECT_EQ(device.sent[0].port, device.sent[2].port) << "flow " << flow;
  }
}

TEST(Flows, ADeadPortMovesItsOwnAndNoOther) {
  TestSwitch device;
  std::map<uint32_t, PortId> before;
  const auto port_of = [&](uint32_t queue_pair) {
    Packets packets;
    device.sent.clear();
    device.pass(packets.add(to_group(7, {.dest_qp = queue_pair})));
    return device.sent.at(0).port;
  };
  for (uint32_t queue_pair = 1; queue_pair <= 100; ++queue_pair) before[queue_pair] = port_of(queue_pair);
  device.states().set(kPlainPort, false);
  for (uint32_t queue_pair = 1; queue_pair <= 100; ++queue_pair) EXPECT_EQ(port_of(queue_pair), kTaggedPort);
  device.states().set(kPlainPort, true);
  for (uint32_t queue_pair = 1; queue_pair <= 100; ++queue_pair) EXPECT_EQ(port_of(queue_pair), before[queue_pair]);
}

// -- counters ---------------------------------------------------------------------------------------------------------

TEST(Counters, OfPathsCountPacketsAndBytesAsTheyLeave) {
  TestSwitch device;
  Packets packets;
  for (int i = 0; i < 3; ++i) device.pass(packets.add(to_group(2)));
  for (int i = 0; i < 5; ++i) device.pass(packets.add(to_group(3)));
  const auto& paths = device.pipeline().counters().paths;
  const size_t bytes = to_group(2).size();
  EXPECT_EQ(paths[0].packets.get(), 3U);
  EXPECT_EQ(paths[0].bytes.get(), 3 * bytes);
  EXPECT_EQ(paths[1].packets.get(), 5U);
  EXPECT_EQ(paths[1].bytes.get(), 5 * (bytes + 4)) << "with the tag";
  EXPECT_EQ(paths[2].packets.get(), 0U);
}

TEST(Counters, TakeBackWhatTheDeviceRefused) {
  TestSwitch device;
  Packets packets;
  for (int i = 0; i < 4; ++i) device.pass(packets.add(to_group(3)));
  std::vector<Packet*> unsent{device.sent[2].packet, device.sent[3].packet};
  device.pipeline().count_unsent(kTaggedPort, unsent.data(), 2, DropReason::kTransmitFailed);
  EXPECT_EQ(device.counters(kTaggedPort).tx_packets.get(), 2U);
  EXPECT_EQ(device.counters(kTaggedPort).tx_bytes.get(), 2 * (to_group(3).size() + 4));
  EXPECT_EQ(device.drops(kTaggedPort, DropReason::kTransmitFailed), 2U);
  EXPECT_EQ(device.sink.taken, unsent);
}

TEST(Flush, DropsAllThatIsQueuedAndKeepsTheRate) {
  SwitchPlan plan;
  plan.ports[kPlainPort].egress.rate = Rate::gbps(1);
  TestSwitch device(plan);
  Packets packets;
  for (int i = 0; i < 100; ++i) {
    std::vector<Packet*> burst{packets.add(to_group(2)), packets.add(roce4({.tos = 0}))};
    device.pipeline().forward(burst.data(), device.ingress(burst, 0), 0);
  }
  device.pipeline().port(kPlainPort).set_paused(1);  // class 0
  device.pipeline().flush(kPlainPort, DropReason::kPortDown, 0);
  EXPECT_EQ(device.drops(kPlainPort, DropReason::kPortDown), 200U);
  EXPECT_EQ(device.sink.taken.size(), 200U);
  EXPECT_TRUE(device.pipeline().port(kPlainPort).empty());
  EXPECT_EQ(device.pipeline().port(kPlainPort).rate(), Rate::gbps(1));
  EXPECT_EQ(device.counters(kPlainPort).tx_packets.get(), 0U);
}

// -- time -------------------------------------------------------------------------------------------------------------

TEST(Egress, FollowsThePortsRate) {
  SwitchPlan plan;
  plan.ports[kPlainPort].egress.rate = Rate::gbps(10);
  TestSwitch device(plan);
  Packets packets;
  std::vector<Packet*> burst{packets.add(to_group(2)), packets.add(to_group(2)), packets.add(to_group(2))};
  device.pipeline().forward(burst.data(), device.ingress(burst, 0), 0);
  const Duration frame_time = (to_group(2).size() + kEthernetOverhead) * 800;
  EXPECT_EQ(device.egress(kPlainPort, 0).size(), 1U);
  EXPECT_EQ(device.egress(kPlainPort, frame_time - 1).size(), 0U);
  EXPECT_EQ(device.egress(kPlainPort, frame_time).size(), 1U);
  EXPECT_EQ(device.egress(kPlainPort, 2 * frame_time).size(), 1U);
}

// -- changing tables --------------------------------------------------------------------------------------------------

TEST(Tables, AQueuedPacketLeavesAsItWasRoutedAndTheNextByTheNewTable) {
  SwitchPlan plan;
  plan.ports[kPlainPort].egress.rate = Rate::gbps(1);
  TestSwitch device(plan);
  Packets packets;
  std::vector<Packet*> queued{packets.add(to_group(2))};
  const Bytes in = content_of(queued[0]);
  device.pipeline().forward(queued.data(), device.ingress(queued, 0), 0);

  PrefixTable prefixes;
  prefixes.add4(0, 0, 9);  // a default route, to a group beyond the first table's
  dataplane::ForwardingTables tables;
  tables.lookup = &prefixes;
  tables.groups.resize(10);
  tables.groups[9].members = {
      {.rewrite = {.destination = neighbour_mac(2), .source = port_mac(2), .vlan_id = kOutVlan}, .port = kTaggedPort}};
  device.pipeline().use_tables(&tables);
  Packet* later = packets.add(to_group(2));
  device.pass(later, 0);
  ASSERT_EQ(device.sent.size(), 2U);
  EXPECT_EQ(device.sent[0].packet, queued[0]);
  EXPECT_EQ(content_of(queued[0]), routed(in, kPlainPort, std::nullopt));
  EXPECT_EQ(device.sent[1].packet, later);
  EXPECT_EQ(content_of(later), routed(in, kTaggedPort, static_cast<uint16_t>(0x6000U | kOutVlan)));
}

// -- ports of other lcores --------------------------------------------------------------------------------------------

class Ring final : public dataplane::Handover {
 public:
  unsigned offer(Packet** packets, unsigned count) override {
    const size_t taken = std::min<size_t>(count, capacity - held.size());
    held.insert(held.end(), packets, packets + taken);
    std::copy(packets + taken, packets + count, packets);
    return count - static_cast<unsigned>(taken);
  }
  size_t capacity = 100;
  std::vector<Packet*> held;
};

TEST(Handover, TakesPacketsOfOtherLcoresPortsInOrder) {
  Ring ring;
  TestSwitch device({}, {true, true, false, true}, &ring);
  TestSwitch other({}, {false, false, true, false}, &ring);
  Packets packets;
  std::vector<Packet*> sent;
  for (uint32_t i = 0; i < 10; ++i) {
    sent.push_back(packets.add(to_group(3, {.psn = i})));
    device.pass(sent.back());
  }
  EXPECT_EQ(ring.held, sent);
  EXPECT_TRUE(device.sent.empty());
  const Bytes in = to_group(3, {.psn = 0});
  for (Packet* packet : ring.held) other.pipeline().accept_handover(packet, 0);
  EXPECT_EQ(other.egress(kTaggedPort), sent);
  EXPECT_EQ(content_of(sent[0]), routed(in, kTaggedPort, static_cast<uint16_t>(0x6000U | kOutVlan)));
  EXPECT_EQ(other.counters(kTaggedPort).tx_packets.get(), 10U);
  EXPECT_EQ(device.all_drops() + other.all_drops(), 0U);
}

TEST(Handover, AFullRingIsANamedDrop) {
  Ring ring;
  ring.capacity = 3;
  TestSwitch device({}, {true, true, false, true}, &ring);
  Packets packets;
  for (int i = 0; i < 5; ++i) device.pass(packets.add(to_group(3)));
  EXPECT_EQ(device.drops(kTaggedPort, DropReason::kHandoverFull), 2U);
  EXPECT_EQ(device.sink.taken.size(), 2U);
}

TEST(Handover, AFullQueueBehindItIsANamedDrop) {
  SwitchPlan plan;
  plan.ports[kTaggedPort].egress.limit_packets = 4;
  Ring ring;
  TestSwitch device({}, {true, true, false, true}, &ring);
  TestSwitch other(plan, {false, false, true, false}, &ring);
  Packets packets;
  for (int i = 0; i < 6; ++i) device.pass(packets.add(to_group(3)));
  for (Packet* packet : ring.held) other.pipeline().accept_handover(packet, 0);
  EXPECT_EQ(other.drops(kTaggedPort, DropReason::kQueueFull), 2U);
  EXPECT_EQ(other.sink.taken.size(), 2U);
  EXPECT_EQ(other.egress(kTaggedPort).size(), 4U);
}

// -- one switch after another -----------------------------------------------------------------------------------------

// Ring ports and the lab hand the mbuf itself to the next switch, which must not see the tag of the one before.
TEST(NextSwitch, DoesNotSeeATagThatWasStrippedBefore) {
  SwitchPlan next;
  next.ports[kInPort].ingress.any_mac = true;
  next.ports[kInPort].ingress.vlans.reset();
  next.ports[kInPort].ingress.trust = dataplane::Trust::kPcp;
  next.ports[kInPort].ingress.default_class = 5;
  struct Case {
    unsigned group;
    uint16_t tci;
    bool tagged_on_the_way;
  };
  for (const auto& [group, tci, tagged_on_the_way] :
       {Case{2, 10, false}, Case{2, 0, false}, Case{3, 10, true}, Case{3, 0, true}}) {
    TestSwitch first;
    OwnedPacket packet = make_packet(to_group(group), {.headroom = 8});
    packet->vlan_tci = tci;
    packet->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    first.pass(packet.get());
    ASSERT_EQ(first.sent.size(), 1U);
    if (tagged_on_the_way) next.ports[kInPort].ingress.vlans.set(kOutVlan);
    TestSwitch second(next);
    second.pass(packet.get());
    EXPECT_EQ(second.sent.size(), 1U) << "group " << group;
    EXPECT_EQ(meta_of(packet.get()).traffic_class, tagged_on_the_way ? 3 : 5) << "group " << group << ", tag " << tci;
    EXPECT_EQ(meta_of(packet.get()).vlan_tci & 0xfffU, tagged_on_the_way ? kOutVlan : 0U);
  }
}

}  // namespace
}  // namespace heddle::support
