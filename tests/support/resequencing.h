// Packets as a resequencer meets them, and the books that nothing may be missing from.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "lb/resequencer.h"
#include "net/headers.h"
#include "tests/support/flows.h"
#include "tests/support/packets.h"

namespace heddle::support {

// What a packet is, beside its bytes.
struct Numbered {
  uint32_t qp = 0x11;
  uint32_t psn = 0;
  uint8_t opcode = 0x07;  // RC WRITE middle
  uint32_t bytes = 4150;  // as the frame claims
};

// Makes packets and keeps them, one heap block each.
class PacketMill {
 public:
  Packet* make(const Numbered& as) {
    Flow flow = roce_flow(L3::kIpv4, {1, 2, 0xc000, as.qp});
    auto* bth = net::header_at<net::Bth>(flow.frame.data(), flow.meta.l4_offset + sizeof(net::UdpHeader));
    bth->opcode = as.opcode;
    bth->psn = as.psn & 0xffffffU;
    packets_.push_back(make_packet(flow.frame));
    Packet* packet = packets_.back().get();
    meta_of(packet) = flow.meta;
    packet->pkt_len = as.bytes;
    return packet;
  }
  static uint32_t psn_of(const Packet* packet) {
    return net::header_at<net::Bth>(frame_of(packet), meta_of(packet).l4_offset + sizeof(net::UdpHeader))->psn;
  }
  static uint32_t qp_of(const Packet* packet) {
    return net::header_at<net::Bth>(frame_of(packet), meta_of(packet).l4_offset + sizeof(net::UdpHeader))->dest_qp;
  }
  size_t size() const { return packets_.size(); }

 private:
  std::vector<OwnedPacket> packets_;
};

}  // namespace heddle::support
