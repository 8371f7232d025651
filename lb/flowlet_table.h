// Which member every flow took last, and when: where a flow has paused, its path may change without reordering.
//
// Sets of eight entries, one cache line each, chosen by the flow hash; no flow is ever looked for outside its set, and
// nothing is allocated after the table was made. An entry whose flow has paused for the idle time may be given to
// another flow. If a set is full of flows that have not, a further one has no flowlets: it keeps the member its hash
// names (in order, as under ECMP), and each of its packets is counted as a collision. Two flows of one set that agree
// in 23 further bits of the hash share an entry, and with it a path.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "net/time.h"

namespace heddle::lb {

class FlowletTable {
 public:
  static constexpr uint32_t kMostFlows = 1U << 24U;
  static constexpr unsigned kNoMember = 0xff;

  // For `flows` live flows at a time, up to kMostFlows: twice as many entries, so that with so many flows about 2 %
  // find their set full. `resident`: its pages are touched now, not when packets come.
  FlowletTable(uint32_t flows, Duration idle_time, bool resident);

  enum class State : uint8_t {
    kLive,       // in the midst of a flowlet
    kPaused,     // a known flow after a pause
    kFresh,      // not known
    kCollision,  // no entry for it
  };

  struct Found {
    State state = State::kCollision;
    uint32_t* entry = nullptr;  // null: a collision
    // The flow's last member, or kNoMember.
    unsigned member() const { return state == State::kFresh ? kNoMember : *entry & kMemberMask; }
    void set_member(unsigned member) const { *entry = (*entry & ~kMemberMask) | member; }
  };

  // The flow's entry, made if need be and stamped with `now`; a fresh one's member must be set.
  [[gnu::always_inline]] Found find(uint32_t flow_hash, Time now);

  void prefetch(uint32_t flow_hash) const { __builtin_prefetch(&sets_[key_of(flow_hash) >> shift_], 1); }

  size_t bytes() const { return (size_t{1} << (64U - shift_)) * sizeof(Set); }

 private:
  static constexpr unsigned kWays = 8;
  static constexpr uint32_t kMemberMask = 0xff;
  // Ticks of 2^16 ps, 65.5 ns: 32 bits of them wrap after 281 s. A flow that pauses that long to the tick finds itself
  // in the midst of its flowlet, which does no harm.
  static constexpr unsigned kTickBits = 16;

  struct alignas(64) Set {
    uint32_t who[kWays];   // tag 24, member 8; tag 0: nobody
    uint32_t seen[kWays];  // tick of the last packet
  };
  static_assert(sizeof(Set) == 64);
  struct Free {
    void operator()(void* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc)
  };

  Found make_entry(Set& set, uint32_t tag, uint32_t tick) const;
  // The entries with that tag, a bit each.
  static unsigned ways_of(const Set& set, uint32_t tag);
  static uint64_t key_of(uint32_t flow_hash) { return flow_hash * 0x9e3779b97f4a7c15; }

  std::unique_ptr<void, Free> memory_;  // from calloc: a lab of thousands of switches touches only what it uses
  Set* sets_ = nullptr;
  unsigned shift_ = 0;
  uint32_t idle_ticks_ = 0;
};

// ---------------------------------------------------------------------------------------------------------------------

// All eight are compared at once: a branch for each would be guessed wrong.
inline unsigned FlowletTable::ways_of(const Set& set, uint32_t tag) {
#ifdef __SSE2__
  const auto* who = reinterpret_cast<const __m128i*>(set.who);
  const __m128i wanted = _mm_set1_epi32(static_cast<int>(tag >> 8U));
  const __m128i low = _mm_cmpeq_epi32(_mm_srli_epi32(_mm_load_si128(who), 8), wanted);
  const __m128i high = _mm_cmpeq_epi32(_mm_srli_epi32(_mm_load_si128(who + 1), 8), wanted);
  return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(low))) |
         static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(high))) << 4U;
#else
  unsigned ways = 0;
  for (unsigned way = 0; way < kWays; ++way) ways |= ((set.who[way] ^ tag) <= kMemberMask ? 1U : 0U) << way;
  return ways;
#endif
}

inline FlowletTable::Found FlowletTable::find(uint32_t flow_hash, Time now) {
  const uint64_t key = key_of(flow_hash);
  Set& set = sets_[key >> shift_];
  const uint32_t tag = (static_cast<uint32_t>(key >> (shift_ - 24U)) << 8U) | 0x100U;
  const auto tick = static_cast<uint32_t>(now >> kTickBits);
  if (const unsigned ways = ways_of(set, tag); ways != 0) [[likely]] {
    const auto way = static_cast<unsigned>(std::countr_zero(ways));
    const bool paused = tick - set.seen[way] >= idle_ticks_;
    set.seen[way] = tick;
    return {paused ? State::kPaused : State::kLive, &set.who[way]};
  }
  return make_entry(set, tag, tick);
}

}  // namespace heddle::lb
