#include "dataplane/route_groups.h"

#include <algorithm>
#include <functional>

namespace heddle::dataplane {

namespace {
constexpr unsigned kLargestShift = 8;
}  // namespace

// With the blocks that take the least room.
RouteGroups::RouteGroups(const std::vector<GroupId>& groups) {
  for (unsigned shift = 0; shift <= kLargestShift; ++shift) {
    RouteGroups candidate(groups, shift);
    if (shift == 0 || candidate.bytes() < bytes()) *this = std::move(candidate);
  }
}

RouteGroups::RouteGroups(const std::vector<GroupId>& groups, unsigned shift)
    : size_(groups.size()), shift_(shift), mask_((RouteId{1} << shift) - 1) {
  const size_t length = size_t{1} << shift;
  for (size_t from = 0; from < groups.size(); from += length) {
    const auto begin = groups.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end = groups.begin() + static_cast<std::ptrdiff_t>(std::min(from + length, groups.size()));
    if (std::adjacent_find(begin, end, std::not_equal_to<>()) == end) {
      blocks_.push_back(*begin);
      continue;
    }
    blocks_.push_back(kListed | static_cast<uint32_t>(listed_.size()));
    listed_.insert(listed_.end(), begin, end);
  }
  blocks_.shrink_to_fit();
  listed_.shrink_to_fit();
}

}  // namespace heddle::dataplane
