// Reading other tools' text files word by word, with errors that say where: "file:line: what was found; what is
// accepted". Nothing in a file is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "net/error.h"

namespace heddle::lab {

// The whole file. Throws Error (bad input) if it cannot be read or holds more than `most_bytes`.
std::string read_text_file(const std::string& path, size_t most_bytes = size_t{1} << 30U);

// The word as it may be printed: quoted, all but printable ASCII replaced, cut after 40 bytes.
std::string quoted(std::string_view word);

// Walks through a text line by line or word by word; words are what blanks, tabs and line ends separate. Views stay
// valid as long as `text`.
class TextReader {
 public:
  TextReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  // The words of the next line that has any; of the rest of the current line after next_word. False at the end.
  bool next_line(std::vector<std::string_view>& words);
  // The next word, on whatever line. False at the end.
  bool next_word(std::string_view& word);
  int line() const { return word_line_; }  // of what was read last, from 1

  // `word` as a number. Throws Error naming `what` and the accepted range otherwise.
  uint64_t whole(std::string_view word, std::string_view what, uint64_t least, uint64_t most) const;
  double real(std::string_view word, std::string_view what, double least, double below) const;

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_bad_input("{}:{}: {}", file_, word_line_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void skip_blanks(bool over_lines);
  std::string_view take_word();

  std::string_view text_;
  std::string file_;
  size_t position_ = 0;
  int line_ = 1;       // of position_
  int word_line_ = 1;  // of the last word
};

}  // namespace heddle::lab
