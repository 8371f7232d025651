// What the importers of traffic need beyond lab/topology/import_text.h: comments, missing words, seconds.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lab/topology/import_text.h"
#include "net/time.h"

namespace heddle::lab {

// The words of the next line that has any before a '#'; the rest of a line from '#' on is a comment. False at the end.
bool next_statement(TextReader& reader, std::vector<std::string_view>& words);

// Word `index` of the line last read; throws Error if the line is shorter.
std::string_view word_at(const TextReader& reader, const std::vector<std::string_view>& words, size_t index,
                         std::string_view what);

// `word`, seconds, as picoseconds, at most kMaxDelay. Decimal digits are taken exactly and rounded after the twelfth:
// as a double, 2.000000098 s is not a whole number of picoseconds. Throws Error naming `what`.
Duration seconds(const TextReader& reader, std::string_view word, std::string_view what);

// The name of a job that a file holds: the file's name without its folder.
std::string job_name(std::string_view file);

}  // namespace heddle::lab
