#include "lab/engine/packet_arena.h"

#include <new>

#include "lab/engine/huge_pages.h"

namespace heddle::lab {

void PacketArena::refill(std::vector<Packet*>& stock) {
  const std::scoped_lock lock(mutex_);
  if (free_.size() < kBatch) add_slab();
  stock.insert(stock.end(), free_.end() - kBatch, free_.end());
  free_.resize(free_.size() - kBatch);
}

void PacketArena::spill(std::vector<Packet*>& stock) {
  const std::scoped_lock lock(mutex_);
  free_.insert(free_.end(), stock.end() - kBatch, stock.end());
  stock.resize(stock.size() - kBatch);
}

// Constant fields are written once; whoever takes a packet sets its lengths and headers.
void PacketArena::add_slab() {
  std::byte* slab = allocate_huge(kSlabBytes);
  slabs_.emplace_back(slab);
  const size_t bytes = packet_bytes(header_room_);
  for (size_t i = kSlabBytes / bytes; i-- > 0;) {
    std::byte* at = slab + i * bytes;
    auto* packet = new (at) Packet{};
    new (at + sizeof(Packet)) PacketMeta{};
    packet->buf_addr = at + header_offset(header_room_);
    packet->buf_len = header_room_;
    packet->priv_size = kPrivateBytes;
    packet->data_off = 0;
    packet->nb_segs = 1;
    packet->refcnt = 1;
    free_.push_back(packet);
  }
}

}  // namespace heddle::lab
