#include "lab/host/roce.h"

#include <cstring>

#include "net/checksum.h"

namespace heddle::lab {

using net::header_at;

RoceWriter::RoceWriter(HostId host, NodeId first_switch, RoceTos tos) : tos_(tos) {
  uint8_t* frame = blank_.data();
  *header_at<net::EthernetHeader>(frame, 0) = {mac_of(first_switch), mac_of(host), net::kTypeIpv4};
  auto* ip = header_at<net::Ipv4Header>(frame, 14);
  ip->version_ihl = 0x45;
  ip->fragment = 0x4000;  // DF
  ip->ttl = 64;
  ip->protocol = net::kProtocolUdp;
  ip->source = address_of(host);
  header_at<net::UdpHeader>(frame, 34)->destination_port = net::kRocePort;
  header_at<net::Bth>(frame, 42)->pkey = 0xffff;
}

void RoceWriter::write_data(Packet* packet, const RoceFields& fields, uint32_t payload) const {
  write_headers(packet, fields, tos_.data, {kDataFrameOverhead + payload, kRoceHeaders});
  header_at<net::Bth>(frame_of(packet), 42)->flags = static_cast<uint8_t>(((4 - payload % 4) % 4) << 4U);  // PadCnt
}

void RoceWriter::write_ack(Packet* packet, const RoceFields& fields, uint8_t syndrome, uint32_t msn) const {
  write_headers(packet, fields, tos_.ack, {kAckFrame, kRoceHeaders + sizeof(net::Aeth)});
  auto* aeth = header_at<net::Aeth>(frame_of(packet), kRoceHeaders);
  aeth->syndrome = syndrome;
  aeth->msn = msn & 0xffffffU;
}

void RoceWriter::write_cnp(Packet* packet, const RoceFields& fields) const {
  RoceFields cnp = fields;
  cnp.opcode = net::Opcode::kCnp;
  cnp.psn = 0;
  write_headers(packet, cnp, kCnpDscp << 2U, {kCnpFrame, kRoceHeaders + kCnpReserved});
  header_at<net::Bth>(frame_of(packet), 42)->congestion = net::kBthBecn;
  std::memset(frame_of(packet) + kRoceHeaders, 0, kCnpReserved);
}

void RoceWriter::write_headers(Packet* packet, const RoceFields& fields, uint8_t tos, Sizes sizes) const {
  packet->data_off = 0;
  packet->data_len = static_cast<uint16_t>(sizes.headers);
  packet->pkt_len = sizes.frame;
  packet->ol_flags = 0;
  uint8_t* frame = frame_of(packet);
  std::memcpy(frame, blank_.data(), kRoceHeaders);
  auto* ip = header_at<net::Ipv4Header>(frame, 14);
  ip->tos = tos;
  ip->total_length = static_cast<uint16_t>(sizes.frame - 14);
  ip->destination = address_of(fields.destination);
  const uint16_t checksum = static_cast<uint16_t>(~net::ipv4_header_sum(ip, sizeof(net::Ipv4Header)));
  std::memcpy(frame + 14 + 10, &checksum, sizeof checksum);
  auto* udp = header_at<net::UdpHeader>(frame, 34);
  udp->source_port = fields.source_port;
  udp->length = static_cast<uint16_t>(sizes.frame - 34);
  auto* bth = header_at<net::Bth>(frame, 42);
  bth->opcode = static_cast<uint8_t>(fields.opcode);
  bth->dest_qp = fields.dest_qp;
  bth->ack_request = fields.ack_request ? net::kBthAckRequest : 0;
  bth->psn = fields.psn & 0xffffffU;
}

}  // namespace heddle::lab
