// What the parser builds, and the limits that no input gets past.
#include "config/yaml_tree.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml.h"
#include "net/error.h"

namespace heddle::config {
namespace {

using ::testing::StartsWith;

std::string message_of(const std::string& text) {
  try {
    parse_yaml(text, "t.yaml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    return error.what();
  }
  return "accepted";
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST(YamlTree, PlacesAreThoseOfTheText) {
  const NodePtr root = parse_yaml("# comment\na: 1\nb:\n  - x\n\n  - {c: y,\n     d: z}\ne:\n", "t.yaml");
  EXPECT_EQ(root->find("a")->value->place.text(), "t.yaml:2");
  const NodePtr list = root->find("b")->value;
  EXPECT_EQ(list->items[0]->place.text(), "t.yaml:4");
  EXPECT_EQ(list->items[1]->place.text(), "t.yaml:6");
  EXPECT_EQ(list->items[1]->find("d")->place.text(), "t.yaml:7");
  EXPECT_EQ(root->find("e")->value->place.text(), "t.yaml:8") << "a missing value is where its key is";
  EXPECT_EQ(root->find("nothing"), nullptr);
}

// The parser's message ends in the byte it met, here a carriage return.
TEST(YamlTree, AnErrorIsOneLineWhateverTheParserMet) {
  EXPECT_EQ(message_of("\"\\\r\rM0"),
            "t.yaml:1: found a YAML syntax error in column 4: unknown escape character: ?; accepted: YAML "
            "(https://yaml.org)");
}

TEST(YamlTree, QuotesMakeText) {
  const NodePtr root = parse_yaml("plain: 1\nsingle: '1'\ndouble: \"1\"\nblock: |\n  1\ntagged: !!str 1\n", "t.yaml");
  EXPECT_FALSE(root->find("plain")->value->quoted);
  for (const char* key : {"single", "double", "block", "tagged"}) EXPECT_TRUE(root->find(key)->value->quoted) << key;
}

TEST(YamlTree, AliasesAndMergeKeys) {
  const Document document(
      parse_yaml("base: &b {rate: 10G, mtu: 1500}\n"
                 "more: &m {mtu: 1, worker: 2}\n"
                 "same: *b\n"
                 "one: {<<: *b, mtu: 9000}\n"
                 "two: {mtu: 9000, <<: [*b, *m]}\n",
                 "t.yaml"));
  EXPECT_EQ(document.to_json().dump(),
            R"({"base":{"rate":"10G","mtu":1500},"more":{"mtu":1,"worker":2},"same":{"rate":"10G","mtu":1500},)"
            R"("one":{"mtu":9000,"rate":"10G"},"two":{"mtu":9000,"rate":"10G","worker":2}})");
}

TEST(YamlTree, EmptyTextIsNull) {
  for (const char* text : {"", "\n\n", "# comment", "---\n", "~"}) {
    EXPECT_EQ(parse_yaml(text, "t.yaml")->kind, Node::Kind::kNull) << text;
  }
}

// One line each, in a moment, whatever is thrown at it.
TEST(YamlTree, HostileInput) {
  struct Case {
    std::string what;
    std::string text;
    std::string message;
  };
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeated(alias + ", ", 9) + alias + "]\n";
  }
  std::string ladder = "a0: &a0 [x]\n";
  for (int i = 1; i < 80; ++i) {
    ladder += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  }
  const std::vector<Case> cases{
      {"an alias bomb (10^12 values)", bomb,
       "t.yaml:7: found too many values; accepted: at most 8000000, aliases "
       "written out"},
      {"depth by way of aliases", ladder, "t.yaml:63: found values nested too deeply; accepted: at most 64 levels"},
      {"lists in lists", repeated("[", 100'000) + repeated("]", 100'000),
       "t.yaml:1: found values nested too deeply; accepted: at most 64 levels"},
      {"maps in maps", repeated("{a: ", 100'000) + repeated("}", 100'000),
       "t.yaml:1: found values nested too deeply; accepted: at most 64 levels"},
      {"block lists in block lists", repeated("- ", 100'000),
       "t.yaml:1: found values nested too deeply; accepted: at most 64 levels"},
      {"keys in keys", repeated("? ", 100'000),
       "t.yaml:1: found a map as a key; accepted: a plain word as the key, and a closing bracket for each opening one"},
      {"an endless key", "? " + std::string(100'000, 'k') + "\n: 1",
       "t.yaml:1: found a key of 100000 bytes; accepted: at most 256"},
      {"an ELF binary",
       std::string("\x7f"
                   "ELF\x02\x01",
                   6),
       "t.yaml:1: found byte 0x02; accepted: YAML in UTF-8 text"},
      {"UTF-16",
       std::string("\xff\xfe"
                   "a\0",
                   4),
       "t.yaml:1: found byte 0xff; accepted: YAML in UTF-8 text"},
      {"an overlong slash", "a\n\xc0\xaf", "t.yaml:2: found byte 0xc0; accepted: YAML in UTF-8 text"},
      {"a surrogate", "\xed\xa0\x80", "t.yaml:1: found byte 0xed; accepted: YAML in UTF-8 text"},
      {"beyond U+10FFFF", "\xf4\x90\x80\x80", "t.yaml:1: found byte 0xf4; accepted: YAML in UTF-8 text"},
      {"a character cut short", "\xe2\x82", "t.yaml:1: found byte 0xe2; accepted: YAML in UTF-8 text"},
      {"an escape sequence for terminals", "a: \x1b[31m", "t.yaml:1: found byte 0x1b; accepted: YAML in UTF-8 text"},
      {"an escape that yaml-cpp turns into half a character", "a: \"\\_\"",
       "t.yaml:1: found an escape for byte 0xa0; accepted: escapes for UTF-8 text"},
      {"an escape sequence within a key", "\"\\e[31m\": 1\n\"\\e[31m\": 2",
       "t.yaml:2: found key '\\x1b[31m' a second time; accepted: each key once (first on line 1)"},
  };
  for (const Case& test : cases) EXPECT_EQ(message_of(test.text), test.message) << test.what;
}

TEST(YamlTree, DepthLimitIsExact) {
  EXPECT_EQ(message_of(repeated("[", kMaxYamlDepth - 1) + "x" + repeated("]", kMaxYamlDepth - 1)), "accepted");
  EXPECT_THAT(message_of(repeated("[", kMaxYamlDepth) + "x" + repeated("]", kMaxYamlDepth)),
              StartsWith("t.yaml:1: found values nested too deeply"));
}

TEST(YamlTree, Utf8TextIsKept) {
  EXPECT_EQ(parse_yaml("\xef\xbb\xbf# byte order mark\nname: µ€😀\n", "t.yaml")->find("name")->value->text, "µ€😀");
}

}  // namespace
}  // namespace heddle::config
