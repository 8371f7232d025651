// Headroom worked out by hand at four rates, and what must hold for any port.
#include "flowctl/headroom.h"

#include <gtest/gtest.h>

#include "net/error.h"

namespace heddle::flowctl {
namespace {

struct Row {
  const char* what;
  HeadroomInput input;
  uint64_t sum;  // by hand, before rounding up to a KiB
};

HeadroomInput port(uint64_t gbps, double metres, uint32_t frame) {
  return {.rate = Rate::gbps(gbps), .cable_metres = metres, .frame_bytes = frame};
}

// Frame of ours + PFC 84 + cable 2 l / 1.98e8 + quanta × 64 + frame of the peer's.
TEST(Headroom, ByHand) {
  HeadroomInput software = port(100, 30, 4218);
  software.reaction = 20 * kMicrosecond;
  software.burst = 32;
  software.tx_ring = 16;
  const Row rows[] = {
      // 2 × 1542 + 84 + 0.30303 us × 1.25 B/ns = 379 + 67 × 64
      {"10G, 30 m, standard frames", port(10, 30, 1518), 3084 + 84 + 379 + 4288},
      // 0.050505 us × 3.125 = 158
      {"25G, 5 m", port(25, 5, 4218), 8484 + 84 + 158 + 5120},
      // 0.30303 us × 12.5 = 3788
      {"100G, 30 m", port(100, 30, 4218), 8484 + 84 + 3788 + 25'216},
      // 20.202 us × 12.5 = 252,526: two kilometres are mostly cable
      {"100G, 2 km", port(100, 2000, 4218), 8484 + 84 + 252'526 + 25'216},
      // 1.0101 us × 50 = 50,506
      {"400G, 100 m, jumbo", port(400, 100, 9216), 18'480 + 84 + 50'506 + 57'920},
      // + 20 us × 12.5 B/ns = 250,000, + 48 frames × 4242
      {"a software switch: poll, burst, ring", software, 8484 + 84 + 3788 + 25'216 + 250'000 + 203'616},
  };
  for (const Row& row : rows) {
    const Headroom headroom = required_headroom(row.input);
    uint64_t sum = 0;
    for (const HeadroomStep& step : headroom.steps) sum += step.bytes;
    EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(row.sum), 1) << row.what;
    EXPECT_EQ(headroom.bytes % 1024, 0U) << row.what;
    EXPECT_GE(headroom.bytes, sum) << row.what;
    EXPECT_LT(headroom.bytes, sum + 1024) << row.what;
  }
}

struct QuantaRow {
  uint64_t gbps;
  uint32_t quanta;
};

TEST(Headroom, PeerResponseByRate) {
  for (const QuantaRow& row : {QuantaRow{1, 67},
                               {10, 67},
                               {25, 80},
                               {40, 118},
                               {50, 147},
                               {56, 394},
                               {100, 394},
                               {200, 453},
                               {400, 905},
                               {800, 905},
                               {1600, 905}}) {
    EXPECT_EQ(peer_response_quanta(Rate::gbps(row.gbps)), row.quanta) << row.gbps << "G";
  }
}

// Nothing that makes the way longer makes the headroom smaller.
TEST(Headroom, GrowsWithEverything) {
  for (const uint64_t gbps : {10, 25, 100, 400}) {
    const HeadroomInput base = port(gbps, 30, 4218);
    const uint64_t bytes = required_headroom(base).bytes;
    HeadroomInput in = base;
    in.cable_metres = 300;
    EXPECT_GT(required_headroom(in).bytes, bytes);
    in = base;
    in.frame_bytes = 9216;
    EXPECT_GT(required_headroom(in).bytes, bytes);
    in = base;
    in.reaction = 10 * kMicrosecond;
    EXPECT_GT(required_headroom(in).bytes, bytes);
    in = base;
    in.burst = 32;
    EXPECT_GT(required_headroom(in).bytes, bytes);
    EXPECT_GE(required_headroom(base).reaction, 2 * cable_delay(30));
  }
}

TuningInput leaf() {
  return {.port = port(100, 30, 4218), .ports = 32, .lossless_classes = 1, .workers = 1, .buffer_bytes = 32'000'000};
}

// 32 × 37,888 headroom (37,572 rounded up) + 32 × 9,216 reserved = 1,507,328; shared 30,492,672.
// XOFF alone: 0.125 × 30,492,672 ÷ 1.125 = 3,388,074; all 32: ÷ 5 = 762,316.
TEST(Tuning, ByHand) {
  const Tuning tuning = tune(leaf());
  EXPECT_EQ(tuning.headroom.bytes, 37'888U);
  EXPECT_EQ(tuning.reserved, 9216U);
  EXPECT_EQ(tuning.shared, 30'492'672U);
  EXPECT_EQ(tuning.xoff_alone, 3'388'074U);
  EXPECT_EQ(tuning.xoff_all, 762'316U);
  EXPECT_EQ(tuning.xon_offset, 2U * 4218);
  EXPECT_EQ(tuning.kmax, 1'600'000U);
  EXPECT_EQ(tuning.kmin, 400'000U);
}

// Every byte of the buffer is somebody's; ECN marks before a lone sender is paused; XON lies above zero.
TEST(Tuning, AddsUpAndKeepsItsOrder) {
  for (const uint64_t gbps : {10, 25, 100, 400}) {
    for (const uint32_t classes : {1U, 3U}) {
      for (const uint64_t buffer : {16'000'000U, 64'000'000U}) {
        TuningInput in = leaf();
        in.port.rate = Rate::gbps(gbps);
        in.port.burst = 32;
        in.lossless_classes = classes;
        in.workers = 4;
        in.buffer_bytes = buffer;
        if (classes == 3 && buffer == 16'000'000U) {
          EXPECT_THROW(tune(in), Error);
          continue;
        }
        const Tuning t = tune(in);
        const uint64_t groups = 32 * classes;
        EXPECT_EQ(groups * (t.headroom.bytes + t.reserved) + t.kept_aside + t.shared, buffer);
        EXPECT_EQ(t.kept_aside, 4U * 32 * 4218);
        EXPECT_LE(t.xoff_all * groups, t.shared);
        EXPECT_LE(t.kmax, t.xoff_alone);
        EXPECT_LT(t.kmin, t.kmax);
        EXPECT_LT(t.xon_offset, t.xoff_all);
      }
    }
  }
}

TEST(Tuning, SaysHowMuchIsMissing) {
  TuningInput in = leaf();
  in.buffer_bytes = 1'000'000;
  try {
    tune(in);
    FAIL() << "1 MB cannot hold 1.2 MB of headroom";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("at least 1642304"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace heddle::flowctl
