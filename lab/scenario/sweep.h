// Grids of scenarios: `--sweep key=v1,v2,…`, once per axis.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle::lab {

struct SweepAxis {
  std::string key;
  std::vector<std::string> values;  // YAML
};

// Commas inside brackets, braces and quotes do not separate. Throws bad input, "--sweep TEXT: found …; accepted: …".
SweepAxis parse_sweep(const std::string& text);

// One point of the grid: a value for each key, in the order of the axes.
using SweepPoint = std::vector<std::pair<std::string, std::string>>;

// All combinations, the last axis running fastest; one empty point without axes. Throws bad input beyond 10,000.
std::vector<SweepPoint> sweep_points(const std::vector<SweepAxis>& axes);

// "key=value", as an overlay takes it; and "key=value, key=value" for people.
std::vector<std::string> overlays_of(const SweepPoint& point);
std::string text_of(const SweepPoint& point);

}  // namespace heddle::lab
