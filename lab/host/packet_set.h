// A set of packets at or beyond a moving first one: which of a queue pair's packets have come, or were acknowledged,
// out of order. Takes no memory while all is in order.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace heddle::lab {

class PacketSet {
 public:
  bool contains(uint64_t psn) const {
    if (psn < first_ || psn - first_ >= span()) return false;
    return ((words_[(psn / 64) & mask_] >> (psn % 64)) & 1U) != 0;
  }
  // `psn` is at or beyond the first. Nothing happens if it is there already.
  void insert(uint64_t psn) {
    while (psn - first_ >= span()) grow();
    uint64_t& word = words_[(psn / 64) & mask_];
    const uint64_t bit = uint64_t{1} << (psn % 64);
    count_ += (word & bit) == 0 ? 1 : 0;
    word |= bit;
  }
  bool empty() const { return count_ == 0; }

  // Moves the first to `psn`, forgetting what lies before it.
  void advance_to(uint64_t psn) {
    if (count_ != 0) {
      for (; first_ < psn && count_ != 0; ++first_) take(first_);
    }
    first_ = psn;
  }
  // Removes `psn` if it is there.
  bool take(uint64_t psn) {
    if (!contains(psn)) return false;
    words_[(psn / 64) & mask_] &= ~(uint64_t{1} << (psn % 64));
    --count_;
    return true;
  }
  uint64_t first() const { return first_; }

 private:
  // A window of `span` starting at first_ never uses a word twice: one word is kept spare.
  uint64_t span() const { return words_.empty() ? 0 : (words_.size() - 1) * 64; }
  void grow() {
    std::vector<uint64_t> wider(words_.empty() ? 4 : words_.size() * 2);
    const uint64_t mask = wider.size() - 1;
    for (uint64_t i = 0; i < words_.size(); ++i) {
      const uint64_t at = first_ / 64 + i;
      wider[at & mask] = words_[at & mask_];
    }
    words_ = std::move(wider);
    mask_ = mask;
  }

  std::vector<uint64_t> words_;
  uint64_t mask_ = 0;
  uint64_t first_ = 0;
  uint64_t count_ = 0;
};

}  // namespace heddle::lab
