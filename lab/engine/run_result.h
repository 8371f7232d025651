// What a run of the lab leaves behind: counted and timed, not yet judged (lab/report/report.h does that).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/engine/pause_log.h"
#include "lab/engine/send_gaps.h"
#include "lab/topology/topology.h"
#include "lab/workload/workload.h"
#include "lb/resequencer.h"
#include "net/drop_reason.h"
#include "net/time.h"

namespace heddle::lab {

inline constexpr Time kNever = ~Time{0};

// Times of one message, kNever where it did not come to that.
struct MessageTimes {
  Time released = kNever;  // handed to the queue pair, start jitter included
  Time received = kNever;  // last byte at the receiver
  Time sent = kNever;      // the sender has the last ACK
};

// (max − min) / mean of the bytes that a leaf's (or pod switch's) uplinks carried in one interval; only intervals in
// which the uplinks were loaded to 10 % or more.
struct ImbalanceSample {
  NodeId node = 0;
  Time at = 0;
  double imbalance = 0;
  double jain = 1;  // (Σ bytes)² / (uplinks × Σ bytes²): 1 if all carried the same, 1/uplinks if one carried all
};

struct LinkLoad {
  uint64_t a_to_b_packets = 0;
  uint64_t a_to_b_bytes = 0;  // frames, with the link's overhead
  uint64_t b_to_a_packets = 0;
  uint64_t b_to_a_bytes = 0;
  // How long that took; nothing where the rate never changed, so that bytes and rate say it.
  std::optional<Duration> a_to_b_busy{};
  std::optional<Duration> b_to_a_busy{};
};

// Flow control at one port of a switch. All zeros are left out of the result.
struct PortPauses {
  NodeId node = 0;
  PortIndex port = 0;
  uint64_t sent = 0;           // PFC frames with a time for some class
  uint64_t received = 0;       // the same, of its peer
  Duration paused = 0;         // how long its classes were held back, summed
  uint64_t peak_headroom = 0;  // bytes that arrived after XOFF
  uint64_t violations = 0;     // packets of lossless classes that came in here and found no room
};

struct NodePause {
  NodeId node = 0;
  PauseInterval pause;
};
// A virtual lane over the whole fabric.
struct LaneUse {
  Duration stalled = 0;  // how long its packets waited for credit alone, summed over ports
  uint64_t peak = 0;     // bytes of the fullest buffer there was
  uint64_t buffer = 0;   // of what each holds
};
// A port, of a switch or a host, that waited for credit.
struct CreditStall {
  NodeId node = 0;
  PortIndex port = 0;
  uint8_t vl = 0;
  Duration stalled = 0;
  uint64_t peak = 0;  // bytes that the port's own receive buffer of that lane has held
};

// What the switches of an InfiniBand subnet did about dead ports by themselves.
struct HealingCounts {
  uint64_t failovers = 0;     // packets that took another port than their forwarding table's
  uint64_t notices_sent = 0;  // packets of VL15, those that found no room at the port among them
  uint64_t notices_received = 0;
};

struct QueueRef {
  NodeId node = 0;
  PortIndex port = 0;
  uint8_t traffic_class = 0;
};

// What the PFC watchdog of a switch found.
struct WatchdogIncident {
  Time at = 0;
  QueueRef queue;
  bool storm = false;  // else: its end
};

// Queues each of which waits for the next, and the last for the first.
struct Deadlock {
  Time at = 0;  // when it was seen
  std::vector<QueueRef> cycle;
  Time broken_at = kNever;  // when one of them was first seen to move again
};

// What probes found out about one member of a group towards one destination, when the run ended.
struct PathState {
  NodeId node = 0;
  uint64_t destination = 0;  // destination_of_label
  PortIndex port = 0;
  bool measured = false;
  bool bad = false;
  Duration delay = 0;
  Duration jitter = 0;
  double loss = 0;
  double capacity_mbps = 0;  // 0: unknown
  uint32_t share = 0;        // of telemetry::kShareSlots
};

// Shares that moved: of the ports in order.
struct ShareChange {
  Time at = 0;
  NodeId node = 0;
  uint64_t destination = 0;
  std::vector<uint32_t> shares;
};

struct ProbeResult {
  uint64_t sent = 0;
  uint64_t ended = 0;                          // at their senders
  uint64_t returned = 0;                       // of those, the ones that said something
  uint64_t bytes = 0;                          // sent, on the first link
  std::vector<std::array<uint64_t, 2>> links;  // wire bytes of probes, by LinkId, from end a and from end b
  Duration sweep_min = 0;                      // of the switches that probe
  Duration sweep_max = 0;
  uint64_t updates = 0;  // of shares
  std::vector<PathState> paths;
  std::vector<ShareChange> trace;
};

struct RunResult {
  enum class End : uint8_t { kDone, kTimeLimit, kInterrupted, kDeadlock };
  std::vector<std::string> notes;  // what was found while the fabric was built, for the user to see
  End end = End::kDone;
  Time ended_at = 0;
  std::vector<MessageTimes> messages;  // by MessageId

  // Packets. The engine has checked: sent = received + dropped + in flight.
  uint64_t packets_sent = 0;       // by hosts, of all kinds
  uint64_t data_packets = 0;       // of those, data, repeats included
  uint64_t packets_received = 0;   // by hosts
  uint64_t packets_in_flight = 0;  // when the run ended
  std::array<uint64_t, kDropReasons> drops{};
  uint64_t retransmitted = 0;        // packets sent again
  uint64_t retransmitted_bytes = 0;  // their payload
  uint64_t timeouts = 0;
  uint64_t naks = 0;
  uint64_t duplicates = 0;  // data packets that the receiver had already

  // From RunSettings::warm_up to the end of the run: payload that receivers did not have before.
  Duration steady_time = 0;
  uint64_t steady_bytes = 0;

  // Order of first copies at the receivers: out of order if the PSN is below the next expected (RFC 4737 3), degree =
  // highest PSN seen − its PSN.
  uint64_t out_of_order_packets = 0;
  uint64_t out_of_order_degree = 0;  // the highest
  uint64_t out_of_order_extent = 0;  // the highest: RFC 4737 4.2.2
  SendGaps gaps;                     // of queue pairs, at the hosts that send

  // Congestion control.
  uint64_t ce_packets = 0;        // data packets that reached their host marked "congestion experienced", or with FECN
  uint64_t cnps = 0;              // congestion notifications sent, on InfiniBand links ACKs with BECN
  uint64_t cnps_received = 0;     // likewise
  uint64_t throttled_queues = 0;  // send queues that a BECN has slowed down, and the highest CCTI among them
  uint16_t peak_ccti = 0;
  // PFC at hosts: frames received, and how long they held classes back, summed over hosts and classes.
  uint64_t host_pfc_frames = 0;
  Duration host_pause_time = 0;

  // Of all switches.
  uint64_t flowlets = 0;
  uint64_t reroutes = 0;
  uint64_t flowlet_collisions = 0;
  lb::ResequencerTotals resequencer;

  ProbeResult probes;  // empty without path probes

  std::vector<ImbalanceSample> imbalance;  // by node, then time
  std::vector<LinkLoad> links;             // by LinkId
  uint64_t peak_queue_bytes = 0;           // of one egress queue
  uint64_t peak_buffer_bytes = 0;          // of one switch's shared pool

  // What failures did, only of runs with link events: when a packet was last lost by one, and when the last one arrived
  // that had been missing until it was sent again; payload of first copies received, by sample interval.
  Time last_loss = kNever;
  Time last_repair = kNever;
  std::vector<uint64_t> goodput;

  std::vector<PortPauses> pauses;    // by switch, then port
  std::vector<NodePause> timeline;   // every pause of every port, in the order of time
  std::vector<HeldMessage> held;     // by pauses, at all nodes; in no order
  std::optional<Deadlock> deadlock;  // the first, if there was one
  // The PFC watchdogs of all switches.
  uint64_t watchdog_storms = 0;
  uint64_t watchdog_restores = 0;
  uint64_t watchdog_drops = 0;              // packets
  std::vector<WatchdogIncident> incidents;  // ascending in time; the first few hundred of each switch
  // InfiniBand links only.
  std::vector<LaneUse> lanes;       // by VL
  std::vector<CreditStall> stalls;  // by node, port, VL
  HealingCounts healing;
  uint64_t credit_violations = 0;     // packets without credit, or to a full buffer: none, or heddle is wrong
  uint64_t control_frames = 0;        // PFC frames made by switches, flow-control packets made by any port
  uint64_t control_frames_ended = 0;  // and of those, the ones that arrived
  uint64_t ecn_eligible = 0;
  uint64_t ecn_marked = 0;
  uint64_t packet_hops = 0;  // packets × links crossed, flow-control packets of InfiniBand left out

  double wall_seconds = 0;
  unsigned threads = 0;
  uint64_t peak_rss_bytes = 0;
};

}  // namespace heddle::lab
