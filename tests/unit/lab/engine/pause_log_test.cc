// The log of pauses: which stretches it notes, and how long messages were held by them.
#include "lab/engine/pause_log.h"

#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

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
  unsigned ended = 0;
  const auto note = [&](PortIndex port, uint8_t paused, PauseOrigin origin, Time now) {
    log.note(port, paused, origin, now, [&](unsigned tc) {
      EXPECT_EQ(tc, 3U);
      ++ended;
    });
  };
  note(1, 0, kHere, 5);
  note(1, kBit, kHere, 10);
  note(1, kBit, kHere, 20);  // repeated
  EXPECT_EQ(ended, 0U);
  note(1, kBit, kThere, 30);  // the congestion is elsewhere now
  note(1, 0, kHere, 40);
  note(1, kBit, kHere, 50);
  note(1, 0, kHere, 50);  // no time at all
  note(0, kBit, kHere, 60);
  EXPECT_EQ(ended, 3U);
  EXPECT_EQ(log.origin_since(0, 3, 70), kHere) << "it goes on";
  EXPECT_EQ(log.origin_since(1, 3, 39), kHere) << "the last";
  EXPECT_FALSE(log.origin_since(1, 3, 50).is_known()) << "it was over by then";

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
  log.note_wait_for_last(0, 3, 9, 550);
  EXPECT_EQ((held(log)[{9, kHere.mark()}]), 50U);
}

}  // namespace
}  // namespace heddle::lab
