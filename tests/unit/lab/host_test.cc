// A host alone at its wire: what packets it sends, in which order, with which headers.
#include "lab/host.h"

#include <map>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "lab/workload_builder.h"
#include "net/checksum.h"

namespace heddle::lab {
namespace {

constexpr Duration kDelay = kMicrosecond;

// Host 0 of a fabric whose other end is the test.
class HostTest : public testing::Test {
 protected:
  void start(const HostSettings& nic, const std::vector<Message>& messages) {
    WorkloadBuilder builder(8);
    builder.add_job("job", false);
    for (const Message& m : messages) builder.add_message(m.src, m.dst, m.bytes, m.start);
    workload_ = builder.finish();
    board_ = std::make_unique<MessageBoard>(workload_, nic.qps_per_connection);
    Host::Settings settings;
    settings.first_switch = 8;
    settings.rate = Rate::gbps(100);
    settings.link_delay = kDelay;
    settings.trigger_delay = kDelay;
    settings.nic = nic;
    settings.nic.start_jitter = false;
    host_ = std::make_unique<Host>(settings, *board_, out_, in_);
    in_.announce_by({host_->inbox(), 0, true});
    std::map<HostId, uint32_t> first_queue;
    for (MessageId m = 0; m < messages.size(); ++m) {
      const auto [at, fresh] = first_queue.try_emplace(messages[m].dst, 0);
      if (fresh) at->second = host_->add_send_queues(messages[m].dst, 0);
      host_->add_message(m, at->second);
    }
  }

  // All that the host sends before `until`, in order. The packets stay with the test.
  std::vector<Packet*> sent_until(Time until) {
    std::vector<Packet*> packets;
    while (now_ < until) {
      const Time end = std::min(until, now_ + kDelay);
      Time first_sent = kNever;
      host_->run({now_, end, parity_, &cache_, &first_sent});
      parity_ = 1 - parity_;
      out_.collect(parity_);
      while (!out_.empty()) packets.push_back(out_.pop());
      now_ = end;
    }
    return packets;
  }

  Workload workload_;
  PacketArena arena_;
  PacketArena::Cache cache_{arena_};
  Wire out_{kDelay, kEthernetOverhead, 0, 0, 1};
  Wire in_{kDelay, kEthernetOverhead, 0, 0, 2};
  std::unique_ptr<MessageBoard> board_;
  std::unique_ptr<Host> host_;
  Time now_ = 0;
  unsigned parity_ = 0;
};

uint16_t source_port_in(const Packet* packet) {
  return net::header_at<net::UdpHeader>(frame_of(packet), 34)->source_port;
}

TEST_F(HostTest, WritesWholeHeaders) {
  start({.mtu = 1024}, {{.src = 0, .dst = 3, .bytes = 3000}});
  const std::vector<Packet*> packets = sent_until(10 * kMicrosecond);
  ASSERT_EQ(packets.size(), 3U);
  const net::Opcode opcodes[] = {net::Opcode::kRcSendFirst, net::Opcode::kRcSendMiddle, net::Opcode::kRcSendLast};
  const uint32_t payloads[] = {1024, 1024, 952};
  for (uint32_t i = 0; i < 3; ++i) {
    const Packet* packet = packets[i];
    const uint8_t* frame = frame_of(packet);
    EXPECT_EQ(packet->pkt_len, 14 + 20 + 8 + 12 + payloads[i] + 4);
    EXPECT_EQ(packet->data_len, 54U);  // the headers are bytes, the payload a length
    const auto& ethernet = *net::header_at<net::EthernetHeader>(frame, 0);
    EXPECT_EQ(ethernet.destination, mac_of(8));
    EXPECT_EQ(ethernet.source, mac_of(0));
    const auto* ip = net::header_at<net::Ipv4Header>(frame, 14);
    EXPECT_EQ(ip->total_length, packet->pkt_len - 14);
    EXPECT_EQ(ip->destination, address_of(3));
    EXPECT_EQ(net::ipv4_header_sum(ip, sizeof(net::Ipv4Header)), 0xffff) << "checksum (RFC 1071)";
    const auto* udp = net::header_at<net::UdpHeader>(frame, 34);
    EXPECT_EQ(udp->destination_port, net::kRocePort);
    EXPECT_EQ(udp->length, packet->pkt_len - 34);
    const net::Bth& bth = bth_of(packet);
    EXPECT_EQ(static_cast<net::Opcode>(bth.opcode), opcodes[i]);
    EXPECT_EQ(bth.psn, i);
    EXPECT_EQ(bth.dest_qp, Host::receive_queue_number(0));
    EXPECT_EQ(meta_of(packet).arrival, (i + 1) * Rate::gbps(100).time_for(packets[0]->pkt_len + kEthernetOverhead) -
                                           (i == 2 ? Rate::gbps(100).time_for(1024 - 952) : 0) + kDelay);
  }
}

TEST_F(HostTest, QueuePairsTakeTurns) {
  start({.qps_per_connection = 2},
        {{.src = 0, .dst = 1, .bytes = 40 * 4096}, {.src = 0, .dst = 2, .bytes = 10 * 4096}});
  const std::vector<Packet*> packets = sent_until(100 * kMicrosecond);
  ASSERT_EQ(packets.size(), 50U);
  // Connections to 1 and 2, two queue pairs each: 1, 1, 2, 2, and so on while all have something.
  for (unsigned i = 0; i < 20; ++i) EXPECT_EQ(destination_of(packets[i]), i % 4 < 2 ? 1U : 2U) << "packet " << i;
  for (unsigned i = 20; i < 50; ++i) EXPECT_EQ(destination_of(packets[i]), 1U);
  const Duration packet = Rate::gbps(100).time_for(4096 + kDataFrameOverhead + kEthernetOverhead);
  for (unsigned i = 0; i < 50; ++i) EXPECT_EQ(meta_of(packets[i]).arrival, (i + 1) * packet + kDelay);
}

TEST_F(HostTest, OneSourcePortPerQueuePairAsLinuxDoes) {
  start({.qps_per_connection = 4}, {{.src = 0, .dst = 1, .bytes = 80 * 4096}});
  std::map<uint32_t, std::set<uint16_t>> ports;
  for (const Packet* packet : sent_until(100 * kMicrosecond))
    ports[bth_of(packet).dest_qp].insert(source_port_in(packet));
  ASSERT_EQ(ports.size(), 4U);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(ports[Host::receive_queue_number(i)],
              std::set<uint16_t>{source_port_of(Host::send_queue_number(i), Host::receive_queue_number(i))});
  }
}

TEST_F(HostTest, OnePortForAllWithoutEntropy) {
  start({.qps_per_connection = 4, .entropy = Entropy::kNone}, {{.src = 0, .dst = 1, .bytes = 80 * 4096}});
  for (const Packet* packet : sent_until(100 * kMicrosecond)) EXPECT_EQ(source_port_in(packet), 0xc000);
}

TEST_F(HostTest, SpraysEvenlyOverItsPortsInChangingOrder) {
  start({.entropy = Entropy::kPerPacket, .spray_ports = 16}, {{.src = 0, .dst = 1, .bytes = 160 * 4096}});
  const std::vector<Packet*> packets = sent_until(100 * kMicrosecond);
  ASSERT_EQ(packets.size(), 160U);
  std::set<std::vector<uint16_t>> orders;
  for (unsigned round = 0; round < 10; ++round) {
    std::vector<uint16_t> order;
    for (unsigned i = 0; i < 16; ++i) order.push_back(source_port_in(packets[round * 16 + i]));
    for (const uint16_t port : order) EXPECT_EQ(port & ~15U, 0xc000U);
    EXPECT_EQ(std::set<uint16_t>(order.begin(), order.end()).size(), 16U) << "round " << round;
    orders.insert(order);
  }
  EXPECT_GE(orders.size(), 4U);  // ten draws of sixteen orders: 7.6 distinct ones are expected
}

TEST_F(HostTest, AWindowStopsItUntilAnAckComes) {
  start({.window_bytes = 3 * 4096}, {{.src = 0, .dst = 1, .bytes = 10 * 4096}});
  const std::vector<Packet*> first = sent_until(20 * kMicrosecond);
  ASSERT_EQ(first.size(), 3U);
  // The peer acknowledges packets 0 and 1.
  Packet* ack = cache_.take();
  RoceWriter(1, 8).write_ack(
      ack, {.destination = 0, .opcode = net::Opcode::kRcAck, .dest_qp = Host::send_queue_number(0), .psn = 1}, kAethAck,
      0);
  ASSERT_EQ(in_.send(ack, now_, now_ + 7 * kNanosecond, parity_), DropReason::kNone);
  parity_ = 1 - parity_;  // the window in which the peer sent it
  const std::vector<Packet*> more = sent_until(40 * kMicrosecond);
  ASSERT_EQ(more.size(), 2U);
  EXPECT_EQ(bth_of(more[0]).psn, 3U);
  EXPECT_EQ(bth_of(more[1]).psn, 4U);
}

struct PortRow {
  uint32_t local;
  uint32_t remote;
  uint16_t port;
};

// Seen on the wire of Linux 6.1's rdma_rxe: ib_write_bw with four queue pairs, whose numbers begin at 0x11 on both
// sides (tests/captures/rxe-multiqp-write.pcap).
TEST(SourcePort, IsWhatLinuxSends) {
  for (const PortRow& row : {PortRow{0x11, 0x11, 49441}, PortRow{0x12, 0x12, 49476}, PortRow{0x13, 0x13, 49513},
                             PortRow{0x14, 0x14, 49552}}) {
    EXPECT_EQ(source_port_of(row.local, row.remote), row.port);
  }
}

// The same for numbers whose product does not fit into 20 bits, worked out from include/rdma/ib_verbs.h
// (rdma_calc_flow_label, rdma_flow_label_to_udp_sport): both ends have the same port, and it is a dynamic one (RFC 6335
// 6: 49152–65535).
TEST(SourcePort, FoldsLargeNumbers) {
  // 0x123456 × 0x654321 = 0x7336bf94116; ^ (>> 20 = 0x7336bf) = 0x7336b8a77a9; ^ (>> 40 = 0x7) = 0x7336b8a77ae;
  // low 20 bits 0xa77ae: 0x37ae ^ (0xa4000 >> 14 = 0x29) = 0x3787.
  EXPECT_EQ(source_port_of(0x123456, 0x654321), 0xc000U | 0x3787U);
  for (uint32_t i = 1; i < 2000; ++i) {
    const uint32_t a = i * 7919 % 0xffffff;
    const uint32_t b = i * 104'729 % 0xffffff;
    EXPECT_EQ(source_port_of(a, b), source_port_of(b, a));
    EXPECT_GE(source_port_of(a, b), 49152U);
  }
}

}  // namespace
}  // namespace heddle::lab
