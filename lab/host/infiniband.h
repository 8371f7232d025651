// InfiniBand packets as the lab's hosts write and read them: a local route header, BTH and what follows it in RoCE too,
// payload as a length, padded to words of 4 bytes, ICRC and VCRC.
#pragma once

#include <cstdint>

#include "lab/engine/fabric_settings.h"
#include "lab/host/partitions.h"
#include "lab/host/roce.h"
#include "lab/subnet/tables.h"
#include "net/infiniband.h"
#include "net/packet.h"

namespace heddle::lab {

inline constexpr uint32_t kInfinibandHeaders = sizeof(net::Lrh) + sizeof(net::Bth);
inline constexpr uint32_t kInfinibandTrailer = net::kIcrcBytes + net::kVcrcBytes;
inline constexpr uint32_t kInfinibandDataOverhead = kInfinibandHeaders + kInfinibandTrailer;
inline constexpr uint32_t kInfinibandAckFrame = kInfinibandHeaders + sizeof(net::Aeth) + kInfinibandTrailer;
// A congestion notification is a BTH with BECN and nothing behind it, as Linux's hfi1 driver sends it (`return_cnp`).
inline constexpr uint32_t kInfinibandCnpFrame = kInfinibandHeaders + kInfinibandTrailer;
inline constexpr uint8_t kInfinibandCnp = 0x80;  // its opcode

// Bytes of a data packet beside its payload, and of an ACK, on the links that hosts have.
constexpr uint32_t data_overhead(LinkLayer layer) {
  return layer == LinkLayer::kInfiniband ? kInfinibandDataOverhead : kDataFrameOverhead;
}
constexpr uint32_t ack_frame(LinkLayer layer) {
  return layer == LinkLayer::kInfiniband ? kInfinibandAckFrame : kAckFrame;
}
// Bytes of a data packet as InfiniBand pads it.
constexpr uint32_t infiniband_data_frame(uint32_t payload) {
  return kInfinibandDataOverhead + (payload + 3U) / 4U * 4U;
}

inline const net::Lrh& lrh_of(const Packet* packet) { return *net::header_at<net::Lrh>(frame_of(packet), 0); }

// Writes one host's packets. Keeps references to the tables of its subnet.
class InfinibandWriter {
 public:
  InfinibandWriter(HostId host, const SubnetTables& tables, const PartitionTables* partitions = nullptr)
      : host_(host), tables_(tables), partitions_(partitions) {}

  // A host's LIDs differ in their lowest LMC bits, which follow from `fields.source_port` (it differs by queue pair, or
  // by packet): several paths.
  void write_data(Packet* packet, const RoceFields& fields, uint32_t payload) const;
  // `syndrome` and `msn` as in IBTA 9.3.5.
  void write_ack(Packet* packet, const RoceFields& fields, uint8_t syndrome, uint32_t msn) const;
  void write_cnp(Packet* packet, const RoceFields& fields) const;

  // The lane on which packets to that host leave.
  uint8_t lane_to(HostId destination) const { return tables_.host_vl(host_, tables_.sl(host_, destination)); }
  uint8_t level_to(HostId destination) const { return tables_.sl(host_, destination); }
  bool is_ours(uint16_t lid) const { return (lid >> tables_.lmc) == (tables_.host_lids[host_] >> tables_.lmc); }

 private:
  void write_headers(Packet* packet, const RoceFields& fields, uint32_t frame, uint32_t headers) const;

  HostId host_;
  const SubnetTables& tables_;
  const PartitionTables* partitions_;
};

}  // namespace heddle::lab
