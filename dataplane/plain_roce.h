// The short cut through accept, parse, classify and check_routable for the frame that nearly all traffic of an AI
// fabric consists of: to our MAC, untagged, IPv4 without options, not a fragment, RoCEv2.
//
// It knows one answer, "all is well". Whatever it does not recognise, good or bad, takes the stages one by one, which
// alone know reasons to drop; a packet that it does recognise would have come out of them the same.
#pragma once

#include <array>
#include <cstdint>

#include "dataplane/classify.h"
#include "dataplane/route.h"
#include "net/checksum.h"
#include "net/headers.h"
#include "net/packet.h"

namespace heddle::dataplane {

// What the short cut needs to know of a port.
class PlainRoce {
 public:
  // What parse and classify would have found, by DSCP. Ports that classify alike share one: the lab has thousands.
  using Facts = std::array<HeaderFacts, 64>;
  static Facts facts_of(const IngressPort& settings);

  // Keeps `facts`, which are those of `settings`.
  PlainRoce(const IngressPort& settings, const Facts* facts);

  // Whether the short cut may be taken.
  bool matches(const Packet* packet, const uint8_t* frame) const;
  // All but the port.
  const HeaderFacts& facts(const uint8_t* frame) const { return (*facts_)[frame[kToIp + 1] >> 2U]; }
  // What all such packets have in common.
  static constexpr HeaderFacts shape();

 private:
  static constexpr uint32_t kToIp = sizeof(net::EthernetHeader);
  static constexpr uint32_t kToUdp = kToIp + sizeof(net::Ipv4Header);
  static constexpr uint32_t kToBth = kToUdp + sizeof(net::UdpHeader);
  static constexpr uint32_t kToPayload = kToBth + sizeof(net::Bth);
  static constexpr uint32_t kSmallestIp = kToPayload - kToIp + net::kIcrcBytes;

  // The port's first MAC as a frame's first eight bytes with the source's share shifted out; 1 is no frame's.
  uint64_t mac_ = 1;
  const Facts* facts_;
};

// ---------------------------------------------------------------------------------------------------------------------

constexpr HeaderFacts PlainRoce::shape() {
  HeaderFacts facts;
  facts.l3_offset = kToIp;
  facts.l4_offset = kToUdp;
  facts.l3 = L3::kIpv4;
  facts.kind = PacketKind::kRoce;
  facts.protocol = net::kProtocolUdp;
  return facts;
}

inline PlainRoce::Facts PlainRoce::facts_of(const IngressPort& settings) {
  Facts facts;
  facts.fill(shape());
  for (size_t dscp = 0; dscp < facts.size(); ++dscp) {  // without a tag there is no PCP
    facts[dscp].traffic_class = settings.trust == Trust::kDscp ? settings.class_of_dscp[dscp] : settings.default_class;
  }
  return facts;
}

inline PlainRoce::PlainRoce(const IngressPort& settings, const Facts* facts) : facts_(facts) {
  if (!settings.untagged || settings.macs.empty()) return;
  const uint64_t mac = bits_of(settings.macs[0]);
  if (!is_link_local(mac)) mac_ = mac << 16U;
}

// Sixteen comparisons, each almost always true.
inline bool PlainRoce::matches(const Packet* packet, const uint8_t* frame) const {
  if (packet->data_len < kToPayload) return false;
  const uint8_t* ip = frame + kToIp;
  const uint8_t* udp = frame + kToUdp;
  const uint32_t ip_bytes = __builtin_bswap16(net::load<uint16_t>(ip + 2));
  const auto udp_bytes = static_cast<uint16_t>(ip_bytes - sizeof(net::Ipv4Header));
  return net::load<uint64_t>(frame) << 16U == mac_ &&
         (net::load<uint32_t>(frame + 12) & 0x00ffffff) == 0x450008 &&  // type 0x0800, version 4, IHL 5, any TOS
         (net::load<uint32_t>(ip + 6) & 0xff00ff3f) == 0x11000000 &&    // no fragment, any TTL, UDP
         ip[8] > 1 &&                                                   // TTL
         net::load<uint16_t>(udp + 2) == __builtin_bswap16(net::kRocePort) &&
         (frame[kToBth + 1] & net::kBthVersionMask) == 0 &&  // IBTA 9.2.6
         ip_bytes >= kSmallestIp && ip_bytes + kToIp <= packet->pkt_len &&
         net::load<uint16_t>(udp + 4) == __builtin_bswap16(udp_bytes) &&
         (packet->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0 &&
         (kIpv4Unicast[ip[12]] & kIpv4Unicast[ip[16]]) != 0 &&  //
         net::ipv4_header_is_intact(ip);
}

}  // namespace heddle::dataplane
