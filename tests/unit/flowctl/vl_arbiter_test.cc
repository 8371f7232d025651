// VL arbitration: shares by weight, high before low, and the limit that keeps the low table alive.
#include "flowctl/vl_arbiter.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::flowctl {
namespace {

constexpr uint32_t kPacket = 2048;

// Lanes in the order in which they send packets of that size while all in `open` always have one.
std::string order_of(VlArbiter& arbiter, uint16_t open, unsigned packets, uint32_t bytes = kPacket) {
  std::string order;
  for (unsigned i = 0; i < packets; ++i) {
    const unsigned vl = arbiter.pick(open);
    if (vl == VlArbiter::kNone) {
      order += '-';
      continue;
    }
    order += static_cast<char>('0' + vl);
    arbiter.sent(bytes);
  }
  return order;
}

struct OrderRow {
  const char* description;
  VlArbiterSettings settings;
  uint16_t open;
  const char* order;
};

TEST(VlArbiter, SendsInThisOrder) {
  const OrderRow rows[] = {
      {"equal weights take turns", {.high = {}, .low = {{0, 32}, {1, 32}, {2, 32}}}, 0b111, "012012012"},
      {"a weight of two packets", {.high = {}, .low = {{0, 64}, {1, 32}}}, 0b11, "001001001"},
      {"a packet that has begun is sent whole", {.high = {}, .low = {{0, 33}, {1, 32}}}, 0b11, "001001001"},
      {"an entry without weight is skipped", {.high = {}, .low = {{0, 32}, {1, 0}, {2, 32}}}, 0b111, "020202"},
      {"a lane twice in the table", {.high = {}, .low = {{0, 32}, {1, 32}, {0, 32}, {2, 32}}}, 0b111, "01020102"},
      {"a lane that has nothing loses its turn", {.high = {}, .low = {{0, 255}, {1, 32}}}, 0b10, "1111"},
      {"nobody that a table names", {.high = {}, .low = {{0, 32}}}, 0b10, "--"},
      {"high without limit shuts low out", {.high = {{3, 32}}, .low = {{0, 32}}, .high_limit = 255}, 0b1001, "333333"},
      {"a limit of 8 KiB", {.high = {{3, 32}}, .low = {{0, 32}}, .high_limit = 2}, 0b1001, "333303333033330"},
      {"a limit of 0 is one packet", {.high = {{3, 32}}, .low = {{0, 32}}, .high_limit = 0}, 0b1001, "303030"},
      {"low sends while high has nothing", {.high = {{3, 32}}, .low = {{0, 32}}, .high_limit = 2}, 0b0001, "0000"}};
  for (const OrderRow& row : rows) {
    VlArbiter arbiter(row.settings);
    EXPECT_EQ(order_of(arbiter, row.open, static_cast<unsigned>(std::string(row.order).size())), row.order)
        << row.description;
  }
}

// Whatever the sizes: over the long run lanes that always have packets share by weight, to within a packet a turn.
TEST(VlArbiter, SharesByWeightWhateverTheSizes) {
  const std::vector<VlEntry> entries{{0, 64}, {1, 128}, {2, 255}, {3, 192}};
  VlArbiter arbiter({.high = {}, .low = entries});
  Random random(1);
  std::array<double, 4> bytes{};
  double sum = 0;
  for (int i = 0; i < 500'000; ++i) {
    const unsigned vl = arbiter.pick(0b1111);
    const uint32_t size = 64 + random.below(448);
    arbiter.sent(size);
    bytes[vl] += size;
    sum += size;
  }
  // A turn goes beyond its weight by half a packet on average (288/2 bytes).
  double weights = 0;
  for (const VlEntry& entry : entries) weights += entry.weight * 64 + 160;
  for (const VlEntry& entry : entries) {
    EXPECT_NEAR(bytes[entry.vl] / sum, (entry.weight * 64 + 160) / weights, 0.005) << "VL " << int{entry.vl};
  }
}

TEST(VlArbiter, NeverLeavesALaneThatTheTablesNameWaitingForEver) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    VlArbiterSettings settings;
    settings.high_limit = static_cast<uint8_t>(random.below(4));
    for (std::vector<VlEntry>* table : {&settings.high, &settings.low}) {
      for (unsigned i = 0; i < 1 + random.below(6); ++i) {
        table->push_back({static_cast<uint8_t>(random.below(8)), static_cast<uint8_t>(1 + random.below(32))});
      }
    }
    VlArbiter arbiter(settings);
    std::array<unsigned, 8> sent{};
    for (int i = 0; i < 5000; ++i) {
      const unsigned vl = arbiter.pick(0xff);
      ASSERT_LT(vl, 8U);
      ++sent[vl];
      arbiter.sent(64 + random.below(1024));
    }
    for (const std::vector<VlEntry>* table : {&settings.high, &settings.low}) {
      for (const VlEntry& entry : *table) EXPECT_GT(sent[entry.vl], 0U) << "round " << round;
    }
  }
}

TEST(VlArbiterSettings, AreOnWithAnyWeight) {
  EXPECT_FALSE(VlArbiterSettings().is_on());
  EXPECT_FALSE((VlArbiterSettings{.high = {{1, 0}}, .low = {{0, 0}}}.is_on()));
  EXPECT_TRUE((VlArbiterSettings{.high = {{1, 0}}, .low = {{0, 1}}}.is_on()));
}

}  // namespace
}  // namespace heddle::flowctl
