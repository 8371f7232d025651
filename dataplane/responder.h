// What a router port says for itself: who asks for the MAC address of its IP addresses gets it (ARP, RFC 826; neighbour
// solicitation, RFC 4861 7.2.4), and who pings them an answer (RFC 792, RFC 4443 4.2).
//
// Nothing is kept of whom it has heard: an answer is made of the request, in place, and goes back to where that came
// from. Requests that are not for the port, or not as the RFCs have them, are not touched.
#pragma once

#include "dataplane/classify.h"
#include "net/neighbour.h"
#include "net/packet.h"

namespace heddle::dataplane {

// Turns a request that came in at `port` into its answer, ready to leave by the same port: class and header facts are
// set, a tag goes back as it came. False: it is none, and frame and facts are for the other stages.
//
// `packet` is as received, of any content, but for PacketMeta::in_port; what `port` refuses to whomever it is addressed
// (other VLANs, other MACs) gets no answer.
bool respond(Packet* packet, const IngressPort& port);

// Whether it is worth asking: what is most of the traffic is not.
inline bool may_be_request(const Packet* packet) {
  constexpr uint32_t kEnough =
      sizeof(net::EthernetHeader) + 10;  // to the protocol of IPv4, past the next header of IPv6
  if (packet->data_len < kEnough) return false;
  const uint8_t* frame = frame_of(packet);
  if ((frame[0] & 1U) != 0) return true;  // to all: ARP; to a group: solicitations
  switch (net::BigEndian<uint16_t>(*net::header_at<net::Be16>(frame, 12))) {
    case net::kTypeIpv4:
      return frame[sizeof(net::EthernetHeader) + 9] == net::kProtocolIcmp;
    case net::kTypeIpv6:
      return frame[sizeof(net::EthernetHeader) + 6] == net::kProtocolIcmpv6;
    default:
      return true;  // ARP to us alone, tags
  }
}

}  // namespace heddle::dataplane
