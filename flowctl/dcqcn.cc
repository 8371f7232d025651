#include "flowctl/dcqcn.h"

#include <algorithm>

namespace heddle::flowctl {

namespace {

// x^n by squaring. Not std::pow: its last bit may differ between machines, and with it a whole run.
double power(double x, uint64_t n) {
  double result = 1;
  for (; n != 0; n >>= 1U, x *= x) {
    if ((n & 1U) != 0) result *= x;
  }
  return result;
}

// The first end of an interval after `now`, counted from `at`.
Time next_end(Time at, Duration interval, Time now) { return at + ((now - at) / interval + 1) * interval; }

}  // namespace

ReactionPoint::ReactionPoint(const DcqcnSettings& settings, Rate line_rate)
    : settings_(&settings),
      line_bps_(line_rate.bits_per_second()),
      rate_bps_(line_bps_),
      target_bps_(line_bps_),
      rate_(line_rate) {}

void ReactionPoint::on_cnp(Time now) {
  if (due_ <= now) advance(now);
  if (!started_) {
    started_ = true;
    alpha_ = settings_->initial_alpha;
    alpha_at_ = now + settings_->alpha_interval;
    cut_at_ = now + settings_->cut_interval;
  } else {
    update_alpha(now);
    if (cut_at_ <= now) cut_at_ = next_end(cut_at_, settings_->cut_interval, now);
    cnp_for_alpha_ = true;
  }
  cnp_for_cut_ = true;
  set_due();
}

void ReactionPoint::on_sent(uint64_t bytes, Time now) {
  if (settings_->byte_counter == 0 || increase_at_ == kIdle) return;
  if (due_ <= now) advance(now);
  bytes_ += bytes;
  while (bytes_ >= settings_->byte_counter && increase_at_ != kIdle) {
    bytes_ -= settings_->byte_counter;
    increase(byte_stage_);
  }
  set_due();
}

// Everything that happened up to `now`, in order; a cut before an increase of the same time.
void ReactionPoint::advance(Time now) {
  while (due_ <= now) {
    const Time at = due_;
    if (cnp_for_cut_ && cut_at_ == at) {
      cut(at);
    } else {
      increase_at_ += settings_->increase_interval;
      increase(timer_stage_);
    }
    set_due();
  }
}

void ReactionPoint::set_due() { due_ = std::min(cnp_for_cut_ ? cut_at_ : kIdle, increase_at_); }

// All ends of alpha intervals up to `now`. The first knows whether a CNP came; in the others none did.
void ReactionPoint::update_alpha(Time now) {
  if (alpha_at_ > now) return;
  const double keep = 1 - settings_->g;
  alpha_ = keep * alpha_ + (cnp_for_alpha_ ? settings_->g : 0);
  cnp_for_alpha_ = false;
  const uint64_t more = (now - alpha_at_) / settings_->alpha_interval;
  if (more != 0) alpha_ *= power(keep, more);
  alpha_at_ += (more + 1) * settings_->alpha_interval;
}

void ReactionPoint::cut(Time now) {
  update_alpha(now);
  if (settings_->clamp_target || timer_stage_ != 0 || byte_stage_ != 0) target_bps_ = rate_bps_;
  const auto lower = static_cast<uint64_t>(static_cast<double>(rate_bps_) * (1 - alpha_ / 2));
  set_rate(std::max(lower, std::min(rate_bps_, settings_->min_rate.bits_per_second())));
  ++cuts_;
  cnp_for_cut_ = false;
  cut_at_ += settings_->cut_interval;
  timer_stage_ = byte_stage_ = 0;
  bytes_ = 0;
  increase_at_ = now + settings_->increase_interval;
}

// `stage` is the one that has run out: its number decides fast recovery, both together hyper increase.
void ReactionPoint::increase(uint32_t& stage) {
  const bool by_bytes = settings_->byte_counter != 0;
  const uint32_t most = std::max(timer_stage_, byte_stage_);
  const uint32_t least = by_bytes ? std::min(timer_stage_, byte_stage_) : timer_stage_;
  if (most >= settings_->fast_recovery_steps) {
    const Rate step = least > settings_->fast_recovery_steps ? settings_->hyper : settings_->additive;
    target_bps_ = std::min(line_bps_, target_bps_ + step.bits_per_second());
  }
  set_rate(rate_bps_ / 2 + target_bps_ / 2);
  ++stage;
  // Half the way each time would never arrive; a millionth of the line rate counts as there.
  if (target_bps_ - rate_bps_ > line_bps_ >> 20U) return;
  set_rate(target_bps_);
  if (rate_bps_ == line_bps_) increase_at_ = kIdle;
}

void ReactionPoint::set_rate(uint64_t bits_per_second) {
  rate_bps_ = bits_per_second;
  rate_ = Rate(bits_per_second);
}

}  // namespace heddle::flowctl
