// InfiniBand links of a switch: the credits of every port and what they hold back, service levels to virtual lanes.
//
// A virtual lane is a traffic class of the port it leaves by, so that queues and scheduler are those of Ethernet; in
// the place of the shared buffer there is one buffer for each port and lane that packets arrive on, and in the place of
// pauses there are credits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <rte_prefetch.h>

#include "dataplane/egress_queue.h"
#include "dataplane/reach.h"
#include "flowctl/link_credits.h"
#include "flowctl/vl_arbiter.h"
#include "net/infiniband.h"
#include "net/packet.h"

namespace heddle::dataplane {

// The lane by service level; 15 = packets of that level are dropped (IBTA 7.6.6).
using LaneMap = std::array<uint8_t, 16>;
inline constexpr uint8_t kNoLane = 15;

struct LaneSettings {
  flowctl::CreditSettings credits;
  std::vector<flowctl::CreditLink> links;  // by port
  std::vector<LaneMap> lane_maps;          // by input port × ports + output port; empty: everything is on VL 0
  std::vector<flowctl::VlArbiterSettings> arbitration;  // by output port; empty: lanes take turns
  // By port: P_Keys of the host behind it, whose packets must have one of them and who gets no others (IBTA 10.9.4).
  // Empty: not looked at.
  std::vector<std::vector<uint16_t>> partitions;
  // FECN marking (IBTA A10.2.1), where egress classes have a marking curve: packets shorter than that are left alone.
  uint32_t fecn_packet_size = 0;
  std::vector<bool> marks_victims;  // by port, Victim_Mask: see Lanes::Port::starved; empty: none
  // Bit = service level whose packets may take any member of their group, as its scheduler says. The others take the
  // one that the forwarding table names, and another only while that is dead.
  uint16_t adaptive_levels = 0xffff;
  bool fails_over = true;  // whether those others do that, or are dropped
  ReachSettings reach;
};

// Flow-control packets are told by their start delimiter (SLP); in memory by being shorter than any other.
inline bool is_credit_packet(const Packet* packet) { return packet->pkt_len <= flowctl::kLongestCreditPacket; }
// Whether it leaves on VL15; of any that leaves and is no flow-control packet.
inline bool is_management_packet(const Packet* leaving) {
  return meta_of(leaving).traffic_class == net::kManagementLane;
}

class Lanes {
 public:
  explicit Lanes(const LaneSettings& settings)
      : period_(flowctl::credit_period(settings.credits, fastest(settings.links))),
        fecn_packet_size_(settings.fecn_packet_size),
        adaptive_levels_(settings.adaptive_levels),
        fails_over_(settings.fails_over),
        maps_(all_on_the_first(settings.lane_maps) ? std::vector<LaneMap>() : settings.lane_maps),
        ports_(settings.links.size()),
        reach_(settings.reach, settings.links.size()) {
    for (size_t i = 0; i < ports_.size(); ++i) {
      ports_[i].credits.configure(settings.credits, settings.links[i]);
      ports_[i].management.configure(settings.reach.buffer, ~0U);
    }
    for (size_t i = 0; i < settings.arbitration.size(); ++i) {
      ports_[i].arbitrate_by(settings.arbitration[i]);
    }
    for (size_t i = 0; i < settings.partitions.size(); ++i) ports_[i].partitions = settings.partitions[i];
    for (size_t i = 0; i < settings.marks_victims.size(); ++i) ports_[i].marks_victims = settings.marks_victims[i];
  }

  // What every packet reads of it lies in the first three cache lines.
  struct alignas(64) Port {
    uint8_t stalled = 0;  // lanes whose next packet has no credit
    // Lanes that had none at some time since they last sent: their congestion comes from further on, the port is a
    // victim of it and not its root (IBTA A10.2.1.1).
    uint8_t starved = 0;
    bool marks_victims = false;  // all the same
    bool arbitrated = false;
    std::vector<uint16_t> partitions;
    EgressQueue management;  // VL15: before all else, and without credits (IBTA 7.6.4, 7.9)
    alignas(64) flowctl::LinkCredits credits;
    std::array<Time, kTrafficClasses> since{};
    std::array<Duration, kTrafficClasses> ended{};  // stalls that are over, summed
    uint64_t violations = 0;                        // packets that came without credit, or found no room
    flowctl::VlArbiter arbiter;
    uint64_t management_sent = 0;  // made; with those that found no room
    uint64_t management_received = 0;
    uint64_t failovers = 0;  // packets that came in here and took another member than their table's, which was dead

    void arbitrate_by(const flowctl::VlArbiterSettings& tables) {
      arbitrated = tables.is_on();
      arbiter = flowctl::VlArbiter(tables);
    }
    // Whether the host behind the port may send with that key, and receive it.
    bool may_send(uint16_t key) const {
      return partitions.empty() || std::find(partitions.begin(), partitions.end(), key) != partitions.end();
    }
    bool may_receive(uint16_t key) const {
      return partitions.empty() || std::any_of(partitions.begin(), partitions.end(),
                                               [key](uint16_t ours) { return net::may_talk(ours, key); });
    }

    void set_stalled(unsigned vl, bool now_stalled, Time now) {
      const bool was = ((stalled >> vl) & 1U) != 0;
      if (was == now_stalled) return;
      stalled ^= static_cast<uint8_t>(1U << vl);
      if (now_stalled) {
        since[vl] = now;
        starved |= static_cast<uint8_t>(1U << vl);
      } else {
        ended[vl] += now - since[vl];
      }
    }
    // How long packets of a lane have waited for credit alone, up to `now`.
    Duration stall_time(unsigned vl, Time now) const {
      return ended[vl] + (((stalled >> vl) & 1U) != 0 ? elapsed(now, since[vl]) : 0);
    }
  };

  Port& port(PortId id) { return ports_[id]; }
  const Port& port(PortId id) const { return ports_[id]; }
  size_t size() const { return ports_.size(); }
  // Asks for what a packet that comes or goes there will read.
  void prefetch(PortId id) const {
    rte_prefetch0(&ports_[id]);
    rte_prefetch0(&ports_[id].management);
    rte_prefetch0(&ports_[id].credits);
  }
  Duration period() const { return period_; }
  uint32_t fecn_packet_size() const { return fecn_packet_size_; }
  bool is_adaptive(unsigned sl) const { return ((adaptive_levels_ >> sl) & 1U) != 0; }
  bool fails_over() const { return fails_over_; }
  Reach& reach() { return reach_; }
  const Reach& reach() const { return reach_; }

  uint8_t lane(PortId in, PortId out, unsigned sl) const {
    return maps_.empty() ? uint8_t{0} : maps_[in * ports_.size() + out][sl];
  }

 private:
  static bool all_on_the_first(const std::vector<LaneMap>& maps) {
    return std::all_of(maps.begin(), maps.end(), [](const LaneMap& map) { return map == LaneMap{}; });
  }
  static Rate fastest(const std::vector<flowctl::CreditLink>& links) {
    Rate most;
    for (const flowctl::CreditLink& link : links) {
      if (link.rate.bits_per_second() > most.bits_per_second()) most = link.rate;
    }
    return most;
  }

  Duration period_;
  uint32_t fecn_packet_size_;
  uint16_t adaptive_levels_;
  bool fails_over_;
  std::vector<LaneMap> maps_;
  std::vector<Port> ports_;
  Reach reach_;
};

}  // namespace heddle::dataplane
