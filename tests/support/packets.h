// Packets without DPDK's mempools: each is one heap block that ends exactly where the frame's data ends, so that
// AddressSanitizer sees a read one byte past it (inside a mempool it sees nothing).
#pragma once

#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "net/packet.h"
#include "tests/support/frames.h"

namespace heddle::support {

struct FreePacket {
  void operator()(Packet* packet) const {
    while (packet != nullptr) {
      Packet* next = packet->next;
      operator delete (packet, std::align_val_t{alignof(PacketMeta)});
      packet = next;
    }
  }
};
using OwnedPacket = std::unique_ptr<Packet, FreePacket>;

struct PacketShape {
  // Room in front of the data: rewrite is promised no more than a VLAN tag's four bytes.
  uint16_t headroom = sizeof(net::VlanTag);
  // Bytes in the first segment; the rest, if any, lies in a second one. 0 = all in the first.
  size_t first_segment = 0;
  // Room behind the data of a packet of one segment, filled with something.
  uint16_t tailroom = 0;
};

// A packet that holds `frame`: mbuf, metadata, headroom, data, nothing behind.
OwnedPacket make_packet(std::span<const uint8_t> frame, const PacketShape& shape = {});

// A packet of `frame_bytes` without any data, for stages that look at metadata alone.
OwnedPacket make_queued(uint8_t traffic_class, uint32_t frame_bytes);

// What the packet holds, over all its segments.
Bytes content_of(const Packet* packet);

// Takes dropped packets and remembers them; whoever made them keeps them.
class RecordingSink final : public PacketSink {
 public:
  void take(Packet** packets, unsigned count) override { taken.insert(taken.end(), packets, packets + count); }
  std::vector<Packet*> taken;
};

// ---------------------------------------------------------------------------------------------------------------------

inline Packet* make_segment(std::span<const uint8_t> data, uint16_t headroom, uint16_t tailroom = 0) {
  const size_t before_data = sizeof(Packet) + kPrivateBytes + headroom;
  void* block = operator new (before_data + data.size() + tailroom, std::align_val_t{alignof(PacketMeta)});
  std::memset(static_cast<uint8_t*>(block) + before_data + data.size(), 0xee, tailroom);
  auto* packet = new (block) Packet{};
  new (packet + 1) PacketMeta{};
  packet->buf_addr = static_cast<uint8_t*>(block) + sizeof(Packet) + kPrivateBytes;
  packet->buf_len = static_cast<uint16_t>(headroom + data.size() + tailroom);
  packet->priv_size = kPrivateBytes;
  packet->data_off = headroom;
  packet->data_len = static_cast<uint16_t>(data.size());
  packet->pkt_len = static_cast<uint32_t>(data.size());
  packet->nb_segs = 1;
  packet->refcnt = 1;
  if (!data.empty()) std::memcpy(static_cast<uint8_t*>(block) + before_data, data.data(), data.size());
  return packet;
}

inline OwnedPacket make_packet(std::span<const uint8_t> frame, const PacketShape& shape) {
  const size_t first = shape.first_segment == 0 ? frame.size() : shape.first_segment;
  OwnedPacket packet(make_segment(frame.first(first), shape.headroom, shape.tailroom));
  if (first < frame.size()) {
    packet->next = make_segment(frame.subspan(first), 0);
    packet->nb_segs = 2;
    packet->pkt_len = static_cast<uint32_t>(frame.size());
  }
  return packet;
}

inline OwnedPacket make_queued(uint8_t traffic_class, uint32_t frame_bytes) {
  OwnedPacket packet(make_segment({}, 0));
  meta_of(packet.get()).traffic_class = traffic_class;
  packet->pkt_len = frame_bytes;
  return packet;
}

inline Bytes content_of(const Packet* packet) {
  Bytes bytes;
  for (const Packet* segment = packet; segment != nullptr; segment = segment->next) {
    put(bytes, std::span(frame_of(segment), segment->data_len));
  }
  return bytes;
}

}  // namespace heddle::support
