// The one exception type of start-up and control. The packet path never throws.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace heddle {

// Caught in `main`, printed as one line, turned into the exit status. The text says what was found, where, and what
// would have been accepted; it starts with "file:line: " when a file is to blame.
class Error : public std::runtime_error {
 public:
  enum class Kind {
    kBadInput = 2,  // the user's files, options or requests; nothing was started
    kFailed = 1,    // the run itself: a device, the system, a broken promise of the engine
  };

  Error(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}

  Kind kind() const { return kind_; }
  int exit_status() const { return static_cast<int>(kind_); }

 private:
  Kind kind_;
};

template <typename... Args>
[[noreturn]] void throw_bad_input(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Error::Kind::kBadInput, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void throw_failed(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Error::Kind::kFailed, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace heddle
