// How loaded the members of one group are, for the decisions of one burst: read from the ports once, from then on moved
// by what the burst itself gives to each. Who read them once and left them would send the whole burst where the queues
// were short when it came.
#pragma once

#include <array>
#include <cstdint>

#include "lb/next_hop_group.h"
#include "lb/path_quality.h"
#include "net/time.h"

namespace heddle::lb {

class MemberLoads {
 public:
  // `Ports` as of PathSelector.
  template <typename Ports>
  void read(const GroupView& group, const PathQuality& quality, const Ports& ports);

  static constexpr unsigned kNone = ~0U;
  // Gives a frame of that length, ≤ 64 KiB, to `other` if it has the lower load and, in a measured group, no worse path
  // further on; else to `one`, which may be the same. A dead member gets nothing while the other lives. Returns who got
  // it, or kNone if both are dead.
  unsigned give(unsigned one, unsigned other, bool measured, uint32_t frame_bytes);

 private:
  static constexpr Duration kDead = ~Duration{0};

  std::array<Duration, kMaxMembers> loads_{};
  std::array<Duration, kMaxMembers> of_kibibyte_{};  // how much 1,024 bytes add
  std::array<uint8_t, kMaxMembers> remote_bands_{};
};

// ---------------------------------------------------------------------------------------------------------------------

// No branch, which would be taken at random, and both loads are written: so the next packet's need not wait until it is
// known whose has changed.
inline unsigned MemberLoads::give(unsigned one, unsigned other, bool measured, uint32_t frame_bytes) {
  const Duration of_one = loads_[one];
  const Duration of_other = loads_[other];
  if ((of_one & of_other) == kDead) [[unlikely]]
    return kNone;
  uint64_t is_better = of_other < of_one ? 1 : 0;
  if (measured) is_better &= remote_bands_[other] <= remote_bands_[one] ? 1 : 0;
  const uint64_t to_other = -is_better;  // a mask
  const auto growth = [&](unsigned member) { return (frame_bytes * of_kibibyte_[member]) >> 10U; };
  loads_[other] = of_other + (growth(other) & to_other);
  loads_[one] = of_one + (growth(one) & ~to_other);
  return one ^ ((one ^ other) & static_cast<unsigned>(to_other));
}

template <typename Ports>
inline void MemberLoads::read(const GroupView& group, const PathQuality& quality, const Ports& ports) {
  for (unsigned i = 0; i < group.size; ++i) {
    const NextHop& member = group.members[i];
    // Nothing more is asked of one that is not up: bad members name a port that is none (PortStates::dead_port).
    const bool up = ports.is_up(member.port);
    loads_[i] = up ? quality.load(member.port, ports.drain_time(member.port)) : kDead;
    of_kibibyte_[i] = up ? quality.growth(ports.drain_time_of_kibibyte(member.port)) : 0;
    remote_bands_[i] = up ? member.remote_band : uint8_t{0xff};
  }
}

}  // namespace heddle::lb
