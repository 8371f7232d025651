// DCQCN: congestion control of RoCE senders by ECN (Zhu et al., SIGCOMM 2015), as NICs do it.
//
// The receiver's NIC, the notification point, answers packets marked "congestion experienced" with congestion
// notification packets (CNP, IBTA A17.9.3). The sender's NIC, the reaction point, keeps a rate per queue pair: it cuts
// the rate when CNPs come, by a share that grows with how steadily they come, and raises it again when they stay away.
//
// Both are driven by the `now` they are given. Their timers are evaluated when somebody asks: a queue pair costs no
// event per microsecond, and the result is the same as if its timers had run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "net/rate.h"
#include "net/time.h"

namespace heddle::flowctl {

// The names in comments are those of NVIDIA's NICs and, in brackets, of the paper.
struct DcqcnSettings {
  // alpha: how congested the path seems, 0–1. After every alpha_interval it moves by `g` of the way to 1 if a CNP came
  // in the interval, to 0 otherwise.
  double initial_alpha = 1;                // at the first CNP
  double g = 1.0 / 256;                    // dce_tcp_g
  Duration alpha_interval = kMicrosecond;  // dce_tcp_rtt [K]
  // At the end of every cut_interval in which a CNP came: rate × (1 − alpha / 2).
  Duration cut_interval = 4 * kMicrosecond;  // rate_reduce_monitor_period
  // Whether each cut makes the rate before it the target. Otherwise a cut that follows another one without an increase
  // in between leaves the target where it was.
  bool clamp_target = false;  // clamp_tgt_rate
  Rate min_rate = Rate(100'000'000);

  // A cut restarts the increases. One comes after every increase_interval and after every byte_counter bytes sent.
  Duration increase_interval = 300 * kMicrosecond;  // rpg_time_reset [T]
  uint64_t byte_counter = 0;                        // rpg_byte_reset [B]; 0 = none
  uint32_t fast_recovery_steps = 1;                 // rpg_threshold [F]
  Rate additive;                                    // rpg_ai_rate [R_AI]
  Rate hyper;                                       // rpg_hai_rate [R_HAI]

  Duration cnp_interval = 0;  // between CNPs of one queue pair, at least; 0: each marked packet is answered

  friend constexpr bool operator==(const DcqcnSettings&, const DcqcnSettings&) = default;
};

// Parameters under the name of who uses them.
struct DcqcnSet {
  std::string_view name;
  DcqcnSettings at_100g;
  bool scales;              // additive and hyper are in proportion to the line rate
  std::string_view origin;  // where the values come from

  DcqcnSettings at(Rate line_rate) const;
};

// All sets, the default first.
std::span<const DcqcnSet> dcqcn_sets();
const DcqcnSet* find_dcqcn_set(std::string_view name);  // null if there is none

// A queue pair's rate at its sender. Until the first CNP it is the line's.
class ReactionPoint {
 public:
  // `settings` outlives it.
  ReactionPoint(const DcqcnSettings& settings, Rate line_rate);

  void on_cnp(Time now);
  // `bytes` of the queue pair have been sent.
  void on_sent(uint64_t bytes, Time now);

  // The rate at `now`; times never go back.
  Rate rate(Time now) {
    if (due_ <= now) [[unlikely]]
      advance(now);
    return rate_;
  }
  // False while it sends as fast as the line does.
  bool is_limited() const { return rate_bps_ < line_bps_; }

  Rate target() const { return Rate(target_bps_); }
  // As of the last cut or CNP.
  double alpha() const { return alpha_; }
  uint64_t cuts() const { return cuts_; }

 private:
  static constexpr Time kIdle = ~Time{0};

  void advance(Time now);
  void update_alpha(Time now);
  void cut(Time now);
  void increase(uint32_t& stage);
  void set_rate(uint64_t bits_per_second);
  void set_due();

  const DcqcnSettings* settings_;
  uint64_t line_bps_;
  uint64_t rate_bps_;
  uint64_t target_bps_;
  Rate rate_;
  double alpha_ = 0;
  bool started_ = false;  // the first CNP has come, the intervals run
  bool cnp_for_alpha_ = false;
  bool cnp_for_cut_ = false;
  uint32_t timer_stage_ = 0;  // increases since the last cut, by the timer and by the byte counter
  uint32_t byte_stage_ = 0;
  uint32_t cuts_ = 0;
  uint64_t bytes_ = 0;     // since the last increase by the byte counter
  Time alpha_at_ = kIdle;  // end of the running interval
  Time cut_at_ = kIdle;
  Time increase_at_ = kIdle;
  Time due_ = kIdle;  // when the rate next changes by itself
};

// Decides which marked packets of one queue pair are answered with a CNP.
class NotificationPoint {
 public:
  // A packet marked CE arrived: true if a CNP is to be sent.
  bool on_marked(Time now, Duration cnp_interval) {
    if (now < silent_until_) return false;
    silent_until_ = now + cnp_interval;
    return true;
  }

 private:
  Time silent_until_ = 0;
};

}  // namespace heddle::flowctl
