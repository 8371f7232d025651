// The watchdog over timelines: what the queue and its peer do, and when it is found stormed and restored.
#include "flowctl/pfc_watchdog.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flowctl/pfc.h"

namespace heddle::flowctl {
namespace {

constexpr unsigned kClass = 3;
constexpr Rate kLine = Rate::gbps(10);  // 0xffff quanta last 3.36 ms

// What goes on from `from_ms` on.
struct Stretch {
  unsigned from_ms;
  bool xoff;      // the peer sends XOFF every millisecond
  bool xon;       // the peer sends XON every millisecond, half a millisecond later
  bool progress;  // the queue sends a packet every millisecond
  uint64_t queued_bytes;
};

struct Row {
  const char* what;
  WatchdogSettings settings;
  unsigned poll_ms;
  std::vector<Stretch> timeline;
  unsigned until_ms;
  std::vector<std::string> events;  // "storm 250": found at that millisecond, within one poll
};

constexpr WatchdogSettings kQuick{.detect = 200 * kMillisecond, .restore = 400 * kMillisecond};

std::vector<std::string> run(const Row& row) {
  PauseState pause;
  PfcWatchdog watchdog(row.settings);
  std::vector<std::string> events;
  uint64_t sent = 0;
  size_t at = 0;
  for (unsigned ms = 0; ms < row.until_ms; ++ms) {
    while (at + 1 < row.timeline.size() && row.timeline[at + 1].from_ms <= ms) ++at;
    const Stretch& now_on = row.timeline[at];
    const Time now = ms * kMillisecond;
    pause.expire(now);
    if (now_on.xoff) pause.receive(PfcRequest::pause(1U << kClass, kMaxQuanta), kLine, now);
    if (now_on.xon) pause.receive(PfcRequest::resume(1U << kClass), kLine, now + kMillisecond / 2);
    sent += now_on.progress ? 1 : 0;
    if (ms % row.poll_ms != 0) continue;
    // One buffer, used again and again: the time of arrival tells its packets apart.
    const WatchdogSample sample{now_on.queued_bytes, &row, sent, pause.paused_time(kClass, now)};
    const WatchdogEvent event = watchdog.look(sample, now);
    if (event == WatchdogEvent::kStormed) events.push_back("storm " + std::to_string(ms));
    if (event == WatchdogEvent::kRestored) events.push_back("restored " + std::to_string(ms));
  }
  EXPECT_EQ(watchdog.storms(), static_cast<uint64_t>(std::count_if(events.begin(), events.end(), [](const auto& e) {
              return e.starts_with("storm");
            })));
  EXPECT_EQ(watchdog.restorations(), events.size() - watchdog.storms());
  return events;
}

TEST(PfcWatchdog, Timelines) {
  const Row rows[] = {
      {"a storm is found after the detection time, and its end after the restoration time",
       kQuick,
       25,
       {{0, false, false, true, 5000}, {100, true, false, false, 5000}, {1000, false, false, true, 5000}},
       2000,
       {"storm 300", "restored 1425"}},
      {"a shorter one is not", kQuick, 25, {{0, true, false, false, 5000}, {190, false, false, true, 5000}}, 1000, {}},
      {"paused, but with nothing to send", kQuick, 25, {{0, true, false, false, 0}}, 1000, {}},
      {"paused again and again, but it makes progress", kQuick, 25, {{0, true, false, true, 5000}}, 1000, {}},
      {"stuck, but not by pauses", kQuick, 25, {{0, false, false, false, 5000}}, 1000, {}},
      {"half of the time paused is congestion, not a storm", kQuick, 25, {{0, true, true, false, 5000}}, 1000, {}},
      {"XON frames without end are no storm", kQuick, 25, {{0, false, true, false, 5000}}, 1000, {}},
      {"an XOFF storm that becomes an XON storm is over",
       kQuick,
       25,
       {{0, true, false, false, 5000}, {500, false, true, false, 5000}},
       2000,
       {"storm 200", "restored 900"}},
      {"progress and an empty queue during the mitigation end nothing: the peer still pauses",
       kQuick,
       25,
       {{0, true, false, false, 5000}, {201, true, false, true, 0}},
       5000,
       {"storm 200"}},
      {"a pause within the restoration time starts it anew",
       kQuick,
       25,
       {{0, true, false, false, 5000},
        {500, false, false, false, 0},
        {800, true, false, false, 0},
        {850, false, false, false, 0}},
       2000,
       {"storm 200", "restored 1275"}},
      {"two storms",
       kQuick,
       25,
       {{0, true, false, false, 5000}, {300, false, false, true, 0}, {1000, true, false, false, 5000}},
       1400,
       {"storm 200", "restored 725", "storm 1200"}},
      {"slow polls: at the first look beyond the detection time",
       kQuick,
       90,
       {{0, true, false, false, 5000}},
       1000,
       {"storm 270"}},
      {"the longest times",
       {.detect = 5 * kSecond, .restore = 60 * kSecond},
       500,
       {{0, true, false, false, 5000}, {10'000, false, false, true, 0}},
       80'000,
       {"storm 5000", "restored 70000"}},
  };
  for (const Row& row : rows) EXPECT_EQ(run(row), row.events) << row.what;
}

struct ActionRow {
  WatchdogAction action;
  const char* name;
  bool drops;
  bool ignores_pause;
};

TEST(PfcWatchdog, ActsOnlyWhileStormed) {
  for (const ActionRow& row : {ActionRow{WatchdogAction::kDrop, "drop", true, false},
                               {WatchdogAction::kForward, "forward", false, true},
                               {WatchdogAction::kAlert, "alert", false, false}}) {
    PfcWatchdog watchdog({.detect = 200 * kMillisecond, .restore = 200 * kMillisecond, .action = row.action});
    EXPECT_EQ(name_of(row.action), row.name);
    EXPECT_FALSE(watchdog.drops() || watchdog.ignores_pause());
    for (unsigned i = 0; i <= 8; ++i) {
      const Time now = i * 25 * kMillisecond;
      watchdog.look({1000, nullptr, 0, now}, now);
    }
    EXPECT_TRUE(watchdog.is_stormed());
    EXPECT_EQ(watchdog.stormed_at(), 200 * kMillisecond);
    EXPECT_EQ(watchdog.drops(), row.drops) << row.name;
    EXPECT_EQ(watchdog.ignores_pause(), row.ignores_pause) << row.name;
    for (unsigned i = 9; i <= 16; ++i) watchdog.look({0, nullptr, 0, 200 * kMillisecond}, i * 25 * kMillisecond);
    EXPECT_FALSE(watchdog.is_stormed() || watchdog.drops() || watchdog.ignores_pause());
  }
}

}  // namespace
}  // namespace heddle::flowctl
