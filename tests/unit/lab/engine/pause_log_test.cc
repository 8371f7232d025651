// The log of pauses: which stretches it notes, and how long messages were held by them.
#include "lab/engine/pause_log.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::lab {
namespace {

constexpr uint8_t kBit = 1U << 3U;
const PauseOrigin kHere(20, 1);
const PauseOrigin kThere(21, 7);

std::map<std::pair<MessageId, uint64_t>, Duration> held(const PauseLog& log) {
  std::map<std::pair<MessageId, uint64_t>, Duration> all;
  for (const HeldMessage& of : log.held()) all[{of.message, of.origin.mark()}] += of.held;
  return all;
}

TEST(PauseOrigin, KeepsNodeAndPort) {
  EXPECT_FALSE(PauseOrigin().is_known());
  for (const auto& [node, port] :
       {std::pair<NodeId, PortIndex>{0, 0}, {0, 65535}, {81920, 3}, {4'000'000'000, 65535}}) {
    const PauseOrigin origin(node, port);
    EXPECT_TRUE(origin.is_known());
    EXPECT_EQ(origin.node(), node);
    EXPECT_EQ(origin.port(), port);
    EXPECT_EQ(PauseOrigin(origin.mark()), origin);
  }
}

TEST(PauseLog, NotesAStretchPerPauseAndOrigin) {
  PauseLog log(2);
  const auto note = [&](PortIndex port, uint8_t paused, PauseOrigin origin, Time now) {
    log.note(port, paused, origin, now);
  };
  note(1, 0, kHere, 5);
  note(1, kBit, kHere, 10);
  note(1, kBit, kHere, 20);  // repeated
  EXPECT_TRUE(log.intervals().empty());
  note(1, kBit, kThere, 30);  // the congestion is elsewhere now
  note(1, 0, kHere, 40);
  note(1, kBit, kHere, 50);
  note(1, 0, kHere, 50);  // no time at all
  note(0, kBit, kHere, 60);
  EXPECT_EQ(log.origin_since(0, 3, 70), kHere) << "it goes on";
  EXPECT_EQ(log.origin_since(1, 3, 39), kThere) << "the last that took time";
  EXPECT_FALSE(log.origin_since(1, 3, 40).is_known()) << "it was over by then";

  const std::vector<PauseInterval> all = log.intervals();
  ASSERT_EQ(all.size(), 2U) << "those that have ended";
  EXPECT_EQ(all[0].from, 10U);
  EXPECT_EQ(all[0].until, 30U);
  EXPECT_EQ(all[0].origin, kHere);
  EXPECT_EQ(all[1].from, 30U);
  EXPECT_EQ(all[1].until, 40U);
  EXPECT_EQ(all[1].origin, kThere);
  EXPECT_EQ(all[1].port, 1U);
  EXPECT_EQ(all[1].traffic_class, 3U);
}

TEST(PauseLog, CountsWhatPacketsOfAMessageWaitForOnce) {
  PauseLog log(1);
  const auto pause = [&](Time from, Time until, PauseOrigin origin) {
    log.note(0, kBit, origin, from);
    log.note(0, 0, origin, until);
  };
  pause(100, 200, kHere);
  log.note_wait(0, 3, 7, 210, 220);  // came after it
  EXPECT_TRUE(held(log).empty());
  log.note_wait(0, 3, 7, 50, 210);   // all of it
  log.note_wait(0, 3, 7, 150, 220);  // the next packet of the same message
  log.note_wait(0, 3, 8, 150, 220);  // half of it
  EXPECT_EQ((held(log)[{7, kHere.mark()}]), 100U);
  EXPECT_EQ((held(log)[{8, kHere.mark()}]), 50U);

  pause(300, 400, kThere);
  pause(500, 600, kHere);
  log.note_wait(0, 3, 7, 190, 700);  // across three, the first of which has been counted
  EXPECT_EQ((held(log)[{7, kHere.mark()}]), 200U);
  EXPECT_EQ((held(log)[{7, kThere.mark()}]), 100U);
  log.note_wait(0, 2, 9, 0, 700);
  EXPECT_EQ(held(log).size(), 3U) << "another class was not paused";
  log.note_wait(0, 3, 9, 550, 700);
  EXPECT_EQ((held(log)[{9, kHere.mark()}]), 50U);
}

TEST(PauseLog, KeepsClassesApart) {
  PauseLog log(2);
  std::array<PauseOrigin, kTrafficClasses> origins{};
  origins[0] = kHere;
  origins[2] = kThere;
  log.note_each(1, 0b101, origins.data(), 100);
  origins[2] = kHere;
  log.note_each(1, 0b101, origins.data(), 110);  // nothing begins or ends
  log.note_each(1, 0b100, origins.data(), 150);
  EXPECT_EQ(log.paused(1), 0b100);
  log.correct_origin(1, 2, kHere);  // as what ends it says
  log.note_each(1, 0, origins.data(), 180);
  const std::vector<PauseInterval> all = log.intervals();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].traffic_class, 0U);
  EXPECT_EQ(all[0].from, 100U);
  EXPECT_EQ(all[0].until, 150U);
  EXPECT_EQ(all[1].traffic_class, 2U);
  EXPECT_EQ(all[1].until, 180U);
  EXPECT_EQ(all[1].origin, kHere);
}

// Against the definition: for every message and origin, the length of the union of its packets' waits with the pauses.
// Packets leave in the order in which they came, and a log that forgets finds the same as one that does not.
TEST(PauseLog, AgreesWithItsDefinitionOverManyPauses) {
  constexpr unsigned kMessages = 5;
  constexpr unsigned kOrigins = 3;
  constexpr Time kEnd = 30'000;
  Random random(5);
  PauseLog whole(1);
  PauseLog brief(1, false);
  std::vector<unsigned> pause_at(kEnd);                                      // 0 = none, else its origin
  std::vector<std::vector<bool>> waits(kMessages, std::vector<bool>(kEnd));  // by message and time
  std::vector<std::pair<Time, MessageId>> queue;
  unsigned paused_by = 0;
  Time changes_at = 0;
  for (Time now = 0; now < kEnd; ++now) {
    if (now == changes_at) {
      const bool stays = random.below(3) != 0;  // runs of one origin
      paused_by = paused_by != 0 ? 0 : stays ? 1 : 1 + static_cast<unsigned>(random.below(kOrigins));
      for (PauseLog* log : {&whole, &brief}) log->note(0, paused_by != 0 ? 1 : 0, PauseOrigin(9, paused_by), now);
      changes_at = now + 1 + random.below(12);
    }
    pause_at[now] = paused_by;
    if (random.below(4) == 0) queue.emplace_back(now, random.below(kMessages));
    if (paused_by != 0 || queue.empty() || random.below(3) == 0) continue;
    const auto [since, message] = queue.front();
    queue.erase(queue.begin());
    for (PauseLog* log : {&whole, &brief}) log->note_wait(0, 0, message, since, now);
    std::fill(waits[message].begin() + static_cast<std::ptrdiff_t>(since),
              waits[message].begin() + static_cast<std::ptrdiff_t>(now), true);
  }
  std::map<std::pair<MessageId, uint64_t>, Duration> expected;
  for (MessageId m = 0; m < kMessages; ++m) {
    for (Time t = 0; t < kEnd; ++t) {
      if (waits[m][t] && pause_at[t] != 0) expected[{m, PauseOrigin(9, static_cast<PortIndex>(pause_at[t])).mark()}]++;
    }
  }
  EXPECT_EQ(expected.size(), kMessages * kOrigins);
  EXPECT_EQ(held(whole), expected);
  EXPECT_EQ(held(brief), expected);
  EXPECT_GT(whole.intervals().size(), 1000U);
  EXPECT_LT(brief.intervals().size(), 200U) << "what nothing waits for any more is forgotten";
}

}  // namespace
}  // namespace heddle::lab
