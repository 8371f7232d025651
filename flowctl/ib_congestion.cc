#include "flowctl/ib_congestion.h"

#include <algorithm>

namespace heddle::flowctl {

WredCurve FecnSettings::curve(uint64_t buffer) const {
  if (threshold == 0) return {};
  const uint64_t above = buffer * (kMaxThreshold + 1U - threshold) / (kMaxThreshold + 1U);
  return {.min_bytes = above, .max_bytes = above, .beyond = 1.0 / (1.0 + marking_rate)};
}

std::vector<CctEntry> quadratic_cct(uint16_t limit, uint32_t most) {
  uint8_t shift = CctEntry::kMaxShift;
  while (shift != 0 && (uint64_t{most} << shift) > CctEntry::kMaxMultiplier) --shift;
  std::vector<CctEntry> table(limit + size_t{1});
  const uint64_t square = uint64_t{limit} * limit;
  for (uint64_t i = 0; i < table.size(); ++i) {
    const uint64_t delay = ((uint64_t{most} * i * i << shift) + square / 2) / std::max<uint64_t>(square, 1);
    table[i] = {shift, static_cast<uint16_t>(std::min<uint64_t>(delay, CctEntry::kMaxMultiplier))};
  }
  return table;
}

void InjectionPoint::on_becn(Time now) {
  if (falls_at_ <= now) fall(now);
  index_ = static_cast<uint16_t>(std::min<uint32_t>(index_ + uint32_t{settings_->increase}, settings_->limit));
  peak_ = std::max(peak_, index_);
  if (falls_at_ == kIdle && index_ > settings_->min) falls_at_ = now + settings_->timer;
}

// All ends of the timer up to `now`.
void InjectionPoint::fall(Time now) {
  const uint64_t ends = (now - falls_at_) / settings_->timer + 1;
  const uint64_t above = uint64_t{index_} - settings_->min;
  index_ = static_cast<uint16_t>(index_ - std::min(ends, above));
  falls_at_ = ends < above ? falls_at_ + ends * settings_->timer : kIdle;
}

}  // namespace heddle::flowctl
