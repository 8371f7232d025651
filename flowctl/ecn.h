// Random early marking and dropping (WRED): how likely a packet is marked or dropped at a queue's length, and what a
// mark does to its IP header, or to the BTH of an InfiniBand packet.
#pragma once

#include <cstdint>
#include <cstring>

#include "net/checksum.h"
#include "net/headers.h"
#include "net/packet.h"
#include "net/random.h"

namespace heddle::flowctl {

// Nothing up to `min_bytes`, everything from `max_bytes` on, in between a probability that rises from 0 to
// `max_probability` (Kmin, Kmax, Pmax of DCQCN, Zhu et al. 2015, figure 5). A `beyond` below 1 thins out that
// everything, as InfiniBand's marking rate does.
struct WredCurve {
  static constexpr uint64_t kOff = ~uint64_t{0};

  uint64_t min_bytes = kOff;
  uint64_t max_bytes = kOff;
  double max_probability = 1;
  double beyond = 1;

  bool is_on() const { return min_bytes != kOff; }
  bool operator==(const WredCurve&) const = default;
};

// The same, ready for packets.
class Wred {
 public:
  Wred() = default;
  explicit Wred(const WredCurve& curve)
      : min_bytes_(curve.min_bytes), max_bytes_(curve.max_bytes), beyond_(curve.beyond * 0x1.0p32) {
    if (curve.is_on() && max_bytes_ > min_bytes_) {
      slope_ = curve.max_probability * 0x1.0p32 / static_cast<double>(max_bytes_ - min_bytes_);
    }
  }
  bool is_on() const { return min_bytes_ != WredCurve::kOff; }

  // Whether the lot falls on a packet at a queue of `bytes`. Draws a number only where that is not certain.
  bool strikes(uint64_t bytes, Random& random) const {
    if (bytes <= min_bytes_) [[likely]]
      return false;
    if (bytes >= max_bytes_) return beyond_ >= 0x1.0p32 || draw(random) < beyond_;
    return draw(random) < static_cast<double>(bytes - min_bytes_) * slope_;
  }

 private:
  static double draw(Random& random) { return static_cast<double>(random.next() >> 32U); }

  uint64_t min_bytes_ = WredCurve::kOff;
  uint64_t max_bytes_ = WredCurve::kOff;
  double slope_ = 0;          // probability × 2^32 per byte
  double beyond_ = 0x1.0p32;  // probability × 2^32
};

// --- the ECN field (RFC 3168 5): the two low bits of IPv4's TOS and IPv6's traffic class
// ------------------------------

enum class Ecn : uint8_t { kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3 };

// `ip` is the IP header.
inline Ecn ecn_of(const uint8_t* ip, L3 l3) {
  return static_cast<Ecn>(l3 == L3::kIpv4 ? ip[1] & 3U : (ip[1] >> 4U) & 3U);
}
constexpr bool is_capable(Ecn ecn) { return ecn == Ecn::kEct0 || ecn == Ecn::kEct1; }

// Marks an ECN-capable packet "congestion experienced". The field is outside the RoCE ICRC (IBTA A17.9.2), whose bytes
// stay as they are.
inline void mark_ce(uint8_t* ip, L3 l3) {
  if (l3 != L3::kIpv4) {
    ip[1] |= 0x30;
    return;
  }
  const auto before = net::load<uint16_t>(ip);
  ip[1] |= 3;
  const uint16_t checksum = net::update_checksum(net::load<uint16_t>(ip + 10), before, net::load<uint16_t>(ip));
  std::memcpy(ip + 10, &checksum, sizeof checksum);
}

// Forward congestion notification of InfiniBand (IBTA A10.2.1): a bit of the BTH that no ICRC covers (IBTA 7.8.1).
inline void mark_fecn(net::Bth& bth) { bth.congestion |= net::kBthFecn; }

}  // namespace heddle::flowctl
