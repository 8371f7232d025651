#include "config/words.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::config {
namespace {

TEST(Words, Quote) {
  struct Case {
    std::string what;
    std::string text;
    std::string quoted;
  };
  const std::vector<Case> cases{
      {"a word", "abc", "'abc'"},
      {"nothing", "", "''"},
      {"a line break stays on the line", "a\nb", "'a\\nb'"},
      {"control characters", std::string("\t\x1b[31m\0", 7), "'\\x09\\x1b[31m\\x00'"},
      {"control characters beyond ASCII (U+009B begins an escape sequence too)", "a\u009b1mµ", "'a\\u009b1mµ'"},
      {"bytes that are no UTF-8", "caf\xe9 \xc3", "'caf\\xe9 \\xc3'"},
      {"60 characters in full", std::string(60, 'x'), "'" + std::string(60, 'x') + "'"},
      {"more is cut", std::string(61, 'x'), "'" + std::string(60, 'x') + "…'"},
      {"not within a character", std::string(59, 'x') + "µµ", "'" + std::string(59, 'x') + "µ…'"},
  };
  for (const Case& test : cases) EXPECT_EQ(quote(test.text), test.quoted) << test.what;
}

TEST(Words, Nearest) {
  const std::vector<std::string_view> keys{"name", "rate", "queue_limit", "mtu", "link_state"};
  struct Case {
    std::string what;
    std::string word;
    std::string nearest;  // empty: none
  };
  const std::vector<Case> cases{
      {"a letter too many", "names", "name"},
      {"a letter left out", "nam", "name"},
      {"a letter changed", "nane", "name"},
      {"two letters swapped", "mut", "mtu"},
      {"capitals", "MTU", "mtu"},
      {"a hyphen for an underscore", "queue-limit", "queue_limit"},
      {"two mistakes in a long word", "queu_limt", "queue_limit"},
      {"two mistakes in a short word are another word", "nxmx", ""},
      {"nothing like it", "colour", ""},
      {"empty", "", ""},
      {"absurdly long", std::string(1'000'000, 'n'), ""},
  };
  for (const Case& test : cases) EXPECT_EQ(nearest(test.word, keys), test.nearest) << test.what;
  EXPECT_EQ(nearest("rats", {"rate", "raps"}), "rate") << "the first of equally near ones";
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Words, Listed) {
  EXPECT_EQ(listed(std::vector<std::string_view>{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(listed(std::vector<std::string_view>{}), "");
}

}  // namespace
}  // namespace heddle::config
