// PFC frames byte by byte, and what they do to a transmitter's classes. Byte order and offsets: 802.3 annex 31D.
#include "flowctl/pfc.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::flowctl {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr net::Mac kOurs{0x02, 0x11, 0x22, 0x33, 0x44, 0x55};

// A pause of classes 3 and 6, as it lies on the wire, written out by hand.
Bytes frame_by_hand() {
  Bytes frame{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x88, 0x08, 0x01, 0x01, 0x00,
              0x48, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x34, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x00, 0x00};
  frame.resize(60);
  return frame;
}

PfcRequest request_by_hand() {
  PfcRequest request{.classes = 0x48};
  request.quanta[3] = 0x1234;
  request.quanta[6] = 0xffff;
  return request;
}

TEST(PfcFrame, IsWrittenByteByByte) {
  Bytes frame(60, 0xee);
  PfcRequest request = request_by_hand();
  request.quanta[0] = 77;  // not enabled: must not leak onto the wire
  write_pfc(frame.data(), kOurs, request);
  EXPECT_EQ(frame, frame_by_hand());
}

TEST(PfcFrame, IsReadBackForEveryClassAndQuanta) {
  Random random(5);
  for (unsigned classes = 0; classes < 256; ++classes) {
    PfcRequest sent{.classes = static_cast<uint8_t>(classes)};
    for (unsigned tc = 0; tc < 8; ++tc) {
      if ((classes >> tc & 1U) != 0) sent.quanta[tc] = static_cast<uint16_t>(random.next());
    }
    Bytes frame(kPfcFrameBytes);
    write_pfc(frame.data(), kOurs, sent);
    PfcRequest got;
    ASSERT_EQ(parse_mac_control(frame.data(), frame.size(), got), MacControl::kPfc);
    EXPECT_EQ(got.classes, sent.classes);
    EXPECT_EQ(got.quanta, sent.quanta);
  }
}

struct Row {
  const char* what;
  MacControl is;
  Bytes frame;
};

Bytes changed(size_t at, std::initializer_list<uint8_t> bytes) {
  Bytes frame = frame_by_hand();
  std::copy(bytes.begin(), bytes.end(), frame.begin() + static_cast<std::ptrdiff_t>(at));
  return frame;
}
Bytes cut(size_t length) {
  Bytes frame = frame_by_hand();
  frame.resize(length);
  return frame;
}
Bytes behind_tags(std::initializer_list<uint8_t> tags) {
  Bytes frame = frame_by_hand();
  frame.insert(frame.begin() + 12, tags);
  return frame;
}

TEST(PfcFrame, WhatComesInIsNamed) {
  const Row rows[] = {
      {"as a MAC sends it", MacControl::kPfc, frame_by_hand()},
      {"padding cut off", MacControl::kPfc, cut(34)},
      {"last quanta cut off", MacControl::kShort, cut(33)},
      {"opcode cut off", MacControl::kShort, cut(15)},
      {"type cut off", MacControl::kNone, cut(13)},
      {"nothing at all", MacControl::kNone, {}},
      {"source address of zeros", MacControl::kPfc, changed(6, {0, 0, 0, 0, 0, 0})},
      {"unicast destination", MacControl::kPfc, changed(0, {0x02, 1, 2, 3, 4, 5})},
      {"reserved byte of the vector set", MacControl::kPfc, changed(16, {0xff})},
      {"802.3x global pause", MacControl::kGlobalPause, changed(14, {0x00, 0x01, 0x01, 0x00})},
      {"global pause of 18 bytes", MacControl::kGlobalPause,
       [] {
         Bytes frame = changed(14, {0x00, 0x01});
         frame.resize(18);
         return frame;
       }()},
      {"opcode of EPON GATE", MacControl::kOther, changed(14, {0x00, 0x02})},
      {"opcode with swapped bytes of pause", MacControl::kOther, changed(14, {0x01, 0x00})},
      {"IPv4", MacControl::kNone, changed(12, {0x08, 0x00})},
      {"type 0x0888", MacControl::kNone, changed(12, {0x08, 0x88})},
      {"behind a VLAN tag", MacControl::kTagged, behind_tags({0x81, 0x00, 0x60, 0x05})},
      {"behind a priority tag", MacControl::kTagged, behind_tags({0x81, 0x00, 0xe0, 0x00})},
      {"behind two tags", MacControl::kTagged, behind_tags({0x88, 0xa8, 0x00, 0x02, 0x81, 0x00, 0x00, 0x03})},
      {"tags to the end", MacControl::kNone,
       [] {
         Bytes frame(60);
         for (size_t i = 12; i + 4 <= frame.size(); i += 4) frame[i] = 0x81;
         return frame;
       }()},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const auto exact = std::make_unique<uint8_t[]>(row.frame.size());  // a read past the end is one past the allocation
    std::copy(row.frame.begin(), row.frame.end(), exact.get());
    PfcRequest request{.classes = 0xa5};
    EXPECT_EQ(parse_mac_control(exact.get(), row.frame.size(), request), row.is);
    if (row.is == MacControl::kPfc) {
      EXPECT_EQ(request.classes, 0x48);
      EXPECT_EQ(request.quanta, request_by_hand().quanta);
    } else {
      EXPECT_EQ(request.classes, 0xa5) << "left alone";
    }
  }
}

// 512 bit times: 65535 quanta are 33,553,920 bits.
TEST(PfcQuanta, LastAsLongAsTheLinkTakesForTheirBits) {
  struct {
    uint64_t gbps;
    uint16_t quanta;
    double microseconds;
  } const rows[] = {
      {10, 1, 0.0512},       {10, 65535, 3355.392},  {25, 1, 0.02048},    {25, 65535, 1342.1568},
      {100, 1, 0.00512},     {100, 65535, 335.5392}, {100, 394, 2.01728}, {400, 1, 0.00128},
      {400, 65535, 83.8848}, {400, 905, 1.1584},     {1600, 1, 0.00032},  {1600, 65535, 20.9712},
  };
  for (const auto& row : rows) {
    const double time = to_microseconds(pause_time(row.quanta, Rate::gbps(row.gbps)));
    EXPECT_NEAR(time, row.microseconds, row.microseconds * 1e-6 + 1e-6) << row.gbps << "G " << row.quanta;
  }
  EXPECT_EQ(pause_time(0, Rate::gbps(100)), 0U);
  EXPECT_EQ(pause_time(kMaxQuanta, Rate(1'000'000)), Duration{33'553'920} * kMicrosecond) << "the slowest there are";
}

constexpr Duration kQuantum = 5120;  // at 100G, in picoseconds
const Rate kLink = Rate::gbps(100);

TEST(PauseState, HoldsExactlyTheNamedClassesForTheirQuanta) {
  for (unsigned tc = 0; tc < 8; ++tc) {
    PauseState state;
    const auto bit = static_cast<uint8_t>(1U << tc);
    EXPECT_EQ(state.receive(PfcRequest::pause(bit, 10), kLink, 1000), bit);
    EXPECT_EQ(state.next_expiry(), 1000 + 10 * kQuantum);
    EXPECT_EQ(state.expire(1000 + 10 * kQuantum - 1), bit);
    EXPECT_EQ(state.expire(1000 + 10 * kQuantum), 0);
    EXPECT_EQ(state.paused_time(tc, 1'000'000), 10 * kQuantum);
  }
}

TEST(PauseState, ClassesRunOutOneByOne) {
  PauseState state;
  PfcRequest request{.classes = 0x0e};
  request.quanta = {9, 30, 10, 20, 9, 9, 9, 9};
  EXPECT_EQ(state.receive(request, kLink, 0), 0x0e);
  EXPECT_EQ(state.next_expiry(), 10 * kQuantum);
  EXPECT_EQ(state.expire(10 * kQuantum), 0x0a);
  EXPECT_EQ(state.next_expiry(), 20 * kQuantum);
  EXPECT_EQ(state.expire(29 * kQuantum), 0x02);
  EXPECT_EQ(state.expire(30 * kQuantum), 0x00);
}

TEST(PauseState, IsRefreshedShortenedAndResumed) {
  PauseState state;
  state.receive(PfcRequest::pause(0x08, 100), kLink, 0);
  state.receive(PfcRequest::pause(0x08, 100), kLink, 50 * kQuantum);  // refreshed in time
  EXPECT_EQ(state.expire(120 * kQuantum), 0x08);
  state.receive(PfcRequest::pause(0x08, 1), kLink, 120 * kQuantum);  // a shorter time replaces the longer one
  EXPECT_EQ(state.expire(121 * kQuantum), 0x00);
  EXPECT_EQ(state.paused_time(3, 121 * kQuantum), 121 * kQuantum);

  state.receive(PfcRequest::pause(0x18, 100), kLink, 200 * kQuantum);
  EXPECT_EQ(state.receive(PfcRequest::resume(0x08), kLink, 230 * kQuantum), 0x10) << "the other class stays paused";
  EXPECT_EQ(state.next_expiry(), 300 * kQuantum);
  EXPECT_EQ(state.paused_time(3, 260 * kQuantum), (121 + 30) * kQuantum);
  EXPECT_EQ(state.paused_time(4, 260 * kQuantum), 60 * kQuantum) << "counts while it lasts";
  EXPECT_EQ(state.receive(PfcRequest::resume(0xff), kLink, 270 * kQuantum), 0x00);
}

TEST(PauseState, ALateFrameFindsTheOldPauseOver) {
  PauseState state;
  state.receive(PfcRequest::pause(0x01, 10), kLink, 0);
  state.receive(PfcRequest::pause(0x01, 10), kLink, 100 * kQuantum);  // nobody called expire in between
  EXPECT_EQ(state.paused_time(0, 105 * kQuantum), 15 * kQuantum);
}

TEST(PauseState, HoldsAcrossTheWrapOfTime) {
  PauseState state;
  const Time start = ~Time{0} - 5 * kQuantum;
  EXPECT_EQ(state.receive(PfcRequest::pause(0x80, 10), kLink, start), 0x80);
  EXPECT_EQ(state.expire(start + 9 * kQuantum), 0x80);
  EXPECT_EQ(state.expire(start + 10 * kQuantum), 0);
  EXPECT_EQ(state.paused_time(7, start + 20 * kQuantum), 10 * kQuantum);
}

// Beside a model that keeps, for every class, the plain list of times at which it was paused and until when.
TEST(PauseState, AgreesWithAPlainModelThroughAnySequence) {
  Random random(7);
  for (int life = 0; life < 200; ++life) {
    PauseState state;
    std::array<Time, 8> until{};
    std::array<Duration, 8> total{};
    Time now = 0;
    for (int step = 0; step < 200; ++step) {
      const Duration step_by = random.below(40) * kQuantum;
      for (unsigned tc = 0; tc < 8; ++tc)
        total[tc] += std::min<Duration>(step_by, until[tc] > now ? until[tc] - now : 0);
      now += step_by;
      PfcRequest request{.classes = static_cast<uint8_t>(random.next() & random.next())};
      for (auto& quanta : request.quanta) quanta = static_cast<uint16_t>(random.below(4) == 0 ? 0 : random.below(100));
      if (random.below(2) == 0) {
        state.receive(request, kLink, now);
        for (unsigned tc = 0; tc < 8; ++tc) {
          if ((request.classes >> tc & 1U) != 0) until[tc] = now + request.quanta[tc] * kQuantum;
        }
      } else {
        state.expire(now);
      }
      Time next = ~Time{0};
      for (unsigned tc = 0; tc < 8; ++tc) {
        ASSERT_EQ(state.is_paused(tc), until[tc] > now) << "life " << life << " step " << step << " class " << tc;
        ASSERT_EQ(state.paused_time(tc, now), total[tc]) << "life " << life << " step " << step << " class " << tc;
        if (until[tc] > now) next = std::min(next, until[tc]);
      }
      ASSERT_EQ(state.paused() != 0 ? state.next_expiry() : ~Time{0}, next);
    }
    state.clear(now);
    ASSERT_EQ(state.paused(), 0);
  }
}

}  // namespace
}  // namespace heddle::flowctl
