// The pipeline on InfiniBand links: which service levels keep to their table's port, what is done about a dead one, and
// the lane without credits.
#include "dataplane/lanes.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "dataplane/pipeline.h"
#include "tests/support/packets.h"

namespace heddle::dataplane {
namespace {

constexpr uint32_t kFrame = 4122;

class Source final : public PacketSource {
 public:
  Packet* make() override {
    made_.push_back(support::make_packet(support::Bytes(net::kNoticeHeaders)));
    return made_.back().get();
  }

 private:
  std::vector<support::OwnedPacket> made_;
};

// Hosts come in by port 0; LIDs 1–8 leave by ports 1 and 2, of which the table names port 2.
class LanesTest : public testing::Test {
 protected:
  void build(uint16_t adaptive_levels, bool fails_over = true, const ReachSettings& reach = {}) {
    PipelineSettings settings;
    LaneSettings lanes;
    lanes.adaptive_levels = adaptive_levels;
    lanes.fails_over = fails_over;
    lanes.reach = reach;
    lanes.credits.buffer = 8320;  // two packets
    for (int port = 0; port < 3; ++port) {
      PortSettings of;
      of.egress.rate = Rate::gbps(100);
      of.egress.overhead = net::kInfinibandOverhead;
      settings.ports.push_back(of);
      lanes.links.push_back({.rate = Rate::gbps(100), .delay = kMicrosecond, .packet = kFrame, .overhead = 2});
    }
    settings.lanes = lanes;
    settings.paths = 3;
    settings.flowlets = false;
    lb::NextHopGroup& group = tables_.groups.emplace_back();
    group.scheduler = *lb::scheduler_named("adaptive");
    for (const PortId port : {PortId{1}, PortId{2}}) {
      group.members.push_back({.rewrite = {}, .port = port, .counter = port});
    }
    group.table_member = 1;
    std::vector<GroupId> group_of_lid(9, 0);
    group_of_lid[0] = kNoGroup;
    tables_.group_of_route = group_of_lid;
    pipeline_ = std::make_unique<Pipeline>(settings, states_, sink_, nullptr);
    pipeline_->use_source(&source_);
    pipeline_->use_tables(&tables_);
  }

  // In by port 0, as if credit for it had been given; where it went.
  PortId send(uint8_t sl, uint16_t lid, uint32_t queue_pair = 1) {
    support::OwnedPacket packet = support::make_packet(support::Bytes(sizeof(net::Lrh) + sizeof(net::Bth)));
    auto* lrh = net::header_at<net::Lrh>(frame_of(packet.get()), 0);
    lrh->sl_next = static_cast<uint8_t>(sl << 4U | net::kLnhBth);
    lrh->destination = lid;
    net::header_at<net::Bth>(frame_of(packet.get()), sizeof(net::Lrh))->dest_qp = queue_pair;
    packet->pkt_len = kFrame;
    pass(0, packet.get());
    const PortId out = meta_of(packet.get()).out_port;
    packets_.push_back(std::move(packet));
    return out;
  }
  void hear(PortId in, const net::ReachNotice& notice) {
    Packet* packet = source_.make();
    net::write_reach_notice(frame_of(packet), 1, 1, notice);
    packet->pkt_len = net::kManagementFrame;
    pass(in, packet);
  }
  void pass(PortId in, Packet* packet) {
    if (pipeline_->ingress(in, &packet, 1, 0) != 0) pipeline_->forward(&packet, 1, 0);
  }
  // All that may leave at once, whatever the time on the wire; lanes.
  std::vector<unsigned> lanes_leaving(PortId out) {
    std::vector<unsigned> lanes;
    Packet* packet = nullptr;
    while (pipeline_->egress(out, &packet, 1, now_) == 1) {
      now_ += kMicrosecond;
      if (!is_credit_packet(packet)) {
        lanes.push_back(net::virtual_lane(*net::header_at<net::Lrh>(frame_of(packet), 0)));
      }
    }
    return lanes;
  }
  uint64_t drops(PortId port, DropReason reason) const {
    return pipeline_->counters().ports[port].drops[static_cast<size_t>(reason)].get();
  }

  ForwardingTables tables_;
  PortStates states_{3};
  support::RecordingSink sink_;
  Source source_;
  std::unique_ptr<Pipeline> pipeline_;
  std::vector<support::OwnedPacket> packets_;
  Time now_ = kMicrosecond;
};

TEST_F(LanesTest, OnlyEnabledServiceLevelsAreAdaptive) {
  build(0b10);
  std::array<unsigned, 3> of_level_1{};
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(send(0, 1), 2) << "as the table says";
    ++of_level_1[send(1, 1)];
  }
  EXPECT_GT(of_level_1[1], of_level_1[2]) << "port 2 is the fuller one";
}

TEST_F(LanesTest, FlowsOfADeadTablePortTakeAnother) {
  build(0);
  states_.set(2, false);
  for (uint32_t queue_pair = 0; queue_pair < 20; ++queue_pair) EXPECT_EQ(send(0, 3, queue_pair), 1);
  EXPECT_EQ(pipeline_->lanes()->port(0).failovers, 20U);
  states_.set(2, true);
  EXPECT_EQ(send(0, 3), 2) << "and back";
}

TEST_F(LanesTest, OrAreDropped) {
  build(0, false);
  states_.set(2, false);
  send(0, 3);
  EXPECT_EQ(drops(0, DropReason::kNoLiveNextHop), 1U);
  EXPECT_EQ(pipeline_->lanes()->port(0).failovers, 0U);
}

const ReachSettings kPeers{.notify = true, .lid = 40, .buffer = 4096, .peers = {true, true, true}};

TEST_F(LanesTest, WhatANeighbourCannotReachGoesByAnother) {
  for (const uint16_t levels : {0, 0xffff}) {
    tables_ = {};
    build(levels, true, kPeers);
    hear(2, {.sweep = 1, .restored = false, .count = 1, .ranges = {net::LidRange{3, 2}}});
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(send(0, 3), 1);
      EXPECT_EQ(send(0, 4), 1);
    }
    std::array<bool, 3> seen{};
    for (int i = 0; i < 20; ++i) seen[send(0, 5)] = true;
    EXPECT_TRUE(seen[2]) << "other destinations still do";
    EXPECT_TRUE(lanes_leaving(1).size() == 2 && lanes_leaving(0).empty()) << "nobody need be told";
    hear(2, {.sweep = 1, .restored = true, .count = 1, .ranges = {net::LidRange{3, 2}}});
    if (levels == 0) {
      EXPECT_EQ(send(0, 3), 2);
    }
    EXPECT_EQ(pipeline_->lanes()->port(2).management_received, 2U);
  }
}

// Neighbours are told although data has no credit, and before data that has.
TEST_F(LanesTest, ManagementLeavesFirstAndNeedsNoCredit) {
  build(0, true, kPeers);
  for (int i = 0; i < 4; ++i) send(0, 1);
  EXPECT_EQ(lanes_leaving(2), (std::vector<unsigned>{0, 0})) << "then credit is at an end";
  hear(1, {.sweep = 1, .restored = false, .count = 1, .ranges = {net::LidRange{1, 8}}});
  hear(2, {.sweep = 1, .restored = false, .count = 1, .ranges = {net::LidRange{1, 8}}});
  EXPECT_EQ(lanes_leaving(2), (std::vector<unsigned>{15}));
  EXPECT_EQ(pipeline_->port(2).queue(0).packets(), 2U) << "still without credit";
  hear(1, {.sweep = 1, .restored = true, .count = 1, .ranges = {net::LidRange{1, 8}}});
  send(0, 1);
  EXPECT_EQ(lanes_leaving(1), (std::vector<unsigned>{15, 15, 0}));
  EXPECT_EQ(pipeline_->management_packets(), 3U) << "two at port 0, one at port 2";
}

TEST_F(LanesTest, ManagementBeyondItsBufferIsDroppedByName) {
  ReachSettings peers = kPeers;
  peers.buffer = 2 * net::kManagementFrame;
  build(0, true, peers);
  for (int round = 0; round < 3; ++round) {
    hear(1, {.sweep = 1, .restored = round % 2 == 1, .count = 1, .ranges = {net::LidRange{1, 8}}});
    hear(2, {.sweep = 1, .restored = round % 2 == 1, .count = 1, .ranges = {net::LidRange{1, 8}}});
  }
  for (PortId port = 0; port < 3; ++port) {
    EXPECT_EQ(pipeline_->lanes()->port(port).management_sent, 3U);
    EXPECT_EQ(drops(port, DropReason::kManagementFull), 1U);
    EXPECT_EQ(lanes_leaving(port), (std::vector<unsigned>{15, 15}));
  }
}

// A port that dies takes its management packets along.
TEST_F(LanesTest, ManagementOfADeadPortIsFlushed) {
  build(0, true, kPeers);
  states_.set(1, false);
  states_.set(2, false);
  pipeline_->review_reach();
  EXPECT_EQ(pipeline_->management_packets(), 1U) << "to port 0, which alone is up";
  states_.set(0, false);
  pipeline_->flush(0, DropReason::kPortDown, 0);
  EXPECT_EQ(pipeline_->management_packets(), 0U);
  EXPECT_EQ(drops(0, DropReason::kPortDown), 1U);
  // When the link is back, it hears all.
  states_.set(0, true);
  pipeline_->restart_link(0, 0);
  EXPECT_EQ(lanes_leaving(0), (std::vector<unsigned>{15}));
}

}  // namespace
}  // namespace heddle::dataplane
