#include "dataplane/shared_buffer.h"

namespace heddle::dataplane {

int64_t BufferSettings::shared_bytes() const {
  auto left = static_cast<int64_t>(bytes) - static_cast<int64_t>(kept_aside);
  for (const auto& port : groups) {
    for (const GroupSettings& group : port) {
      left -= static_cast<int64_t>(group.reserved + (group.lossless ? group.headroom : 0));
    }
  }
  return left;
}

void SharedBuffer::configure(const BufferSettings& settings, const std::vector<bool>& mine,
                             const std::vector<BufferLedger*>& ledgers, unsigned self) {
  const size_t ports = settings.groups.size();
  smallest_charge_ = static_cast<uint32_t>(settings.smallest_charge());
  pool_ = free_ = least_free_ = limit_ = settings.shared_bytes();
  groups_.assign(ports * kTrafficClasses, {});
  queues_.assign(ports * kTrafficClasses, {});
  xoff_.assign(ports, 0);
  is_changed_.assign(ports, false);
  changed_.clear();
  changed_.reserve(ports);
  for (size_t port = 0; port < ports; ++port) {
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      const GroupSettings& from = settings.groups[port][tc];
      Group& group = groups_[group_index(static_cast<PortId>(port), tc)];
      group.level = -static_cast<int64_t>(from.reserved);
      group.reserved = static_cast<int64_t>(from.reserved);
      group.shared = from.shared;
      group.lossless = from.lossless;
      group.ours = mine.empty() || mine[port];
      group.special = !group.ours;
      group.xon_offset = static_cast<uint32_t>(from.xon_offset);
      group.headroom = from.lossless ? static_cast<uint32_t>(from.headroom) : 0;
      if (port < settings.queues.size())
        queues_[group_index(static_cast<PortId>(port), tc)] = settings.queues[port][tc];
    }
  }
  peers_.clear();
  ledger_ = ledgers.empty() ? nullptr : ledgers[self];
  for (size_t i = 0; i < ledgers.size(); ++i) {
    if (i != self) peers_.push_back({ledgers[i], 0, std::vector<uint64_t>(ports * kTrafficClasses)});
  }
}

// Not within the threshold, or the pool is nearly used up.
DropReason SharedBuffer::charge_beyond(PortId port, unsigned traffic_class, Group& group, int64_t size) {
  const int64_t after = group.level + size;
  const int64_t needs = in_shared(after) - in_shared(group.level);  // a part may come out of what is reserved
  if (needs <= free_ && in_shared(after) <= group.shared.at(free_)) {
    set_level(group, after);
    return DropReason::kNone;
  }
  if (!group.lossless) return DropReason::kBufferFull;
  const bool fits = group.in_headroom + size <= group.headroom;
  if (fits || group.held() != 0) {  // a group that holds nothing would see no release, hence no XON
    change_xoff(port, traffic_class, true);
    group.special = true;
  }
  if (!fits) return DropReason::kHeadroomFull;
  group.in_headroom += size;
  group.peak_headroom = std::max(group.peak_headroom, static_cast<uint32_t>(group.in_headroom));
  return DropReason::kNone;
}

void SharedBuffer::release_special(PortId port, unsigned traffic_class, Group& group, int64_t size) {
  if (!group.ours) {  // its lcore takes notice of it when it settles
    ledger_->released[group_index(port, traffic_class)].add(static_cast<uint64_t>(size));
    ledger_->releases.add(1);
    return;
  }
  group.peak = std::max(group.peak, static_cast<uint32_t>(group.held()));
  least_free_ = std::min(least_free_, free_);
  // Headroom is given back first: it must be empty before the sender may go on.
  const int64_t from_headroom = std::min(size, group.in_headroom);
  group.in_headroom -= from_headroom;
  set_level(group, group.level - (size - from_headroom));
  consider_xon(port, traffic_class, group);
}

void SharedBuffer::consider_xon(PortId port, unsigned traffic_class, Group& group) {
  if (group.in_headroom != 0) return;
  if (group.level > 0 && group.level + group.xon_offset > group.shared.at(free_)) return;
  change_xoff(port, traffic_class, false);
  group.special = false;
}

void SharedBuffer::change_xoff(PortId port, unsigned traffic_class, bool off) {
  const auto bit = static_cast<uint8_t>(1U << traffic_class);
  const uint8_t next = off ? xoff_[port] | bit : xoff_[port] & static_cast<uint8_t>(~bit);
  if (next == xoff_[port]) return;
  xoff_[port] = next;
  if (is_changed_[port]) return;
  is_changed_[port] = true;
  changed_.push_back(port);
}

void SharedBuffer::settle() {
  if (ledger_ == nullptr) return;
  for (Peer& peer : peers_) {
    const uint64_t releases = peer.ledger->releases.get();
    if (releases == peer.releases) continue;
    peer.releases = releases;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].ours) continue;
      const uint64_t released = peer.ledger->released[i].get();
      if (released == peer.released[i]) continue;
      const auto size = static_cast<int64_t>(released - peer.released[i]);
      peer.released[i] = released;
      release_special(static_cast<PortId>(i / kTrafficClasses), i % kTrafficClasses, groups_[i], size);
    }
  }
  int64_t others = 0;
  for (const Peer& peer : peers_) others += static_cast<int64_t>(peer.ledger->shared_used.get());
  const int64_t used = limit_ - free_;
  limit_ = pool_ - others;
  free_ = limit_ - used;
  ledger_->shared_used.set(static_cast<uint64_t>(used));
}

SharedBuffer::Occupancy SharedBuffer::occupancy(PortId port, unsigned traffic_class) const {
  const Group& group = groups_[group_index(port, traffic_class)];
  Occupancy occupancy;
  occupancy.reserved = static_cast<uint64_t>(group.reserved + std::min<int64_t>(group.level, 0));
  occupancy.shared = static_cast<uint64_t>(in_shared(group.level));
  occupancy.headroom = static_cast<uint64_t>(group.in_headroom);
  occupancy.peak = std::max<uint64_t>(group.peak, static_cast<uint64_t>(group.held()));
  occupancy.peak_headroom = group.peak_headroom;
  return occupancy;
}

void SharedBuffer::reset_peaks() {
  for (Group& group : groups_) {
    group.peak = static_cast<uint32_t>(group.held());
    group.peak_headroom = static_cast<uint32_t>(group.in_headroom);
  }
}

}  // namespace heddle::dataplane
