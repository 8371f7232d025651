// Which ports of a node were sent to, in its own memory and among the inboxes of other nodes.
#include <vector>

#include <gtest/gtest.h>

#include "lab/engine/port_set.h"

namespace heddle::lab {
namespace {

struct Ring {
  PortId port;
  unsigned parity;
};

void ring(Inbox& inbox, Ring at, bool alone) { Inbox::Bell(inbox, at.port, alone).ring(at.parity); }

TEST(Inbox, ShowsInOneWindowWhoRangInTheOneBefore) {
  for (const bool alone : {false, true}) {
    Inbox inbox(70);
    ring(inbox, {3, 0}, alone);
    ring(inbox, {65, 0}, alone);
    EXPECT_FALSE(inbox.any(0)) << "still being written";
    EXPECT_TRUE(inbox.any(1));
    EXPECT_EQ(inbox.peek(0, 1), uint64_t{1} << 3U);
    EXPECT_EQ(inbox.take(0, 1), uint64_t{1} << 3U);
    EXPECT_EQ(inbox.take(1, 1), uint64_t{1} << 1U);
    EXPECT_FALSE(inbox.any(1));
  }
}

TEST(Inbox, KeepsToItsPlaceAmongOthers) {
  std::vector<Inbox> inboxes;
  for (const size_t ports : {1U, 64U, 65U, 2U}) inboxes.emplace_back(ports);
  size_t words = 0;
  for (const Inbox& inbox : inboxes) words += 2 * inbox.words();
  std::vector<Inbox::Word> row(words);
  Inbox::Word* at = row.data();
  for (Inbox& inbox : inboxes) {
    inbox.move_to(at);
    at += 2 * inbox.words();
  }
  for (size_t rung = 0; rung < inboxes.size(); ++rung) {
    for (unsigned parity = 0; parity < 2; ++parity) {
      ring(inboxes[rung], {static_cast<PortId>(inboxes[rung].words() == 2 ? 64 : 0), parity}, false);
      for (size_t i = 0; i < inboxes.size(); ++i) {
        EXPECT_EQ(inboxes[i].any(1 - parity), i == rung) << "inbox " << i;
        EXPECT_FALSE(inboxes[i].any(parity));
      }
      for (size_t word = 0; word < inboxes[rung].words(); ++word) inboxes[rung].take(word, 1 - parity);
    }
  }
}

}  // namespace
}  // namespace heddle::lab
