// Overlays, and writing a document out again.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml.h"
#include "net/error.h"

namespace heddle::config {
namespace {

constexpr const char* kScenario =
    "topology: {kind: fat-tree, hosts: 1024, link: {rate: 100G, delay: 1us}}\n"
    "ports:\n"
    "  - {name: up0, mtu: 1500}\n"
    "  - {name: up1, mtu: 1500}\n"
    "run: {seed: 1}\n";

std::string json_of(const std::vector<std::string>& overlays, const OverlayOptions& options = {},
                    const std::string& text = kScenario) {
  return load_text(text, "t.yaml", overlays, options).to_json().dump();
}

TEST(Overlays, Set) {
  struct Case {
    std::string what;
    std::vector<std::string> overlays;
    std::string text;
    std::string json;
  };
  const std::vector<Case> cases{
      {"nothing", {}, "{a: 1}", R"({"a":1})"},
      {"a value", {"a=2"}, "{a: 1}", R"({"a":2})"},
      {"a value below", {"a.b=2"}, "{a: {b: 1, c: 3}}", R"({"a":{"b":2,"c":3}})"},
      {"a new key", {"a.b=2"}, "{a: {c: 3}}", R"({"a":{"c":3,"b":2}})"},
      {"maps that do not exist yet", {"a.b.c=2"}, "{}", R"({"a":{"b":{"c":2}}})"},
      {"a section without a value", {"a.b=2"}, "a:", R"({"a":{"b":2}})"},
      {"a map in place of a value", {"a={b: [1, x]}"}, "{a: 1}", R"({"a":{"b":[1,"x"]}})"},
      {"no value", {"a="}, "{a: 1}", R"({"a":null})"},
      {"quoted text", {"a='1'"}, "{a: 1}", R"({"a":"1"})"},
      {"a value with an equals sign", {"a=b=c"}, "{a: 1}", R"({"a":"b=c"})"},
      {"a value with dots", {"a=10.0.0.1"}, "{a: 1}", R"({"a":"10.0.0.1"})"},
      {"an item by number", {"a.1=x"}, "{a: [p, q]}", R"({"a":["p","x"]})"},
      {"an item by number in brackets", {"a[1]=x"}, "{a: [p, q]}", R"({"a":["p","x"]})"},
      {"a key of an item", {"a.0.b=2"}, "{a: [{b: 1}]}", R"({"a":[{"b":2}]})"},
      {"an item by name", {"a.y.b=2"}, "{a: [{name: x}, {name: y}]}", R"({"a":[{"name":"x"},{"name":"y","b":2}]})"},
      {"the later of two", {"a=2", "a=3"}, "{a: 1}", R"({"a":3})"},
      {"one within the other", {"a={b: 2}", "a.c=3"}, "{a: 1}", R"({"a":{"b":2,"c":3}})"},
      {"one place of an anchor only", {"b.x=2"}, "{a: &n {x: 1}, b: *n}", R"({"a":{"x":1},"b":{"x":2}})"},
  };
  for (const Case& test : cases) EXPECT_EQ(json_of(test.overlays, {}, test.text), test.json) << test.what;
}

std::string deep_path() {
  std::string path = "a";
  for (int i = 1; i < 100; ++i) path += ".a";
  return path;
}

TEST(Overlays, Refused) {
  struct Case {
    std::string what;
    std::string overlay;
    std::string message;
  };
  const std::vector<Case> cases{
      {"no equals sign", "run.seed", "--set run.seed: found no '='; accepted: section.key=value"},
      {"no path", "=1", "--set =1: found an empty name in the path; accepted: section.key=value"},
      {"a dot too many", "run..seed=1",
       "--set run..seed=1: found an empty name in the path; accepted: section.key=value"},
      {"a dot at the end", "run.=1", "--set run.=1: found an empty name in the path; accepted: section.key=value"},
      {"a key below a value", "run.seed.x=1",
       "--set run.seed.x=1: found '1' before 'x', which holds no keys; accepted: the path of a key, such as "
       "section.key"},
      {"an item that is not there", "ports.2.mtu=1",
       "--set ports.2.mtu=1: found no item '2' in the list of 2; accepted: 0 to 1, or the name of an item"},
      {"a name that no item has", "ports.up2.mtu=1",
       "--set ports.up2.mtu=1: found no item 'up2' in the list of 2; accepted: 0 to 1, or the name of an item"},
      {"a bracket left open", "run.seed={",
       "--set run.seed={: found a map as a key; accepted: a plain word as the key, and a closing bracket for each "
       "opening one"},
      {"a value that is no YAML", "run.seed={a: [}",
       "--set run.seed={a: [}: found a YAML syntax error in column 6: illegal flow end; accepted: YAML "
       "(https://yaml.org)"},
      {"a key twice", "run={a: 1, a: 2}",
       "--set run={a: 1, a: 2}: found key 'a' a second time; accepted: each key once"},
      {"a line break in the text", "run\n", "--set run\\n: found no '='; accepted: section.key=value"},
      {"a byte that is no UTF-8",
       "run.se\xe9"
       "d=1",
       "--set run.se\\xe9d=1: found byte 0xe9; accepted: UTF-8 text"},
      {"an absurdly long path", std::string(199, '.') + "=1",
       "--set " + std::string(60, '.') + "…: found an empty name in the path; accepted: section.key=value"},
      {"an absurdly deep path", deep_path() + "=1",
       "--set " + deep_path().substr(0, 60) + "…: found a path of 100 names; accepted: at most 64"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.what);
    try {
      ADD_FAILURE() << json_of({test.overlay});
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), test.message);
    }
  }
}

TEST(Overlays, ANewKindDropsTheKeysOfTheOldOne) {
  OverlayOptions options;
  options.new_kind_drops_keys = true;
  options.default_kinds = {{"workload", "permutation"}};
  struct Case {
    std::string what;
    std::vector<std::string> overlays;
    std::string text;
    std::string json;
  };
  const std::vector<Case> cases{
      {"keys of the file go", {"t.kind=b"}, "{t: {kind: a, x: 1, y: 2}}", R"({"t":{"kind":"b"}})"},
      {"the same kind keeps them", {"t.kind=a"}, "{t: {kind: a, x: 1}}", R"({"t":{"kind":"a","x":1}})"},
      {"a later overlay stays", {"t.kind=b", "t.z=3"}, "{t: {kind: a, x: 1}}", R"({"t":{"kind":"b","z":3}})"},
      {"an earlier overlay stays", {"t.z=3", "t.kind=b"}, "{t: {kind: a, x: 1}}", R"({"t":{"z":3,"kind":"b"}})"},
      {"of a map below, what an overlay set",
       {"t.m.q=3", "t.kind=b"},
       "{t: {kind: a, m: {p: 1, q: 2}}}",
       R"({"t":{"m":{"q":3},"kind":"b"}})"},
      {"other sections stay", {"t.kind=b"}, "{t: {kind: a, x: 1}, u: {x: 1}}", R"({"t":{"kind":"b"},"u":{"x":1}})"},
      {"naming the default drops nothing",
       {"workload.kind=permutation"},
       "{workload: {size: 1}}",
       R"({"workload":{"size":1,"kind":"permutation"}})"},
      {"another than the default does",
       {"workload.kind=incast"},
       "{workload: {size: 1}}",
       R"({"workload":{"kind":"incast"}})"},
      {"a kind within a list", {"jobs.0.kind=b"}, "{jobs: [{kind: a, x: 1}]}", R"({"jobs":[{"kind":"b"}]})"},
  };
  for (const Case& test : cases) EXPECT_EQ(json_of(test.overlays, options, test.text), test.json) << test.what;
  EXPECT_EQ(json_of({"t.kind=b"}, {}, "{t: {kind: a, x: 1}}"), R"({"t":{"kind":"b","x":1}})") << "only when asked for";
}

TEST(Documents, JsonTypesAreThoseOfTheCoreSchema) {
  EXPECT_EQ(load_text("[1, -2, 1.5, 1e3, true, false, null, ~, '1', \"true\", yes, 0x10, 010, .5, 100G, 1us, "
                      "02:00:00:00:00:01, 18446744073709551615, ''] ",
                      "t.yaml")
                .to_json()
                .dump(),
            R"([1,-2,1.5,1000.0,true,false,null,null,"1","true","yes","0x10","010",".5","100G","1us",)"
            R"("02:00:00:00:00:01",18446744073709551615,""])");
}

TEST(Documents, YamlIsBlockStyle) {
  EXPECT_EQ(
      load_text("{a: 1, l: [x, {n: up0, m: 02:00:00:00:00:01}, [1, '2']], e: [], s: a b, q: 'true', n: }", "t.yaml")
          .to_yaml(),
      "a: 1\n"
      "l:\n"
      "  - x\n"
      "  - n: up0\n"
      "    m: 02:00:00:00:00:01\n"
      "  - - 1\n"
      "    - \"2\"\n"
      "e: []\n"
      "s: \"a b\"\n"
      "q: \"true\"\n"
      "n: null\n");
}

TEST(Documents, YamlRoundTrip) {
  const std::vector<std::string> texts{
      kScenario,
      "{}",
      "{a: [], b: {}, c: ~, d: '~', e: 'true', f: true, g: ' x ', h: \"two\\nlines\", i: '', j: 'a: b', k: '# no'}",
      "[[1, [2, {a: [3]}]], x]",
      "'word'",
      "{'': 1, 'a: b': 2, '~': 3, 'true': 4, '- x': 5, 'NULL': 6}",
      "{t: \"\\t\\u00b5\\u20ac\\x7f\"}",
  };
  for (const std::string& text : texts) {
    const Document document = load_text(text, "t.yaml");
    const std::string yaml = document.to_yaml();
    EXPECT_EQ(load_text(yaml, "again.yaml").to_json().dump(), document.to_json().dump()) << yaml;
  }
}

TEST(Documents, EmptyOnesAreRefused) {
  for (const char* text : {"", "# nothing\n", "---\n...\n", "~\n"}) {
    EXPECT_THROW(load_text(text, "t.yaml"), Error) << text;
  }
  EXPECT_EQ(json_of({}, {}, "{}"), "{}");
}

}  // namespace
}  // namespace heddle::config
