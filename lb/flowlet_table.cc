#include "lb/flowlet_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace heddle::lb {

FlowletTable::FlowletTable(uint32_t flows, Duration idle_time, bool resident) {
  const uint64_t entries = 2 * uint64_t{std::clamp(flows, kWays, kMostFlows)};
  const uint64_t sets = std::bit_ceil(entries / kWays);
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(sets));
  const size_t room = (sets + 1) * sizeof(Set);
  memory_.reset(std::calloc(room, 1));  // NOLINT(cppcoreguidelines-no-malloc): pages that nobody touches take no memory
  if (memory_ == nullptr) throw std::bad_alloc();
  void* at = memory_.get();
  size_t space = room;
  sets_ = static_cast<Set*>(std::align(alignof(Set), sets * sizeof(Set), at, space));
  if (resident) std::memset(static_cast<void*>(sets_), 0, sets * sizeof(Set));
  idle_ticks_ = static_cast<uint32_t>(std::clamp<Duration>(idle_time >> kTickBits, 1, UINT32_MAX / 2));
}

// In the place of the flow that has paused longest, if that is long enough.
FlowletTable::Found FlowletTable::make_entry(Set& set, uint32_t tag, uint32_t tick) const {
  unsigned oldest = 0;
  uint32_t longest = 0;
  for (unsigned way = 0; way < kWays; ++way) {
    const uint32_t idle = set.who[way] == 0 ? ~0U : tick - set.seen[way];
    if (idle <= longest) continue;
    longest = idle;
    oldest = way;
  }
  if (longest < idle_ticks_) return {};
  set.who[oldest] = tag;
  set.seen[oldest] = tick;
  return {State::kFresh, &set.who[oldest]};
}

}  // namespace heddle::lb
