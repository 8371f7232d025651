// The typed view: maps, lists, readers and the texts of their errors.
#include "config/yaml.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/error.h"

namespace heddle::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What reading `v: TEXT` with `read` throws, without the place; "accepted" if it does not.
std::string refusal(const std::string& text, const std::function<void(const Value&)>& read) {
  const Document document = load_text("v: " + text, "t.yaml");
  try {
    read(document.root().map({"v"}).at("v"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    const std::string message = error.what();
    EXPECT_EQ(message.substr(0, 8), "t.yaml:1") << message;
    return message.substr(10);
  }
  return "accepted";
}

template <typename Read>
auto value_of(const std::string& text, const Read& read) {
  return load_text("v: " + text, "t.yaml").root().map({"v"}).required("v", read);
}

TEST(Yaml, ReadersRead) {
  enum class Colour { kRed, kBlue };
  EXPECT_TRUE(value_of("true", boolean()));
  EXPECT_FALSE(value_of("'false'", boolean()));
  EXPECT_EQ(value_of("17", integer<uint8_t>(0, 17)), 17);
  EXPECT_EQ(value_of("18446744073709551615", integer<uint64_t>(0, UINT64_MAX)), UINT64_MAX);
  EXPECT_EQ(value_of("-2.5e-1", number(-1, 1)), -0.25);
  EXPECT_EQ(value_of("two words", text(20)), "two words");
  EXPECT_EQ(value_of("up-0.b_1", name_text(8)), "up-0.b_1");
  EXPECT_EQ(value_of("100G", rate()), Rate::gbps(100));
  EXPECT_EQ(value_of("unlimited", rate()), Rate::unlimited());
  EXPECT_EQ(value_of("64KiB", bytes(1, 65'536)), 65'536U);
  EXPECT_EQ(value_of("1.5us", duration(1, kSecond)), 1'500'000U);
  EXPECT_EQ(value_of("5%", share()), 0.05);
  EXPECT_EQ(value_of("02:00:00:00:00:01", station_mac()), (net::Mac{2, 0, 0, 0, 0, 1}));
  EXPECT_EQ(print_prefix(value_of("2001:db8::/32", unicast_prefix())), "2001:db8::/32");
  EXPECT_EQ(value_of("blue", one_of<Colour>({{"red", Colour::kRed}, {"blue", Colour::kBlue}})), Colour::kBlue);
  EXPECT_THAT(value_of("[1, 2]", list_of(integer<int>(0, 9), 1, 3)), ElementsAre(1, 2));
  EXPECT_THAT(value_of("1", list_of(integer<int>(0, 9), 1, 3)), ElementsAre(1)) << "a single value is a list of one";
}

TEST(Yaml, ReadersRefuse) {
  struct Case {
    std::string what;
    std::string text;
    std::function<void(const Value&)> read;
    std::string message;
  };
  const std::vector<Case> cases{
      {"a boolean of YAML 1.1", "yes", boolean(), "found v 'yes'; accepted: true, false"},
      {"an integer beyond its range", "18", integer<uint8_t>(0, 17),
       "found v '18'; accepted: a whole number from 0 to 17"},
      {"an integer that would wrap into its range", "258", integer<uint8_t>(0, 17),
       "found v '258'; accepted: a whole number from 0 to 17"},
      {"a list where a number belongs", "[1]", integer<int>(0, 9),
       "found a list as v; accepted: a whole number from 0 to 9"},
      {"a map where a number belongs", "{a: 1}", integer<int>(0, 9),
       "found a map as v; accepted: a whole number from 0 to 9"},
      {"nothing where a number belongs", "", integer<int>(0, 9),
       "found no value for v; accepted: a whole number from 0 "
       "to 9"},
      {"not a number", "nan", number(0, 1), "found v 'nan'; accepted: a number from 0 to 1"},
      {"an infinite number", "inf", number(0, 1), "found v 'inf'; accepted: a number from 0 to 1"},
      {"a number out of range", "1.01", number(0, 1), "found v '1.01'; accepted: a number from 0 to 1"},
      {"a number with something behind", "1x", number(0, 1), "found v '1x'; accepted: a number from 0 to 1"},
      {"empty text", "''", text(5), "found v ''; accepted: text of 1 to 5 characters"},
      {"long text", "abcdef", text(5), "found v 'abcdef'; accepted: text of 1 to 5 characters"},
      {"text of two lines", "\"a\\nb\"", text(5), "found v 'a\\nb'; accepted: text of 1 to 5 characters"},
      {"a name with a slash", "a/b", name_text(5),
       "found v 'a/b'; accepted: a name of 1 to 5 letters, digits, '_', '-' or '.'"},
      {"no limit where one is needed", "unlimited", rate(false),
       "found v 'unlimited'; accepted: a rate from 1M to 10T such as 100G or 25Gbps"},
      {"a size out of range", "1MB", bytes(1, 65'536),
       "found v '1MB'; accepted: a size such as 1500, 64KiB or 2MB, from 1B to 64KiB"},
      {"a duration out of range", "2s", duration(kNanosecond, kSecond),
       "found v '2s'; accepted: a duration such as 250ns, 1.5ms or 1s, from 1ns to 1s"},
      {"a share beyond all", "101%", share(), "found v '101%'; accepted: a share from 0 to 1 such as 5% or 0.05"},
      {"a multicast MAC", "01:00:00:00:00:01", station_mac(),
       "found v '01:00:00:00:00:01' (multicast); accepted: a MAC address of one station such as 02:00:00:00:00:01"},
      {"a prefix with host bits", "10.1.1.1/8", unicast_prefix(),
       "found v '10.1.1.1/8' with host bits set; accepted: 10.0.0.0/8"},
      {"another word", "green", one_of<int>({{"red", 1}, {"blue", 2}}), "found v 'green'; accepted: red, blue"},
      {"a bad item", "[1, x]", list_of(integer<int>(0, 9), 1, 3),
       "found v[1] 'x'; accepted: a whole number from 0 to 9"},
      {"too many items", "[1, 2, 3, 4]", list_of(integer<int>(0, 9), 1, 3),
       "found 4 items in v; accepted: a list of 1 to 3 items"},
      {"a word where a map belongs", "x",
       [](const Value& v) {
         v.map({"a", "b"});
       },
       "found v 'x'; accepted: a map of a, b"},
      {"a word where a table belongs", "x", [](const Value& v) { v.entries(); }, "found v 'x'; accepted: a map"},
  };
  for (const Case& test : cases) EXPECT_EQ(refusal(test.text, test.read), test.message) << test.what;
}

TEST(Yaml, RequiredAndOptional) {
  const Document document = load_text("a: 1\n", "t.yaml");
  const Map map = document.root().map({"a", "b"});
  EXPECT_TRUE(map.has("a"));
  EXPECT_FALSE(map.has("b"));
  EXPECT_EQ(map.optional("a", 7, integer<int>(0, 9)), 1);
  EXPECT_EQ(map.optional("b", 7, integer<int>(0, 9)), 7);
  EXPECT_EQ(map.maybe("a", integer<int>(0, 9)), 1);
  EXPECT_EQ(map.maybe("b", integer<int>(0, 9)), std::nullopt);
  EXPECT_THROW(map.at("c"), std::logic_error) << "a key that was not declared is a bug, not bad input";
  try {
    map.required("b", rate());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "t.yaml:1: found no 'b'; accepted: a rate from 1M to 10T such as 100G or 25Gbps, or unlimited");
  }
}

TEST(Yaml, SectionsMayBeAbsent) {
  const Document document = load_text("null_section:\nlist: []\n", "t.yaml");
  const Map root = document.root().map({"null_section", "absent", "list", "more"});
  EXPECT_EQ(root.section("null_section", {"x"}).optional("x", 3, integer<int>(0, 9)), 3);
  EXPECT_EQ(root.section("absent", {"x"}).optional("x", 3, integer<int>(0, 9)), 3);
  EXPECT_THAT(root.list("list", 0, 5), IsEmpty());
  EXPECT_THAT(root.list("more", 0, 5), IsEmpty());
  EXPECT_THAT(root.at("absent").entries(), IsEmpty());
}

// How a map reads its keys when they depend on its kind.
TEST(Yaml, Kinds) {
  const auto kind_in = [](const std::string& text) {
    const Document document = load_text(text, "t.yaml");
    return document.root().map({"t"}).at("t").kind({"tree", "graph"}, "tree");
  };
  EXPECT_EQ(kind_in("t: {kind: graph, nodes: 3}"), "graph");
  EXPECT_EQ(kind_in("t: {nodes: 3}"), "tree");
  EXPECT_EQ(kind_in("{}"), "tree");
  EXPECT_THROW(kind_in("t: {kind: gaph}"), Error);
  EXPECT_THROW(kind_in("t: [graph]"), Error);
}

TEST(Yaml, EntriesKeepTheirOrderAndPlace) {
  const Document document = load_text("v:\n  b: 1\n  a: 2\n", "t.yaml");
  const Map root = document.root().map({"v"});
  std::vector<std::string> seen;
  for (const auto& [key, value] : root.at("v").entries()) {
    seen.push_back(key.scalar("") + "=" + value.scalar("") + "@" + value.place().text());
  }
  EXPECT_THAT(seen, ElementsAre("b=1@t.yaml:2", "a=2@t.yaml:3"));
}

}  // namespace
}  // namespace heddle::config
