#include "lab/host/infiniband.h"

#include "net/random.h"

namespace heddle::lab {

using net::header_at;

void InfinibandWriter::write_data(Packet* packet, const RoceFields& fields, uint32_t payload) const {
  write_headers(packet, fields, infiniband_data_frame(payload), kInfinibandHeaders);
  header_at<net::Bth>(frame_of(packet), sizeof(net::Lrh))->flags =
      static_cast<uint8_t>(((4 - payload % 4) % 4) << 4U);  // PadCnt
}

void InfinibandWriter::write_ack(Packet* packet, const RoceFields& fields, uint8_t syndrome, uint32_t msn) const {
  write_headers(packet, fields, kInfinibandAckFrame, kInfinibandHeaders + sizeof(net::Aeth));
  auto* aeth = header_at<net::Aeth>(frame_of(packet), kInfinibandHeaders);
  aeth->syndrome = syndrome;
  aeth->msn = msn & 0xffffffU;
}

void InfinibandWriter::write_cnp(Packet* packet, const RoceFields& fields) const {
  write_headers(packet, fields, kInfinibandCnpFrame, kInfinibandHeaders);
  auto* bth = header_at<net::Bth>(frame_of(packet), sizeof(net::Lrh));
  bth->opcode = kInfinibandCnp;
  bth->congestion = net::kBthBecn;
}

void InfinibandWriter::write_headers(Packet* packet, const RoceFields& fields, uint32_t frame, uint32_t headers) const {
  packet->data_off = 0;
  packet->data_len = static_cast<uint16_t>(headers);
  packet->pkt_len = frame;
  packet->ol_flags = 0;
  const uint8_t sl = tables_.sl(host_, fields.destination);
  const auto path = static_cast<unsigned>(mix64(fields.source_port) & ((1U << tables_.lmc) - 1));
  auto* lrh = header_at<net::Lrh>(frame_of(packet), 0);
  lrh->vl_version = static_cast<uint8_t>(tables_.host_vl(host_, sl) << 4U);
  lrh->sl_next = static_cast<uint8_t>(sl << 4U | net::kLnhBth);
  lrh->destination = static_cast<uint16_t>(tables_.host_lids[fields.destination] + path);
  lrh->length = static_cast<uint16_t>((frame - net::kVcrcBytes) / 4);
  lrh->source = tables_.host_lids[host_];
  auto* bth = header_at<net::Bth>(frame_of(packet), sizeof(net::Lrh));
  *bth = {};
  bth->opcode = static_cast<uint8_t>(fields.opcode);
  bth->pkey = partitions_ == nullptr ? net::kDefaultPartition : partitions_->key_between(host_, fields.destination);
  bth->dest_qp = fields.dest_qp;
  bth->ack_request = fields.ack_request ? net::kBthAckRequest : 0;
  bth->psn = fields.psn & 0xffffffU;
}

}  // namespace heddle::lab
