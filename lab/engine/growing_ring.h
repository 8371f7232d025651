// A queue of small values in a ring that doubles when it is full and never shrinks: a deque would take 600 bytes empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <rte_prefetch.h>

namespace heddle::lab {

template <typename T>
class GrowingRing {
 public:
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  void push(const T& value) {
    if (size() == ring_.size()) grow();
    ring_[tail_++ & (ring_.size() - 1)] = value;
  }
  void push_front(const T& value) {
    if (size() == ring_.size()) grow();
    ring_[--head_ & (ring_.size() - 1)] = value;
  }
  const T& front() const { return ring_[head_ & (ring_.size() - 1)]; }
  T pop() { return ring_[head_++ & (ring_.size() - 1)]; }
  // Asks for what `pop` will read.
  void prefetch() const {
    if (!ring_.empty()) rte_prefetch0(&front());
  }
  // From the next to be popped on.
  template <typename Each>
  void for_each(const Each& each) const {
    for (uint64_t i = head_; i != tail_; ++i) each(ring_[i & (ring_.size() - 1)]);
  }

 private:
  void grow() {
    std::vector<T> wider(ring_.empty() ? 4 : ring_.size() * 2);
    for (uint64_t i = head_; i != tail_; ++i) wider[i & (wider.size() - 1)] = ring_[i & (ring_.size() - 1)];
    ring_ = std::move(wider);
  }

  std::vector<T> ring_;
  uint64_t head_ = 0;  // both count on and wrap
  uint64_t tail_ = 0;
};

}  // namespace heddle::lab
