// Stage 5: who may occupy the switch's packet memory. Packets are charged to the ingress priority group (port, class)
// they came by, over one pool, in the terms of SAI: reserved bytes first, then the shared pool up to a threshold, then,
// for lossless classes, headroom.
//
// One SharedBuffer belongs to one lcore and holds the groups of that lcore's ports. Several share a pool by telling
// each other, in ledgers that only one of them writes, what they use and what they have released for others. What is
// read there is at most a burst old, so that together they may overshoot the pool by one burst each: whoever sizes the
// pool keeps that much aside.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/drop_reason.h"
#include "net/packet.h"
#include "telemetry/counters.h"

namespace heddle::dataplane {

// How much of the shared pool one group or queue may take.
struct Threshold {
  static constexpr uint64_t kNoLimit = uint64_t{1} << 40U;

  uint64_t bytes = kNoLimit;    // never more than this
  uint32_t alpha_256ths = ~0U;  // never more than α × what is free of the pool now (Choudhury and Hahne 1998)

  static constexpr Threshold fixed(uint64_t bytes) { return {.bytes = bytes}; }
  // α from 1/256 to 2^20.
  static constexpr Threshold dynamic(double alpha) { return {.alpha_256ths = static_cast<uint32_t>(alpha * 256)}; }
  bool operator==(const Threshold&) const = default;
  bool is_dynamic() const { return alpha_256ths != ~0U; }

  // In bytes, while `free` (below 2^32) are free.
  int64_t at(int64_t free) const {
    const uint64_t dynamic = (static_cast<uint64_t>(std::max<int64_t>(free, 0)) * alpha_256ths) >> 8U;
    return static_cast<int64_t>(is_dynamic() ? std::min(bytes, dynamic) : bytes);
  }
};

// An ingress priority group.
struct GroupSettings {
  bool lossless = false;
  uint64_t reserved = 0;    // its own, whatever the others do
  Threshold shared;         // lossless: XOFF, the rest goes to headroom; lossy: the rest is dropped
  uint64_t xon_offset = 0;  // resume once this far below XOFF
  uint64_t headroom = 0;    // lossless only: for what still arrives after XOFF
};

// An egress queue may hold `reserved` bytes, or up to `shared` of the pool's free bytes.
struct QueueSettings {
  uint64_t reserved = 0;
  Threshold shared;
};

struct BufferSettings {
  uint64_t bytes = 0;    // of the whole buffer, below 2^32; 0 = there is none: queues are limited one by one
  uint64_t packets = 0;  // that it may hold, 0 = any number. A packet is charged at least bytes / packets: a buffer's
                         // share is used up by its bytes or by its mbufs, whichever is scarce
  uint64_t kept_aside = 0;  // bytes of it that nobody gets: what several lcores may overshoot it by
  std::vector<std::array<GroupSettings, kTrafficClasses>> groups;  // by port
  std::vector<std::array<QueueSettings, kTrafficClasses>> queues;  // by port

  bool is_on() const { return bytes != 0; }
  uint64_t smallest_charge() const { return packets == 0 ? 0 : (bytes + packets - 1) / packets; }
  // What is left for the shared pool; negative if reservations and headroom do not fit.
  int64_t shared_bytes() const;
};

// What says to which group a packet belongs, and what else it is: tag, protocols, class and port, in one word. Packets
// that differ in it may still share their group; those that do not differ, do.
inline uint64_t group_facts(const HeaderFacts& facts) {
  static_assert(offsetof(HeaderFacts, vlan_tci) == 4 && offsetof(HeaderFacts, in_port) == 10);
  return net::load<uint64_t>(reinterpret_cast<const uint8_t*>(&facts) + offsetof(HeaderFacts, vlan_tci));
}

// What one lcore tells the others.
struct alignas(64) BufferLedger {
  explicit BufferLedger(size_t ports) : released(ports * kTrafficClasses) {}
  telemetry::Counter shared_used;            // bytes of the pool that the groups of its ports hold
  telemetry::Counter releases;               // changes whenever one of those below has changed
  std::vector<telemetry::Counter> released;  // bytes ever released for groups of others, by port and class
};

class SharedBuffer {
 public:
  SharedBuffer() = default;
  // Whose groups are ours: `mine[port]`, empty = all. `ledgers` are those of all lcores that share the pool, ours among
  // them at `self`; empty if there is only us. They outlive the buffer.
  void configure(const BufferSettings& settings, const std::vector<bool>& mine,
                 const std::vector<BufferLedger*>& ledgers, unsigned self);

  // Charges a packet that came by (port, class), which is ours; kNone if it has room, else why not.
  DropReason charge(PortId port, unsigned traffic_class, uint32_t frame_bytes);
  // Whether a lossless group, ours, has room for packets that take `size` together (the sum of their `charge_of`): if
  // so, each of them would have been charged without a pause. Then that is done for all at once.
  bool fits(PortId port, unsigned traffic_class, uint64_t size) const;
  void charge_fitting(PortId port, unsigned traffic_class, uint64_t size);
  // Gives the bytes back; the port may be another's.
  void release(PortId port, unsigned traffic_class, uint32_t frame_bytes) {
    release_charge(port, traffic_class, charge_of(frame_bytes));
  }
  // The same for packets that leave together; neighbours often share their group.
  void release(Packet* const* packets, unsigned count);

  // Whether an egress queue that holds `queued` bytes may take one more packet.
  bool admits(PortId out, unsigned traffic_class, uint64_t queued, uint32_t frame_bytes) const {
    const QueueSettings& queue = queues_[group_index(out, traffic_class)];
    const auto after = static_cast<int64_t>(queued + frame_bytes);
    return after <= static_cast<int64_t>(queue.reserved) || after <= queue.shared.at(free_);
  }

  // Reads and writes the ledgers: once per round of a lcore that shares the pool.
  void settle();

  // Classes of a port whose sender must be paused (bit = class).
  uint8_t xoff(PortId port) const { return xoff_[port]; }
  bool is_lossless(PortId port, unsigned traffic_class) const {
    return groups_[group_index(port, traffic_class)].lossless;
  }

  // Ports whose xoff has changed since the last call, each once.
  template <typename Each>
  void take_changed(const Each& each) {
    for (const PortId port : changed_) {
      is_changed_[port] = false;
      each(port);
    }
    changed_.clear();
  }
  bool has_changed() const { return !changed_.empty(); }

  struct Occupancy {
    uint64_t reserved = 0;
    uint64_t shared = 0;
    uint64_t headroom = 0;
    uint64_t peak = 0;           // of all three together, since reset_peaks
    uint64_t peak_headroom = 0;  // since reset_peaks
    uint64_t bytes() const { return reserved + shared + headroom; }
  };
  Occupancy occupancy(PortId port, unsigned traffic_class) const;
  // XOFF threshold of a group now, above its reserved bytes.
  int64_t xoff_threshold(PortId port, unsigned traffic_class) const {
    return groups_[group_index(port, traffic_class)].shared.at(free_);
  }
  uint64_t shared_used() const { return static_cast<uint64_t>(limit_ - free_); }  // by our groups
  uint64_t peak_shared_used() const { return static_cast<uint64_t>(limit_ - std::min(least_free_, free_)); }
  int64_t shared_free() const { return free_; }  // as far as we know
  void reset_peaks();
  uint32_t charge_of(uint32_t frame_bytes) const { return std::max(frame_bytes, smallest_charge_); }

 private:
  // One cache line, which a packet touches twice.
  struct alignas(64) Group {
    int64_t level = 0;  // bytes outside headroom, less the reserved ones: what is above 0 is in the shared pool
    int64_t in_headroom = 0;
    int64_t reserved = 0;
    Threshold shared;
    bool lossless = false;
    bool ours = false;
    bool special = true;  // in headroom, in XOFF or not ours: release takes the long way
    uint32_t xon_offset = 0;
    uint32_t headroom = 0;
    uint32_t peak_headroom = 0;
    uint32_t peak = 0;
    int64_t held() const { return level + reserved + in_headroom; }
  };
  static_assert(sizeof(Group) == 64);
  static constexpr size_t group_index(PortId port, unsigned traffic_class) {
    return port * size_t{kTrafficClasses} + traffic_class;
  }
  static int64_t in_shared(int64_t level) { return std::max<int64_t>(level, 0); }

  void raise(Group& group, int64_t size);
  void release_charge(PortId port, unsigned traffic_class, int64_t size);
  DropReason charge_beyond(PortId port, unsigned traffic_class, Group& group, int64_t size);
  void release_special(PortId port, unsigned traffic_class, Group& group, int64_t size);
  void consider_xon(PortId port, unsigned traffic_class, Group& group);
  void set_level(Group& group, int64_t level) {
    free_ -= in_shared(level) - in_shared(group.level);
    group.level = level;
  }
  void change_xoff(PortId port, unsigned traffic_class, bool off);

  uint32_t smallest_charge_ = 0;
  int64_t free_ = 0;        // of the shared pool
  int64_t least_free_ = 0;  // when something was last released
  int64_t limit_ = 0;       // of it, what the others have left to our groups
  std::vector<Group> groups_;
  std::vector<QueueSettings> queues_;
  std::vector<uint8_t> xoff_;
  std::vector<PortId> changed_;
  std::vector<bool> is_changed_;

  int64_t pool_ = 0;
  BufferLedger* ledger_ = nullptr;
  struct Peer {
    BufferLedger* ledger;
    uint64_t releases = 0;           // as last read
    std::vector<uint64_t> released;  // as last read
  };
  std::vector<Peer> peers_;
};
// ---------------------------------------------------------------------------------------------------------------------

inline DropReason SharedBuffer::charge(PortId port, unsigned traffic_class, uint32_t frame_bytes) {
  Group& group = groups_[group_index(port, traffic_class)];
  const int64_t size = charge_of(frame_bytes);
  const int64_t after = group.level + size;
  if (after > 0 && (size > free_ || after > group.shared.at(free_))) [[unlikely]]
    return charge_beyond(port, traffic_class, group, size);
  raise(group, size);
  return DropReason::kNone;
}

// The threshold that the last of them would meet is the lowest, and all that came before it are below what it leaves.
inline bool SharedBuffer::fits(PortId port, unsigned traffic_class, uint64_t size) const {
  const Group& group = groups_[group_index(port, traffic_class)];
  const auto bytes = static_cast<int64_t>(size);
  const int64_t after = group.level + bytes;
  return group.lossless && !group.special &&
         (after <= 0 || (bytes <= free_ && after <= group.shared.at(free_ - bytes)));
}

inline void SharedBuffer::charge_fitting(PortId port, unsigned traffic_class, uint64_t size) {
  raise(groups_[group_index(port, traffic_class)], static_cast<int64_t>(size));
}

inline void SharedBuffer::raise(Group& group, int64_t size) {
  const int64_t after = group.level + size;
  if (after >= size) [[likely]] {  // all of it in the pool: what is reserved was used up, or there is none
    group.level = after;
    free_ -= size;
  } else {
    set_level(group, after);
  }
}

inline void SharedBuffer::release(Packet* const* packets, unsigned count) {
  for (unsigned i = 0; i < count;) {
    const PacketMeta& first = meta_of(packets[i]);
    const uint64_t group = group_facts(first);
    const uint32_t smallest = smallest_charge_;
    int64_t size = 0;
    do size += std::max(packets[i]->pkt_len, smallest);
    while (++i < count && group_facts(meta_of(packets[i])) == group);
    release_charge(first.in_port, first.traffic_class, size);
  }
}

inline void SharedBuffer::release_charge(PortId port, unsigned traffic_class, int64_t size) {
  Group& group = groups_[group_index(port, traffic_class)];
  if (group.special) [[unlikely]]
    return release_special(port, traffic_class, group, size);
  // Between two releases a group only grows, and so does what all of them hold.
  if (const int64_t held = group.level + group.reserved; held > group.peak) group.peak = static_cast<uint32_t>(held);
  if (free_ < least_free_) least_free_ = free_;
  if (group.level >= size) [[likely]] {
    group.level -= size;
    free_ += size;
  } else {
    set_level(group, group.level - size);
  }
}

}  // namespace heddle::dataplane
