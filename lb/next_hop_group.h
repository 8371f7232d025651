// Next-hop groups: the equal-cost members a route leads to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lb/scheduler.h"
#include "net/packet.h"

namespace heddle::lb {

inline constexpr unsigned kMaxMembers = 64;

// One member: how the frame is addressed, and which port it leaves by.
struct NextHop {
  EthernetRewrite rewrite;
  PortId port = kNoPort;
  uint16_t weight = 1;
  uint32_t counter = 0;  // index into the per-lcore path counters; stays with the member across table versions
  uint64_t reserved = 0;
};
static_assert(sizeof(NextHop) == 32);

struct NextHopGroup {
  std::vector<NextHop> members;  // 0–64; a group without members drops
  Scheduler scheduler;

  unsigned size() const { return static_cast<unsigned>(members.size()); }
};

// A group as a loop over packets keeps it at hand.
struct GroupView {
  const NextHop* members = nullptr;
  unsigned size = 0;
  Choice choice = Choice::kHash;

  GroupView() = default;
  GroupView(const NextHopGroup& group)  // NOLINT(google-explicit-constructor): the same thing, seen from nearer
      : members(group.members.data()), size(group.size()), choice(group.scheduler.choice) {}
};

}  // namespace heddle::lb
