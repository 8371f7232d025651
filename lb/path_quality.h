// How loaded a path is, as far as this switch can see: what waits at its port and how busy the port has been (SAI ARS:
// port load future and past), smoothed and sorted into bands.
#pragma once

#include <cstdint>
#include <vector>

#include "lb/ars.h"
#include "net/packet.h"
#include "net/rate.h"
#include "net/time.h"

namespace heddle::lb {

class PathQuality {
 public:
  PathQuality(const ArsSettings& settings, size_t ports);

  // Load of a port whose queue would take `drain` to empty; less is better.
  Duration load(PortId port, Duration drain) const {
    return is_plain_ ? drain : (drain * future_ + busy_[port] * past_) >> 4U;
  }
  // What a load grows by where the drain time grows by that.
  Duration growth(Duration drain) const { return is_plain_ ? drain : (drain * future_) >> 4U; }
  // 0 (best) … 7.
  unsigned band(Duration load) const {
    unsigned band = 0;
    for (const Duration end : bands_) band += load >= end ? 1U : 0U;
    return band;
  }

  bool has_past() const { return past_ != 0; }
  // Whether the past is to be sampled again: never, where it has no weight.
  bool is_due(Time now) const { return past_ != 0 && !before(now, next_sample_); }
  // `sent_bytes(port)`: wire bytes sent so far; `rate(port)`: of its link.
  template <typename SentBytes, typename RateOf>
  void sample(Time now, const SentBytes& sent_bytes, const RateOf& rate);

 private:
  bool is_plain_;  // the load is the drain time alone
  uint64_t future_;
  uint64_t past_;
  std::array<Duration, ArsSettings::kBands - 1> bands_;
  Duration interval_;
  unsigned shift_;  // of the average's gain
  Time last_sample_ = 0;
  Time next_sample_ = 0;
  std::vector<Duration> busy_;  // by port, of one interval
  std::vector<uint64_t> sent_;
};

// ---------------------------------------------------------------------------------------------------------------------

inline PathQuality::PathQuality(const ArsSettings& settings, size_t ports)
    : is_plain_(settings.port_load_future_weight == 16 && settings.port_load_past_weight == 0),
      future_(settings.port_load_future_weight),
      past_(settings.port_load_past_weight),
      bands_(settings.quant_bands),
      interval_(settings.sampling_interval),
      shift_(settings.ewma ? settings.port_load_exponent : 0),
      busy_(ports),
      sent_(ports) {}

template <typename SentBytes, typename RateOf>
void PathQuality::sample(Time now, const SentBytes& sent_bytes, const RateOf& rate) {
  const Duration passed = elapsed(now, last_sample_);
  for (PortId port = 0; port < busy_.size(); ++port) {
    const uint64_t sent = sent_bytes(port);
    // A switch that saw no packet for long samples late: what it sent then counts as spread over all of the time.
    const double share = passed == 0 ? 0.0
                                     : static_cast<double>(rate(port).time_for(1'000'000)) / 1e6 *
                                           static_cast<double>(sent - sent_[port]) / static_cast<double>(passed);
    const auto busy = static_cast<int64_t>((share < 1 ? share : 1) * static_cast<double>(interval_));
    busy_[port] = static_cast<Duration>(static_cast<int64_t>(busy_[port]) +
                                        ((busy - static_cast<int64_t>(busy_[port])) >> shift_));
    sent_[port] = sent;
  }
  last_sample_ = now;
  next_sample_ = now + interval_;
}

}  // namespace heddle::lb
