// Readers of option values that more than one subcommand has.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "config/units.h"
#include "net/error.h"
#include "net/time.h"

namespace heddle::cli {

// A time such as 5s or 500ms; nothing if `text` is empty. Throws Error (bad input) naming the option.
inline std::optional<std::chrono::milliseconds> duration_option(const std::string& name, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto duration = config::parse_duration(text);
  if (!duration) throw_bad_input("{}: found '{}'; accepted: a time such as 5s or 500ms", name, text);
  return std::chrono::milliseconds(*duration / kMillisecond);
}

}  // namespace heddle::cli
