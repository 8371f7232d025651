// Which member takes which share: a table of slots that control builds from weights and the packet path indexes with a
// hash or a random number (weighted-cost multipathing; Zhou et al., EuroSys 2014).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle::lb {

class WeightedTable {
 public:
  static constexpr unsigned kLeastSlots = 1U << 12U;
  static constexpr unsigned kMostSlots = 1U << 18U;

  struct Member {
    uint16_t weight = 1;    // 0: gets nothing, unless all have 0
    uint64_t identity = 0;  // tells who kept a place since the table before; each once

    friend bool operator==(const Member&, const Member&) = default;
  };

  // Slots for 1–64 members in proportion to their weights, each within one slot of its share: as few slots as bring
  // every member within 1 % of its weight, if kMostSlots are enough for that, and no fewer than `before` had. Of
  // `before` (null: none) as many slots as possible stay with their member: only what must move does.
  explicit WeightedTable(std::span<const Member> members, const WeightedTable* before = nullptr);

  // Index of the member that `hash`, uniform over 32 bits, belongs to.
  unsigned member(uint32_t hash) const { return slots_[hash >> shift_]; }

  unsigned size() const { return static_cast<unsigned>(slots_.size()); }
  // Whether it was made for exactly these.
  bool is_of(std::span<const Member> members) const;
  // How many slots each member has.
  std::vector<uint32_t> counts() const;
  // Share of the hash space whose member differs.
  double moved_from(const WeightedTable& before) const;

 private:
  void inherit(const WeightedTable& before);
  uint64_t identity_at(uint32_t slot, unsigned slots) const;

  std::vector<uint8_t> slots_;  // a power of two
  unsigned shift_ = 0;
  std::vector<Member> members_;
};

}  // namespace heddle::lb
