// Route id → next-hop group, where many switches share one lookup and each has its own groups.
//
// From most switches all hosts of a leaf lie behind one group, and their route ids follow each other. So ids are kept
// by blocks of 2^n: a block says its group, or where its ids are listed one by one. A lookup of thousands of hosts
// takes a switch a kilobyte, most of which stays in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/route.h"
#include "net/prefetch.h"

namespace heddle::dataplane {

using GroupId = uint16_t;
inline constexpr GroupId kNoGroup = 0xffff;

class RouteGroups {
 public:
  RouteGroups() = default;
  // By route id; kNoGroup where there is no way. NOLINTNEXTLINE(google-explicit-constructor): the same in less room
  RouteGroups(const std::vector<GroupId>& groups);

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // `route` < size().
  GroupId operator[](RouteId route) const {
    const uint32_t block = blocks_[route >> shift_];
    return (block & kListed) == 0 ? static_cast<GroupId>(block) : listed_[(block & ~kListed) + (route & mask_)];
  }
  // Asks for what says the group of most routes.
  void prefetch() const { prefetch_all(blocks_.data(), blocks_.size()); }
  // Bytes that they take beside the object.
  size_t bytes() const { return blocks_.size() * sizeof(uint32_t) + listed_.size() * sizeof(GroupId); }

 private:
  static constexpr uint32_t kListed = uint32_t{1} << 31U;

  RouteGroups(const std::vector<GroupId>& groups, unsigned shift);

  std::vector<uint32_t> blocks_;  // a group, or kListed and where in `listed_`
  std::vector<GroupId> listed_;
  size_t size_ = 0;
  unsigned shift_ = 0;
  RouteId mask_ = 0;
};

}  // namespace heddle::dataplane
