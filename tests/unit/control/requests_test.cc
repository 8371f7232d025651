// What is taken from a request to the control socket, what is refused, and in which words.
#include "control/requests.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/error.h"

namespace heddle::control {
namespace {

using ::testing::HasSubstr;

// The line with which `read` is refused.
template <typename Read>
std::string refusal(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    return error.what();
  }
  return "accepted";
}

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Requests, BodiesAreJson) {
  EXPECT_EQ(parse_body(R"([{"prefix": "10.0.0.0/8"}])")[0]["prefix"], "10.0.0.0/8");
  for (const char* body : {"", "no", "{", "[1,]", "\"\xff\""}) {
    EXPECT_EQ(refusal([&] { parse_body(body); }), "the body is not JSON") << body;
  }
}

TEST(Requests, NoBodyIsDeep) {
  EXPECT_EQ(parse_body(nested(16)).size(), 1U);
  for (const size_t levels : {17UL, 300'000UL, 3'000'000UL}) {
    EXPECT_EQ(refusal([&] { parse_body(nested(levels)); }), "the body is nested too deeply; accepted: up to 16 levels");
    EXPECT_EQ(refusal([&] { parse_body(std::string(levels, '[')); }),
              "the body is nested too deeply; accepted: up to 16 levels");
  }
}

TEST(Requests, AnswersBearAnyBytes) {
  EXPECT_EQ(error_text("no such view or action: GET /\xff"),
            "{\"error\":\"no such view or action: GET /\xef\xbf\xbd\"}\n");
  EXPECT_EQ(answer_text({{"done", true}}), "{\"done\":true}\n");
}

struct Refused {
  std::string what;
  std::string body;
  std::string message;
};

SwitchConfig two_ports() {
  return load_switch_config_text(
      "ports:\n  - {name: a, device: net_null0}\n"
      "  - {name: b, device: net_null1, untagged: false, vlans: [{id: 7}, {id: 9}]}\n",
      "leaf.yaml");
}

TEST(Requests, NextHops) {
  const SwitchConfig config = two_ports();
  const NextHopConfig hop =
      read_next_hop(parse_body(R"({"port": "b", "mac": "02:00:00:00:00:0b", "vlan": 9, "weight": 3})"), config);
  EXPECT_EQ(hop.port, 1);
  EXPECT_EQ(hop.vlan, 9);
  EXPECT_EQ(hop.weight, 3);
  EXPECT_FALSE(hop.alternate);
}

TEST(Requests, WrongNextHops) {
  const SwitchConfig config = two_ports();
  const std::string mac = R"("mac": "02:00:00:00:00:0b")";
  const std::vector<Refused> cases{
      {"no object", "7", "'port' is missing; accepted: a string"},
      {"an unknown port", R"({"port": "c", )" + mac + "}", "no port \"c\""},
      {"a multicast MAC", R"({"port": "a", "mac": "01:00:5e:00:00:01"})",
       "mac: found \"01:00:5e:00:00:01\"; accepted: the address of one station"},
      {"a VLAN that the port does not have", R"({"port": "a", "vlan": 7, )" + mac + "}",
       "found vlan '7' on port a, which does not accept such frames; accepted: vlan: 0"},
      {"untagged on a port without untagged frames", R"({"port": "b", )" + mac + "}",
       "found a next hop without vlan: on port b, which does not accept untagged frames; accepted: vlan: 7, 9"},
      {"a list as VLAN", R"({"port": "a", "vlan": [1], )" + mac + "}", "vlan: found a list; accepted: 0–4094"},
      {"a long text as weight", R"({"port": "a", "weight": ")" + std::string(500, 'w') + "\", " + mac + "}",
       "weight: found \"" + std::string(59, 'w') + "…; accepted: 1–1000"},
  };
  for (const Refused& wrong : cases) {
    SCOPED_TRACE(wrong.what);
    EXPECT_EQ(refusal([&] { read_next_hop(parse_body(wrong.body), config); }), wrong.message);
  }
}

TEST(Requests, WrongSchedulers) {
  EXPECT_THAT(refusal([] { read_schedulers(parse_body(R"({"scheduler": {"x": 1}})")); }),
              HasSubstr("scheduler: found an object; accepted: "));
  EXPECT_EQ(refusal([] { read_schedulers(parse_body(R"({"scheduler": "ecmp", "class_schedulers": {"8": "ecmp"}})")); }),
            "class_schedulers: found class \"8\"; accepted: 0–7");
}

}  // namespace
}  // namespace heddle::control
