// One direction of a link: what was sent and has not arrived.
//
// The sending and the receiving node may run on different threads in the same window. What is sent in one window
// arrives in a later one, so the sender fills one of two outboxes, by the window's parity, and the receiver empties the
// other. Packets themselves are left alone: most have waited for long when they are sent, and lie in memory until the
// receiver asks for them. A wire is touched for a few packets per window and keeps them in itself: anywhere else they
// would be one more miss.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lab/engine/capture.h"
#include "lab/engine/growing_ring.h"
#include "lab/engine/packet_arena.h"
#include "lab/engine/port_set.h"
#include "net/drop_reason.h"
#include "net/packet.h"
#include "net/random.h"
#include "net/time.h"

namespace heddle::lab {

// A packet that is under way, and when its last bit arrives.
struct Flight {
  Packet* packet = nullptr;
  Time arrival = 0;
};

// What is sent in one window: two cache lines, of which the first is enough for three packets.
class alignas(64) Outbox {
 public:
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  void push(const Flight& flight) {
    if (count_ < kHere) {
      here_[count_] = flight;
    } else {
      push_more(flight);
    }
    ++count_;
  }
  // In the order of sending.
  template <typename Each>
  void for_each(const Each& each) const {
    for (uint32_t i = 0; i < std::min(count_, kHere); ++i) each(here_[i]);
    if (count_ > kHere) [[unlikely]]
      std::for_each(more_->begin(), more_->end(), each);
  }
  void clear() {
    if (count_ > kHere) more_->clear();
    count_ = 0;
  }

 private:
  static constexpr uint32_t kHere = 7;

  [[gnu::noinline]] void push_more(const Flight& flight);

  uint32_t count_ = 0;
  std::unique_ptr<std::vector<Flight>> more_;  // null until it is needed
  std::array<Flight, kHere> here_;
};
static_assert(sizeof(Outbox) == 128);

// What the receiver has taken over and what arrives after the window, in order of arrival: on links that are not longer
// than a window, a packet or two.
class LateFlights {
 public:
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_ + (more_ == nullptr ? 0 : more_->size()); }
  const Flight& front() const { return here_[0]; }
  void push(const Flight& flight) {
    if (count_ < kHere) {
      here_[count_++] = flight;
    } else {
      push_more(flight);
    }
  }
  Flight pop() {
    const Flight first = here_[0];
    for (uint32_t i = 1; i < count_; ++i) here_[i - 1] = here_[i];
    --count_;
    if (more_ != nullptr && !more_->empty()) here_[count_++] = more_->pop();
    return first;
  }
  // Those that lie in here, the first.
  std::span<const Flight> nearest() const { return {here_.data(), count_}; }

 private:
  static constexpr uint32_t kHere = 7;

  [[gnu::noinline]] void push_more(const Flight& flight);

  uint32_t count_ = 0;                         // of those in here
  std::unique_ptr<GrowingRing<Flight>> more_;  // null until it is needed
  std::array<Flight, kHere> here_;
};

class alignas(64) Wire {
 public:
  // Something that changes for packets whose transmission begins at or after `at`.
  struct Change {
    Time at = 0;
    bool up = true;
    double loss = 0;
  };

  Wire(Duration delay, int overhead, double loss, double bit_error, uint64_t seed)
      : sent_{.delay = delay, .bell = {}, .overhead = overhead, .seed = seed, .particulars = {}} {
    if (loss == 0 && bit_error == 0) return;
    particulars().loss = loss;
    particulars().bit_error = bit_error;
  }

  // All that will ever happen to the link, ascending; both ends read it before it happens, which is how a packet
  // already on its way can be lost to a failure that comes.
  void plan(std::vector<Change> changes) {
    if (!changes.empty()) particulars().changes = std::move(changes);
  }

  // --- the sending node
  // -----------------------------------------------------------------------------------------------

  // Sends a packet of that length whose transmission takes [start, end); returns why it will not arrive, or kNone. A
  // lost packet stays with the caller.
  DropReason send(Packet* packet, uint32_t frame_bytes, Time start, Time end, unsigned parity) {
    if (sent_.particulars != nullptr) [[unlikely]] {
      const DropReason fate = sent_.particulars->fate_of(frame_bytes, start, end + sent_.delay);
      if (fate != DropReason::kNone) return fate;
      if (sent_.particulars->capture != nullptr) sent_.particulars->capture->add(packet, end);
      sent_.particulars->busy += end - start;
    }
    if (outbox_[parity].empty()) sent_.bell.ring(parity);
    outbox_[parity].push({packet, end + sent_.delay});
    sent_.packets++;
    sent_.frame_bytes += frame_bytes;
    return DropReason::kNone;
  }
  // Whom to tell of the first packet sent in a window; nobody by default.
  void announce_by(Inbox::Bell bell) { sent_.bell = bell; }
  // Keeps a copy of all that is sent from now on in `buffer`.
  void capture_into(CaptureBuffer& buffer) { particulars().capture = &buffer; }
  // Adds up how long it sends: for links whose rate changes, where bytes do not say it.
  void measure_busy() { particulars().measures_busy = true; }
  // What has been added up; nothing if it was not asked for.
  std::optional<Duration> busy() const {
    if (sent_.particulars == nullptr || !sent_.particulars->measures_busy) return std::nullopt;
    return sent_.particulars->busy;
  }
  uint64_t packets() const { return sent_.packets; }
  uint64_t wire_bytes() const {
    return static_cast<uint64_t>(static_cast<int64_t>(sent_.frame_bytes) +
                                 static_cast<int64_t>(sent_.packets) * sent_.overhead);
  }

  // --- the receiving node
  // ---------------------------------------------------------------------------------------------

  // Calls `each(packet, arrival)` for what arrives before `until`, in order of arrival. `sent`: something was in the
  // window before.
  template <typename Each>
  void receive(bool sent, unsigned parity, Time until, const Each& each) {
    while (!late_.empty() && late_.front().arrival < until) {
      const Flight flight = late_.pop();
      each(flight.packet, flight.arrival);
    }
    if (!sent) return;
    Outbox& outbox = outbox_[1 - parity];
    outbox.for_each([&](const Flight& flight) {
      if (flight.arrival < until) {
        each(flight.packet, flight.arrival);
      } else {
        late_.push(flight);
      }
    });
    outbox.clear();
  }
  // Of what `receive` has left; ~0 if nothing.
  Time next_arrival() const { return late_.empty() ? ~Time{0} : late_.front().arrival; }
  // Asks for the lines that the receiver (or the sender) is about to touch.
  void prefetch_for_receiver(unsigned parity) const {
    rte_prefetch0(&outbox_[1 - parity]);
    rte_prefetch0(&late_);
  }
  void prefetch_for_sender(unsigned parity) const {
    rte_prefetch0(&outbox_[parity]);
    rte_prefetch0(&sent_);
  }
  // Once that has come: asks for what tells the receiver.
  void prefetch_bell(unsigned parity) const { sent_.bell.prefetch(parity); }
  // Some time before `receive`: asks for the packets that it will find.
  void prefetch_packets(unsigned parity, const PacketArena::Cache& packets) const {
    for (const Flight& flight : late_.nearest()) packets.prefetch_for_later(flight.packet);
    outbox_[1 - parity].for_each([&](const Flight& flight) { packets.prefetch_for_later(flight.packet); });
  }

  // --- between windows, nobody else running
  // ---------------------------------------------------------------------------

  uint64_t in_flight() const { return late_.size() + outbox_[0].size() + outbox_[1].size(); }

 private:
  // What befalls packets of a link that is not perfect, who looks at them, and how long they take if that varies.
  struct Particulars {
    DropReason fate_of(uint32_t frame_bytes, Time start, Time arrival);

    double loss = 0;
    double bit_error = 0;
    bool up = true;
    size_t next_change = 0;
    Random random;
    std::vector<Change> changes{};
    CaptureBuffer* capture = nullptr;
    bool measures_busy = false;
    Duration busy = 0;  // of packets that were not lost
  };
  Particulars& particulars() {
    if (sent_.particulars == nullptr) sent_.particulars.reset(new Particulars{.random = Random(sent_.seed)});
    return *sent_.particulars;
  }

  // The sender's.
  struct Sent {
    Duration delay;
    uint64_t packets = 0;
    uint64_t frame_bytes = 0;
    Inbox::Bell bell;
    int overhead;
    uint64_t seed;
    std::unique_ptr<Particulars> particulars;  // null: nothing is lost, nobody listens, one rate
  };
  std::array<Outbox, 2> outbox_;  // by the parity of the window in which it is filled
  alignas(64) Sent sent_;
  alignas(64) LateFlights late_;  // the receiver's
};
// An odd number of cache lines: with a power of two of them, the same lines of all wires would share a few sets of the
// cache.
static_assert(sizeof(Wire) == 7 * 64);

}  // namespace heddle::lab
