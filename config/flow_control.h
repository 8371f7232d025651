// What switch configurations and scenarios both say of buffers, marking and the PFC watchdog.
#pragma once

#include <cstdint>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "config/yaml.h"
#include "flowctl/ecn.h"
#include "flowctl/pfc_watchdog.h"

namespace heddle::config {

inline constexpr uint64_t kMaxBuffer = 4'000'000'000;  // bytes; below 2^32, which the shared buffer counts in

// The factor of a dynamic threshold, from 1/256 to 64.
double read_alpha(const Value& value);

// `kmin`, `kmax` and `pmax` of a map that may have other keys too.
flowctl::WredCurve read_curve(const Map& map);

// `watchdog:`, a map of `detect`, `restore` and `action`, or `none`. On real ports times are those of SONiC; under a
// virtual clock, which no scheduler of an operating system delays, they may be as short as 10 us.
enum class ClockKind : uint8_t { kReal, kVirtual };
std::optional<flowctl::WatchdogSettings> read_watchdog(const Value& value, ClockKind clock);
nlohmann::ordered_json watchdog_json(const std::optional<flowctl::WatchdogSettings>& watchdog);

}  // namespace heddle::config
