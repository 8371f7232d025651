#include "config/words.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace heddle::config {
namespace {

constexpr size_t kLongestQuote = 60;
constexpr size_t kLongestWord = 40;

std::string folded(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return text;
}

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours each cost 1.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string quote(std::string_view text) {
  std::string result = "'";
  size_t used = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    // Cut before a character, never inside a UTF-8 sequence.
    if (used >= kLongestQuote && (byte & 0xc0U) != 0x80U) {
      result += "…";
      break;
    }
    ++used;
    if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string listed(const std::vector<std::string_view>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.size() > kLongestWord) return {};
  const std::string wanted = folded(word);
  std::string_view best;
  size_t least = 3;
  for (const std::string_view candidate : candidates) {
    const size_t allowed = std::min<size_t>(2, std::max(wanted.size(), candidate.size()) / 3);
    const size_t d = distance(wanted, folded(candidate));
    if (d <= allowed && d < least) {
      least = d;
      best = candidate;
    }
  }
  return best;
}

}  // namespace heddle::config
