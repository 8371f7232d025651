// Next-hop groups: the equal-cost members a route leads to.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lb/scheduler.h"
#include "lb/weighted_table.h"
#include "net/packet.h"
#include "net/random.h"

namespace heddle::lb {

inline constexpr unsigned kMaxMembers = 64;

// One member: how the frame is addressed, and which port it leaves by.
struct NextHop {
  EthernetRewrite rewrite;
  PortId port = kNoPort;
  uint16_t weight = 1;
  uint32_t counter = 0;    // index into the per-lcore path counters; stays with the member across table versions
  bool alternate = false;  // a longer path: ArsSettings says when it is taken
  // What probes say, of `measured` groups. How many bands worse than the group's best the path beyond the port is, 0–7.
  uint8_t remote_band = 0;
  uint16_t share = 0;  // the weight in the place of `weight`
  bool bad = false;    // nothing gets through: as if its link were down
  uint8_t reserved[3] = {};
};
static_assert(sizeof(NextHop) == 32);

// Tells a member from others of its group, in every version of it: port, MAC and VLAN make a member.
inline uint64_t identity_of(const NextHop& member) {
  uint64_t mac = 0;
  for (const uint8_t byte : member.rewrite.destination) mac = mac << 8U | byte;
  return mix64(mac << 16U | member.port) + member.rewrite.vlan_id;
}

// Who takes another scheduler than the group's own.
struct SchedulerOverrides {
  std::array<std::optional<Scheduler>, kTrafficClasses> of_class;
  std::optional<Scheduler> of_control;  // RoCE ACK, NAK and CNP, whatever their class

  friend bool operator==(const SchedulerOverrides&, const SchedulerOverrides&) = default;
  bool empty() const { return *this == SchedulerOverrides(); }
};

struct alignas(64) NextHopGroup {
  std::vector<NextHop> members;  // 0–64; a group without members drops
  Scheduler scheduler;
  // Shares and remote bands follow from probes; choices by quality go by them too.
  bool measured = false;
  uint8_t table_member = 0;                             // InfiniBand: the member that the linear forwarding table names
  std::shared_ptr<const SchedulerOverrides> overrides;  // null: none
  std::shared_ptr<const WeightedTable> table;           // where some scheduler chooses by weight

  unsigned size() const { return static_cast<unsigned>(members.size()); }
  // Whether one of its schedulers is such.
  template <typename Predicate>
  bool any_scheduler(const Predicate& is) const;
  // Makes the table if one is needed, of `before` (null: the table there is) as much as can stay.
  void make_table(const WeightedTable* before = nullptr);
};

// A group as a loop over packets keeps it at hand.
struct GroupView {
  const NextHop* members = nullptr;
  unsigned size = 0;
  Scheduler scheduler;
  bool measured = false;
  const SchedulerOverrides* overrides = nullptr;
  const WeightedTable* table = nullptr;

  GroupView() = default;
  GroupView(const NextHopGroup& group)  // NOLINT(google-explicit-constructor): the same thing, seen from nearer
      : members(group.members.data()),
        size(group.size()),
        scheduler(group.scheduler),
        measured(group.measured),
        overrides(group.overrides.get()),
        table(group.table.get()) {}

  // Whether every packet's hash alone says its member, if that is alive.
  bool is_hashed() const { return scheduler.choice == Choice::kHash && overrides == nullptr && size > 1; }
};

// ---------------------------------------------------------------------------------------------------------------------

template <typename Predicate>
bool NextHopGroup::any_scheduler(const Predicate& is) const {
  if (is(scheduler)) return true;
  if (overrides == nullptr) return false;
  if (overrides->of_control && is(*overrides->of_control)) return true;
  for (const std::optional<Scheduler>& of : overrides->of_class) {
    if (of && is(*of)) return true;
  }
  return false;
}

inline void NextHopGroup::make_table(const WeightedTable* before) {
  const std::shared_ptr<const WeightedTable> old = std::move(table);
  table = nullptr;
  const auto by_weight = [this](const Scheduler& s) {
    return s.choice == Choice::kWeighted || (measured && s.choice == Choice::kQuality);
  };
  if (members.size() < 2 || !any_scheduler(by_weight)) return;
  std::vector<WeightedTable::Member> weighted;
  for (const NextHop& member : members) {
    weighted.push_back({measured ? member.share : member.weight, identity_of(member)});
  }
  const WeightedTable* from = before != nullptr ? before : old.get();
  if (old != nullptr && from == old.get() && old->is_of(weighted)) {
    table = old;
  } else {
    table = std::make_shared<const WeightedTable>(weighted, from);
  }
}

}  // namespace heddle::lb
