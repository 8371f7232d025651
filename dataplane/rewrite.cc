#include "dataplane/rewrite.h"

namespace heddle::dataplane {
namespace {

// Zeros behind a frame that is too short, as far as its buffer has room. In the lab a payload is a mere length.
void pad(Packet* packet) {
  if (packet->pkt_len >= kShortestFrame || packet->data_len != packet->pkt_len) return;
  const uint32_t missing = kShortestFrame - packet->pkt_len;
  if (rte_pktmbuf_tailroom(packet) < missing) return;
  std::memset(frame_of(packet) + packet->pkt_len, 0, missing);
  packet->data_len = kShortestFrame;
  packet->pkt_len = kShortestFrame;
}

}  // namespace

void forget_stripped_tag(Packet* packet) {
  packet->ol_flags &= ~static_cast<uint64_t>(RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
  pad(packet);
}

void rewrite_any(Packet* packet, const EthernetRewrite& next) {
  PacketMeta& meta = meta_of(packet);
  const auto header_bytes = static_cast<int>(ethernet_bytes(next));
  const int shift = static_cast<int>(meta.l3_offset) - header_bytes;  // < 0: the header grows into the headroom
  packet->data_off = static_cast<uint16_t>(packet->data_off + shift);
  packet->data_len = static_cast<uint16_t>(packet->data_len - shift);
  packet->pkt_len = static_cast<uint32_t>(static_cast<int>(packet->pkt_len) - shift);
  meta.l3_offset = static_cast<uint16_t>(header_bytes);
  if (meta.l4_offset != 0) meta.l4_offset = static_cast<uint16_t>(meta.l4_offset - shift);

  uint8_t* frame = frame_of(packet);
  uint8_t* ip = frame + header_bytes;
  const bool is_ipv4 = meta.l3 == L3::kIpv4;
  if (is_ipv4) {
    decrement_ttl(ip);
  } else {
    ip[7]--;  // hop limit
  }
  auto* ethernet = net::header_at<net::EthernetHeader>(frame, 0);
  ethernet->destination = next.destination;
  ethernet->source = next.source;
  ethernet->ether_type = is_ipv4 ? net::kTypeIpv4 : net::kTypeIpv6;
  if (next.vlan_id == 0) return pad(packet);
  auto* tag = net::header_at<net::VlanTag>(frame, sizeof(net::EthernetHeader));
  tag->tci = static_cast<uint16_t>((meta.traffic_class << 13U) | next.vlan_id);
  tag->ether_type = ethernet->ether_type;
  ethernet->ether_type = net::kTypeVlan;
}

}  // namespace heddle::dataplane
