// What a host with an InfiniBand port has beside other hosts: credits, and queues by virtual lane.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "dataplane/lanes.h"
#include "lab/engine/growing_ring.h"
#include "lab/host/infiniband.h"
#include "lab/host/partitions.h"
#include "lab/subnet/tables.h"
#include "net/time.h"

namespace heddle::lab {

// How the host's port is set up. Keeps a reference to the tables.
struct HostLaneSettings {
  const SubnetTables* tables = nullptr;
  flowctl::CreditSettings credits;
  flowctl::CreditLink link;
  std::vector<Time> link_ups{};                 // when its link comes up again, ascending
  const PartitionTables* partitions = nullptr;  // null: there are none
  flowctl::VlArbiterSettings arbitration{};     // without weights: lanes take turns
};

// What congestion control holds back as one flow: what a host sends on a service level (flowctl::CctiScope).
struct LevelGate {
  Time opens_at = 0;              // when the next of its packets may start
  GrowingRing<uint32_t> waiting;  // send queues that have one
  bool timed = false;             // they are let go when it opens
};

// An acknowledgement that waits for the port.
struct WaitingAck {
  uint32_t receive_queue;
  uint32_t psn;
  uint32_t msn;
  bool nak;
  bool becn = false;  // the packet that it answers came with FECN
};

struct HostLanes {
  HostLanes(HostId host, const HostLaneSettings& settings)
      : writer(host, *settings.tables, settings.partitions),
        period(flowctl::credit_period(settings.credits, settings.link.rate)) {
    port.credits.configure(settings.credits, settings.link);
    port.arbitrate_by(settings.arbitration);
    longest = port.credits.blocks_of(settings.link.packet);
    if (settings.partitions != nullptr) port.partitions = settings.partitions->keys_of(host);
  }

  InfinibandWriter writer;
  dataplane::Lanes::Port port;
  Duration period;
  bool period_kept = false;
  uint32_t longest = 0;  // blocks of the longest packet
  // By lane.
  std::array<GrowingRing<WaitingAck>, flowctl::LinkCredits::kMaxLanes> acks;
  std::array<GrowingRing<uint32_t>, flowctl::LinkCredits::kMaxLanes> cnps;   // receive queues whose peer is to be told
  std::array<GrowingRing<uint32_t>, flowctl::LinkCredits::kMaxLanes> turns;  // send queues that have a packet
  uint8_t ack_ready = 0;   // bit = lane whose next CNP or ACK has credit
  uint8_t data_ready = 0;  // bit = lane whose next data packet has
  uint8_t next_lane = 0;   // lanes send in turn
  uint64_t credit_packets_sent = 0;
  uint64_t credit_packets_received = 0;

  // Lanes whose next packet has credit, of either kind.
  uint8_t ready() const { return ack_ready | data_ready; }
  // Some lane is ready. Lanes that arbitration does not name come last.
  unsigned pick_lane() {
    const uint8_t open = ready();
    if (port.arbitrated) {
      if (const unsigned vl = port.arbiter.pick(open); vl != flowctl::VlArbiter::kNone) return vl;
    }
    unsigned vl = next_lane;
    while (((open >> vl) & 1U) == 0) vl = (vl + 1) % flowctl::LinkCredits::kMaxLanes;
    next_lane = static_cast<uint8_t>((vl + 1) % flowctl::LinkCredits::kMaxLanes);
    return vl;
  }
  bool can_send() const { return (ack_ready | data_ready | port.credits.due()) != 0; }
};

}  // namespace heddle::lab
