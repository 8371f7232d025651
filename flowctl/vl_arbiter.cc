#include "flowctl/vl_arbiter.h"

#include <algorithm>

namespace heddle::flowctl {

namespace {
constexpr int32_t kWeightUnit = 64;
constexpr int64_t kLimitUnit = 4096;
constexpr uint8_t kNoLimit = 255;
}  // namespace

bool VlArbiterSettings::is_on() const {
  const auto weighs = [](const VlEntry& entry) { return entry.weight != 0; };
  return std::any_of(high.begin(), high.end(), weighs) || std::any_of(low.begin(), low.end(), weighs);
}

VlArbiter::VlArbiter(const VlArbiterSettings& settings)
    : limit_(settings.high_limit == kNoLimit ? -1 : settings.high_limit * kLimitUnit) {
  for (auto [from, to] : {std::pair{&settings.high, &high_}, std::pair{&settings.low, &low_}}) {
    for (const VlEntry& entry : *from) {
      if (entry.weight != 0) to->entries.push_back(entry);
    }
    if (!to->entries.empty()) to->left = to->entries.front().weight * kWeightUnit;
  }
}

unsigned VlArbiter::pick(uint16_t open) {
  low_waits_ = low_.names(open);
  const bool spent = limit_ >= 0 && high_sent_ != 0 && high_sent_ >= limit_;
  from_high_ = !(low_waits_ && spent);
  unsigned vl = from_high_ ? high_.pick(open) : kNone;
  if (vl != kNone) return vl;
  from_high_ = false;
  return low_.pick(open);
}

void VlArbiter::sent(uint32_t bytes) {
  Table& table = from_high_ ? high_ : low_;
  table.left -= static_cast<int32_t>(bytes);
  // What the high table sends while nobody waits for the low one counts for nothing.
  high_sent_ = from_high_ && low_waits_ ? high_sent_ + bytes : 0;
}

bool VlArbiter::Table::names(uint16_t open) const {
  return std::any_of(entries.begin(), entries.end(), [open](const VlEntry& e) { return ((open >> e.vl) & 1U) != 0; });
}

// The entry at hand if it has weight left and its lane can send, else the next that can, with all of its weight.
unsigned VlArbiter::Table::pick(uint16_t open) {
  if (entries.empty()) return kNone;
  const auto can = [&](size_t i) { return ((open >> entries[i].vl) & 1U) != 0; };
  if (left > 0 && can(at)) return entries[at].vl;
  for (size_t step = 1; step <= entries.size(); ++step) {
    const size_t next = (at + step) % entries.size();
    if (!can(next)) continue;
    at = next;
    left = entries[at].weight * kWeightUnit;
    return entries[at].vl;
  }
  return kNone;
}

}  // namespace heddle::flowctl
