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

size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0U; };
  const unsigned first = byte(at);
  if (first < 0x80) return first >= 0x20 || first == '\n' || first == '\r' || first == '\t' ? 1 : 0;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  const unsigned lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;   // no overlong forms
  const unsigned highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;  // no surrogates, none past U+10FFFF
  if (byte(at + 1) < lowest || byte(at + 1) > highest) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80U) return 0;
  }
  return length;
}

std::string quote(std::string_view text) {
  std::string result = "'";
  for (size_t at = 0; at < text.size();) {
    if (at >= kLongestQuote) {
      result += "…";
      break;
    }
    const size_t length = utf8_length(text, at);
    const std::string_view character = text.substr(at, std::max<size_t>(length, 1));
    const auto byte = static_cast<uint8_t>(character[0]);
    if (byte == '\n') {
      result += "\\n";
    } else if (length == 0 || byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0) {  // U+0080 … U+009F
      result += fmt::format("\\u{:04x}", static_cast<uint8_t>(character[1]));
    } else {
      result += character;
    }
    at += character.size();
  }
  return result + "'";
}

std::string listed(std::span<const std::string_view> words) { return fmt::format("{}", fmt::join(words, ", ")); }

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
