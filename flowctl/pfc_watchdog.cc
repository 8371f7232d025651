#include "flowctl/pfc_watchdog.h"

namespace heddle::flowctl {

std::string_view name_of(WatchdogAction action) {
  switch (action) {
    case WatchdogAction::kDrop:
      return "drop";
    case WatchdogAction::kForward:
      return "forward";
    case WatchdogAction::kAlert:
      return "alert";
  }
  return "";
}

WatchdogEvent PfcWatchdog::look(const WatchdogSample& sample, Time now) {
  const Duration measured = watching_ ? elapsed(now, last_at_) : 0;
  const bool speaks_for_change =
      measured != 0 && (stormed_ ? looks_free(sample, measured) : looks_stuck(sample, measured));
  if (!speaks_for_change) since_ = now;
  last_ = sample;
  last_at_ = now;
  watching_ = true;
  const Duration wanted = stormed_ ? settings_.restore : settings_.detect;
  if (!speaks_for_change || elapsed(now, since_) < wanted) return WatchdogEvent::kNone;
  stormed_ = !stormed_;
  since_ = now;
  if (!stormed_) {
    ++restorations_;
    return WatchdogEvent::kRestored;
  }
  ++storms_;
  stormed_at_ = now;
  return WatchdogEvent::kStormed;
}

// It holds bytes, none has gone, and it was paused for more than 99 % of the time.
bool PfcWatchdog::looks_stuck(const WatchdogSample& sample, Duration measured) const {
  return sample.queued_bytes != 0 && last_.queued_bytes != 0 && sample.head == last_.head &&
         sample.head_arrival == last_.head_arrival && (sample.paused_time - last_.paused_time) * 100 > measured * 99;
}

// Nobody pauses it any more; less than 1 % of the time is not a storm.
bool PfcWatchdog::looks_free(const WatchdogSample& sample, Duration measured) const {
  return (sample.paused_time - last_.paused_time) * 100 < measured;
}

}  // namespace heddle::flowctl
