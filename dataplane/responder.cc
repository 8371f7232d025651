#include "dataplane/responder.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "dataplane/parse.h"
#include "dataplane/route.h"
#include "net/checksum.h"
#include "net/ip_address.h"
#include "net/neighbour.h"

namespace heddle::dataplane {
namespace {

constexpr uint8_t kOwnTtl = 64;  // RFC 1700

using net::header_at;

net::EthernetHeader& ethernet_of(Packet* packet) { return *header_at<net::EthernetHeader>(frame_of(packet), 0); }

bool is_group(const net::Mac& mac) { return (mac[0] & 1U) != 0; }

// The address that the port has on the VLAN, for a neighbour to send to.
net::Mac own_mac(const IngressPort& port, unsigned vlan) {
  for (const IngressPort::VlanMac& of : port.vlan_macs) {
    if (of.vlan == vlan) return of.mac;
  }
  return port.macs.front();
}

bool has_address(const IngressPort& port, net::IpFamily family, const uint8_t* address) {
  return std::any_of(port.addresses.begin(), port.addresses.end(), [&](const net::IpAddress& own) {
    return own.family == family && std::memcmp(own.bytes.data(), address, own.size()) == 0;
  });
}

// Whether the sub-interface is there, and the frame for it: to one of its MACs, or to a group.
bool is_accepted(const uint8_t* frame, const IngressPort& port, unsigned vlan) {
  if (vlan == 0 ? !port.untagged : !port.vlans[vlan]) return false;
  return (frame[0] & 1U) != 0 || is_mac_of_vlan(destination_mac(frame), vlan, port);
}

// Back to whoever sent it; its own tag stays. A tag that the driver took out goes back in, so that it leaves as it
// came.
void address_back(Packet* packet, const net::Mac& from) {
  if ((packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0) {
    const uint16_t tci = packet->vlan_tci;
    packet->ol_flags &= ~static_cast<uint64_t>(RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
    uint8_t* old = frame_of(packet);
    uint8_t* frame = reinterpret_cast<uint8_t*>(rte_pktmbuf_prepend(packet, sizeof(net::VlanTag)));
    std::memmove(frame, old, 2 * sizeof(net::Mac));
    header_at<net::EthernetHeader>(frame, 0)->ether_type = net::kTypeVlan;
    header_at<net::VlanTag>(frame, sizeof(net::EthernetHeader))->tci = tci;  // its type is the frame's, already there
    PacketMeta& meta = meta_of(packet);
    meta.l3_offset = static_cast<uint16_t>(meta.l3_offset + sizeof(net::VlanTag));
    if (meta.l4_offset != 0) meta.l4_offset = static_cast<uint16_t>(meta.l4_offset + sizeof(net::VlanTag));
  }
  net::EthernetHeader& ethernet = ethernet_of(packet);
  ethernet.destination = ethernet.source;
  ethernet.source = from;
}

bool answer_arp(Packet* packet, const IngressPort& port) {
  PacketMeta& meta = meta_of(packet);
  const uint32_t offset = meta.l3_offset;
  if (packet->data_len < offset + sizeof(net::ArpPacket)) return false;
  auto* arp = header_at<net::ArpPacket>(frame_of(packet), offset);
  if (arp->hardware_type != 1 || arp->protocol_type != net::kTypeIpv4 || arp->hardware_bytes != sizeof(net::Mac) ||
      arp->protocol_bytes != sizeof arp->target || arp->operation != net::kArpRequest || is_group(arp->sender_mac) ||
      !has_address(port, net::IpFamily::kIpv4, arp->target.data())) {
    return false;
  }
  const net::Mac own = own_mac(port, meta.vlan_tci & 0xfffU);
  arp->operation = net::kArpReply;
  const std::array<uint8_t, 4> asked = arp->target;
  arp->target_mac = arp->sender_mac;
  arp->target = arp->sender;
  arp->sender_mac = own;
  arp->sender = asked;
  address_back(packet, own);
  return true;
}

// As it lies: of addresses, length, protocol and message; 0xffff if its checksum is right (RFC 8200 8.1).
uint16_t icmpv6_sum(const uint8_t* ip, uint16_t bytes) {
  const uint16_t rest[2] = {__builtin_bswap16(bytes), __builtin_bswap16(net::kProtocolIcmpv6)};
  return net::ones_sum(ip + sizeof(net::Ipv6Header), bytes,
                       net::ones_sum(rest, sizeof rest, net::ones_sum(ip + 8, 32)));
}

// RFC 4861 7.1.1, what a solicitation must be; the options are not needed.
bool is_solicitation_for(const Packet* packet, const IngressPort& port, uint32_t offset) {
  const uint8_t* frame = frame_of(packet);
  const auto* ip = header_at<net::Ipv6Header>(frame, offset);
  const uint16_t bytes = ip->payload_length;
  const uint32_t message_at = offset + sizeof(net::Ipv6Header);
  if (ip->hop_limit != net::kNeighbourHopLimit || bytes < sizeof(net::NeighbourMessage) ||
      packet->data_len < message_at + bytes) {
    return false;
  }
  const auto* message = header_at<net::NeighbourMessage>(frame, message_at);
  return message->icmp.type == net::kNeighbourSolicitation && message->icmp.code == 0 &&
         has_address(port, net::IpFamily::kIpv6, message->target.data()) && icmpv6_sum(frame + offset, bytes) == 0xffff;
}

// RFC 4861 7.2.4. Who has no address yet asks whether the address is free (RFC 4862 5.4): all nodes hear that it is
// not.
bool answer_solicitation(Packet* packet, const IngressPort& port) {
  PacketMeta& meta = meta_of(packet);
  if (!is_solicitation_for(packet, port, meta.l3_offset)) return false;
  const auto ip_bytes =
      static_cast<uint32_t>(sizeof(net::Ipv6Header) + sizeof(net::NeighbourMessage) + sizeof(net::LinkAddressOption));
  const uint32_t wanted = meta.l3_offset + ip_bytes;
  if (packet->nb_segs != 1) return false;
  if (packet->data_len < wanted &&
      rte_pktmbuf_append(packet, static_cast<uint16_t>(wanted - packet->data_len)) == nullptr)
    return false;
  const net::Mac own = own_mac(port, meta.vlan_tci & 0xfffU);
  uint8_t* frame = frame_of(packet);
  auto* ip = header_at<net::Ipv6Header>(frame, meta.l3_offset);
  auto* message = header_at<net::NeighbourMessage>(frame, meta.l3_offset + sizeof(net::Ipv6Header));
  const bool nobody = ip->source == std::array<uint8_t, 16>{};
  ip->payload_length = static_cast<uint16_t>(ip_bytes - sizeof(net::Ipv6Header));
  ip->destination = nobody ? std::array<uint8_t, 16>{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1} : ip->source;
  ip->source = message->target;
  message->icmp = {.type = net::kNeighbourAdvertisement, .code = 0, .checksum = 0};
  message->flags = net::kAdvertisesRouter | net::kAdvertisesOverride | (nobody ? 0 : net::kAdvertisesSolicited);
  *header_at<net::LinkAddressOption>(frame, wanted - sizeof(net::LinkAddressOption)) = {net::kTargetLinkAddress, 1,
                                                                                        own};
  const auto sum = static_cast<uint16_t>(~icmpv6_sum(frame + meta.l3_offset, ip->payload_length));
  message->icmp.checksum = __builtin_bswap16(sum);
  rte_pktmbuf_trim(packet, static_cast<uint16_t>(packet->data_len - wanted));
  address_back(packet, own);
  if (nobody) ethernet_of(packet).destination = {0x33, 0x33, 0, 0, 0, 1};  // RFC 2464 7
  return true;
}

// One byte of the message changes, its type: RFC 1624.
void set_type(net::IcmpHeader* icmp, uint8_t type) {
  const auto word = net::load<uint16_t>(icmp);
  icmp->type = type;
  const uint16_t sum = net::update_checksum(net::load<uint16_t>(&icmp->checksum), word, net::load<uint16_t>(icmp));
  icmp->checksum = __builtin_bswap16(sum);
}

bool answer_echo4(Packet* packet, const IngressPort& port) {
  const PacketMeta& meta = meta_of(packet);
  uint8_t* frame = frame_of(packet);
  auto* ip = header_at<net::Ipv4Header>(frame, meta.l3_offset);
  const uint32_t header_bytes = (ip->version_ihl & 0x0fU) * 4U;
  if (packet->data_len < meta.l3_offset + header_bytes + sizeof(net::IcmpHeader) ||
      ip->total_length < header_bytes + 8 || (ip->fragment & (net::kMoreFragments | net::kFragmentOffsetMask)) != 0) {
    return false;
  }
  auto* icmp = header_at<net::IcmpHeader>(frame, meta.l3_offset + header_bytes);
  if (icmp->type != net::kEchoRequest || icmp->code != 0) return false;
  set_type(icmp, net::kEchoReply);
  std::swap(ip->source, ip->destination);
  ip->ttl = kOwnTtl;
  ip->checksum = 0;
  const auto sum = static_cast<uint16_t>(~net::ipv4_header_sum(ip, header_bytes));
  ip->checksum = __builtin_bswap16(sum);
  address_back(packet, own_mac(port, meta.vlan_tci & 0xfffU));
  return true;
}

bool answer_echo6(Packet* packet, const IngressPort& port) {
  const PacketMeta& meta = meta_of(packet);
  uint8_t* frame = frame_of(packet);
  auto* ip = header_at<net::Ipv6Header>(frame, meta.l3_offset);
  const uint32_t icmp_at = meta.l3_offset + sizeof(net::Ipv6Header);
  if (packet->data_len < icmp_at + sizeof(net::IcmpHeader) || ip->payload_length < 8) return false;
  auto* icmp = header_at<net::IcmpHeader>(frame, icmp_at);
  if (icmp->type != net::kEchoRequest6 || icmp->code != 0) return false;
  set_type(icmp, net::kEchoReply6);
  std::swap(ip->source, ip->destination);
  ip->hop_limit = kOwnTtl;
  address_back(packet, own_mac(port, meta.vlan_tci & 0xfffU));
  return true;
}

// An address that an answer may go to: a station's, not a group's (RFC 1122 3.2.2.6, RFC 4443 2.4).
bool is_station(const uint8_t* ip, L3 l3) { return l3 == L3::kIpv4 ? kIpv4Unicast[ip[12]] : ip[8] != 0xff; }
bool is_unspecified6(const uint8_t* ip) {
  return std::all_of(ip + 8, ip + 24, [](uint8_t byte) { return byte == 0; });
}

bool answer_ip(Packet* packet, const IngressPort& port) {
  PacketMeta& meta = meta_of(packet);
  const uint8_t* ip = frame_of(packet) + meta.l3_offset;
  const net::IpFamily family = meta.l3 == L3::kIpv4 ? net::IpFamily::kIpv4 : net::IpFamily::kIpv6;
  if (meta.protocol != (meta.l3 == L3::kIpv4 ? net::kProtocolIcmp : net::kProtocolIcmpv6)) return false;
  if (meta.l3 == L3::kIpv6 && ip[6] != net::kProtocolIcmpv6) return false;  // behind extension headers
  if (!is_station(ip, meta.l3)) return false;
  if (meta.l3 == L3::kIpv6 && answer_solicitation(packet, port)) return true;
  if (is_group(ethernet_of(packet).destination)) return false;
  if (meta.l3 == L3::kIpv6 && is_unspecified6(ip)) return false;
  if (!has_address(port, family, ip + net::layout_of(family).destination)) return false;
  return meta.l3 == L3::kIpv4 ? answer_echo4(packet, port) : answer_echo6(packet, port);
}

}  // namespace

bool respond(Packet* packet, const IngressPort& port) {
  uint8_t* frame = frame_of(packet);
  if (packet->data_len < sizeof(net::EthernetHeader)) return false;
  if (is_group(ethernet_of(packet).source) || is_link_local(destination_mac(frame))) return false;
  PacketMeta& meta = meta_of(packet);
  const PortId in = meta.in_port;
  static_cast<HeaderFacts&>(meta) = {};
  meta.in_port = in;
  const bool stripped = (packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
  const DropReason parsed =
      parse(frame, packet->data_len, packet->pkt_len, stripped ? packet->vlan_tci : uint16_t{0}, meta);
  if (parsed != DropReason::kNone && parsed != DropReason::kNotIp) return false;
  if (!is_accepted(frame, port, meta.vlan_tci & 0xfffU)) return false;
  if (stripped && rte_pktmbuf_headroom(packet) < sizeof(net::VlanTag)) return false;
  if (parsed == DropReason::kNotIp) {
    const auto type = net::load<uint16_t>(frame + meta.l3_offset - 2);
    if (type != __builtin_bswap16(net::kTypeArp) || !answer_arp(packet, port)) return false;
  } else if (!answer_ip(packet, port)) {
    return false;
  }
  meta.traffic_class = traffic_class_of(frame_of(packet), port, meta);
  meta.out_port = in;
  return true;
}

}  // namespace heddle::dataplane
