// What a run of the lab is made of, beside its topology and workload: plain data, filled from a scenario.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/egress_queue.h"
#include "flowctl/dcqcn.h"
#include "flowctl/ib_congestion.h"
#include "flowctl/link_credits.h"
#include "lab/engine/flow_control_settings.h"
#include "lab/topology/link_state.h"
#include "lab/topology/topology.h"
#include "lb/ars.h"
#include "lb/resequencer.h"
#include "lb/scheduler.h"
#include "net/time.h"

namespace heddle::lab {

// Path probes of the switches (telemetry/path_prober.h), and weights that follow from them.
struct PathDelaySettings {
  bool enabled = false;
  double rate = 0.001;                // of a link, that probes of all switches and their answers may take
  Duration base = 10 * kMicrosecond;  // telemetry::PathDelaySettings::base
  bool trace = false;                 // keep every change of shares
};

enum class LinkLayer : uint8_t { kEthernet, kInfiniband };

// A partition of an InfiniBand subnet (IBTA 10.9).
struct Partition {
  std::string name;
  uint16_t key = 0;  // 1–0x7ffe
  std::vector<HostId> full;
  std::vector<HostId> limited;  // talk to full members only
};

// How adaptive routing chooses among the ports of a group.
enum class AdaptiveMode : uint8_t {
  kFree,     // each packet may take any
  kBounded,  // a flow keeps its port until it has paused for the ageing time
};
struct AdaptiveRouting {
  AdaptiveMode mode = AdaptiveMode::kFree;
  Duration ageing_time = 30 * kMicrosecond;
  uint16_t levels = 0xffff;  // bit = service level that is routed so; the others keep to the forwarding table
};

// What a switch does about a dead port before there are new tables.
enum class SelfHealing : uint8_t {
  kNone,      // packets of forwarding tables are dropped
  kFailover,  // they take another port of the group
  kNotify,    // and who has no other left tells its neighbours, which do so
};

// InfiniBand links: credits, and where the forwarding tables come from.
struct InfinibandSettings {
  flowctl::CreditSettings credits;
  std::string routing = "shortest-path";  // who computes the tables: one of subnet_engines() (lab/subnet/manager.h)
  std::string tables;                     // a directory of dumps to take instead; "" = none
  uint8_t lmc = 0;                        // 0–7: a host has 2^lmc addresses, each with a path of its own
  std::vector<Partition> partitions;      // none: everybody talks to everybody
  flowctl::FecnSettings fecn;             // in force where hosts heed it (HostSettings::ccti)
  AdaptiveRouting adaptive;               // with a scheduler other than ecmp
  SelfHealing self_healing = SelfHealing::kNotify;
  uint32_t management_buffer = 4096;  // bytes of each switch port's egress buffer of VL15
  uint8_t notice_repeats = 3;         // of what neighbours were told, one after each interval
  Duration notice_interval = 10 * kMicrosecond;

  bool is_plain_shortest_path() const { return routing == "shortest-path" && tables.empty(); }
};

// The switches.
struct SwitchSettings {
  lb::Scheduler scheduler;
  FlowControlSettings flow_control;  // of Ethernet links
  InfinibandSettings infiniband;     // of InfiniBand links; the scheduler is ecmp for one port by destination
  std::optional<lb::Scheduler> control_scheduler;  // of ACK, NAK and CNP; nothing: as data
  lb::ArsSettings ars;
  PathDelaySettings path_delay;
  lb::ResequencerSettings resequencer;                        // of leaves, before the ports of hosts
  uint64_t queue_limit = dataplane::EgressQueue::kUnlimited;  // bytes of one egress queue; frames beyond are dropped
  // How long after a link went down or came up the routing protocol has put new routes everywhere. Until then only the
  // switches at its ends know.
  Duration convergence = 10 * kMillisecond;
  Duration sample_interval = 100 * kMicrosecond;  // of uplink loads
  bool in_time_order = false;                     // see LabSwitch::Settings; for tests
};

// What a receiving NIC does with a packet that is not the next one.
enum class OutOfOrder : uint8_t {
  kGoBackN,            // dropped, NAK; the sender repeats everything from the gap
  kSelectiveRepeat,    // kept, NAK with the gap; the sender repeats what is missing
  kInOrderPlacement,   // kept until the gap closes (at most `reorder_bytes`), without a NAK: losses show by time-out
  kAnyOrderPlacement,  // written where it belongs at once; losses show by time-out only
};

// How the UDP source port of a queue pair's packets is chosen.
enum class Entropy : uint8_t {
  kPerQp,      // from both queue pair numbers, as Linux does
  kPerPacket,  // host spraying over `spray_ports` ports
  kNone        // all queue pairs use one port
};

// Which messages share queue pairs.
enum class Connections : uint8_t {
  kPerPair,    // all from one host to another, one after the other, as a training job's
  kPerMessage  // none: every message has its own, as a storage client's flows in other simulators
};

struct HostSettings {
  LinkLayer link_layer = LinkLayer::kEthernet;  // of the whole fabric
  uint32_t mtu = 4096;                          // payload bytes of a packet, 256–4096
  Connections connections = Connections::kPerPair;
  uint32_t qps_per_connection = 1;
  Entropy entropy = Entropy::kPerQp;
  uint32_t spray_ports = 256;  // a power of two, 2–16384
  OutOfOrder out_of_order = OutOfOrder::kGoBackN;
  uint64_t reorder_bytes = 1'000'000;  // per queue pair, with in-order placement; packets beyond are dropped
  uint32_t ack_every = 1;              // packets per ACK; the last packet of a message is always acknowledged
  uint64_t window_bytes = 0;           // most unacknowledged bytes of a queue pair; 0 = line rate, no window
  Duration retransmit_timeout = 4 * kMillisecond;  // restarts with every ACK
  bool start_jitter = true;                        // of messages released by time alone: up to one packet time
  // Congestion control, of Ethernet links and of InfiniBand's; nothing: every queue pair sends at line rate.
  std::optional<flowctl::DcqcnSet> dcqcn{};
  std::optional<flowctl::CctiSettings> ccti{};
  Rate static_rate;                  // of each queue pair, at most (IBTA 9.11); unlimited: the port's
  uint64_t burst_bytes = 0;          // payload that a queue pair sends back to back; 0 = one packet
  bool static_rate_of_path = false;  // that of the slowest link on the way, as path records have it
  uint8_t ack_dscp = 26;             // 0–63: by default ACKs share the class of data
};

struct RunSettings {
  uint64_t seed = 1;
  unsigned threads = 0;        // 0 = all
  Duration window = 0;         // 0 = the lookahead; smaller for tests, never larger
  Time until = 0;              // 0 = until all is done; packets and timers from then on are not looked at
  Duration trigger_delay = 0;  // 0 = the smallest link delay
  Time warm_up = 0;            // goodput in steady state counts from then on; 0 = it is not measured
  bool timeline = false;       // the result has every stretch in which a lane waited for credit

  unsigned thread_count() const { return threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency()); }
};

// Where to write the packets that pass a port, in both directions (pcapng, nanosecond stamps).
struct CaptureSettings {
  PortRef port;
  std::string file;
};

// How far a run has come, for a person who waits.
struct Progress {
  Time now = 0;
  uint64_t messages_done = 0;
  uint64_t messages = 0;
  uint64_t packet_hops = 0;
};

struct FabricSettings {
  SwitchSettings switches;
  HostSettings hosts;
  RunSettings run;
  std::vector<LinkEvent> events;  // ascending
  std::vector<CaptureSettings> captures;
  // Asked between windows, at most every 100 ms of wall time; false ends the run there and then.
  std::function<bool(const Progress&)> on_progress;
};

}  // namespace heddle::lab
