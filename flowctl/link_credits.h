// The credits of one port, for both directions of its link and all its virtual lanes, and when it must send
// flow-control packets.
//
// At once, if a lane's buffer has become freer and its peer might otherwise run out: that is, as soon as what the peer
// may still send is less than the link carries in a round trip. A buffer that holds much waits until a sixteenth of
// that has become free beside it: meanwhile what it holds keeps the next link busy, and where every link is congested
// there is not a flow-control packet for every packet. And on every tick of a period that the owner keeps, which tells
// the rest, and heals what lost packets have left wrong. The standard repeats for ever; here a lane goes quiet after
// kRepeats ticks in which nothing came, went or became free, so that an idle fabric has nothing to do.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "flowctl/credit.h"
#include "net/packet.h"
#include "net/rate.h"
#include "net/time.h"

namespace heddle::flowctl {

struct CreditSettings {
  CreditFormat format;
  uint64_t buffer = 128 * 1024;  // bytes behind every port, for each data lane
  unsigned lanes = 1;            // data lanes in use, from VL 0 on, 1–8
  // Flow-control packets of a lane are at most that far apart while it is in use; 0 = 65,536 symbol times of a 4x link
  // (IBTA 7.9.4.1: 262,144 bytes)
  Duration period = 0;
};

// A link whose ends keep credits.
struct CreditLink {
  Rate rate;
  Duration delay = 0;
  uint32_t packet = 0;  // the longest, in bytes
  int overhead = 0;
};

class LinkCredits {
 public:
  static constexpr unsigned kMaxLanes = kTrafficClasses;
  static constexpr uint8_t kRepeats = 16;
  static constexpr uint32_t kNewsOfHeld = 16;  // what is told at once is at least that part of what is held

  // At the start both ends know each other's buffers, as after the initialisation of the link.
  void configure(const CreditSettings& settings, const CreditLink& link) {
    format_ = settings.format;
    const auto capacity = static_cast<uint32_t>(settings.buffer / format_.block);
    // The packet under way in each direction, and the one that waits, beside what the wire holds.
    const uint64_t loop = link.rate.bytes_in(2 * link.delay) + 4 * static_cast<uint64_t>(link.packet + link.overhead);
    low_water_ = std::min(format_.window(), format_.blocks_of(loop));
    lanes_ = static_cast<uint8_t>(settings.lanes);
    for (unsigned vl = 0; vl < lanes_; ++vl) {
      Lane& lane = of_[vl];
      lane.tx.configure(format_);
      lane.rx.configure(format_, capacity);
      lane.tx.allow(lane.rx.tell());
    }
  }
  uint32_t blocks_of(uint32_t bytes) const {
    return format_.block == 64 ? (bytes + 63U) / 64U : format_.blocks_of(bytes);
  }

  // --- sending
  bool may_send(unsigned vl, uint32_t blocks) const { return of_[vl].tx.may_send(blocks); }
  void sent(unsigned vl, uint32_t blocks) {
    of_[vl].tx.sent(blocks);
    touch(vl);
  }
  // Blocks by which the peer's room is short of what keeps the link busy: how congested it is there.
  uint32_t shortfall(unsigned vl) const {
    const uint32_t available = of_[vl].tx.available();
    return available < low_water_ ? low_water_ - available : 0;
  }

  // --- receiving; flow-control packets may be due then
  // False if a promise was broken.
  bool received(unsigned vl, uint32_t blocks) {
    const bool kept = of_[vl].rx.receive(blocks);
    touch(vl);
    consider(vl);
    return kept;
  }
  void released(unsigned vl, uint32_t blocks) {
    of_[vl].rx.release(blocks);
    touch(vl);
    consider(vl);
  }

  // --- flow-control packets
  // Bit = lane that has one to send.
  uint8_t due() const { return due_; }
  CreditMessage take() {
    const auto vl = static_cast<unsigned>(__builtin_ctz(due_));
    due_ &= static_cast<uint8_t>(due_ - 1U);
    return {static_cast<uint8_t>(vl), of_[vl].tx.fctbs(), of_[vl].rx.tell()};
  }
  // One has come; its lane is in use.
  void heard(const CreditMessage& message) {
    of_[message.vl].tx.allow(message.fccl);
    of_[message.vl].rx.resync(message.fctbs);
    consider(message.vl);
  }
  bool knows(unsigned vl) const { return vl < lanes_; }
  // The period is over. True if it is to be kept up.
  bool tick() {
    due_ |= restless_;
    for (unsigned vl = 0; vl < lanes_; ++vl) {
      if (((restless_ >> vl) & 1U) == 0 || --of_[vl].repeats != 0) continue;
      restless_ &= static_cast<uint8_t>(~(1U << vl));
    }
    return restless_ != 0;
  }
  // Whether the owner must keep the period.
  bool is_restless() const { return restless_ != 0; }

  // The link has come up: its ends know nothing of each other.
  void restart() {
    for (unsigned vl = 0; vl < lanes_; ++vl) {
      of_[vl].tx.reset();
      of_[vl].rx.reset();
      due_ |= static_cast<uint8_t>(1U << vl);
      touch(vl);
    }
  }

  const CreditFormat& format() const { return format_; }
  unsigned lanes() const { return lanes_; }
  uint64_t held_bytes(unsigned vl) const { return uint64_t{of_[vl].rx.held()} * format_.block; }
  uint64_t peak_bytes(unsigned vl) const { return uint64_t{of_[vl].rx.peak()} * format_.block; }
  uint64_t capacity_bytes(unsigned vl) const { return uint64_t{of_[vl].rx.capacity()} * format_.block; }

 private:
  void touch(unsigned vl) {
    of_[vl].repeats = kRepeats;
    restless_ |= static_cast<uint8_t>(1U << vl);
  }
  void consider(unsigned vl) {
    const CreditReceiver& rx = of_[vl].rx;
    if (rx.outstanding() >= low_water_) return;
    const uint32_t news = rx.untold();
    if (news != 0 && news * kNewsOfHeld >= rx.held()) due_ |= static_cast<uint8_t>(1U << vl);
  }

  struct Lane {
    CreditSender tx;
    CreditReceiver rx;
    uint32_t repeats = 0;
  };

  uint8_t due_ = 0;
  uint8_t restless_ = 0;  // lanes whose counters the peer must hear again
  uint8_t lanes_ = 1;
  uint32_t low_water_ = 0;
  CreditFormat format_;
  std::array<Lane, kMaxLanes> of_;
  static_assert(sizeof(Lane) == 48, "with what is before it, the first lane, often the only one, fills a cache line");
};

// How long the period of a node is whose fastest link has that rate.
inline Duration credit_period(const CreditSettings& settings, Rate fastest) {
  constexpr uint64_t kSymbolsOf4x = 4 * 65'536;
  return settings.period != 0 ? settings.period : std::max<Duration>(1, fastest.time_for(kSymbolsOf4x));
}

// When the period ends that `now` is in. Those of all nodes end at multiples: it does not matter who looks when.
inline Time period_end(Time now, Duration period) { return (now / period + 1) * period; }

}  // namespace heddle::flowctl
