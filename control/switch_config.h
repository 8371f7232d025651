// The configuration of one switch: what `heddle run CONFIG.yaml` starts from, checked completely before anything
// starts. docs/configuration.md is the user's page of the same; the two must agree.
//
//   const SwitchConfig config = load_switch_config("leaf.yaml", {"ports.up0.rate=25G"});
//
// Loading touches no device, interface or socket: what only the running system can tell (link speed, the device's own
// MAC, the driver's limits) is left open here and decided at start.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/address.h"
#include "dataplane/classify.h"
#include "dataplane/egress_queue.h"
#include "dataplane/shared_buffer.h"
#include "flowctl/ecn.h"
#include "flowctl/pfc_watchdog.h"
#include "lb/ars.h"
#include "lb/flow_hash.h"
#include "lb/next_hop_group.h"
#include "lb/resequencer.h"
#include "lb/scheduler.h"
#include "net/packet.h"
#include "net/rate.h"

namespace heddle::control {

enum class MemoryMode : uint8_t { kAnonymous, kHugepages };
enum class IdleMode : uint8_t { kPoll, kSleep };

// Whom to believe about a port's link: the DPDK driver, the kernel interface of the same link, or nobody.
enum class LinkStateSource : uint8_t { kAuto, kEthdev, kNetlink, kAlwaysUp };

// Who sends and obeys a port's PFC frames: the switch, the NIC, nobody.
enum class PfcBackend : uint8_t { kNone, kFrames, kEthdev };

// One traffic class of one port: its egress queue, and in the shared buffer its ingress priority group.
struct QueueConfig {
  bool strict = false;
  uint16_t weight = 1;            // 1–100, among the classes that are not strict
  std::optional<uint64_t> limit;  // bytes; nothing: the port's queue_limit
  // With a shared buffer:
  bool lossless = false;
  uint64_t reserved = 0;             // bytes of the priority group that nobody else may have
  dataplane::Threshold shared;       // lossless: XOFF of the priority group; lossy: limit of the egress queue
  uint64_t xon_offset = 0;           // bytes below XOFF at which the sender may go on
  std::optional<uint64_t> headroom;  // bytes; nothing: what the port needs (needed_headroom)
  bool force = false;                // start with less headroom than that
  flowctl::WredCurve ecn;            // marking
  flowctl::WredCurve wred;           // early drops

  bool operator==(const QueueConfig&) const = default;
};
using QueueConfigs = std::array<QueueConfig, kTrafficClasses>;

// The packet memory that all ports share; without, queues are limited one by one.
struct BufferConfig {
  bool on = false;
  uint64_t bytes = 0;
  uint32_t packets = 0;  // at most
  std::string place;
};

// A sub-interface: frames tagged with this VLAN id are accepted.
struct VlanConfig {
  uint16_t id = 0;             // 1–4094
  std::vector<net::Mac> macs;  // its router MACs; empty: the port's
};

struct PortConfig {
  std::string name;
  std::string device;                     // PCI address or vdev, with its arguments, as DPDK takes it
  std::string driver;                     // "pci", or a vdev's driver: "net_af_packet" of net_af_packet0
  std::string netdev;                     // kernel interface to follow for counters and link state; empty: none known
  bool any_mac = false;                   // take every frame as ours (replay)
  std::vector<net::Mac> macs;             // router MACs; empty: the device's own
  std::vector<net::IpAddress> addresses;  // it answers ARP, neighbour solicitations and pings for
  std::optional<Rate> rate;               // nothing: the link speed that the device reports
  LinkStateSource link_state = LinkStateSource::kAuto;
  uint16_t mtu = 1500;  // longest IP packet, 576–9600
  unsigned worker = 0;  // index of the worker that owns it
  dataplane::Trust trust = dataplane::Trust::kDscp;
  uint8_t default_class = 0;
  uint16_t rx_ring = 512;  // descriptors; the driver may round
  uint16_t tx_ring = 64;
  uint64_t queue_limit = 1'000'000;  // bytes per egress queue whose class sets no limit
  bool untagged = true;
  std::vector<VlanConfig> vlans;
  bool resequence = false;  // hosts are behind it that want packets in order
  QueueConfigs queues;      // those of the classes, with what the port says otherwise
  PfcBackend pfc = PfcBackend::kNone;
  uint16_t pfc_quanta = 0xffff;                       // asked for each time, 2–65535
  Duration pfc_reaction = 0;                          // from XOFF until the peer is silent, wire times aside
  std::optional<flowctl::WatchdogSettings> watchdog;  // of the lossless classes; nothing: none
  std::string place;                                  // "leaf.yaml:12", for errors found at start

  // Longest frame without FCS: the Ethernet header and up to two VLAN tags around an IP packet of `mtu` bytes.
  uint32_t frame_bytes() const { return mtu + 14U + 8U; }
  // The longest that may leave: one tag where there are VLANs, and then also for what leaves without.
  uint32_t sent_frame_bytes() const { return mtu + 14U + (vlans.empty() ? 0U : 4U); }
};

struct NextHopConfig {
  PortId port = 0;  // index into SwitchConfig::ports
  net::Mac mac{};
  uint16_t vlan = 0;  // 0: untagged
  uint16_t weight = 1;
  bool alternate = false;
};

// What was found and what is accepted, for an error's line.
struct Refusal {
  std::string found;
  std::string accepted;
};

// A frame must be able to leave by the next hop's port with its tag, and an answer to come back. Nothing: it can.
std::optional<Refusal> refused_vlan(const NextHopConfig& hop, const PortConfig& port);

struct GroupConfig {
  std::string name;       // of a next hop written in a route: name_in_place
  bool in_place = false;  // made from a route's `via: {port, mac}`
  lb::Scheduler scheduler;
  lb::SchedulerOverrides overrides;
  std::vector<NextHopConfig> members;  // 1–64
  std::string place;
};

struct RouteConfig {
  config::IpPrefix prefix;
  uint32_t group = 0;  // index into SwitchConfig::groups
  std::string place;
};

// A group whose paths are probed, and the far switches that it leads to.
struct PathTargetConfig {
  std::string name;
  uint32_t group = 0;                     // index into SwitchConfig::groups; two members and more
  std::vector<net::IpAddress> addresses;  // of the family of this switch's own
  std::string place;
};

// Path probes (telemetry/path_prober.h).
struct PathDelayConfig {
  net::IpAddress address;  // of this switch; unspecified: probes mean nothing to it
  double rate = 0.001;     // part of a link that probes of all switches and their answers may take
  Duration base = 10 * kMicrosecond;
  Duration timeout = 100 * kMillisecond;
  uint8_t dscp = 26;
  unsigned hops = 4;
  std::vector<PathTargetConfig> targets;  // each group once

  bool is_on() const { return !address.is_unspecified(); }
};

struct SwitchConfig {
  std::string name = "heddle";
  uint64_t seed = 0;
  MemoryMode memory = MemoryMode::kAnonymous;
  unsigned workers = 1;
  std::vector<unsigned> worker_cpus;  // one per worker, or empty: chosen at start
  IdleMode idle = IdleMode::kPoll;
  std::string control_socket;        // empty: none
  uint32_t max_routes = 16'384;      // per address family
  uint32_t buffer_packets = 16'384;  // what all egress queues together may hold

  std::vector<PortConfig> ports;    // 1–64
  std::vector<GroupConfig> groups;  // those named in `groups:` first
  std::vector<RouteConfig> routes;  // no prefix twice

  std::array<uint8_t, 64> class_of_dscp = dataplane::IngressPort::default_dscp_map();
  std::array<uint8_t, 8> class_of_pcp{0, 1, 2, 3, 4, 5, 6, 7};
  QueueConfigs queues;  // of ports that say nothing else
  BufferConfig buffer;
  std::optional<flowctl::WatchdogSettings> watchdog;  // of ports with PFC that say nothing else
  lb::HashSettings hash;                              // its seed is `seed`
  lb::ArsSettings ars;
  lb::ResequencerSettings resequencer;
  PathDelayConfig path_delay;

  std::vector<std::string> warnings;  // "leaf.yaml:12: …": legal, but hardly what is meant

  // Bytes that the egress queue of a class of a port may hold: a buffer sets its own limits.
  uint64_t queue_limit(const PortConfig& port, unsigned traffic_class) const {
    return port.queues[traffic_class].limit.value_or(buffer.on ? dataplane::EgressQueue::kUnlimited : port.queue_limit);
  }
};

// What still arrives after XOFF at a port of that rate, which is limited (flowctl::required_headroom): the rest of the
// burst in hand, the frame its peer has begun, the frame of ours that the pause waits for, and what the peer sends
// until both have reacted; where the NIC does PFC, the burst alone, whatever the rate. Throws bad input if a lossless
// class has less and does not say `force`, or if all reservations together exceed the buffer. `rates` are the ports';
// unlimited = not known yet.
uint64_t needed_headroom(const PortConfig& port, Rate rate);
void check_buffer(const SwitchConfig& config, const std::vector<Rate>& rates);
// The pool's settings with those rates.
dataplane::BufferSettings buffer_settings(const SwitchConfig& config, const std::vector<Rate>& rates);
// Bit = lossless class of the port.
uint8_t lossless_classes(const PortConfig& port);

// What the group of a next hop written in a route is called: PORT/MAC, or PORT@VLAN/MAC with a tag. Neither a port's
// name nor a group's has '@' or '/', so that each next hop has a name of its own.
std::string name_in_place(const PortConfig& port, const net::Mac& mac, uint16_t vlan);

inline constexpr size_t kMaxPorts = 64;
inline constexpr size_t kMaxWorkers = 64;
inline constexpr size_t kMaxMacsOfPort = 16;
inline constexpr size_t kMaxGroups = 16'384;
inline constexpr size_t kMaxRoutes = 1'000'000;  // per address family

// Reads and checks a configuration; `overlays` are `section.key=value` texts. Throws bad input: one line with the
// place, what was found and what is accepted.
SwitchConfig load_switch_config(const std::string& path, const std::vector<std::string>& overlays = {});
// The same from text; `name` stands for the file in errors.
SwitchConfig load_switch_config_text(std::string_view text, const std::string& name,
                                     const std::vector<std::string>& overlays = {});

// The effective configuration, defaults filled in. It is a configuration itself: loading it gives the same switch.
nlohmann::ordered_json to_json(const SwitchConfig& config);

// The seed of a switch that names none: the same for the same name, unrelated for others.
uint64_t seed_of_name(std::string_view name);

}  // namespace heddle::control
