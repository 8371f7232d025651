// Packet in, packet out: addresses, ether types, VLAN tags in and out, traffic classes.
#include <gtest/gtest.h>

#include "tests/support/rows.h"

namespace heddle::support {
namespace {

constexpr PacketKind kIp = PacketKind::kIp;
constexpr uint16_t kServiceTag = net::kTypeServiceVlan;

constexpr uint16_t tci(unsigned pcp, unsigned vid, unsigned dei = 0) {
  return static_cast<uint16_t>((pcp << 13U) | (dei << 12U) | vid);
}

// Leaves on VLAN 30 with its class, 3 unless said otherwise, as PCP.
constexpr Verdict to_vlan(uint8_t traffic_class = 3) {
  return {.port = kTaggedPort, .traffic_class = traffic_class, .tci = tci(traffic_class, kOutVlan)};
}
constexpr Verdict in_class(uint8_t traffic_class) { return {.traffic_class = traffic_class}; }

const Ipv4 kViaVlan{.destination = ip4(10, 3, 0, 9)};
const Ipv6 kViaVlan6{.destination = ip6(3, 9)};

// -- destination and ether type ---------------------------------------------------------------------------------------

void sixteen_macs(SwitchPlan& plan) {
  auto& macs = plan.ports[kInPort].ingress.macs;
  for (uint8_t i = 1; i < 16; ++i) macs.push_back({0x02, 0, 0, 0, 0x02, i});
}
void any_mac(SwitchPlan& plan) {
  plan.ports[kInPort].ingress.macs.clear();
  plan.ports[kInPort].ingress.any_mac = true;
}
void no_mac(SwitchPlan& plan) { plan.ports[kInPort].ingress.macs.clear(); }

constexpr net::Mac link_local(uint8_t last) { return {0x01, 0x80, 0xc2, 0x00, 0x00, last}; }
constexpr net::Mac kStranger{0x02, 0, 0, 0, 0x99, 0x99};
constexpr net::Mac kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

Bytes pause_frame(const net::Mac& to) {
  return ethernet({.destination = to, .type = net::kTypeMacControl}, join({{0x01, 0x01, 0x00, 0x08}, Bytes(42)}));
}

const Row kAddresses[] = {
    {"second of several router MACs",
     [] {
       return sent_to({0x02, 0, 0, 0, 0x02, 1}, roce4());
     },
     forwarded(), sixteen_macs},
    {"sixteenth of several router MACs",
     [] {
       return sent_to({0x02, 0, 0, 0, 0x02, 15}, roce4());
     },
     forwarded(), sixteen_macs},
    {"first of several router MACs", [] { return roce4(); }, forwarded(), sixteen_macs},
    {"any MAC: a stranger's", [] { return sent_to(kStranger, roce4()); }, forwarded(), any_mac},
    {"any MAC: broadcast", [] { return sent_to(kBroadcast, roce4()); }, forwarded(), any_mac},
    {"any MAC: 01:80:c2:00:00:10 is no link-local address", [] { return sent_to(link_local(0x10), roce4()); },
     forwarded(), any_mac},
    {"any MAC: 01:80:c2:00:01:00 is no link-local address",
     [] {
       return sent_to({1, 0x80, 0xc2, 0, 1, 0}, roce4());
     },
     forwarded(), any_mac},
    {"a stranger's MAC", [] { return sent_to(kStranger, roce4()); }, dropped(DropReason::kNotOurMac)},
    {"none of several MACs",
     [] {
       return sent_to({0x02, 0, 0, 0, 0x02, 16}, roce4());
     },
     dropped(DropReason::kNotOurMac), sixteen_macs},
    {"a MAC that differs in its first byte",
     [] {
       return sent_to({0x06, 0, 0, 0, 1, 0}, roce4());
     },
     dropped(DropReason::kNotOurMac)},
    {"a MAC that differs in its last byte",
     [] {
       return sent_to({0x02, 0, 0, 0, 1, 1}, roce4());
     },
     dropped(DropReason::kNotOurMac)},
    {"broadcast MAC", [] { return sent_to(kBroadcast, roce4()); }, dropped(DropReason::kNotOurMac)},
    {"IPv4 multicast MAC",
     [] {
       return sent_to({0x01, 0, 0x5e, 0, 0, 5}, roce4());
     },
     dropped(DropReason::kNotOurMac)},
    {"port without any MAC", [] { return roce4(); }, dropped(DropReason::kNotOurMac), no_mac},
    {"01:80:c2:00:00:10 is not ours", [] { return sent_to(link_local(0x10), roce4()); },
     dropped(DropReason::kNotOurMac)},
    {"PFC to 01:80:c2:00:00:01", [] { return pause_frame(link_local(1)); }, dropped(DropReason::kMacControl)},
    {"PFC to our MAC", [] { return pause_frame(kRouterMac); }, dropped(DropReason::kMacControl)},
    {"PFC to a stranger's MAC", [] { return pause_frame(kStranger); }, dropped(DropReason::kMacControl)},
    {"PFC where any MAC is accepted", [] { return pause_frame(kStranger); }, dropped(DropReason::kMacControl), any_mac},
    {"MAC control frame without content", [] { return ethernet({.type = net::kTypeMacControl}, {}); },
     dropped(DropReason::kMacControl)},
    {"spanning tree", [] { return ethernet({.destination = link_local(0), .type = 0x0026}, Bytes(46)); },
     dropped(DropReason::kLinkLocalControl)},
    {"LACP", [] { return ethernet({.destination = link_local(2), .type = 0x8809}, Bytes(46)); },
     dropped(DropReason::kLinkLocalControl)},
    {"LLDP", [] { return ethernet({.destination = link_local(14), .type = 0x88cc}, Bytes(46)); },
     dropped(DropReason::kLinkLocalControl)},
    {"IP to 01:80:c2:00:00:0f where any MAC is accepted", [] { return sent_to(link_local(15), roce4()); },
     dropped(DropReason::kLinkLocalControl), any_mac},
    {"ARP", [] { return ethernet({.type = 0x0806}, Bytes(46)); }, dropped(DropReason::kNotIp)},
    {"LLDP to our MAC", [] { return ethernet({.type = 0x88cc}, Bytes(46)); }, dropped(DropReason::kNotIp)},
    {"802.3 length instead of a type", [] { return ethernet({.type = 46}, Bytes(46)); }, dropped(DropReason::kNotIp)},
    {"RoCE version 1", [] { return ethernet({.type = 0x8915}, Bytes(60)); }, dropped(DropReason::kNotIp)},
    {"MPLS", [] { return ethernet({.type = 0x8847}, Bytes(46)); }, dropped(DropReason::kNotIp)},
    {"MAC control inside a tag", [] { return tagged(10, pause_frame(kRouterMac)); }, dropped(DropReason::kNotIp)},
};

// -- VLAN tags --------------------------------------------------------------------------------------------------------

void tagged_only(SwitchPlan& plan) { plan.ports[kInPort].ingress.untagged = false; }
void no_vlan(SwitchPlan& plan) { plan.ports[kInPort].ingress.vlans.reset(); }
void vlan_4095(SwitchPlan& plan) { plan.ports[kInPort].ingress.vlans.set(4095); }

const Row kTags[] = {
    {"VLAN 10 in, untagged out", [] { return tagged(tci(0, 10), roce4()); }, forwarded()},
    {"VLAN 20 in, untagged out", [] { return tagged(tci(0, 20), roce4()); }, forwarded()},
    {"VLAN 10 in, IPv6", [] { return tagged(tci(0, 10), roce6()); }, forwarded()},
    {"service tag type 0x88a8 names the sub-interface too", [] { return tagged(tci(0, 10), roce4(), kServiceTag); },
     forwarded()},
    {"drop eligible bit is no part of the id", [] { return tagged(tci(7, 10, 1), roce4()); }, forwarded()},
    {"VLAN 10 in where only tagged frames are accepted", [] { return tagged(tci(0, 10), roce4()); }, forwarded(),
     tagged_only},
    {"largest id", [] { return tagged(tci(0, 4095), roce4()); }, forwarded(), vlan_4095},
    {"unknown VLAN", [] { return tagged(tci(0, 11), roce4()); }, dropped(DropReason::kVlanUnknown)},
    {"unknown VLAN, IPv6", [] { return tagged(tci(0, 11), roce6()); }, dropped(DropReason::kVlanUnknown)},
    {"VLAN 4095 unless configured", [] { return tagged(tci(0, 4095), roce4()); }, dropped(DropReason::kVlanUnknown)},
    {"VLAN 10 at a port without sub-interfaces", [] { return tagged(tci(0, 10), roce4()); },
     dropped(DropReason::kVlanUnknown), no_vlan},
    {"untagged where only tagged frames are accepted", [] { return roce4(); }, dropped(DropReason::kVlanUnknown),
     tagged_only},
    {"priority tag counts as untagged", [] { return tagged(tci(5, 0), roce4()); }, forwarded()},
    {"priority tag with nothing in it", [] { return tagged(0, roce4()); }, forwarded()},
    {"priority tag where only tagged frames are accepted", [] { return tagged(tci(5, 0), roce4()); },
     dropped(DropReason::kVlanUnknown), tagged_only},
    {"priority tag under the sub-interface's", [] { return tagged(tci(1, 10), tagged(tci(5, 0), roce4())); },
     forwarded()},
    {"sub-interface's tag under a priority tag", [] { return tagged(tci(5, 0), tagged(tci(1, 10), roce4())); },
     forwarded()},
    {"unknown VLAN under a priority tag", [] { return tagged(tci(5, 0), tagged(tci(1, 11), roce4())); },
     dropped(DropReason::kVlanUnknown)},
    {"two priority tags", [] { return tagged(tci(5, 0), tagged(tci(1, 0), roce4())); }, forwarded()},
    {"two sub-interfaces nested", [] { return tagged(tci(0, 10), tagged(tci(0, 20), roce4())); },
     dropped(DropReason::kVlanUnknown)},
    {"the same sub-interface nested", [] { return tagged(tci(0, 10), tagged(tci(0, 10), roce4())); },
     dropped(DropReason::kVlanUnknown)},
    {"service tag over customer tag", [] { return tagged(tci(0, 10), tagged(tci(0, 20), roce4()), kServiceTag); },
     dropped(DropReason::kVlanUnknown)},
    {"three tags", [] { return tagged(tci(0, 10), tagged(0, tagged(0, roce4()))); }, dropped(DropReason::kNotIp)},
    {"ARP in VLAN 10", [] { return tagged(tci(0, 10), ethernet({.type = 0x0806}, Bytes(46))); },
     dropped(DropReason::kNotIp)},
    {"frame ends in the tag", [] { return ethernet({.type = net::kTypeVlan}, Bytes(3)); },
     dropped(DropReason::kTooShort)},
    {"frame ends in the second tag",
     [] {
       return ethernet({.type = net::kTypeVlan}, Bytes{0, 10, 0x81, 0x00, 0, 0, 8});
     },
     dropped(DropReason::kTooShort)},
    {"Ethernet header split over segments", [] { return roce4(); }, dropped(DropReason::kHeaderSplit), nullptr, {}, 13},
    {"tag split over segments", [] { return tagged(10, roce4()); }, dropped(DropReason::kHeaderSplit), nullptr, {}, 17},
    // the kernel took the tag out of the frame (af_packet)
    {"stripped tag of VLAN 10", [] { return roce4(); }, forwarded(), tagged_only, tci(0, 10)},
    {"stripped tag of VLAN 10, IPv6", [] { return roce6(); }, forwarded(), tagged_only, tci(0, 10)},
    {"stripped tag of an unknown VLAN", [] { return roce4(); }, dropped(DropReason::kVlanUnknown), nullptr, tci(0, 11)},
    {"stripped priority tag", [] { return roce4(); }, forwarded(), nullptr, tci(5, 0)},
    {"stripped tag over a priority tag in the frame", [] { return tagged(tci(5, 0), roce4()); }, forwarded(), nullptr,
     tci(0, 10)},
    {"stripped tag over another sub-interface's", [] { return tagged(tci(0, 20), roce4()); },
     dropped(DropReason::kVlanUnknown), nullptr, tci(0, 10)},
    {"stripped tag over two in the frame", [] { return tagged(0, tagged(0, roce4())); }, forwarded(), nullptr,
     tci(0, 10)},
    // what leaves
    {"untagged in, VLAN 30 out", [] { return roce4(kViaVlan); }, to_vlan()},
    {"untagged in, VLAN 30 out, IPv6", [] { return roce6(kViaVlan6); }, to_vlan()},
    {"VLAN 10 in, VLAN 30 out: the PCP is the class, not the old one",
     [] { return tagged(tci(7, 10), roce4(kViaVlan)); }, to_vlan()},
    {"service tag in, VLAN 30 out as customer tag", [] { return tagged(tci(7, 10), roce4(kViaVlan), kServiceTag); },
     to_vlan()},
    {"priority tag in, VLAN 30 out", [] { return tagged(tci(5, 0), roce4(kViaVlan)); }, to_vlan()},
    {"two tags in, one out", [] { return tagged(tci(1, 10), tagged(tci(5, 0), roce4(kViaVlan))); }, to_vlan()},
    {"stripped tag in, VLAN 30 out", [] { return roce4(kViaVlan); }, to_vlan(), nullptr, tci(5, 10)},
    {"stripped tag in, untagged out", [] { return roce4(); }, forwarded(), nullptr, tci(5, 10)},
    {"class 0 leaves with PCP 0", [] { return roce4({.tos = 0, .destination = ip4(10, 3, 0, 9)}); }, to_vlan(0)},
    {"headers in the first segment, VLAN 30 out", [] { return roce4(kViaVlan); }, to_vlan(), nullptr, {}, 60},
};

// -- MACs of sub-interfaces -------------------------------------------------------------------------------------------

constexpr net::Mac kMacOf10{0x02, 0, 0, 0, 0x10, 0};
constexpr net::Mac kSecondMacOf10{0x02, 0, 0, 0, 0x10, 1};
constexpr net::Mac kMacOf20{0x02, 0, 0, 0, 0x20, 0};

void macs_of_vlans(SwitchPlan& plan) {
  plan.ports[kInPort].ingress.vlan_macs = {{10, kMacOf10}, {10, kSecondMacOf10}, {20, kMacOf20}};
}
void one_mac_of_two_vlans(SwitchPlan& plan) {
  plan.ports[kInPort].ingress.vlan_macs = {{10, kMacOf10}, {20, kMacOf10}};
}
void macs_of_vlans_and_any(SwitchPlan& plan) {
  macs_of_vlans(plan);
  any_mac(plan);
}
Bytes on_vlan(uint16_t vlan, const net::Mac& mac) { return sent_to(mac, tagged(tci(0, vlan), roce4())); }

const Row kVlanMacs[] = {
    {"VLAN 10's MAC on VLAN 10", [] { return on_vlan(10, kMacOf10); }, forwarded(), macs_of_vlans},
    {"VLAN 10's second MAC on VLAN 10", [] { return on_vlan(10, kSecondMacOf10); }, forwarded(), macs_of_vlans},
    {"VLAN 20's MAC on VLAN 20", [] { return on_vlan(20, kMacOf20); }, forwarded(), macs_of_vlans},
    {"VLAN 10's MAC on VLAN 20", [] { return on_vlan(20, kMacOf10); }, dropped(DropReason::kNotOurMac), macs_of_vlans},
    {"VLAN 20's MAC on VLAN 10", [] { return on_vlan(10, kMacOf20); }, dropped(DropReason::kNotOurMac), macs_of_vlans},
    {"VLAN 10's MAC untagged", [] { return sent_to(kMacOf10, roce4()); }, dropped(DropReason::kNotOurMac),
     macs_of_vlans},
    {"VLAN 10's MAC in a priority tag", [] { return on_vlan(0, kMacOf10); }, dropped(DropReason::kNotOurMac),
     macs_of_vlans},
    {"VLAN 10's MAC on a VLAN that does not exist", [] { return on_vlan(11, kMacOf10); },
     dropped(DropReason::kVlanUnknown), macs_of_vlans},
    {"a MAC of no VLAN on VLAN 10", [] { return on_vlan(10, kStranger); }, dropped(DropReason::kNotOurMac),
     macs_of_vlans},
    {"the port's MAC on VLAN 10", [] { return on_vlan(10, kRouterMac); }, forwarded(), macs_of_vlans},
    {"the port's MAC untagged", [] { return roce4(); }, forwarded(), macs_of_vlans},
    {"a MAC that two VLANs share, on the second", [] { return on_vlan(20, kMacOf10); }, forwarded(),
     one_mac_of_two_vlans},
    {"a MAC that two VLANs share, untagged", [] { return sent_to(kMacOf10, roce4()); }, dropped(DropReason::kNotOurMac),
     one_mac_of_two_vlans},
    {"VLAN 10's MAC on VLAN 20 where any MAC is accepted", [] { return on_vlan(20, kMacOf10); }, forwarded(),
     macs_of_vlans_and_any},
    {"stripped tag of VLAN 10, its MAC", [] { return sent_to(kMacOf10, roce4()); }, forwarded(), macs_of_vlans,
     tci(0, 10)},
    {"stripped tag of VLAN 20, VLAN 10's MAC", [] { return sent_to(kMacOf10, roce4()); },
     dropped(DropReason::kNotOurMac), macs_of_vlans, tci(0, 20)},
    {"VLAN 10's MAC on VLAN 20, IPv6", [] { return sent_to(kMacOf10, tagged(tci(0, 20), roce6())); },
     dropped(DropReason::kNotOurMac), macs_of_vlans},
};

// -- traffic class ----------------------------------------------------------------------------------------------------

void trust_pcp(SwitchPlan& plan) {
  plan.ports[kInPort].ingress.trust = dataplane::Trust::kPcp;
  plan.ports[kInPort].ingress.default_class = 2;
}
void trust_mapped_pcp(SwitchPlan& plan) {
  trust_pcp(plan);
  plan.ports[kInPort].ingress.class_of_pcp = {7, 6, 5, 4, 3, 2, 1, 0};
}
void trust_none(SwitchPlan& plan) {
  plan.ports[kInPort].ingress.trust = dataplane::Trust::kNone;
  plan.ports[kInPort].ingress.default_class = 5;
}
void dscp_63_to_class_7(SwitchPlan& plan) { plan.ports[kInPort].ingress.class_of_dscp[63] = 7; }

const Row kClasses[] = {
    {"DSCP 26 is class 3", [] { return roce4({.tos = 26U << 2U}); }, in_class(3)},
    {"DSCP 48 is class 6", [] { return roce4({.tos = 48U << 2U}); }, in_class(6)},
    {"DSCP 0 is class 0", [] { return roce4({.tos = 0}); }, in_class(0)},
    {"DSCP 27 is class 0", [] { return roce4({.tos = 27U << 2U}); }, in_class(0)},
    {"ECN bits are no part of the DSCP", [] { return roce4({.tos = (48U << 2U) | 1U}); }, in_class(6)},
    {"DSCP 63 as configured", [] { return roce4({.tos = 0xff}); }, in_class(7), dscp_63_to_class_7},
    {"DSCP 63 as configured, IPv6", [] { return roce6({.traffic_class = 0xff}); }, in_class(7), dscp_63_to_class_7},
    {"DSCP is trusted, PCP is not", [] { return tagged(tci(6, 10), roce4()); }, in_class(3)},
    {"trust PCP: 5", [] { return tagged(tci(5, 10), roce4()); }, in_class(5), trust_pcp},
    {"trust PCP: 0 of a tagged frame", [] { return tagged(tci(0, 10), roce4()); }, in_class(0), trust_pcp},
    {"trust PCP: the drop eligible bit is no part of it", [] { return tagged(tci(5, 10, 1), roce4()); }, in_class(5),
     trust_pcp},
    {"trust PCP: mapped", [] { return tagged(tci(5, 10), roce4()); }, in_class(2), trust_mapped_pcp},
    {"trust PCP: priority tag", [] { return tagged(tci(4, 0), roce4()); }, in_class(4), trust_pcp},
    {"trust PCP: priority tag of PCP 0 is no untagged frame", [] { return tagged(0, roce4()); }, in_class(0),
     trust_pcp},
    {"trust PCP: priority tag of PCP 0, IPv6", [] { return tagged(0, roce6()); }, in_class(0), trust_pcp},
    {"trust PCP: priority tag of PCP 0, mapped", [] { return tagged(0, roce4()); }, in_class(7), trust_mapped_pcp},
    {"trust PCP: stripped priority tag of PCP 0", [] { return roce4(); }, in_class(0), trust_pcp, tci(0, 0)},
    {"trust PCP: untagged gets the default class, IPv6", [] { return roce6(); }, in_class(2), trust_pcp},
    {"trust PCP: stripped tag", [] { return roce4(); }, in_class(4), trust_pcp, tci(4, 10)},
    {"trust PCP: outer tag counts", [] { return tagged(tci(4, 10), tagged(tci(6, 0), roce4())); }, in_class(4),
     trust_pcp},
    {"trust PCP: untagged gets the default class", [] { return roce4(); }, in_class(2), trust_pcp},
    {"trust PCP leaves with the class as PCP", [] { return tagged(tci(5, 10), roce4(kViaVlan)); }, to_vlan(5),
     trust_pcp},
    {"trust nothing: default class for all", [] { return tagged(tci(7, 10), roce4()); }, in_class(5), trust_none},
    {"a fragment has its class like any other",
     [] { return frame4({.tos = 48U << 2U, .fragment = 100}, pattern(64)); },
     {.kind = kIp, .traffic_class = 6}},
};

INSTANTIATE_TEST_SUITE_P(Addresses, Rows, testing::ValuesIn(kAddresses), row_name);
INSTANTIATE_TEST_SUITE_P(Tags, Rows, testing::ValuesIn(kTags), row_name);
INSTANTIATE_TEST_SUITE_P(VlanMacs, Rows, testing::ValuesIn(kVlanMacs), row_name);
INSTANTIATE_TEST_SUITE_P(Classes, Rows, testing::ValuesIn(kClasses), row_name);

}  // namespace
}  // namespace heddle::support
