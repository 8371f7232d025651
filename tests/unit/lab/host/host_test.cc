// A host alone at its wire: what packets it sends, in which order, with which headers.
#include "lab/host/host.h"

#include <map>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "lab/workload/builder.h"
#include "net/checksum.h"

namespace heddle::lab {
namespace {

constexpr Duration kDelay = kMicrosecond;

using flowctl::PfcRequest;

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
      if (pending_) parity_ = 1 - parity_;  // the window in which the test sent it is over
      pending_ = false;
      Time first_sent = kNever;
      host_->run({now_, end, parity_, &cache_, &first_sent, &scratch_});
      parity_ = 1 - parity_;
      out_.receive(true, parity_, kNever, [&](Packet* packet, Time at) {
        meta_of(packet).arrival = at;
        packets.push_back(packet);
      });
      now_ = end;
    }
    return packets;
  }

  // A packet of the test's that arrives at `at`, beyond the window that runs next.
  void deliver(Packet* packet, Time at) {
    ASSERT_EQ(in_.send(packet, packet->pkt_len, at - kDelay, at - kDelay, parity_), DropReason::kNone);
    pending_ = true;
  }
  void deliver_cnp(Time at) {
    Packet* cnp = cache_.take();
    RoceWriter(1, 8).write_cnp(cnp, {.destination = 0, .dest_qp = Host::send_queue_number(0)});
    deliver(cnp, at);
  }
  // Of all packets up to `psn`, to send queue 0.
  void deliver_ack(uint32_t psn, Time at) {
    Packet* ack = cache_.take();
    const RoceFields fields{
        .destination = 0, .opcode = net::Opcode::kRcAck, .dest_qp = Host::send_queue_number(0), .psn = psn};
    RoceWriter(1, 8).write_ack(ack, fields, kAethAck, 0);
    deliver(ack, at);
  }
  void deliver_pfc(const PfcRequest& request, Time at) {
    Packet* pfc = cache_.take();
    pfc->data_off = 0;
    pfc->pkt_len = pfc->data_len = flowctl::kPfcFrameBytes;
    flowctl::write_pfc(frame_of(pfc), mac_of(8), request);
    deliver(pfc, at);
  }
  // A data packet of host 1 to receive queue 0, marked by a switch or not.
  void deliver_data(uint32_t psn, bool marked, Time at) {
    Packet* data = cache_.take();
    RoceWriter(1, 8, {.data = static_cast<uint8_t>(kDataDscp << 2U | (marked ? 3U : 2U))})
        .write_data(data, {.destination = 0, .dest_qp = Host::receive_queue_number(0), .psn = psn}, 1000);
    meta_of(data).owner = 0;
    deliver(data, at);
  }

  Workload workload_;
  PacketArena arena_;
  PacketArena::Cache cache_{arena_};
  Scratch scratch_;
  Wire out_{kDelay, kEthernetOverhead, 0, 0, 1};
  Wire in_{kDelay, kEthernetOverhead, 0, 0, 2};
  std::unique_ptr<MessageBoard> board_;
  std::unique_ptr<Host> host_;
  Time now_ = 0;
  unsigned parity_ = 0;
  bool pending_ = false;
};

// Of what `sent_until` found.
Time arrival_of(const Packet* packet) { return meta_of(packet).arrival; }

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
    EXPECT_EQ(arrival_of(packet), (i + 1) * Rate::gbps(100).time_for(packets[0]->pkt_len + kEthernetOverhead) -
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
  for (unsigned i = 0; i < 50; ++i) EXPECT_EQ(arrival_of(packets[i]), (i + 1) * packet + kDelay);
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
  ASSERT_EQ(in_.send(ack, ack->pkt_len, now_, now_ + 7 * kNanosecond, parity_), DropReason::kNone);
  parity_ = 1 - parity_;  // the window in which the peer sent it
  const std::vector<Packet*> more = sent_until(40 * kMicrosecond);
  ASSERT_EQ(more.size(), 2U);
  EXPECT_EQ(bth_of(more[0]).psn, 3U);
  EXPECT_EQ(bth_of(more[1]).psn, 4U);
}

// A message at 0, acknowledged at once, and another shortly before the first one's time would be up: its time-out
// counts from its own packets, of which none is repeated before.
TEST_F(HostTest, AnIdleQueuePairsTimerBeginsAnew) {
  for (const OutOfOrder mode : {OutOfOrder::kInOrderPlacement, OutOfOrder::kGoBackN, OutOfOrder::kSelectiveRepeat}) {
    SCOPED_TRACE(static_cast<int>(mode));
    now_ = 0;
    start({.out_of_order = mode, .retransmit_timeout = 100 * kMicrosecond},
          {{.src = 0, .dst = 1, .bytes = 64}, {.src = 0, .dst = 1, .bytes = 64, .start = 95 * kMicrosecond}});
    deliver_ack(0, 5 * kMicrosecond);
    EXPECT_EQ(sent_until(190 * kMicrosecond).size(), 2U) << "each once";
    EXPECT_EQ(host_->counters().timeouts, 0U);
    const std::vector<Packet*> repeated = sent_until(220 * kMicrosecond);
    ASSERT_EQ(repeated.size(), 1U) << "the second, which nobody acknowledged";
    EXPECT_NEAR(to_microseconds(arrival_of(repeated[0]) - kDelay), 195, 0.02);
    EXPECT_EQ(host_->counters().timeouts, 1U);
  }
}

// Data is ECN-capable only where marks are heeded.
TEST_F(HostTest, DataIsEcnCapableWithCongestionControl) {
  start({}, {{.src = 0, .dst = 1, .bytes = 4096}});
  EXPECT_EQ(frame_of(sent_until(kMicrosecond)[0])[15], 26U << 2U);
  now_ = 0;
  start({.dcqcn = flowctl::dcqcn_sets().front()}, {{.src = 0, .dst = 1, .bytes = 4096}});
  EXPECT_EQ(frame_of(sent_until(kMicrosecond)[0])[15], 26U << 2U | 2U);  // ECT(0), RFC 3168 5
}

// A CNP at 10 us; hpcc cuts at 14 us with alpha (255/256)^4: from then on packets are that far apart.
TEST_F(HostTest, PacesAQueuePairAfterACnp) {
  const flowctl::DcqcnSet& hpcc = *flowctl::find_dcqcn_set("hpcc");
  start({.dcqcn = hpcc}, {{.src = 0, .dst = 1, .bytes = 200 * 4096}});
  deliver_cnp(10 * kMicrosecond);
  const std::vector<Packet*> packets = sent_until(60 * kMicrosecond);
  const uint64_t wire_bytes = 4096 + kDataFrameOverhead + kEthernetOverhead;
  const Duration at_line_rate = Rate::gbps(100).time_for(wire_bytes);
  const flowctl::DcqcnSettings settings = hpcc.at(Rate::gbps(100));
  flowctl::ReactionPoint twin(settings, Rate::gbps(100));
  twin.on_cnp(10 * kMicrosecond);
  const Duration paced = twin.rate(14 * kMicrosecond).time_for(wire_bytes);
  EXPECT_NEAR(static_cast<double>(paced), static_cast<double>(at_line_rate) / (1 - 0.98447 / 2), 1e3);
  ASSERT_GT(packets.size(), 80U);
  for (size_t i = 1; i < packets.size(); ++i) {
    const Time begin = arrival_of(packets[i - 1]) - kDelay - at_line_rate;
    const Duration gap = arrival_of(packets[i]) - arrival_of(packets[i - 1]);
    EXPECT_EQ(gap, begin < 14 * kMicrosecond ? at_line_rate : paced) << "packet " << i;
  }
  EXPECT_EQ(host_->counters().cnps_received, 1U);
}

// Two queue pairs, one of them slowed down: the other one takes what is free.
TEST_F(HostTest, ASlowQueuePairLeavesTheWireToOthers) {
  start({.dcqcn = *flowctl::find_dcqcn_set("hpcc")},
        {{.src = 0, .dst = 1, .bytes = 400 * 4096}, {.src = 0, .dst = 2, .bytes = 400 * 4096}});
  for (int i = 1; i <= 10; ++i) deliver_cnp(static_cast<Time>(i) * 2 * kMicrosecond);
  const std::vector<Packet*> packets = sent_until(100 * kMicrosecond);
  const Duration packet = Rate::gbps(100).time_for(4096 + kDataFrameOverhead + kEthernetOverhead);
  size_t slowed = 0;
  for (const Packet* p : packets) slowed += destination_of(p) == 1 && arrival_of(p) > 40 * kMicrosecond ? 1 : 0;
  EXPECT_GE(packets.size(), 100 * kMicrosecond / packet) << "the wire is never idle";
  EXPECT_LT(slowed, 60 * kMicrosecond / packet / 4) << "a fair share would be half of the wire";
  EXPECT_GT(slowed, 2U);
}

// Marked packets at 1, 2, …, 10 us: with nvidia's 4 us between CNPs, at 1, 5 and 9 us.
TEST_F(HostTest, AnswersMarksWithCongestionNotifications) {
  start({.dcqcn = *flowctl::find_dcqcn_set("nvidia")}, {{.src = 0, .dst = 1, .bytes = 1}});
  host_->add_receive_queues(1, 0);
  for (uint32_t i = 0; i < 10; ++i) deliver_data(i, i != 3, (i + 1) * kMicrosecond);
  std::vector<Time> cnps;
  size_t acks = 0;
  for (const Packet* packet : sent_until(20 * kMicrosecond)) {
    const net::Bth& bth = bth_of(packet);
    acks += static_cast<net::Opcode>(bth.opcode) == net::Opcode::kRcAck ? 1 : 0;
    if (static_cast<net::Opcode>(bth.opcode) != net::Opcode::kCnp) continue;
    cnps.push_back((arrival_of(packet) - kDelay) / kMicrosecond);
    EXPECT_EQ(frame_of(packet)[15], 48U << 2U) << "class 6, not ECN-capable";
    EXPECT_EQ(bth.congestion, net::kBthBecn);
    EXPECT_EQ(bth.psn, 0U);
    EXPECT_EQ(bth.dest_qp, Host::send_queue_number(0)) << "the queue pair that sent the marked packets";
    EXPECT_EQ(packet->pkt_len, 14U + 20 + 8 + 12 + 16 + 4);
    EXPECT_EQ(destination_of(packet), 1U);
  }
  EXPECT_EQ(cnps, (std::vector<Time>{1, 5, 9}));
  EXPECT_EQ(acks, 10U);
  EXPECT_EQ(host_->counters().ce_packets, 9U);
  EXPECT_EQ(host_->counters().cnps_sent, 3U);
}

TEST_F(HostTest, WithoutCongestionControlMarksAreOnlyCounted) {
  start({}, {{.src = 0, .dst = 1, .bytes = 1}});
  host_->add_receive_queues(1, 0);
  deliver_data(0, true, kMicrosecond);
  EXPECT_EQ(sent_until(10 * kMicrosecond).size(), 2U);  // its own packet and an ACK
  EXPECT_EQ(host_->counters().ce_packets, 1U);
  EXPECT_EQ(host_->counters().cnps_sent, 0U);
}

struct PauseRow {
  const char* what;
  std::vector<std::pair<PfcRequest, double>> frames;  // and when they arrive, in us
  double silent_from_us;                              // no data packet begins in here
  double silent_to_us;
  double paused_us;  // class 3, in all
};

// 100G: a quantum is 5.12 ns, 1000 of them 5.12 us, 0xffff 335.5 us. A 4 KiB packet takes 334.5 ns: one that has begun
// is sent to its end.
TEST_F(HostTest, HonoursPfc) {
  const PauseRow rows[] = {
      {"for the quanta named", {{PfcRequest::pause(1U << 3U, 1000), 10}}, 10, 15.12, 5.12},
      {"until it is resumed",
       {{PfcRequest::pause(1U << 3U, 0xffff), 10}, {PfcRequest::resume(1U << 3U), 30}},
       10,
       30,
       20},
      {"a refresh counts from its own time",
       {{PfcRequest::pause(1U << 3U, 1000), 10}, {PfcRequest::pause(1U << 3U, 1000), 14}},
       10,
       19.12,
       9.12},
      {"a shorter time replaces a longer one",
       {{PfcRequest::pause(1U << 3U, 0xffff), 10}, {PfcRequest::pause(1U << 3U, 1000), 12}},
       10,
       17.12,
       7.12},
      {"other classes are no business of data", {{PfcRequest::pause(0xf7, 0xffff), 10}}, 0, 0, 0},
  };
  for (const PauseRow& row : rows) {
    SCOPED_TRACE(row.what);
    now_ = 0;
    start({}, {{.src = 0, .dst = 1, .bytes = 200 * 4096}});
    for (const auto& [request, at] : row.frames) deliver_pfc(request, static_cast<Time>(at * 1e6));
    const std::vector<Packet*> packets = sent_until(50 * kMicrosecond);
    const Duration takes = Rate::gbps(100).time_for(4096 + kDataFrameOverhead + kEthernetOverhead);
    Time resumed = kNever;
    for (const Packet* packet : packets) {
      const double begin = to_microseconds(arrival_of(packet) - kDelay - takes);
      EXPECT_FALSE(begin >= row.silent_from_us && begin < row.silent_to_us - 1e-6) << begin;
      if (begin >= row.silent_from_us) resumed = std::min(resumed, arrival_of(packet) - kDelay - takes);
    }
    if (row.silent_to_us != 0) {
      EXPECT_NEAR(to_microseconds(resumed), row.silent_to_us, 1e-6) << "at once";
    }
    EXPECT_NEAR(to_microseconds(host_->paused_time(3, now_)), row.paused_us, 1e-3);
    EXPECT_EQ(host_->counters().pfc_frames, row.frames.size());
    EXPECT_EQ(host_->counters().packets_received, 0U);
  }
}

// Data and ACKs are class 3, CNPs class 6: each waits for its own pause only.
TEST_F(HostTest, APauseHoldsBackItsClassAlone) {
  const flowctl::DcqcnSet& hpcc = *flowctl::find_dcqcn_set("hpcc");
  start({.dcqcn = hpcc}, {{.src = 0, .dst = 1, .bytes = 1, .start = 30 * kMicrosecond}});
  host_->add_receive_queues(1, 0);
  deliver_pfc(PfcRequest::pause(1U << 3U, 0xffff), 2 * kMicrosecond);
  deliver_data(0, true, 5 * kMicrosecond);
  const std::vector<Packet*> packets = sent_until(100 * kMicrosecond);
  ASSERT_EQ(packets.size(), 1U);
  EXPECT_EQ(static_cast<net::Opcode>(bth_of(packets[0]).opcode), net::Opcode::kCnp);
  const std::vector<Packet*> later = sent_until(400 * kMicrosecond);
  ASSERT_EQ(later.size(), 2U) << "the ACK and the message, when the pause is over";
  EXPECT_GE(arrival_of(later[0]), 2 * kMicrosecond + flowctl::pause_time(0xffff, Rate::gbps(100)) + kDelay);
}

TEST_F(HostTest, IgnoresOtherMacControlFrames) {
  start({}, {{.src = 0, .dst = 1, .bytes = 20 * 4096}});
  Packet* pause = cache_.take();
  pause->data_off = 0;
  pause->pkt_len = pause->data_len = flowctl::kPfcFrameBytes;
  flowctl::write_pfc(frame_of(pause), mac_of(8), PfcRequest::pause(0xff, 0xffff));
  net::header_at<net::PfcFrame>(frame_of(pause), 0)->opcode = flowctl::kOpcodePause;  // 802.3x, of the whole link
  deliver(pause, kMicrosecond);
  EXPECT_EQ(sent_until(20 * kMicrosecond).size(), 20U);
  EXPECT_EQ(host_->counters().control_ignored, 1U);
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
