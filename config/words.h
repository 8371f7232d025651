// Words in error texts: what the user wrote, safely quoted, and what they probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::config {

// Length of the UTF-8 sequence at `at` < size; 0 if it is not well-formed (RFC 3629 4) or a control character other
// than tab and line ends (delete counts as text).
size_t utf8_length(std::string_view text, size_t at);

// 'text' in single quotes on one line: control characters and what is no UTF-8 escaped, long texts cut.
std::string quote(std::string_view text);

// "a, b, c"
std::string listed(std::span<const std::string_view> words);

// The candidate that `word` is a typing error of: one or two letters (a third of its length at most) inserted, left
// out, changed or swapped, case and `-`/`_` aside. Empty if none is near; the first of equally near ones.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace heddle::config
