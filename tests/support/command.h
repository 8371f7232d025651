// Other programs, for tests that have them look at what we have made.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <utility>

namespace heddle::support {

// What a command prints, and whether it succeeded.
inline std::pair<std::string, bool> output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {"", false};
  std::array<char, 4096> buffer{};
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  return {text, pclose(pipe) == 0};
}

}  // namespace heddle::support
