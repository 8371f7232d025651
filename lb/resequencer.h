// Packets of a queue pair in the order of their numbers again, at the last switch before the host: the cure for what
// spraying does, where NICs want packets in order.
//
// A flow is a destination address and queue pair; its order that of the PSN (24 bits, serial arithmetic: IBTA 9.7.1).
// Only data of reliable and unreliable connections is looked at; ACK, CNP, datagrams and other traffic go round it.
// What comes before its turn is held until the gap before it closes, for no longer than the hold time, and within
// bounds: beyond them the gap is given up and everything held of the flow leaves, in order. What comes after its turn
// (a duplicate, a repeat, a packet that was given up) passes at once. Nothing is allocated after the resequencer was
// made.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "net/packet.h"
#include "net/time.h"
#include "telemetry/counters.h"

namespace heddle::lb {

struct ResequencerSettings {
  bool enabled = false;
  Duration hold_time = 100 * kMicrosecond;  // at most this long is a packet held
  uint64_t max_flow_bytes = 2'000'000;      // held of one flow
  uint64_t max_bytes = 16'000'000;          // held of all
  uint32_t max_packets = 16'384;            // held of all
  uint32_t max_flows = 16'384;              // whose next number is known at a time
};

struct ResequencerCounters {
  telemetry::Counter in_order;    // data packets that came in their turn
  telemetry::Counter held;        // that had to wait
  telemetry::Counter released;    // of those, that left because the gap before them closed
  telemetry::Counter timed_out;   // that left because they, or one behind them, had waited long enough
  telemetry::Counter overflowed;  // that left, or were not held, because a bound was reached
  telemetry::Counter late;        // that came after their turn
  telemetry::Counter resyncs;     // jumps of a flow's number by more than the window: another queue pair in its place
  telemetry::Counter unknown;     // packets that found no room in the flow table and passed as they came
  telemetry::Counter max_degree;  // the farthest that a packet was ahead of its turn
};

// The same as plain numbers, over several resequencers.
struct ResequencerTotals {
  uint64_t in_order = 0;
  uint64_t held = 0;
  uint64_t released = 0;
  uint64_t timed_out = 0;
  uint64_t overflowed = 0;
  uint64_t late = 0;
  uint64_t resyncs = 0;
  uint64_t unknown = 0;
  uint64_t max_degree = 0;

  ResequencerTotals& operator+=(const ResequencerCounters& of) {
    in_order += of.in_order.get();
    held += of.held.get();
    released += of.released.get();
    timed_out += of.timed_out.get();
    overflowed += of.overflowed.get();
    late += of.late.get();
    resyncs += of.resyncs.get();
    unknown += of.unknown.get();
    max_degree = std::max(max_degree, of.max_degree.get());
    return *this;
  }
  friend bool operator==(const ResequencerTotals&, const ResequencerTotals&) = default;
};

class Resequencer {
 public:
  // How far ahead of its turn a packet may be.
  static constexpr uint32_t kWindow = 1024;

  explicit Resequencer(const ResequencerSettings& settings);

  // A RoCE packet on its way out at `now`: calls `release(packet)` for every packet that may leave now, in order; that
  // may be none, this one, this one and others. A held packet's meta must stay as it is; its `arrival` becomes `now`.
  template <typename Release>
  void receive(Packet* packet, Time now, const Release& release);
  // Releases whatever has been held for the hold time.
  template <typename Release>
  void expire(Time now, const Release& release);
  // Releases everything.
  template <typename Release>
  void flush(const Release& release);

  // When `expire` is next due, if anything is held. May be early, never late.
  bool holds_any() const { return held_packets_ != 0; }
  Time next_expiry() const { return next_expiry_; }
  uint32_t held_packets() const { return held_packets_; }
  uint64_t held_bytes() const { return held_bytes_; }
  const ResequencerCounters& counters() const { return counters_; }

 private:
  static constexpr uint32_t kNone = ~0U;
  static constexpr unsigned kWays = 8;
  static constexpr uint32_t kPsnMask = 0xffffff;
  static constexpr uint32_t kHalf = 0x800000;

  struct Flow {
    uint64_t key = 0;  // 0: nobody
    uint32_t expected = 0;
    uint32_t ahead = 0;  // how far beyond `expected` the farthest held packet is
    uint32_t window = kNone;
    uint32_t held = 0;
    bool fresh = true;     // no packet seen yet
    bool guessed = false;  // its first packet came from the midst of a message: `expected` lies before it
    uint64_t bytes = 0;
    Time seen = 0;
  };
  struct Window {
    Packet* slots[kWindow];  // by PSN
  };
  struct Free {
    void operator()(Window* windows) const { std::free(windows); }  // NOLINT(cppcoreguidelines-no-malloc)
  };

  // How many packets may be missing before the first one that is seen of a flow, if that one begins no message.
  static constexpr uint32_t kGuess = 64;

  static bool is_data(uint8_t opcode);
  static bool begins_message(uint8_t opcode);
  static uint64_t key_of(const Packet* packet, const uint8_t* frame);
  Flow* find(uint64_t key, Time now);
  template <typename Release>
  void find_beginning(Flow& flow, uint32_t psn, bool begins, const Release& release);
  bool may_hold(Flow& flow, uint32_t ahead, uint64_t bytes);
  void hold(Flow& flow, Packet* packet, uint32_t psn, uint32_t ahead, Time now);
  Packet* take(Flow& flow, uint32_t psn);
  void let_go(Flow& flow);
  template <typename Release>
  uint32_t release_run(Flow& flow, const Release& release);
  template <typename Release>
  uint32_t release_until(Flow& flow, uint32_t ahead, const Release& release);

  ResequencerSettings settings_;
  std::vector<Flow> flows_;  // sets of kWays
  unsigned shift_ = 0;
  std::unique_ptr<Window, Free> memory_;
  std::vector<uint32_t> free_windows_;
  std::vector<Flow*> active_;  // that hold something, by window; null: none
  uint32_t held_packets_ = 0;
  uint64_t held_bytes_ = 0;
  Time next_expiry_ = 0;
  ResequencerCounters counters_;
};

// ---------------------------------------------------------------------------------------------------------------------

// Opcodes of reliable (000) and unreliable (001) connections but for acknowledgements: ACK 0x11, ATOMIC ACK 0x12. READ
// responses are numbered by the requests they answer, and are data all the same.
inline bool Resequencer::is_data(uint8_t opcode) { return opcode < 0x40 && !net::is_roce_control(opcode); }

// SEND and WRITE first and only, READ request, READ response first and only, atomics (IBTA table 38).
inline bool Resequencer::begins_message(uint8_t opcode) {
  constexpr uint32_t kBegin = 1U << 0x00U | 1U << 0x04U | 1U << 0x05U | 1U << 0x06U | 1U << 0x0aU | 1U << 0x0bU |
                              1U << 0x0cU | 1U << 0x0dU | 1U << 0x10U | 1U << 0x13U | 1U << 0x14U | 1U << 0x17U;
  return (kBegin >> (opcode & 0x1fU) & 1U) != 0;
}

template <typename Release>
void Resequencer::receive(Packet* packet, Time now, const Release& release) {
  const uint8_t* frame = frame_of(packet);
  const auto* bth = net::header_at<net::Bth>(frame, meta_of(packet).l4_offset + sizeof(net::UdpHeader));
  if (!is_data(bth->opcode)) return release(packet);
  Flow* flow = find(key_of(packet, frame), now);
  if (flow == nullptr) {
    counters_.unknown.add(1);
    return release(packet);
  }
  const uint32_t psn = bth->psn;
  if (flow->fresh || flow->guessed) [[unlikely]]
    find_beginning(*flow, psn, begins_message(bth->opcode), release);
  const uint32_t ahead = (psn - flow->expected) & kPsnMask;
  if (ahead == 0) [[likely]] {
    counters_.in_order.add(1);
    flow->expected = (psn + 1) & kPsnMask;
    flow->ahead -= flow->ahead != 0 ? 1U : 0U;
    release(packet);
    if (flow->held != 0) counters_.released.add(release_run(*flow, release));
    return;
  }
  if (ahead >= kHalf) {  // behind
    counters_.late.add(1);
    if (((flow->expected - psn) & kPsnMask) > kWindow && flow->held == 0) {
      counters_.resyncs.add(1);
      flow->expected = (psn + 1) & kPsnMask;
    }
    return release(packet);
  }
  if (ahead > counters_.max_degree.get() && ahead < kWindow) counters_.max_degree.set(ahead);
  if (ahead < kWindow && flow->window != kNone && memory_.get()[flow->window].slots[psn % kWindow] != nullptr) {
    counters_.late.add(1);  // the same again, while the first copy is held
    return release(packet);
  }
  if (may_hold(*flow, ahead, packet->pkt_len)) return hold(*flow, packet, psn, ahead, now);
  // No room: the gap is given up. All that is held leaves in order, this packet in its place among it.
  if (ahead >= kWindow) counters_.resyncs.add(1);
  counters_.overflowed.add(1 + release_until(*flow, ahead < kWindow ? ahead : kWindow, release));
  flow->expected = (psn + 1) & kPsnMask;
  flow->ahead = flow->held == 0 ? 0 : flow->ahead - 1;
  release(packet);
  if (flow->held != 0) counters_.released.add(release_run(*flow, release));
}

// Where a flow begins that has not been seen before: at the first packet, if that begins a message. If not, others may
// yet come before it: it is held like any that is ahead of its turn, until one comes that does begin a message.
template <typename Release>
void Resequencer::find_beginning(Flow& flow, uint32_t psn, bool begins, const Release& release) {
  if (flow.fresh) {
    flow.fresh = false;
    flow.guessed = !begins;
    flow.expected = begins ? psn : (psn - kGuess) & kPsnMask;
  } else if (begins) {
    flow.guessed = false;
    const uint32_t ahead = (psn - flow.expected) & kPsnMask;
    if (ahead >= kWindow) return;
    counters_.released.add(release_until(flow, ahead, release));
    if (flow.held != 0) counters_.released.add(release_run(flow, release));  // a copy of this one may be held
  }
}

// What comes next without a gap.
template <typename Release>
uint32_t Resequencer::release_run(Flow& flow, const Release& release) {
  uint32_t released = 0;
  while (flow.held != 0) {
    Packet* packet = take(flow, flow.expected);
    if (packet == nullptr) break;
    flow.expected = (flow.expected + 1) & kPsnMask;
    flow.ahead--;
    ++released;
    release(packet);
  }
  if (flow.held == 0) let_go(flow);
  return released;
}

// Everything held less than `ahead` beyond the expected number; that becomes what is `ahead`.
template <typename Release>
uint32_t Resequencer::release_until(Flow& flow, uint32_t ahead, const Release& release) {
  uint32_t released = 0;
  for (uint32_t i = 0; i < ahead && flow.held != 0; ++i) {
    Packet* packet = take(flow, (flow.expected + i) & kPsnMask);
    if (packet == nullptr) continue;
    ++released;
    release(packet);
  }
  flow.expected = (flow.expected + ahead) & kPsnMask;
  flow.ahead = flow.held == 0 ? 0 : flow.ahead - ahead;
  if (flow.held == 0) let_go(flow);
  return released;
}

template <typename Release>
void Resequencer::expire(Time now, const Release& release) {
  if (held_packets_ == 0 || before(now, next_expiry_)) return;
  Time next = now + settings_.hold_time;
  for (Flow*& slot : active_) {
    Flow* flow = slot;
    if (flow == nullptr) continue;
    uint32_t until = 0;  // one past the last that has waited long enough
    for (uint32_t i = 1; i <= flow->ahead; ++i) {
      const Packet* packet = memory_.get()[flow->window].slots[(flow->expected + i) % kWindow];
      if (packet != nullptr && elapsed(now, meta_of(packet).arrival) >= settings_.hold_time) until = i + 1;
    }
    if (until != 0) {
      counters_.timed_out.add(release_until(*flow, until, release));
      if (flow->held != 0) counters_.released.add(release_run(*flow, release));
    }
    if (flow->held == 0) continue;
    for (uint32_t i = 1; i <= flow->ahead; ++i) {
      const Packet* packet = memory_.get()[flow->window].slots[(flow->expected + i) % kWindow];
      if (packet == nullptr) continue;
      const Time due = meta_of(packet).arrival + settings_.hold_time;
      if (before(due, next)) next = due;
    }
  }
  next_expiry_ = next;
}

template <typename Release>
void Resequencer::flush(const Release& release) {
  for (Flow*& slot : active_) {
    if (slot != nullptr) release_until(*slot, kWindow, release);
  }
}

}  // namespace heddle::lb
