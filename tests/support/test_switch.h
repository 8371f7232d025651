// A small router around the real Pipeline, for packet-in/packet-out tests: what it is connected to, what came out, and
// what a router should have sent instead.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "dataplane/pipeline.h"
#include "tests/support/frames.h"
#include "tests/support/packets.h"

namespace heddle::support {

// Longest prefix match by looking at all of them.
class PrefixTable final : public dataplane::RouteLookup {
 public:
  void add4(uint32_t prefix, unsigned bits, dataplane::RouteId route) { of4_.push_back({prefix, bits, route}); }
  void add6(const Address6& prefix, unsigned bits, dataplane::RouteId route) { of6_.push_back({prefix, bits, route}); }

  void lookup4(const uint32_t* destinations, dataplane::RouteId* routes, unsigned count) const override;
  void lookup6(const dataplane::Ipv6Address* destinations, dataplane::RouteId* routes, unsigned count) const override;

 private:
  template <typename Address>
  struct Prefix {
    Address prefix;
    unsigned bits;
    dataplane::RouteId route;
  };
  std::vector<Prefix<uint32_t>> of4_;
  std::vector<Prefix<Address6>> of6_;
};

// Port 0 is where frames come in; it has MAC kRouterMac and the sub-interfaces 10 and 20.
inline constexpr PortId kInPort = 0;
inline constexpr PortId kPlainPort = 1;   // 10.2/16 and 2001:db8:2::/48 leave here, untagged
inline constexpr PortId kTaggedPort = 2;  // 10.3/16 and 2001:db8:3::/48, on VLAN 30
inline constexpr PortId kDeadPort = 3;    // 10.5/16 and 2001:db8:5::/48: its link is down
inline constexpr uint16_t kOutVlan = 30;
// Further prefixes: 10.4/16 and 2001:db8:4::/48 lead to a group without members, 10.6/16 to the dead and the plain
// port, 10.7/16 to the plain and the tagged port.

constexpr net::Mac port_mac(PortId port) { return {0x02, 0, 0, 0, 0x01, static_cast<uint8_t>(port)}; }
constexpr net::Mac neighbour_mac(PortId port) { return {0x02, 0, 0, 0, 0xbb, static_cast<uint8_t>(port)}; }

struct SwitchPlan {
  std::vector<dataplane::PortSettings> ports;
  lb::HashSettings hash;
  lb::ArsSettings ars;
  dataplane::BufferSettings buffer;
  SwitchPlan();
  lb::ResequencerSettings resequencer;
};

class TestSwitch {
 public:
  explicit TestSwitch(const SwitchPlan& plan = {}, std::vector<bool> mine = {},
                      dataplane::Handover* handover = nullptr);

  // One packet all the way. What leaves a port is in `sent`, what was dropped in `sink`.
  void pass(Packet* packet, Time now = kMicrosecond);
  // The same, stage by stage; `egress` takes all that may leave at `now`.
  unsigned ingress(std::vector<Packet*>& packets, Time now = kMicrosecond);
  std::vector<Packet*> egress(PortId port, Time now = kMicrosecond);

  // Schedulers of the group of two members (10.7.0.0/16) from now on.
  void schedule_by(const char* scheduler, const lb::SchedulerOverrides& overrides = {});

  dataplane::Pipeline& pipeline() { return pipeline_; }
  dataplane::PortStates& states() { return states_; }
  PrefixTable& prefixes() { return prefixes_; }
  const telemetry::PortCounters& counters(PortId port) const { return pipeline_.counters().ports[port]; }
  uint64_t drops(PortId port, DropReason reason) const {
    return counters(port).drops[static_cast<size_t>(reason)].get();
  }
  uint64_t all_drops() const;

  struct Sent {
    PortId port;
    Packet* packet;
  };
  std::vector<Sent> sent;
  RecordingSink sink;

 private:
  static dataplane::PipelineSettings settings_of(const SwitchPlan& plan, std::vector<bool> mine);

  PrefixTable prefixes_;
  dataplane::ForwardingTables tables_;
  dataplane::PortStates states_;
  dataplane::Pipeline pipeline_;
};

// Offset of the IP header behind any tags.
size_t ip_offset(const Bytes& frame);

// The frame that a router must send for `frame`: new addresses, tag or none, TTL less one, checksum worked out anew,
// all else as it came.
Bytes routed(const Bytes& frame, PortId out, std::optional<uint16_t> tci);

// ---------------------------------------------------------------------------------------------------------------------

inline void PrefixTable::lookup4(const uint32_t* destinations, dataplane::RouteId* routes, unsigned count) const {
  for (unsigned i = 0; i < count; ++i) {
    routes[i] = dataplane::kNoRoute;
    int longest = -1;
    for (const auto& entry : of4_) {
      const uint32_t differs = entry.bits == 0 ? 0 : (destinations[i] ^ entry.prefix) >> (32 - entry.bits);
      if (differs != 0 || static_cast<int>(entry.bits) <= longest) continue;
      longest = static_cast<int>(entry.bits);
      routes[i] = entry.route;
    }
  }
}

inline void PrefixTable::lookup6(const dataplane::Ipv6Address* destinations, dataplane::RouteId* routes,
                                 unsigned count) const {
  const auto matches = [](const Address6& a, const Address6& b, unsigned bits) {
    for (unsigned bit = 0; bit < bits; ++bit) {
      if (((a[bit / 8] ^ b[bit / 8]) & (0x80U >> (bit % 8))) != 0) return false;
    }
    return true;
  };
  for (unsigned i = 0; i < count; ++i) {
    routes[i] = dataplane::kNoRoute;
    int longest = -1;
    for (const auto& entry : of6_) {
      if (static_cast<int>(entry.bits) <= longest || !matches(destinations[i], entry.prefix, entry.bits)) continue;
      longest = static_cast<int>(entry.bits);
      routes[i] = entry.route;
    }
  }
}

inline SwitchPlan::SwitchPlan() : ports(4) {
  for (PortId port = 0; port < ports.size(); ++port) ports[port].ingress.macs = {port_mac(port)};
  ports[kInPort].ingress.vlans.set(10);
  ports[kInPort].ingress.vlans.set(20);
}

inline dataplane::PipelineSettings TestSwitch::settings_of(const SwitchPlan& plan, std::vector<bool> mine) {
  dataplane::PipelineSettings settings;
  settings.ports = plan.ports;
  settings.mine = std::move(mine);
  settings.hash = plan.hash;
  settings.ars = plan.ars;
  settings.buffer = plan.buffer;
  settings.resequencer = plan.resequencer;
  settings.paths = 3;
  return settings;
}

inline TestSwitch::TestSwitch(const SwitchPlan& plan, std::vector<bool> mine, dataplane::Handover* handover)
    : states_(plan.ports.size()), pipeline_(settings_of(plan, std::move(mine)), states_, sink, handover) {
  const auto next_hop = [](PortId port, uint16_t vlan, uint32_t counter) {
    return lb::NextHop{.rewrite = {.destination = neighbour_mac(port), .source = port_mac(port), .vlan_id = vlan},
                       .port = port,
                       .counter = counter};
  };
  const lb::NextHop plain = next_hop(kPlainPort, 0, 0);
  const lb::NextHop tagged = next_hop(kTaggedPort, kOutVlan, 1);
  const lb::NextHop dead = next_hop(kDeadPort, 0, 2);
  tables_.groups = {{{plain}, {}}, {{tagged}, {}}, {{}, {}}, {{dead}, {}}, {{dead, plain}, {}}, {{plain, tagged}, {}}};
  for (uint16_t group = 0; group < tables_.groups.size(); ++group) {
    prefixes_.add4(ip4(10, 2U + group, 0, 0), 16, group);
    prefixes_.add6(ip6(static_cast<uint16_t>(2 + group), 0), 48, group);
  }
  tables_.lookup = &prefixes_;
  states_.set(kDeadPort, false);
  pipeline_.use_tables(&tables_);
}

inline void TestSwitch::schedule_by(const char* scheduler, const lb::SchedulerOverrides& overrides) {
  lb::NextHopGroup& group = tables_.groups.at(5);
  group.scheduler = *lb::scheduler_named(scheduler);
  group.overrides = overrides.empty() ? nullptr : std::make_shared<const lb::SchedulerOverrides>(overrides);
  group.make_table();
  tables_.note_schedulers();
  pipeline_.use_tables(&tables_);
}

inline unsigned TestSwitch::ingress(std::vector<Packet*>& packets, Time now) {
  return pipeline_.ingress(kInPort, packets.data(), static_cast<unsigned>(packets.size()), now);
}

inline std::vector<Packet*> TestSwitch::egress(PortId port, Time now) {
  std::vector<Packet*> out;
  Packet* burst[kBurst];
  while (const unsigned n = pipeline_.egress(port, burst, kBurst, now)) out.insert(out.end(), burst, burst + n);
  return out;
}

inline void TestSwitch::pass(Packet* packet, Time now) {
  std::vector<Packet*> burst{packet};
  const unsigned kept = ingress(burst, now);
  pipeline_.forward(burst.data(), kept, now);
  for (PortId port = 0; port < pipeline_.port_count(); ++port) {
    for (Packet* out : egress(port, now)) sent.push_back({port, out});
  }
}

inline uint64_t TestSwitch::all_drops() const {
  uint64_t sum = 0;
  for (const telemetry::PortCounters& port : pipeline_.counters().ports) {
    for (const auto& drop : port.drops) sum += drop.get();
  }
  return sum;
}

inline size_t ip_offset(const Bytes& frame) {
  size_t offset = 12;
  while (get16(frame, offset) == net::kTypeVlan || get16(frame, offset) == net::kTypeServiceVlan) offset += 4;
  return offset + 2;
}

inline Bytes routed(const Bytes& frame, PortId out, std::optional<uint16_t> tci) {
  Bytes ip(frame.begin() + static_cast<std::ptrdiff_t>(ip_offset(frame)), frame.end());
  const bool v4 = ip[0] >> 4U == 4;
  if (v4) {
    ip[8]--;
    ip[10] = ip[11] = 0;
    const uint16_t checksum = internet_checksum(std::span(ip).first((ip[0] & 15U) * size_t{4}));
    ip[10] = static_cast<uint8_t>(checksum >> 8U);
    ip[11] = static_cast<uint8_t>(checksum);
  } else {
    ip[7]--;
  }
  const uint16_t type = v4 ? net::kTypeIpv4 : net::kTypeIpv6;
  const Ethernet header{neighbour_mac(out), port_mac(out), tci ? net::kTypeVlan : type};
  return ethernet(header, tci ? vlan_tag(*tci, type, ip) : ip);
}

}  // namespace heddle::support
