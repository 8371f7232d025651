// The lab's packets: mbuf-shaped objects from slabs that grow as a run needs them. DPDK's environment is not started:
// a mempool would want its size in advance, and the packet path only reads the mbuf's fields.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include <rte_prefetch.h>

#include "net/packet.h"

namespace heddle::lab {

// Room for the headers of a packet; the payload is a length. Path probes, which are all headers, need more.
inline constexpr uint16_t kHeaderRoom = 128;
// Enough for Ethernet, IPv4, UDP, BTH and AETH, 58 bytes, and for pause frames. As little as that lies in the mbuf's
// own second cache line, where DPDK keeps what only chained segments and offloads need: a packet has three lines, not
// five.
inline constexpr uint16_t kHeaderRoomInMbuf = RTE_CACHE_LINE_MIN_SIZE;

class PacketArena {
 public:
  static constexpr size_t packet_bytes(size_t header_room) {
    return sizeof(Packet) + kPrivateBytes + (header_room <= kHeaderRoomInMbuf ? 0 : (header_room + 63) / 64 * 64);
  }
  // From the mbuf to its headers.
  static constexpr size_t header_offset(size_t header_room) {
    return header_room <= kHeaderRoomInMbuf ? RTE_CACHE_LINE_MIN_SIZE : sizeof(Packet) + kPrivateBytes;
  }

  explicit PacketArena(uint16_t header_room = kHeaderRoom) : header_room_(header_room) {}

  // One thread's stock. Takes and returns packets to the arena by the batch.
  class Cache {
   public:
    explicit Cache(PacketArena& arena) : arena_(arena), header_offset_(header_offset(arena.header_room_)) {
      stock_.reserve(2 * kBatch);
    }

    Packet* take() {
      if (stock_.empty()) arena_.refill(stock_);
      Packet* packet = stock_.back();
      stock_.pop_back();
      return packet;
    }
    void put(Packet* packet) {
      if (stock_.size() == 2 * kBatch) arena_.spill(stock_);
      stock_.push_back(packet);
    }
    // Asks for the three cache lines of a packet that the packet path reads.
    void prefetch(const Packet* packet) const {
      for (const std::byte* line : lines_of(packet)) rte_prefetch0(line);
    }
    // The same for packets of a node to come: only as near as the second level's cache, or they would push what the
    // node before needs out of the first.
    void prefetch_for_later(const Packet* packet) const {
      for (const std::byte* line : lines_of(packet)) rte_prefetch1(line);
    }

   private:
    std::array<const std::byte*, 3> lines_of(const Packet* packet) const {
      const auto* at = reinterpret_cast<const std::byte*>(packet);
      return {at, at + sizeof(Packet), at + header_offset_};
    }

    PacketArena& arena_;
    size_t header_offset_;
    std::vector<Packet*> stock_;
  };

  // Bytes that all slabs take.
  size_t bytes() const { return slabs_.size() * kSlabBytes; }

 private:
  static constexpr size_t kBatch = 256;
  // One huge page: with 4 KiB pages most of a packet's cost is finding its page (three lines of a packet that waited
  // for long are three misses, and each would miss the TLB first).
  static constexpr size_t kSlabBytes = 2U << 20U;

  struct Freed {
    void operator()(std::byte* slab) const { std::free(slab); }
  };

  void refill(std::vector<Packet*>& stock);
  void spill(std::vector<Packet*>& stock);
  void add_slab();

  uint16_t header_room_;
  std::mutex mutex_;
  std::vector<Packet*> free_;
  std::vector<std::unique_ptr<std::byte[], Freed>> slabs_;
};

}  // namespace heddle::lab
