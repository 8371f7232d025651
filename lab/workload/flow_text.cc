#include "lab/workload/flow_text.h"

#include <algorithm>
#include <cmath>

#include "lab/workload/workload.h"

namespace heddle::lab {
namespace {

// False if `text` is anything but digits with at most one point among them, or more than kMaxDelay.
bool parse_decimal_seconds(std::string_view text, Duration& value) {
  Duration ps = 0;
  Duration unit = kSecond;  // of the last digit read; 0 from the 13th decimal on
  bool in_fraction = false;
  bool any_digit = false;
  for (const char c : text) {
    if (c == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (c < '0' || c > '9') return false;
    any_digit = true;
    const auto digit = static_cast<Duration>(c - '0');
    if (!in_fraction) {
      ps = ps * 10 + digit * kSecond;
      if (ps > kMaxDelay) return false;
    } else {
      if (unit == 1 && digit >= 5) ++ps;
      unit /= 10;
      ps += digit * unit;
    }
  }
  value = ps;
  return any_digit && ps <= kMaxDelay;
}

}  // namespace

bool next_statement(TextReader& reader, std::vector<std::string_view>& words) {
  while (reader.next_line(words)) {
    const auto comment = std::find_if(words.begin(), words.end(),
                                      [](std::string_view word) { return word.find('#') != std::string_view::npos; });
    if (comment == words.end()) return true;
    const std::string_view before = comment->substr(0, comment->find('#'));
    if (!before.empty()) *comment = before;
    words.erase(comment + (before.empty() ? 0 : 1), words.end());
    if (!words.empty()) return true;
  }
  return false;
}

std::string_view word_at(const TextReader& reader, const std::vector<std::string_view>& words, size_t index,
                         std::string_view what) {
  if (index >= words.size()) reader.fail("{} is missing", what);
  return words[index];
}

Duration seconds(const TextReader& reader, std::string_view word, std::string_view what) {
  Duration value = 0;
  if (parse_decimal_seconds(word, value)) return value;
  // 1e-05 and the like; anything else is refused here.
  return static_cast<Duration>(std::llround(reader.real(word, what, 0, to_seconds(kMaxDelay)) * 1e12));
}

std::string job_name(std::string_view file) { return std::string(file.substr(file.rfind('/') + 1)); }

}  // namespace heddle::lab
