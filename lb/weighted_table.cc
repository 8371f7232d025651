#include "lb/weighted_table.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "net/random.h"

namespace heddle::lb {

namespace {

constexpr uint8_t kFree = 0xff;

// Whole slots for each member by largest remainder: each within one slot of its share, all together `slots`.
std::vector<uint32_t> apportion(const std::vector<uint64_t>& weights, uint64_t total, uint32_t slots) {
  std::vector<uint32_t> counts(weights.size());
  std::vector<size_t> by_remainder(weights.size());
  std::iota(by_remainder.begin(), by_remainder.end(), size_t{0});
  uint32_t given = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    counts[i] = static_cast<uint32_t>(weights[i] * slots / total);
    given += counts[i];
  }
  const auto remainder = [&](size_t i) { return weights[i] * slots % total; };
  std::stable_sort(by_remainder.begin(), by_remainder.end(),
                   [&](size_t a, size_t b) { return remainder(a) > remainder(b); });
  for (size_t i = 0; given < slots; ++i, ++given) counts[by_remainder[i]]++;
  return counts;
}

bool within_one_percent(const std::vector<uint32_t>& counts, const std::vector<uint64_t>& weights, uint64_t total,
                        uint32_t slots) {
  for (size_t i = 0; i < counts.size(); ++i) {
    const uint64_t have = counts[i] * total;
    const uint64_t want = weights[i] * slots;
    if ((have > want ? have - want : want - have) * 100 > want) return false;
  }
  return true;
}

}  // namespace

WeightedTable::WeightedTable(std::span<const Member> members, const WeightedTable* before)
    : members_(members.begin(), members.end()) {
  std::vector<uint64_t> weights;
  for (const Member& member : members) weights.push_back(member.weight);
  uint64_t total = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  if (total == 0) {
    std::fill(weights.begin(), weights.end(), uint64_t{1});
    total = weights.size();
  }
  // Never fewer than before: where two slots become one, their members cannot both keep it.
  unsigned slots = before != nullptr ? std::max(kLeastSlots, before->size()) : kLeastSlots;
  std::vector<uint32_t> wanted = apportion(weights, total, slots);
  while (slots < kMostSlots && !within_one_percent(wanted, weights, total, slots)) {
    slots *= 2;
    wanted = apportion(weights, total, slots);
  }
  shift_ = 32U - static_cast<unsigned>(std::countr_zero(slots));
  slots_.assign(slots, kFree);
  if (before != nullptr) inherit(*before);

  // Slots in a mixed order, the same for every table of this size: what a member gives up, and what it gets, lies
  // scattered.
  std::vector<uint32_t> order(slots);
  std::iota(order.begin(), order.end(), 0U);
  Random random(slots);
  for (uint32_t i = slots - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);

  for (const uint32_t slot : order) {  // who has too much gives up; what is left of `wanted` is what is still due
    uint8_t& member = slots_[slot];
    if (member == kFree) continue;
    if (wanted[member] == 0) {
      member = kFree;
    } else {
      wanted[member]--;
    }
  }
  size_t next = 0;
  for (const uint32_t slot : order) {  // the free ones in turn to those that lack some
    if (slots_[slot] != kFree) continue;
    while (wanted[next % wanted.size()] == 0) ++next;
    slots_[slot] = static_cast<uint8_t>(next % wanted.size());
    wanted[next++ % wanted.size()]--;
  }
}

// Whose the slots were, as far as their members are still there.
void WeightedTable::inherit(const WeightedTable& before) {
  std::vector<uint8_t> now(before.members_.size(), kFree);
  for (size_t old = 0; old < now.size(); ++old) {
    const auto at = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
      return member.identity == before.members_[old].identity;
    });
    if (at != members_.end()) now[old] = static_cast<uint8_t>(at - members_.begin());
  }
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    slots_[slot] = now[before.member(static_cast<uint32_t>(uint64_t{slot} << shift_))];
  }
}

bool WeightedTable::is_of(std::span<const Member> members) const {
  return std::equal(members.begin(), members.end(), members_.begin(), members_.end());
}

std::vector<uint32_t> WeightedTable::counts() const {
  std::vector<uint32_t> counts(members_.size());
  for (const uint8_t member : slots_) counts[member]++;
  return counts;
}

double WeightedTable::moved_from(const WeightedTable& before) const {
  const unsigned fine = std::max(size(), before.size());
  uint32_t moved = 0;
  for (uint32_t slot = 0; slot < fine; ++slot) moved += identity_at(slot, fine) != before.identity_at(slot, fine);
  return static_cast<double>(moved) / static_cast<double>(fine);
}

uint64_t WeightedTable::identity_at(uint32_t slot, unsigned slots) const {
  return members_[member(static_cast<uint32_t>((uint64_t{slot} << 32U) / slots))].identity;
}

}  // namespace heddle::lb
