// The search over ECN settings: its grid, its judgement, and what it refuses.
#include "cli/tune_search.h"

#include <gtest/gtest.h>

#include "cli/tables.h"
#include "lab/scenario/sweep.h"
#include "net/error.h"

namespace heddle::cli {
namespace {

TEST(TuneSearch, SweepsAroundTheUsualThresholds) {
  const lab::SweepAxis axis = lab::parse_sweep(ecn_sweep(Rate::gbps(100)));
  EXPECT_EQ(axis.key, "fabric.ecn");
  ASSERT_EQ(axis.values.size(), 18U);
  EXPECT_EQ(axis.values.front(), "{kmin: 25000, kmax: 100000, pmax: 1%}");
  EXPECT_EQ(axis.values[13], "{kmin: 400000, kmax: 1600000, pmax: 20%}") << "HPCC's at 100G";
  EXPECT_EQ(axis.values.back(), "{kmin: 800000, kmax: 3200000, pmax: 100%}");
}

Json result(const char* ecn, double slowdown_p99, double makespan, double pause, uint64_t completed = 10) {
  return {{"sweep", {{"fabric.ecn", ecn}}},
          {"flows", 10},
          {"completed", completed},
          {"slowdown", {{"mean", 1.5}, {"p99", slowdown_p99}}},
          {"fct_us", {{"p99", 100.0}}},
          {"makespan_us", completed == 10 ? Json(makespan) : Json()},
          {"peak_queue_bytes", 1000},
          {"ecn_marked", 5},
          {"cnps", 4},
          {"pauses_sent", 3},
          {"pause_time_us", pause},
          {"drops", Json::object()}};
}

TEST(TuneSearch, MarksWhatNothingBeats) {
  const std::string table = trade_off_table({result("unfinished", 1, 1, 0, 9), result("beaten", 5, 110, 20),
                                             result("fast", 4, 100, 20), result("calm", 6, 120, 0)});
  std::vector<std::string> lines;
  for (size_t begin = 0, end = 0; (end = table.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(table.substr(begin, end - begin));
  }
  ASSERT_GE(lines.size(), 5U);
  const auto line_is = [&](size_t i, const char* name, bool best) {
    EXPECT_TRUE(lines[i].starts_with(name)) << table;
    EXPECT_EQ(lines[i].find('*') != std::string::npos, best) << lines[i];
  };
  line_is(1, "fast", true);
  line_is(2, "beaten", false);
  line_is(3, "calm", true);
  line_is(4, "unfinished", false);
}

TEST(TuneSearch, WantsHostsThatHeedMarks) {
  LabOptions options;
  options.scenario = "examples/lab/incast-15.yaml";
  try {
    search_ecn(options);
    FAIL() << "hosts without congestion control";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "examples/lab/incast-15.yaml: found hosts.congestion_control none; accepted: dcqcn, or ECN marks would "
              "change nothing");
  }
}

}  // namespace
}  // namespace heddle::cli
