#include "config/flow_control.h"

#include <cstdlib>
#include <string_view>

#include <nlohmann/json.hpp>

#include "config/units.h"

namespace heddle::config {

double read_alpha(const Value& value) {
  constexpr std::string_view accepted = "a factor from 1/256 to 64 such as 0.125";
  const std::string& text = value.scalar(accepted);
  char* end = nullptr;
  const double alpha = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(alpha >= 1.0 / 256) || !(alpha <= 64)) value.refuse(accepted);
  return alpha;
}

flowctl::WredCurve read_curve(const Map& map) {
  flowctl::WredCurve curve;
  curve.min_bytes = map.required("kmin", bytes(0, kMaxBuffer));
  curve.max_bytes = map.required("kmax", bytes(curve.min_bytes, kMaxBuffer));
  curve.max_probability = map.optional("pmax", 1, share());
  return curve;
}

std::optional<flowctl::WatchdogSettings> read_watchdog(const Value& value, ClockKind clock) {
  if (value.is_missing() || value.is_word("none")) return std::nullopt;
  const Map map = value.map({"detect", "restore", "action"});
  constexpr Duration kLeastVirtual = 10 * kMicrosecond;
  const bool real = clock == ClockKind::kReal;
  const Duration least_detect = real ? flowctl::kMinWatchdogDetect : kLeastVirtual;
  const Duration least_restore = real ? flowctl::kMinWatchdogRestore : kLeastVirtual;
  flowctl::WatchdogSettings watchdog;
  watchdog.detect = map.optional("detect", watchdog.detect, duration(least_detect, flowctl::kMaxWatchdogDetect));
  watchdog.restore = map.optional("restore", watchdog.restore, duration(least_restore, flowctl::kMaxWatchdogRestore));
  watchdog.action = map.optional(
      "action", watchdog.action,
      one_of<flowctl::WatchdogAction>({{name_of(flowctl::WatchdogAction::kDrop), flowctl::WatchdogAction::kDrop},
                                       {name_of(flowctl::WatchdogAction::kForward), flowctl::WatchdogAction::kForward},
                                       {name_of(flowctl::WatchdogAction::kAlert), flowctl::WatchdogAction::kAlert}}));
  return watchdog;
}

nlohmann::ordered_json watchdog_json(const std::optional<flowctl::WatchdogSettings>& watchdog) {
  if (!watchdog) return "none";
  return {{"detect", print_duration(watchdog->detect)},
          {"restore", print_duration(watchdog->restore)},
          {"action", name_of(watchdog->action)}};
}

}  // namespace heddle::config
