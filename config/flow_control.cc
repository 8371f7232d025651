#include "config/flow_control.h"

#include <cstdlib>

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

}  // namespace heddle::config
