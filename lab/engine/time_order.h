// Puts what arrives at a switch in a window in order of time. Times lie anywhere in the window, so that a packet's
// place is nearly known beforehand: it is dropped into its slot of the window, and what shares a slot is put right.
// Sorting by comparison would guess every second comparison wrong.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "net/packet.h"

namespace heddle::lab {

struct Arrival {
  uint64_t order;  // time since the window began, port
  Packet* packet;
};

class TimeOrder {
 public:
  // Sorts by `order`; all are below 2^`bits`, and no two alike.
  void sort(std::vector<Arrival>& arrivals, unsigned bits) {
    if (arrivals.size() > kFew && bits > kSlotBits && drop_into_slots(arrivals, bits) > kMostInSlot) {
      std::sort(arrivals.begin(), arrivals.end(), earlier);
    } else {
      insert_in_turn(arrivals);
    }
  }

 private:
  static constexpr size_t kFew = 8;
  static constexpr unsigned kSlotBits = 8;
  static constexpr uint32_t kMostInSlot = 16;

  static bool earlier(const Arrival& a, const Arrival& b) { return a.order < b.order; }

  // Afterwards only arrivals of one slot may be out of order. Returns how many the fullest slot has.
  uint32_t drop_into_slots(std::vector<Arrival>& arrivals, unsigned bits) {
    const unsigned slot_bits = std::min<unsigned>(kSlotBits, std::bit_width(arrivals.size()));
    const unsigned slots = 1U << slot_bits;
    const unsigned shift = bits - slot_bits;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): as many as there are slots
    std::array<uint32_t, 1U << kSlotBits> place;
    std::fill_n(place.begin(), slots, 0);
    for (const Arrival& arrival : arrivals) ++place[arrival.order >> shift];
    uint32_t fullest = 0;
    uint32_t before = 0;
    for (unsigned slot = 0; slot < slots; ++slot) {
      const uint32_t here = place[slot];
      fullest = std::max(fullest, here);
      place[slot] = before;
      before += here;
    }
    slotted_.resize(arrivals.size());
    for (const Arrival& arrival : arrivals) slotted_[place[arrival.order >> shift]++] = arrival;
    arrivals.swap(slotted_);
    return fullest;
  }

  // Insertion sort: of what is nearly in order.
  static void insert_in_turn(std::vector<Arrival>& arrivals) {
    for (size_t i = 1; i < arrivals.size(); ++i) {
      const Arrival arrival = arrivals[i];
      size_t at = i;
      for (; at > 0 && arrival.order < arrivals[at - 1].order; --at) arrivals[at] = arrivals[at - 1];
      arrivals[at] = arrival;
    }
  }

  std::vector<Arrival> slotted_;
};

}  // namespace heddle::lab
