#include "lab/topology/import_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <fstream>

namespace heddle::lab {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

}  // namespace

std::string read_text_file(const std::string& path, size_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw_bad_input("{}: cannot be opened; accepted: a readable file", path);
  }
  std::string text;
  std::array<char, 65536> chunk;
  while (file.read(chunk.data(), chunk.size()) || file.gcount() > 0) {
    text.append(chunk.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > most_bytes) {
      throw_bad_input("{}: longer than {} bytes", path, most_bytes);
    }
  }
  // A directory opens, but does not read; end of file sets both bits, a failed read the bad one.
  if (file.bad()) {
    throw_bad_input("{}: cannot be read; accepted: a readable file", path);
  }
  return text;
}

std::string quoted(std::string_view word) {
  constexpr size_t kMost = 40;
  std::string text = "'";
  for (const char c : word.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte > 0x7e ? '?' : c;
  }
  return text + (word.size() > kMost ? "…'" : "'");
}

bool TextReader::next_line(std::vector<std::string_view>& words) {
  words.clear();
  skip_blanks(true);
  word_line_ = line_;
  while (position_ < text_.size() && text_[position_] != '\n') {
    words.push_back(take_word());
    skip_blanks(false);
  }
  return !words.empty();
}

bool TextReader::next_word(std::string_view& word) {
  skip_blanks(true);
  if (position_ == text_.size()) {
    return false;
  }
  word_line_ = line_;
  word = take_word();
  return true;
}

uint64_t TextReader::whole(std::string_view word, std::string_view what, uint64_t least, uint64_t most) const {
  uint64_t value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || end != word.data() + word.size() || value < least || value > most) {
    fail("{} is {}; accepted: a whole number from {} to {}", what, quoted(word), least, most);
  }
  return value;
}

double TextReader::real(std::string_view word, std::string_view what, double least, double below) const {
  double value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || end != word.data() + word.size() || !(value >= least && value < below)) {
    fail("{} is {}; accepted: a number from {} to below {}", what, quoted(word), least, below);
  }
  return value;
}

void TextReader::skip_blanks(bool over_lines) {
  while (position_ < text_.size() && (is_blank(text_[position_]) || (over_lines && text_[position_] == '\n'))) {
    line_ += text_[position_] == '\n' ? 1 : 0;
    ++position_;
  }
}

std::string_view TextReader::take_word() {
  const size_t begin = position_;
  while (position_ < text_.size() && !is_blank(text_[position_]) && text_[position_] != '\n') {
    ++position_;
  }
  return text_.substr(begin, position_ - begin);
}

}  // namespace heddle::lab
