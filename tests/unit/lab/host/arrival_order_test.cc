// Reordering extent, by the definition of RFC 4737 and by the examples it gives.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "lab/host/queue_pair.h"
#include "net/random.h"

namespace heddle::lab {
namespace {

// The extents of packets that arrive in this order; 0 for those that are in order.
std::vector<uint64_t> extents(const std::vector<uint64_t>& psns) {
  HostSettings settings;
  settings.out_of_order = OutOfOrder::kAnyOrderPlacement;
  ReceiveQueue queue;
  std::vector<uint64_t> all;
  for (const uint64_t psn : psns) {
    all.push_back(queue.receive(psn, false, 0, false, settings, [](MessageId) {}).extent);
  }
  return all;
}

// i - j, where j is the earliest arrival with a higher number.
std::vector<uint64_t> by_definition(const std::vector<uint64_t>& psns) {
  std::vector<uint64_t> all;
  for (size_t i = 0; i < psns.size(); ++i) {
    size_t j = 0;
    while (j < i && psns[j] < psns[i]) ++j;
    const bool late = std::any_of(psns.begin(), psns.begin() + static_cast<std::ptrdiff_t>(i),
                                  [&](uint64_t other) { return other > psns[i]; });
    all.push_back(late ? i - j : 0);
  }
  return all;
}

TEST(ReorderingExtent, OfRfc4737) {
  struct Row {
    const char* what;
    std::vector<uint64_t> arrivals;
    std::vector<uint64_t> extents;
  };
  const Row rows[] = {
      {"in order", {0, 1, 2, 3}, {0, 0, 0, 0}},
      {"7.1, from 0 on: one packet late by three", {0, 1, 2, 4, 5, 6, 3, 7}, {0, 0, 0, 0, 0, 0, 3, 0}},
      {"7.1: two late ones", {0, 1, 2, 6, 4, 5, 3}, {0, 0, 0, 0, 1, 2, 3}},
      {"the first comes last", {1, 2, 3, 0}, {0, 0, 0, 3}},
      {"a gap is closed and another opens", {1, 0, 2, 4, 3}, {0, 1, 0, 0, 1}},
  };
  for (const Row& row : rows) EXPECT_EQ(extents(row.arrivals), row.extents) << row.what;
}

TEST(ReorderingExtent, IsThatOfItsDefinitionForAnyOrder) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<uint64_t> psns(1 + random.below(100));
    for (size_t i = 0; i < psns.size(); ++i) psns[i] = i;
    const size_t reach = 1 + random.below(20);
    for (size_t i = 0; i < psns.size(); ++i) {
      std::swap(psns[i], psns[std::min(psns.size() - 1, i + random.below(reach))]);
    }
    ASSERT_EQ(extents(psns), by_definition(psns)) << seed;
  }
}

// Repeated packets are no first copies: neither late nor overtaking.
TEST(ReorderingExtent, LooksAtFirstCopiesOnly) {
  HostSettings settings;
  settings.out_of_order = OutOfOrder::kSelectiveRepeat;
  ReceiveQueue queue;
  const auto arrive = [&](uint64_t psn, bool repeated) {
    return queue.receive(psn, false, 0, repeated, settings, [](MessageId) {});
  };
  arrive(0, false);
  EXPECT_EQ(arrive(3, true).extent, 0U);
  EXPECT_EQ(arrive(1, false).extent, 0U) << "overtaken by a repeated one only";
  arrive(4, false);
  EXPECT_EQ(arrive(2, false).extent, 1U);
}

}  // namespace
}  // namespace heddle::lab
