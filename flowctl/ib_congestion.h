// Congestion control of InfiniBand (IBTA volume 1, annex A10): switches mark packets with FECN, the receiver sends the
// mark back as BECN, and the sender waits after each packet of the queue pair for as long as a table says.
//
// The reaction point is driven by the `now` it is given; its timer is evaluated when somebody asks, as DCQCN's.
#pragma once

#include <cstdint>
#include <vector>

#include "flowctl/ecn.h"
#include "net/time.h"

namespace heddle::flowctl {

// --- switches (SwitchCongestionSetting, IBTA A10.4.3.6)

// Which ports mark although they wait for credit themselves: those to hosts, whose congestion begins nowhere else.
enum class VictimMask : uint8_t { kNone, kHosts, kAll };

// Threshold and packet size are those of Mellanox's congestion control manager (0xf, 0x200). Its marking rate of 10,
// and its increase of 1 below, take longer to work than incasts of some megabytes last at 100G.
struct FecnSettings {
  static constexpr uint8_t kMaxThreshold = 15;

  uint8_t threshold = kMaxThreshold;  // 0 = no marking; 1–15: beyond (16 − threshold) / 16 of a full queue
  uint16_t marking_rate = 0;          // packets, on average, that are left alone between two that are marked
  uint32_t packet_size = 512;         // bytes; shorter packets are left alone
  VictimMask victim_mask = VictimMask::kHosts;

  // By the bytes that stay in the queue. The standard leaves open what a full queue is: here the lane's buffer at the
  // far end of the link, `buffer` bytes.
  WredCurve curve(uint64_t buffer) const;

  friend constexpr bool operator==(const FecnSettings&, const FecnSettings&) = default;
};

// --- channel adapters (CACongestionSetting and CongestionControlTable, IBTA A10.4.3.8 and A10.4.3.9)

// The inter-packet delay: the time that the packet before took, shifted to the right, times the multiplier.
struct CctEntry {
  static constexpr uint8_t kMaxShift = 3;
  static constexpr uint16_t kMaxMultiplier = 0x3fff;

  uint8_t shift = 0;
  uint16_t multiplier = 0;

  Duration delay_after(Duration packet_time) const { return (packet_time >> shift) * multiplier; }
  friend constexpr bool operator==(const CctEntry&, const CctEntry&) = default;
};

// The delay grows with the square of the index, up to `most` packet times at `limit`, in steps of an eighth of a packet
// time where that fits.
std::vector<CctEntry> quadratic_cct(uint16_t limit, uint32_t most);

// Whom a BECN slows down (Port_Control of CACongestionSetting): the queue pair that sent the packet, or all that the
// port sends on its service level, which then counts as one flow, with one index and a delay between any two packets of
// it.
enum class CctiScope : uint8_t { kQueuePair, kServiceLevel };

// What brings a mark back to the sender: BECN in the acknowledgement, or a packet of its own, a CNP.
enum class BecnCarrier : uint8_t { kAck, kCnp };

struct CctiSettings {
  uint8_t increase = 4;               // of the index, by a BECN
  uint16_t limit = 127;               // of the index
  uint16_t min = 0;                   // where it begins and does not fall below
  Duration timer = 4 * kMicrosecond;  // after which it falls by one; 1.024 µs are the unit of the standard
  std::vector<CctEntry> table{};      // limit + 1 entries; empty: quadratic, up to a packet time for each other host
  CctiScope scope = CctiScope::kQueuePair;
  BecnCarrier carrier = BecnCarrier::kAck;
  uint16_t levels = 0xffff;  // bit = service level whose senders heed BECN

  bool heeds(unsigned sl) const { return ((levels >> sl) & 1U) != 0; }

  friend bool operator==(const CctiSettings&, const CctiSettings&) = default;
};

// A queue pair at its sender: an index into the table, the CCTI.
class InjectionPoint {
 public:
  // `settings`, whose table is complete, outlives it.
  explicit InjectionPoint(const CctiSettings& settings) : settings_(&settings), index_(settings.min) {}

  void on_becn(Time now);
  // How long after the end of a packet that begins at `now` and takes `packet_time` the next one may begin; times never
  // go back.
  Duration delay_after(Duration packet_time, Time now) {
    if (falls_at_ <= now) [[unlikely]]
      fall(now);
    return settings_->table[index_].delay_after(packet_time);
  }

  uint16_t index() const { return index_; }  // as of the last call
  uint16_t peak() const { return peak_; }

 private:
  static constexpr Time kIdle = ~Time{0};

  void fall(Time now);

  const CctiSettings* settings_;
  uint16_t index_;
  uint16_t peak_ = 0;      // the highest index a BECN has brought about
  Time falls_at_ = kIdle;  // the timer runs while the index is above the lowest
};

}  // namespace heddle::flowctl
