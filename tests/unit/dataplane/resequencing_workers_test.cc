// The resequencer behind a shared buffer and several lcores: packets that came in here are charged when their turn
// comes, those that were handed over had been already, and either kind may be what the other waits for.
#include <gtest/gtest.h>

#include "tests/support/lossless_switch.h"

namespace heddle::support {
namespace {

class Collect final : public dataplane::Handover {
 public:
  unsigned offer(Packet** packets, unsigned count) override {
    got.insert(got.end(), packets, packets + count);
    return 0;
  }
  std::vector<Packet*> got;
};

constexpr Duration kHold = 50 * kMicrosecond;
constexpr PortId kThere = kInPort;     // the first lcore's
constexpr PortId kHere = kTaggedPort;  // the second's, as is the host's, kPlainPort

// Two lcores of one switch. Packets of one queue pair come in at ports of both, sprayed, for a host of the second.
class ResequencingWorkers : public testing::Test {
 protected:
  ResequencingWorkers() {
    plan_.ports[kPlainPort].resequence = true;
    plan_.resequencer = {.enabled = true, .hold_time = kHold};
    const lb::NextHop host{.rewrite = {.destination = neighbour_mac(1), .source = port_mac(1)}, .port = kPlainPort};
    tables_.groups = {{{host}, {}}};
    prefixes_.add4(ip4(10, 2, 0, 0), 16, 0);
    tables_.lookup = &prefixes_;
    for (unsigned self = 0; self < 2; ++self) {
      dataplane::PipelineSettings settings;
      settings.ports = plan_.ports;
      settings.buffer = plan_.buffer;
      settings.resequencer = plan_.resequencer;
      settings.paths = 3;
      settings.mine =
          self == 0 ? std::vector<bool>{true, false, false, true} : std::vector<bool>{false, true, true, false};
      settings.ledgers = {&ledgers_[0], &ledgers_[1]};
      settings.self = self;
      workers_[self] = std::make_unique<dataplane::Pipeline>(settings, states_, sink_, &crossing_[self]);
      workers_[self]->use_tables(&tables_);
    }
  }

  // One that came in at a port of the second lcore, and one that the first has handed over.
  void from_here(uint32_t psn, uint8_t opcode = 0x07) { receive(1, kHere, psn, opcode); }
  void from_there(uint32_t psn, uint8_t opcode = 0x07) {
    receive(0, kThere, psn, opcode);
    for (Packet* packet : crossing_[0].got) workers_[1]->accept_handover(packet, now_);
    crossing_[0].got.clear();
  }
  unsigned leaving() {
    unsigned count = 0;
    Packet* burst[kBurst];
    for (unsigned n; (n = workers_[1]->egress(kPlainPort, burst, kBurst, now_)) != 0; now_ += kMicrosecond) count += n;
    return count;
  }
  void pass(Duration time) {
    now_ += time;
    if (workers_[1]->needs_attention(now_)) workers_[1]->attend(now_);
  }
  // Nothing is held or queued any more: nobody may have bytes in the buffer.
  void expect_empty() {
    for (int i = 0; i < 3; ++i) {
      for (auto& worker : workers_) worker->settle_buffer(now_);
    }
    for (const auto& worker : workers_) {
      EXPECT_EQ(worker->buffer().shared_used(), 0U);
      EXPECT_EQ(worker->buffer().shared_free(), workers_[0]->buffer().shared_free());
    }
    EXPECT_EQ(workers_[0]->buffer().occupancy(kThere, kRoceClass).bytes(), 0U);
    EXPECT_EQ(workers_[1]->buffer().occupancy(kHere, kRoceClass).bytes(), 0U);
    EXPECT_TRUE(sink_.taken.empty());
  }

  RecordingSink sink_;
  std::array<std::unique_ptr<dataplane::Pipeline>, 2> workers_;
  Time now_ = kMillisecond;

 private:
  void receive(unsigned worker, PortId port, uint32_t psn, uint8_t opcode) {
    const Bytes frame = ethernet({.destination = port_mac(port)},
                                 ipv4({.destination = ip4(10, 2, 0, 9)},
                                      udp({}, roce({.opcode = opcode, .dest_qp = 7, .psn = psn}, pattern(942)))));
    packets_.push_back(make_packet(frame));
    Packet* packet = packets_.back().get();
    ASSERT_EQ(workers_[worker]->ingress(port, &packet, 1, now_), 1U);
    workers_[worker]->forward(&packet, 1, now_);
  }

  SwitchPlan plan_ = lossless_plan();
  std::array<dataplane::BufferLedger, 2> ledgers_{dataplane::BufferLedger(4), dataplane::BufferLedger(4)};
  PrefixTable prefixes_;
  dataplane::ForwardingTables tables_;
  dataplane::PortStates states_{4};
  std::array<Collect, 2> crossing_;
  std::vector<OwnedPacket> packets_;
};

constexpr uint8_t kFirst = 0x06;
constexpr int kRounds = 60;  // of 1,000 bytes: more than the group's share and its headroom

TEST_F(ResequencingWorkers, APacketFromHereLetsOneFromThereGo) {
  for (uint32_t round = 0; round < kRounds; ++round) {
    from_here(3 * round, kFirst);
    from_there(3 * round + 2);
    from_here(3 * round + 1);
    EXPECT_EQ(leaving(), 3U);
    expect_empty();
  }
}

TEST_F(ResequencingWorkers, APacketFromThereLetsOneFromHereGo) {
  for (uint32_t round = 0; round < kRounds; ++round) {
    from_there(3 * round, kFirst);
    from_here(3 * round + 2);
    from_there(3 * round + 1);
    EXPECT_EQ(leaving(), 3U);
    expect_empty();
  }
}

TEST_F(ResequencingWorkers, AGapIsGivenUpOfBoth) {
  for (uint32_t round = 0; round < kRounds; ++round) {
    from_there(4 * round, kFirst);
    from_there(4 * round + 2);
    from_here(4 * round + 3);
    EXPECT_EQ(leaving(), 1U);
    pass(2 * kHold);
    EXPECT_EQ(leaving(), 2U);
    expect_empty();
  }
}

// At shutdown: what another lcore had let in, it gets back.
TEST_F(ResequencingWorkers, WhatIsDroppedIsReleased) {
  from_there(0, kFirst);
  from_there(2);
  from_here(3);
  EXPECT_EQ(leaving(), 1U);
  workers_[1]->drop_held(DropReason::kShutdown);
  EXPECT_EQ(sink_.taken.size(), 2U);
  sink_.taken.clear();
  expect_empty();
}

}  // namespace
}  // namespace heddle::support
