// What `heddle tune` prints, and that a switch takes it.
#include "cli/tune_view.h"

#include <gtest/gtest.h>

#include "control/switch_config.h"
#include "net/error.h"

namespace heddle::cli {
namespace {

TEST(Tune, ShowsTheArithmetic) {
  TuneOptions options;
  options.poll = "0";
  options.burst = 0;
  const TuneAnswer tuned = answer(options);
  const std::string page = page_of(tuned);
  // 4222 + 24 bytes twice, 84, 30 m there and back at 100G, 394 quanta: 37,580, in KiB.
  for (const char* line : {"4246", "84", "3788", "25216", "= headroom", "37888", "in every item of ports"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << "\n" << page;
  }
  const nlohmann::ordered_json json = json_of(tuned);
  uint64_t sum = 0;
  for (const auto& step : json.at("headroom_steps")) sum += step.at("bytes").get<uint64_t>();
  EXPECT_EQ((sum + 1023) / 1024 * 1024, json.at("headroom_bytes"));
  EXPECT_EQ(json.at("yaml"), yaml_of(tuned));
}

TEST(Tune, OneGroupOfSettingsForEachLosslessClass) {
  TuneOptions options;
  options.lossless = {3, 4};
  const std::string yaml = yaml_of(answer(options));
  EXPECT_NE(yaml.find("\n    3: {lossless: true"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("\n    4: {lossless: true"), std::string::npos) << yaml;
}

// What is printed is pasted as it is, and passes the check of headroom that a switch makes when it starts.
TEST(Tune, ASwitchTakesTheYaml) {
  for (const char* rate : {"10G", "25G", "100G", "400G"}) {
    TuneOptions options;
    options.port = rate;
    options.ports = 2;
    options.buffer = "64MB";
    options.lossless = {3, 5};
    const TuneAnswer tuned = answer(options);
    const std::string yaml = yaml_of(tuned);
    const std::string mark = "pfc_reaction: ";
    const size_t at = yaml.find(mark) + mark.size();
    const std::string port = "rate: " + options.port +
                             ", mtu: 4200, pfc: frames, pfc_reaction: " + yaml.substr(at, yaml.find('\n', at) - at) +
                             "}\n";
    const control::SwitchConfig config =
        control::load_switch_config_text(yaml + "switch: {name: leaf}\nports:\n  - {name: a, device: net_ring0, " +
                                             port + "  - {name: b, device: net_ring1, " + port,
                                         "tuned.yaml");
    for (const unsigned tc : {3U, 5U}) {
      EXPECT_TRUE(config.ports[1].queues[tc].lossless) << rate;
      EXPECT_EQ(config.ports[1].queues[tc].headroom, tuned.tuning.headroom.bytes) << rate;
      EXPECT_FALSE(config.ports[1].queues[tc].force);
    }
  }
}

struct Mistake {
  const char* what;
  void (*make)(TuneOptions&);
  const char* message;  // its beginning
};

TEST(Tune, NamesWhatItCannotTake) {
  const Mistake mistakes[] = {
      {"no rate", [](TuneOptions& o) { o.port = "fast"; }, "--port: found 'fast'; accepted: a rate such as 100G"},
      {"no unit", [](TuneOptions& o) { o.cable = "30"; }, "--cable: found '30'; accepted: a length such as 30m"},
      {"no length", [](TuneOptions& o) { o.cable = "m"; }, "--cable: found 'm'"},
      {"an MTU that is none", [](TuneOptions& o) { o.mtu = 100; }, "--mtu: found 100"},
      {"no ports", [](TuneOptions& o) { o.ports = 0; }, "--ports: found 0"},
      {"a class that is none", [](TuneOptions& o) { o.lossless = {8}; }, "--lossless: found 8;"},
      {"a class twice",
       [](TuneOptions& o) {
         o.lossless = {3, 3};
       },
       "--lossless: found 3 twice"},
      {"a buffer that is too small", [](TuneOptions& o) { o.buffer = "1MB"; },
       "found a buffer of 1000000 bytes; accepted: at least "},
      {"a long poll", [](TuneOptions& o) { o.poll = "2s"; }, "--poll: found '2s'"},
  };
  for (const Mistake& mistake : mistakes) {
    TuneOptions options;
    mistake.make(options);
    try {
      answer(options);
      ADD_FAILURE() << mistake.what;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_status(), 2);
      EXPECT_TRUE(std::string_view(error.what()).starts_with(mistake.message)) << error.what();
    }
  }
}

}  // namespace
}  // namespace heddle::cli
