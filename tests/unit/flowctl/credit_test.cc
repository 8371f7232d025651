// Credit flow control against a reference that counts without wrapping: what IBTA 7.9.4 says, in whole numbers.
#include "flowctl/credit.h"

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flowctl/link_credits.h"
#include "net/random.h"
#include "tests/support/infiniband.h"

namespace heddle::flowctl {
namespace {

// --- the packets

TEST(CreditPacket, LiesOnTheWireAsTheStandardDrawsIt) {
  std::array<uint8_t, kLongestCreditPacket> wire{};
  write_credit_packet(wire.data(), {}, {.vl = 5, .fctbs = 0xabc, .fccl = 0x123});
  EXPECT_EQ(credit_packet_bytes({}), 6U);
  const std::vector<uint8_t> by_hand{0x0a, 0xbc, 0x51, 0x23};
  EXPECT_EQ(std::vector<uint8_t>(wire.begin(), wire.begin() + 4), by_hand);
  EXPECT_EQ(wire[4] | wire[5] << 8U, support::book_vcrc(by_hand)) << "LPCRC";
}

TEST(CreditPacket, CarriesWhatWasWritten) {
  for (const unsigned bits : {4U, 12U, 13U, 20U, 28U}) {
    const CreditFormat format{.counter_bits = bits};
    Random random(bits);
    for (int round = 0; round < 200; ++round) {
      const CreditMessage said{static_cast<uint8_t>(random.below(16)), random.below(format.mask()) + 1,
                               random.below(format.mask()) + 1};
      std::array<uint8_t, kLongestCreditPacket> wire{};
      write_credit_packet(wire.data(), format, said);
      CreditMessage heard;
      ASSERT_TRUE(parse_credit_packet(wire.data(), credit_packet_bytes(format), format, heard)) << bits << " bits";
      EXPECT_EQ(heard.vl, said.vl);
      EXPECT_EQ(heard.fctbs, said.fctbs);
      EXPECT_EQ(heard.fccl, said.fccl);
    }
  }
}

TEST(CreditPacket, IsRefusedWithAnyBitWrong) {
  for (const unsigned bits : {12U, 20U}) {
    const CreditFormat format{.counter_bits = bits};
    std::array<uint8_t, kLongestCreditPacket> wire{};
    write_credit_packet(wire.data(), format, {.vl = 1, .fctbs = 77, .fccl = 99});
    const uint32_t bytes = credit_packet_bytes(format);
    CreditMessage heard;
    for (size_t bit = 0; bit < size_t{8} * bytes; ++bit) {
      auto damaged = wire;
      damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ (1U << (bit % 8)));
      EXPECT_FALSE(parse_credit_packet(damaged.data(), bytes, format, heard)) << "bit " << bit;
    }
    EXPECT_FALSE(parse_credit_packet(wire.data(), bytes - 1, format, heard));
  }
}

// --- the counters

struct WholePacketRow {
  const char* description;
  uint32_t allowed;  // blocks
  uint32_t packet;
  bool may;
};

TEST(CreditSender, SendsWholePacketsOnly) {
  const WholePacketRow rows[] = {{"no credit at all", 0, 1, false},
                                 {"as much as it takes", 66, 66, true},
                                 {"a block too little", 65, 66, false},
                                 {"all the window allows", 2048, 66, true}};
  for (const WholePacketRow& row : rows) {
    for (const uint32_t start : {0U, 4095U, 2047U, 2048U}) {  // wherever the counters stand
      CreditSender sender;
      sender.configure({});
      sender.allow(start);
      for (uint32_t left = start; left != 0;) {
        const uint32_t now = std::min(left, 1000U);
        sender.sent(now);
        left -= now;
      }
      sender.allow(start + row.allowed);
      EXPECT_EQ(sender.may_send(row.packet), row.may) << row.description << ", from " << start;
    }
  }
}

// One direction of a link, counted in whole numbers that never wrap (the words of IBTA 7.9.4.1–2).
struct Book {
  uint64_t fctbs = 0;  // "total blocks transmitted in the virtual lane since link initialization"
  uint64_t fccl = 0;   // as last heard
  uint64_t abr = 0;    // "adjusted blocks received": set to FCTBS by each flow-control packet
  std::deque<uint32_t> buffer;
  uint64_t held = 0;
  uint64_t capacity = 0;
  uint64_t window = 0;

  uint64_t limit() const { return abr + std::min(capacity - held, window); }
  bool may_send(uint32_t blocks) const { return fctbs + blocks <= fccl; }
};

struct OnTheWire {
  uint32_t blocks = 0;  // of data; 0: a flow-control packet, which says:
  CreditMessage said;
  uint64_t fctbs = 0;  // the same in whole numbers
  uint64_t fccl = 0;
};

// Two ports and the link between them: everything that can happen, in random order. Each end is the engine and the
// book.
class TwoEnds {
 public:
  TwoEnds(const CreditSettings& settings, uint64_t seed, uint32_t loss_percent)
      : random_(seed), loss_percent_(loss_percent), format_(settings.format) {
    for (unsigned end = 0; end < 2; ++end) {
      ends_[end].configure(settings, {.rate = Rate::gbps(100), .delay = kMicrosecond, .packet = 4122, .overhead = 2});
      Book& book = books_[end];
      book.capacity = settings.buffer / settings.format.block;
      book.window = settings.format.window();
      book.fccl = book.limit();
    }
  }

  void step() {
    const unsigned end = random_.below(2);
    switch (random_.below(6)) {
      case 0:
      case 1:
        send_data(end, 1 + random_.below(66));
        break;
      case 2:
        send_credits(end);
        break;
      case 3:
      case 4:
        deliver(end);
        break;
      default:
        release(end);
    }
    if (random_.below(1000) == 0) ends_[end].tick();
  }

  // No more losses: everything arrives, is read, and all credit comes back.
  void settle() {
    loss_percent_ = 0;
    for (int round = 0; round < 4; ++round) {
      for (unsigned end = 0; end < 2; ++end) {
        while (!wires_[end].empty()) deliver(1 - end);
        while (!books_[1 - end].buffer.empty()) release(end);
        ends_[end].sent(0, 0);  // in use, so that it repeats
        ends_[end].tick();
        while (ends_[end].due() != 0) send_credits(end);
        while (!wires_[end].empty()) deliver(1 - end);
      }
    }
    for (unsigned end = 0; end < 2; ++end) {
      EXPECT_EQ(books_[end].fccl - books_[end].fctbs, std::min(books_[end].capacity, books_[end].window));
    }
  }

  uint64_t steps_refused() const { return refused_; }
  uint64_t lost() const { return lost_; }
  uint64_t sent() const { return books_[0].fctbs; }

 private:
  void send_data(unsigned end, uint32_t blocks) {
    const bool may = ends_[end].may_send(0, blocks);
    ASSERT_EQ(may, books_[end].may_send(blocks)) << "FCTBS " << books_[end].fctbs << ", FCCL " << books_[end].fccl;
    if (!may) {
      ++refused_;
      return;
    }
    ends_[end].sent(0, blocks);
    books_[end].fctbs += blocks;
    wires_[end].push_back({.blocks = blocks, .said = {}});
  }

  void send_credits(unsigned end) {
    if (ends_[end].due() == 0) return;
    OnTheWire packet;
    packet.said = ends_[end].take();
    Book& receives = books_[1 - end];  // what comes to this end is in the book of the end that sends it
    packet.fctbs = books_[end].fctbs;
    packet.fccl = receives.limit();
    ASSERT_EQ(packet.said.fctbs, packet.fctbs & format_.mask());
    ASSERT_EQ(packet.said.fccl, packet.fccl & format_.mask());
    wires_[end].push_back(packet);
  }

  // The next packet on its way to `end` arrives, or not.
  void deliver(unsigned end) {
    std::deque<OnTheWire>& wire = wires_[1 - end];
    if (wire.empty()) return;
    const OnTheWire packet = wire.front();
    wire.pop_front();
    if (random_.below(100) < loss_percent_) {
      ++lost_;
      return;
    }
    Book& from = books_[1 - end];
    if (packet.blocks != 0) {
      ASSERT_TRUE(ends_[end].received(0, packet.blocks)) << "beyond the advertised credit, or no room";
      from.abr += packet.blocks;
      from.buffer.push_back(packet.blocks);
      from.held += packet.blocks;
      ASSERT_LE(from.held, from.capacity);
      return;
    }
    ends_[end].heard(packet.said);
    from.abr = packet.fctbs;
    books_[end].fccl = packet.fccl;
  }

  void release(unsigned end) {
    Book& from = books_[1 - end];
    if (from.buffer.empty()) return;
    ends_[end].released(0, from.buffer.front());
    from.held -= from.buffer.front();
    from.buffer.pop_front();
  }

  Random random_;
  uint32_t loss_percent_;
  CreditFormat format_;
  // books_[end]: of what `end` sends. Its receiving part belongs to the other end.
  std::array<LinkCredits, 2> ends_;
  std::array<Book, 2> books_;
  std::array<std::deque<OnTheWire>, 2> wires_;  // by the end that sends
  uint64_t refused_ = 0;
  uint64_t lost_ = 0;
};

struct PropertyRow {
  const char* description;
  unsigned bits;
  uint32_t block;
  uint64_t buffer;
  uint32_t loss_percent;
};

TEST(LinkCredits, AgreesWithTheStandardsWordsInTenMillionSteps) {
  const PropertyRow rows[] = {{"IBTA's counters, its largest buffer", 12, 64, 128 * 1024, 0},
                              {"with losses of every kind of packet", 12, 64, 128 * 1024, 10},
                              {"a buffer of little more than a packet", 12, 64, 66 * 64, 5},
                              {"a buffer beyond what the counters can say", 12, 64, 1 << 20, 5},
                              {"counters so narrow that they wrap all the time", 8, 64, 100 * 64, 5},
                              {"20 bits, blocks of 256 bytes", 20, 256, 1 << 22, 5},
                              {"28 bits", 28, 64, 1 << 26, 1},
                              {"half of all packets lost", 12, 64, 64 * 1024, 50}};
  for (const PropertyRow& row : rows) {
    SCOPED_TRACE(row.description);
    CreditSettings settings;
    settings.format = {.counter_bits = row.bits, .block = row.block};
    settings.buffer = row.buffer;
    TwoEnds ends(settings, row.bits * 1000 + row.loss_percent, row.loss_percent);
    constexpr uint64_t kSteps = 1'250'000;  // of 8 rows: ten million
    for (uint64_t i = 0; i < kSteps && !::testing::Test::HasFatalFailure(); ++i) ends.step();
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
    ends.settle();
    EXPECT_GT(ends.sent(), 100'000U) << "the run was idle";
    EXPECT_EQ(ends.lost() != 0, row.loss_percent != 0);
  }
}

// --- when flow-control packets are due

TEST(LinkCredits, SpeaksBeforeThePeerRunsOutAndNotForEveryPacket) {
  LinkCredits port;
  CreditSettings settings;
  port.configure(settings, {.rate = Rate::gbps(100), .delay = kMicrosecond, .packet = 4122, .overhead = 2});
  // 25,000 bytes on the wire and 4 packets: 649 blocks. The peer has 2048.
  unsigned packets = 0;
  while (port.due() == 0) {
    ASSERT_TRUE(port.received(0, 65));
    port.released(0, 65);
    ++packets;
    ASSERT_LT(packets, 100U);
  }
  EXPECT_EQ(packets, (2048U - 649U) / 65U + 1U);
  EXPECT_EQ(port.take().fccl, (packets * 65U + 2048U) & 4095U);
  EXPECT_EQ(port.due(), 0);
}

TEST(LinkCredits, SpeaksForEveryPacketWhereTheBufferIsSmallerThanTheLink) {
  LinkCredits port;
  CreditSettings settings;
  settings.buffer = 16 * 1024;
  port.configure(settings, {.rate = Rate::gbps(100), .delay = kMicrosecond, .packet = 4122, .overhead = 2});
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(port.received(0, 65));
    EXPECT_EQ(port.due(), 0) << "nothing has become free";
    port.released(0, 65);
    EXPECT_EQ(port.due(), 1);
    port.take();
  }
}

TEST(LinkCredits, AFullBufferSpeaksWhenASixteenthOfWhatItHoldsIsFree) {
  LinkCredits port;
  port.configure({}, {.rate = Rate::gbps(100), .delay = kMicrosecond, .packet = 4122, .overhead = 2});
  for (int i = 0; i < 31; ++i) ASSERT_TRUE(port.received(0, 65));  // 2015 of 2048 blocks: no room for another
  while (port.due() != 0) port.take();
  port.released(0, 65);
  EXPECT_EQ(port.due(), 0) << "1950 are held: 65 are no sixteenth";
  port.released(0, 65);
  EXPECT_EQ(port.due(), 1) << "130 of 1885 are";
  EXPECT_EQ(port.take().fccl, 2015U + 33U + 130U);
  EXPECT_EQ(port.due(), 0);
}

TEST(LinkCredits, WhatIsNotToldAtOnceIsToldOnTheNextTick) {
  LinkCredits port;
  port.configure({}, {.rate = Rate::gbps(100), .delay = kMicrosecond, .packet = 4122, .overhead = 2});
  for (int i = 0; i < 31; ++i) ASSERT_TRUE(port.received(0, 65));
  while (port.is_restless()) port.tick();  // everything stands still for long
  while (port.due() != 0) port.take();
  port.released(0, 65);
  ASSERT_EQ(port.due(), 0);
  ASSERT_TRUE(port.is_restless()) << "or the peer would never hear of it";
  port.tick();
  ASSERT_EQ(port.due(), 1);
  EXPECT_EQ(port.take().fccl, 2015U + 33U + 65U);
}

TEST(LinkCredits, RepeatsForAWhileAfterTheLastPacketAndThenGoesQuiet) {
  LinkCredits port;
  port.configure({}, {.rate = Rate::gbps(100), .delay = kMicrosecond, .packet = 4122, .overhead = 2});
  EXPECT_FALSE(port.is_restless());
  port.sent(0, 65);
  unsigned repeats = 0;
  while (port.is_restless()) {
    port.tick();
    ASSERT_EQ(port.due(), 1);
    EXPECT_EQ(port.take().fctbs, 65U);
    ++repeats;
    ASSERT_LE(repeats, 100U);
  }
  EXPECT_EQ(repeats, unsigned{LinkCredits::kRepeats});
}

TEST(LinkCredits, BeginsAnewWithALinkThatComesUp) {
  LinkCredits a;
  LinkCredits b;
  const CreditLink link{.rate = Rate::gbps(100), .delay = kMicrosecond, .packet = 4122, .overhead = 2};
  a.configure({}, link);
  b.configure({}, link);
  a.sent(0, 1000);  // lost with the link
  a.restart();
  b.restart();
  EXPECT_FALSE(a.may_send(0, 1)) << "until the peer has said what it has";
  while (b.due() != 0) a.heard(b.take());
  while (a.due() != 0) b.heard(a.take());
  EXPECT_TRUE(a.may_send(0, 2048));
  EXPECT_FALSE(a.may_send(0, 2049));
}

TEST(CreditPeriod, Is65536SymbolTimesOfA4xLink) {
  EXPECT_EQ(credit_period({}, Rate::gbps(100)), Rate::gbps(100).time_for(262'144));
  CreditSettings settings;
  settings.period = 5 * kMicrosecond;
  EXPECT_EQ(credit_period(settings, Rate::gbps(100)), 5 * kMicrosecond);
}

}  // namespace
}  // namespace heddle::flowctl
