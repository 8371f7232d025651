#include "lab/scenario/sweep.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "config/words.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr size_t kMaxPoints = 10'000;

std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

}  // namespace

SweepAxis parse_sweep(const std::string& text) {
  const auto refuse = [&](const std::string& found) {
    throw_bad_input("--sweep {}: found {}; accepted: section.key=value,value,…", config::quote(text), found);
  };
  const size_t equals = text.find('=');
  if (equals == std::string::npos) refuse("no '='");
  if (equals == 0) refuse("no key");
  SweepAxis axis{text.substr(0, equals), split_values(std::string_view(text).substr(equals + 1))};
  for (const std::string& value : axis.values) {
    if (value.find_first_not_of(' ') == std::string::npos) refuse("an empty value");
    if (std::count(axis.values.begin(), axis.values.end(), value) > 1) {
      refuse(fmt::format("{} a second time", config::quote(value)));
    }
  }
  return axis;
}

std::vector<SweepPoint> sweep_points(const std::vector<SweepAxis>& axes) {
  std::vector<SweepPoint> points(1);
  for (const SweepAxis& axis : axes) {
    const auto same = [&](const SweepAxis& other) { return other.key == axis.key; };
    if (std::count_if(axes.begin(), axes.end(), same) > 1) {
      throw_bad_input("--sweep: found key {} a second time; accepted: each key once", axis.key);
    }
    if (points.size() * axis.values.size() > kMaxPoints) {
      throw_bad_input("--sweep: found a grid of more than {} points; accepted: up to that many", kMaxPoints);
    }
    std::vector<SweepPoint> next;
    for (const SweepPoint& point : points) {
      for (const std::string& value : axis.values) {
        next.push_back(point);
        next.back().emplace_back(axis.key, value);
      }
    }
    points = std::move(next);
  }
  return points;
}

std::vector<std::string> overlays_of(const SweepPoint& point) {
  std::vector<std::string> overlays;
  for (const auto& [key, value] : point) overlays.push_back(fmt::format("{}={}", key, value));
  return overlays;
}

std::string text_of(const SweepPoint& point) { return fmt::format("{}", fmt::join(overlays_of(point), ", ")); }

}  // namespace heddle::lab
