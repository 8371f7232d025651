// Lines on standard error.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace heddle::cli {

// "heddle: " and the text, in one line. Any thread. A line that cannot be written is lost: that nobody reads them any
// more, or that the disk of a log is full, must neither end a switch nor change an exit status.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  const std::string line = "heddle: " + fmt::format(format, std::forward<Args>(args)...) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace heddle::cli
