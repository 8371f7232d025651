// What switch configurations and scenarios both say of buffers and marking.
#pragma once

#include <cstdint>

#include "config/yaml.h"
#include "flowctl/ecn.h"

namespace heddle::config {

inline constexpr uint64_t kMaxBuffer = 4'000'000'000;  // bytes; below 2^32, which the shared buffer counts in

// The factor of a dynamic threshold, from 1/256 to 64.
double read_alpha(const Value& value);

// `kmin`, `kmax` and `pmax` of a map that may have other keys too.
flowctl::WredCurve read_curve(const Map& map);

}  // namespace heddle::config
