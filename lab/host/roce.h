// RoCEv2 packets as the lab's hosts write and read them: real headers, payload as a length.
#pragma once

#include <cstdint>

#include "lab/topology/topology.h"
#include "lab/workload/workload.h"
#include "net/headers.h"
#include "net/packet.h"

namespace heddle::lab {

// Headers of a data packet up to the payload, and of an acknowledgement: Ethernet, IPv4, UDP, BTH (and AETH).
inline constexpr uint32_t kRoceHeaders = 14 + 20 + 8 + 12;
inline constexpr uint32_t kDataFrameOverhead = kRoceHeaders + net::kIcrcBytes;
inline constexpr uint32_t kAckFrame = kRoceHeaders + sizeof(net::Aeth) + net::kIcrcBytes;
// Of a congestion notification: 16 reserved bytes behind the BTH (IBTA A17.9.3).
inline constexpr uint32_t kCnpReserved = 16;
inline constexpr uint32_t kCnpFrame = kRoceHeaders + kCnpReserved + net::kIcrcBytes;

// DSCPs as NICs and switches ship them: data AF31, congestion notifications CS6.
inline constexpr uint8_t kDataDscp = 26;
inline constexpr uint8_t kCnpDscp = 48;

// Addresses of the lab: host h is 10.0.0.1 + h; nodes have one MAC each, 02:00 and the node number.
inline constexpr uint32_t kFirstHostAddress = 0x0a000001;
constexpr uint32_t address_of(HostId host) { return kFirstHostAddress + host; }
constexpr net::Mac mac_of(NodeId node) {
  return {0x02,
          0x00,
          static_cast<uint8_t>(node >> 24U),
          static_cast<uint8_t>(node >> 16U),
          static_cast<uint8_t>(node >> 8U),
          static_cast<uint8_t>(node)};
}

// UDP source port of a queue pair as Linux computes it (rdma_flow_label_to_udp_sport of rdma_calc_flow_label).
constexpr uint16_t source_port_of(uint32_t local_qp, uint32_t remote_qp) {
  uint64_t v = uint64_t{local_qp} * remote_qp;
  v ^= v >> 20U;
  v ^= v >> 40U;
  const auto label = static_cast<uint32_t>(v & 0xfffff);
  return static_cast<uint16_t>(0xc000U | ((label & 0x3fffU) ^ ((label & 0xfc000U) >> 14U)));
}

// What differs between packets of one host.
struct RoceFields {
  HostId destination = 0;
  uint16_t source_port = 0;
  net::Opcode opcode = net::Opcode::kRcSendOnly;
  uint32_t dest_qp = 0;
  uint32_t psn = 0;  // 24 bits
  bool ack_request = false;
};

// The IPv4 TOS field (DSCP 6, ECN 2) of one host's packets.
struct RoceTos {
  uint8_t data = kDataDscp << 2U;
  uint8_t ack = kDataDscp << 2U;
};

// Writes one host's packets: the constant part of the headers is made once.
class RoceWriter {
 public:
  RoceWriter(HostId host, NodeId first_switch, RoceTos tos = {});

  void write_data(Packet* packet, const RoceFields& fields, uint32_t payload) const;
  // `syndrome` and `msn` as in IBTA 9.3.5.
  void write_ack(Packet* packet, const RoceFields& fields, uint8_t syndrome, uint32_t msn) const;
  // A congestion notification for the queue pair `dest_qp`: BECN set, PSN 0.
  void write_cnp(Packet* packet, const RoceFields& fields) const;

 private:
  struct Sizes {
    uint32_t frame;
    uint32_t headers;  // of those, what is in the packet's data
  };
  void write_headers(Packet* packet, const RoceFields& fields, uint8_t tos, Sizes sizes) const;

  RoceTos tos_;
  std::array<uint8_t, kRoceHeaders> blank_{};
};

inline constexpr uint8_t kAethAck = 0x1f;               // ACK, no credit limit (IBTA 9.7.5.2.4)
inline constexpr uint8_t kAethNakSequenceError = 0x60;  // IBTA 9.7.5.2.8

inline const net::Bth& bth_of(const Packet* packet) { return *net::header_at<net::Bth>(frame_of(packet), 42); }
inline const net::Aeth& aeth_of(const Packet* packet) {
  return *net::header_at<net::Aeth>(frame_of(packet), kRoceHeaders);
}
inline HostId destination_of(const Packet* packet) {
  return __builtin_bswap32(net::load<uint32_t>(frame_of(packet) + 30)) - kFirstHostAddress;
}
// Whether a switch has marked it: "congestion experienced" (RFC 3168 5).
inline bool is_marked(const Packet* packet) { return (frame_of(packet)[15] & 3U) == 3; }
inline bool is_mac_control(const Packet* packet) {
  return net::load<uint16_t>(frame_of(packet) + 12) == __builtin_bswap16(net::kTypeMacControl);
}
// What hosts note on their packets beside the headers (PacketMeta::owner): the message, and whether it is repeated.
inline constexpr uint64_t kNoOwner = ~uint64_t{0};  // ACK and CNP
constexpr MessageId message_of(uint64_t owner) { return static_cast<MessageId>(owner >> 1U); }
// Payload bytes of a data packet.
inline uint32_t payload_of(const Packet* packet) { return packet->pkt_len - kDataFrameOverhead; }

// The 64-bit PSN nearest to `near` whose low 24 bits are `wire` (serial arithmetic, IBTA 9.7.2: half a window each
// way).
constexpr uint64_t widen_psn(uint32_t wire, uint64_t near) {
  const auto distance = static_cast<int32_t>((wire - static_cast<uint32_t>(near)) << 8U) >> 8;
  return near + static_cast<uint64_t>(static_cast<int64_t>(distance));
}

}  // namespace heddle::lab
