// What `heddle top` makes of two samples of the counters.
#include "cli/top_view.h"

#include <string>

#include <gtest/gtest.h>

namespace heddle::cli {
namespace {

Json port(const std::string& name, uint64_t rx, uint64_t tx, const Json& drops) {
  return {{"name", name},         {"rate", "100G"},   {"up", true},           {"rx_packets", rx},
          {"rx_bytes", rx * 100}, {"tx_packets", tx}, {"tx_bytes", tx * 100}, {"drops", drops}};
}

Json member(const std::string& port, uint64_t packets) {
  return {{"port", port},       {"mac", "02:00:00:00:00:01"}, {"vlan", 0}, {"weight", 1}, {"up", true},
          {"packets", packets}, {"bytes", packets * 100}};
}

// A host port and two uplinks; `packets` packets went 3 : 1 over them, a tenth of what arrived was dropped.
Sample sample(int seconds, uint64_t packets) {
  Sample made;
  made.at = std::chrono::steady_clock::time_point(std::chrono::seconds(seconds));
  made.tsc = static_cast<uint64_t>(seconds) * 1'000'000;
  const Json drops = packets == 0 ? Json::object() : Json{{"queue_full", packets / 10}};
  made.totals["ports"] = Json::array({port("host", packets, 0, Json::object()), port("up0", 0, packets / 4 * 3, drops),
                                      port("up1", 0, packets / 4, Json::object())});
  made.totals["drops"] = drops;
  const Json spread = Json::array({member("up0", packets / 4 * 3), member("up1", packets / 4)});
  made.totals["groups"] = Json::array(
      {{{"name", "uplinks"}, {"scheduler", "ecmp"}, {"members", spread}},
       {{"name", "host/02:00:00:00:00:09"}, {"scheduler", "ecmp"}, {"members", Json::array({member("host", 0)})}}});
  made.totals["workers"] = Json::array({Json{{"cpu", 1}, {"busy_ticks", packets}, {"idle_ticks", 0}}});
  made.queues["queues"] =
      Json::array({{{"port", "up0"}, {"class", 3}, {"bytes", 700}}, {{"port", "up0"}, {"class", 0}, {"bytes", 42}}});
  return made;
}

TEST(TopLine, RatesAreOfTheIntervalNotSinceTheStart) {
  // 800,000 packets of 100 bytes in two seconds, 400,000 busy ticks of each million.
  EXPECT_EQ(top_line(sample(10, 4'000'000), sample(12, 4'800'000)),
            "rx 400.00k pps 320.00M b/s  tx 400.00k pps 320.00M b/s  queued 742 B  drops 40.00k/s  busy 40%  "
            "uplinks: up0 75.0% up1 25.0%");
}

TEST(TopLine, NothingMoved) {
  EXPECT_EQ(top_line(sample(10, 4000), sample(11, 4000)),
            "rx 0 pps 0 b/s  tx 0 pps 0 b/s  queued 742 B  drops 0/s  busy 0%  uplinks: up0 - up1 -");
}

TEST(TopLine, ASwitchThatStartedAnewAtTheSameSocketCountsFromZero) {
  EXPECT_EQ(top_line(sample(10, 4'000'000), sample(11, 8000)),
            "rx 8000 pps 6.40M b/s  tx 8000 pps 6.40M b/s  queued 742 B  drops 800/s  busy 1%  "
            "uplinks: up0 75.0% up1 25.0%");
}

TEST(TopScreen, ShowsWorkersPortsMembersAndDrops) {
  const std::string screen = top_screen(sample(10, 4'000'000), sample(12, 4'800'000));
  const auto line_with = [&](const std::string& begin) {
    const size_t at = ("\n" + screen).find("\n" + begin);
    return at == std::string::npos ? "no line '" + begin + "'" : screen.substr(at, screen.find('\n', at) - at);
  };
  EXPECT_EQ(line_with("workers"), "workers busy: 40%");
  EXPECT_EQ(line_with("port "), "port  link  rate  rx pps   rx b/s   tx pps   tx b/s   queued bytes  drops/s  drops");
  EXPECT_EQ(line_with("host "), "host  up    100G  400.00k  320.00M        0        0             0        0       0");
  EXPECT_EQ(line_with("up0 "), "up0   up    100G        0        0  300.00k  240.00M           742   40.00k  480000");
  EXPECT_EQ(line_with("uplinks"),
            "uplinks                 ecmp       up0   02:00:00:00:00:01  up    75.0%  300.00k  240.00M");
  EXPECT_EQ(line_with("queue_full"), "queue_full     40.00k   480000");
}

TEST(TopScreen, AMemberThatJoinedSinceTheLastSampleCountsFromZero) {
  const Sample before = sample(10, 4000);
  Sample after = sample(11, 4000);
  after.totals["groups"][0]["members"].push_back(member("up2", 500));
  EXPECT_NE(top_line(before, after).find("uplinks: up0 0.0% up1 0.0% up2 100.0%"), std::string::npos);
}

TEST(TextTable, NumbersStandRightAndWordsLeft) {
  EXPECT_EQ(text_table({{"a", "count"}, {"long word", "7"}, {"b", "12345"}}),
            "a          count\nlong word      7\nb          12345\n");
}

TEST(ShortNumber, KeepsFourDigitsAndThenUnits) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(9999), "9999");
  EXPECT_EQ(short_number(12345678), "12.35M");
  EXPECT_EQ(short_number(100e9), "100.00G");
}

}  // namespace
}  // namespace heddle::cli
