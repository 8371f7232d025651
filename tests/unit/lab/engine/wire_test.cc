// One direction of a link: order, windows, loss, failure.
#include "lab/engine/wire.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::lab {
namespace {

constexpr Duration kDelay = kMicrosecond;
constexpr Duration kTakes = 100 * kNanosecond;

class WireTest : public testing::Test {
 protected:
  Packet* packet(uint32_t bytes = 1000) {
    Packet* p = cache_.take();
    p->pkt_len = bytes;
    return p;
  }
  // Sends a packet of `bytes` at `start`.
  DropReason send(Wire& wire, Time start, unsigned parity = 0, uint32_t bytes = 1000) {
    Packet* p = packet(bytes);
    const DropReason fate = wire.send(p, bytes, start, start + kTakes, parity);
    if (fate != DropReason::kNone) cache_.put(p);
    return fate;
  }
  // Takes all that was sent in windows of parity 0; returns how much that is.
  uint32_t empty(Wire& wire) {
    uint32_t packets = 0;
    wire.receive(true, 1, ~Time{0}, [&](Packet* p, Time /*at*/) {
      cache_.put(p);
      ++packets;
    });
    return packets;
  }

  PacketArena arena_;
  PacketArena::Cache cache_{arena_};
};

// With a packet or two in a window, and with so many that neither an outbox nor what is late holds them in itself.
TEST_F(WireTest, DeliversInOrderAfterTheDelayInTheNextWindow) {
  for (const uint32_t most : {2U, 6U, 40U}) {
    SCOPED_TRACE(testing::Message() << "up to " << most << " packets in a window");
    Wire wire(kDelay, 24, 0, 0, 1);
    Random random(3);
    Time start = 0;
    std::vector<Time> expected;
    std::vector<Time> arrived;
    uint64_t bytes = 0;
    const auto arrive = [&](Packet* p, Time at) {
      arrived.push_back(at);
      cache_.put(p);
    };
    for (unsigned window = 0; window < 200; ++window) {
      const unsigned parity = window % 2;
      const size_t known = expected.size();
      const size_t before = arrived.size();
      // Some of what was sent before arrives in this window, some later, some is late already.
      const Time until =
          before < known ? expected[before + random.below(static_cast<uint32_t>(known - before))] : start;
      wire.receive(true, parity, until, arrive);
      EXPECT_TRUE(arrived.empty() || arrived.back() < until);
      EXPECT_EQ(wire.next_arrival(), arrived.size() < known ? expected[arrived.size()] : ~Time{0});
      EXPECT_EQ(wire.in_flight(), known - arrived.size());
      for (unsigned i = random.below(most + 1); i > 0; --i) {
        start += kTakes + random.below(1000);
        const uint32_t size = 64 + random.below(4000);
        ASSERT_EQ(send(wire, start, parity, size), DropReason::kNone);
        expected.push_back(start + kTakes + kDelay);
        bytes += size + 24;
      }
      // What is sent in this window cannot be seen before the next.
      EXPECT_EQ(wire.in_flight(), expected.size() - arrived.size());
    }
    for (unsigned parity = 0; parity < 2; ++parity) wire.receive(true, parity, ~Time{0}, arrive);
    EXPECT_EQ(wire.next_arrival(), ~Time{0});
    EXPECT_EQ(wire.in_flight(), 0U);
    EXPECT_EQ(arrived, expected);
    EXPECT_EQ(wire.packets(), expected.size());
    EXPECT_EQ(wire.wire_bytes(), bytes);
  }
}

struct LossRow {
  const char* description;
  double loss;
  double bit_error;
  uint32_t bytes;
  DropReason reason;
};

// As many as the probability says, ± 5 standard deviations; with other numbers for another seed.
TEST_F(WireTest, LosesTheShareItIsToldTo) {
  constexpr uint32_t kPackets = 100'000;
  for (const LossRow& row :
       {LossRow{"loss", 0.01, 0, 1000, DropReason::kLinkLoss},
        LossRow{"hardly any loss", 1e-4, 0, 1000, DropReason::kLinkLoss},
        LossRow{"bit errors, long frames", 0, 1e-6, 4154, DropReason::kBitError},
        LossRow{"bit errors, short frames", 0, 1e-6, 62, DropReason::kBitError},
        LossRow{"bit errors so many that frames hardly pass", 0, 1e-4, 4154, DropReason::kBitError}}) {
    SCOPED_TRACE(row.description);
    std::vector<uint32_t> counts;
    for (const uint64_t seed : {1U, 2U}) {
      Wire wire(kDelay, 24, row.loss, row.bit_error, seed);
      uint32_t lost = 0;
      uint32_t arrived = 0;
      for (uint32_t i = 0; i < kPackets; ++i) {
        const DropReason fate = send(wire, i * kTakes, 0, row.bytes);
        if (fate == DropReason::kNone) {
          arrived += empty(wire);
          continue;
        }
        ASSERT_EQ(fate, row.reason);
        ++lost;
      }
      EXPECT_EQ(wire.packets() + lost, kPackets);
      EXPECT_EQ(arrived + lost, kPackets);
      // A frame is good if all its bits and those of its FCS are.
      const double p = row.loss > 0 ? row.loss : 1 - std::pow(1 - row.bit_error, 8.0 * (row.bytes + 4));
      const double sigma = std::sqrt(kPackets * p * (1 - p));
      EXPECT_NEAR(lost, kPackets * p, 5 * sigma);
      counts.push_back(lost);
    }
    EXPECT_NE(counts[0], counts[1]);
  }
}

struct FailureRow {
  const char* description;
  Time start;  // of the transmission, which takes 100 ns; the packet arrives 1 µs after its end
  DropReason fate;
};

TEST_F(WireTest, LosesWhatIsSentIntoOrCaughtByAFailure) {
  constexpr Time kDown = 10 * kMicrosecond;
  constexpr Time kUp = 20 * kMicrosecond;
  for (const FailureRow& row : {
           FailureRow{"long before", 0, DropReason::kNone},
           FailureRow{"arrives as it fails", kDown - kDelay - kTakes, DropReason::kNone},
           FailureRow{"would arrive just after", kDown - kDelay - kTakes + 1, DropReason::kLinkDown},
           FailureRow{"is on its way", kDown - kTakes - 1, DropReason::kLinkDown},
           FailureRow{"is being sent", kDown - 1, DropReason::kLinkDown},
           FailureRow{"sent as it fails", kDown, DropReason::kLinkDown},
           FailureRow{"sent while it is down", kDown + kMicrosecond, DropReason::kLinkDown},
           FailureRow{"just before it is back", kUp - 1, DropReason::kLinkDown},
           FailureRow{"as it comes back", kUp, DropReason::kNone},
           FailureRow{"later", kUp + kMillisecond, DropReason::kNone},
       }) {
    Wire wire(kDelay, 24, 0, 0, 1);
    wire.plan({{.at = kDown, .up = false, .loss = 0}, {.at = kUp, .up = true, .loss = 0}});
    EXPECT_EQ(send(wire, row.start), row.fate) << row.description;
    EXPECT_EQ(wire.packets(), row.fate == DropReason::kNone ? 1U : 0U) << row.description;
    EXPECT_EQ(empty(wire), wire.packets()) << row.description;
  }
}

// A failure shorter than the way: whatever is on the wire is gone, though the link is up at both ends of its journey.
TEST_F(WireTest, AShortFailureCatchesWhatIsOnTheWay) {
  Wire wire(kDelay, 24, 0, 0, 1);
  wire.plan({{.at = 5000 * kNanosecond, .up = false, .loss = 0}, {.at = 5010 * kNanosecond, .up = true, .loss = 0}});
  unsigned lost = 0;
  for (Time start = 0; start < 10 * kMicrosecond; start += kTakes)
    lost += send(wire, start) != DropReason::kNone ? 1 : 0;
  EXPECT_EQ(lost, 11U);  // one being sent, and what began to be sent in the microsecond (and its own time) before
  EXPECT_EQ(empty(wire), wire.packets());
}

TEST_F(WireTest, LossChangesWhenItIsPlannedTo) {
  Wire wire(kDelay, 24, 0.5, 0, 1);
  wire.plan({{.at = 100 * kMicrosecond, .up = true, .loss = 0}, {.at = 200 * kMicrosecond, .up = true, .loss = 0.9}});
  unsigned lost[3] = {0, 0, 0};
  for (Time start = 0; start < 300 * kMicrosecond; start += kTakes) {
    lost[start / (100 * kMicrosecond)] += send(wire, start) == DropReason::kLinkLoss ? 1U : 0U;
  }
  EXPECT_NEAR(lost[0], 500, 80);  // 5 standard deviations of 1,000 draws
  EXPECT_EQ(lost[1], 0U);
  EXPECT_NEAR(lost[2], 900, 48);
  EXPECT_EQ(empty(wire), wire.packets());
}

}  // namespace
}  // namespace heddle::lab
