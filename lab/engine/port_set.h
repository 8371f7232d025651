// Sets of a node's ports: the ones that have something to do. Most ports of most nodes have nothing to do in most
// windows, so nobody looks at all of them.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include <rte_prefetch.h>

#include "net/packet.h"

namespace heddle::lab {

class PortSet {
 public:
  explicit PortSet(size_t ports) : words_((ports + 63) / 64) {}

  void add(PortId port) { words_[port / 64] |= uint64_t{1} << (port % 64U); }
  void remove(PortId port) { words_[port / 64] &= ~(uint64_t{1} << (port % 64U)); }
  bool has(PortId port) const { return (words_[port / 64] >> (port % 64U) & 1U) != 0; }
  void add_word(size_t word, uint64_t ports) { words_[word] |= ports; }
  uint64_t word(size_t at) const { return words_[at]; }
  size_t words() const { return words_.size(); }

  // Calls `visit(port)` in ascending order; it may remove the port that it is called with.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (size_t word = 0; word < words_.size(); ++word) visit_bits(words_[word], word, visit);
  }
  template <typename Visit>
  static void visit_bits(uint64_t bits, size_t word, const Visit& visit) {
    for (; bits != 0; bits &= bits - 1)
      visit(static_cast<PortId>(word * 64 + static_cast<size_t>(std::countr_zero(bits))));
  }

 private:
  std::vector<uint64_t> words_;
};

// Ports of a node that packets were sent to in a window. Written by the senders, which may run on several threads, and
// read by the node in the next window; the two parities lie in different cache lines.
class Inbox {
 public:
  struct alignas(64) Word {
    std::atomic<uint64_t> ports{0};
  };

  explicit Inbox(size_t ports)
      : own_(std::make_unique<Word[]>(2 * ((ports + 63) / 64))), words_(own_.get()), count_((ports + 63) / 64) {}

  // Lets it lie at `words`, which outlive it, 2 × words() of them: beside the inboxes of other nodes. Nothing was sent
  // yet, and no bell made.
  void move_to(Word* words) {
    words_ = words;
    own_.reset();
  }

  size_t words() const { return count_; }
  // What was sent in the window before the one of this parity.
  uint64_t peek(size_t word, unsigned parity) const {
    return words_[2 * word + 1 - parity].ports.load(std::memory_order_relaxed);
  }
  bool any(unsigned parity) const {
    for (size_t word = 0; word < count_; ++word) {
      if (peek(word, parity) != 0) return true;
    }
    return false;
  }
  uint64_t take(size_t word, unsigned parity) {
    std::atomic<uint64_t>& ports = words_[2 * word + 1 - parity].ports;
    const uint64_t was = ports.load(std::memory_order_relaxed);
    if (was != 0) ports.store(0, std::memory_order_relaxed);
    return was;
  }

  // A sender's end of one port: the word's address, and the bit in the address's low bits, which are free.
  class Bell {
   public:
    Bell() = default;
    // `alone`: all nodes run on one thread. A locked instruction would wait for the word's cache line.
    Bell(Inbox& inbox, PortId port, bool alone)
        : word_and_bit_(reinterpret_cast<uintptr_t>(&inbox.words_[2 * (port / 64)]) | port % 64U |
                        (alone ? kAlone : 0)) {}
    // Asks for what `ring` will write: it lies at the receiver.
    void prefetch(unsigned parity) const { rte_prefetch0_write(word_of(parity)); }
    void ring(unsigned parity) const {
      if (word_and_bit_ == 0) return;
      std::atomic<uint64_t>& ports = word_of(parity)->ports;
      const uint64_t bit = uint64_t{1} << (word_and_bit_ & 63U);
      if ((word_and_bit_ & kAlone) != 0) {
        ports.store(ports.load(std::memory_order_relaxed) | bit, std::memory_order_relaxed);
      } else {
        ports.fetch_or(bit, std::memory_order_relaxed);
      }
    }

   private:
    Word* word_of(unsigned parity) const {
      const uintptr_t address = word_and_bit_ & ~(kAlone | uintptr_t{63});
      return reinterpret_cast<Word*>(address) + parity;  // NOLINT(performance-no-int-to-ptr): what it was made from
    }

    static constexpr uintptr_t kAlone = uintptr_t{1} << 63U;  // no user-space address has it
    uintptr_t word_and_bit_ = 0;
  };

 private:
  std::unique_ptr<Word[]> own_;
  Word* words_;
  size_t count_;
};

}  // namespace heddle::lab
