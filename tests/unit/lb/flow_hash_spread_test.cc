// How evenly the flow hash spreads realistic flows over 1–64 members, and that two tiers do not split them alike.
#include <algorithm>
#include <array>
#include <string>

#include <gtest/gtest.h>

#include "lb/flow_hash.h"
#include "lb/next_hop_group.h"
#include "tests/support/flows.h"
#include "tests/support/statistics.h"

namespace heddle::lb {
namespace {

using support::Flow;
using support::FlowSet;

constexpr double kFair = 1e-4;   // least p-value of a chi-square test
constexpr double kSigmas = 5.0;  // no member farther from its share
constexpr unsigned kFlows = 16'384;
// The two-tier tests draw some 60,000 p-values, where 1e-4 would be met by chance alone.
constexpr double kFairAmongMany = 1e-6;

// 24 fixed seeds: small ones as people write them, and ones that differ in few bits.
constexpr std::array<uint64_t, 24> kSeeds{0,
                                          1,
                                          2,
                                          3,
                                          4,
                                          5,
                                          6,
                                          7,
                                          8,
                                          9,
                                          10,
                                          11,
                                          12,
                                          13,
                                          14,
                                          15,
                                          16,
                                          17,
                                          0xffff,
                                          0x100000000,
                                          0x8000000000000000,
                                          0x9e3779b97f4a7c15,
                                          42,
                                          ~uint64_t{0}};

std::vector<uint32_t> hashes_of(const std::vector<Flow>& flows, uint64_t seed) {
  const FlowHasher hasher({.seed = seed});
  std::vector<uint32_t> hashes;
  hashes.reserve(flows.size());
  for (const Flow& flow : flows) hashes.push_back(hasher.hash(flow.frame.data(), flow.meta));
  return hashes;
}

std::vector<uint64_t> spread(const std::vector<uint32_t>& hashes, unsigned members) {
  std::vector<uint64_t> counts(members);
  for (const uint32_t hash : hashes) counts.at(scale_hash(hash, members))++;
  return counts;
}

const std::vector<FlowSet>& flow_sets() {
  static const std::vector<FlowSet> sets = support::realistic_flow_sets(kFlows);
  return sets;
}

class Spread : public testing::TestWithParam<size_t> {};

TEST_P(Spread, IsFairForEveryGroupSizeAtEverySeed) {
  const FlowSet& set = flow_sets()[GetParam()];
  for (const uint64_t seed : kSeeds) {
    const std::vector<uint32_t> hashes = hashes_of(set.flows, seed);
    for (unsigned members = 1; members <= kMaxMembers; ++members) {
      const std::vector<uint64_t> counts = spread(hashes, members);
      EXPECT_GE(support::uniform_p_value(counts), kFair) << set.description << ": seed " << seed << ", " << members;
      EXPECT_LE(support::largest_deviation(counts), kSigmas) << set.description << ": seed " << seed << ", " << members;
    }
  }
}

// As many flows as a small job has: nothing may hide behind large numbers. Over all seeds the counts must vary as
// balls in bins do, neither more (clumps) nor less (a pattern that another flow set would turn against us).
TEST_P(Spread, OfFewFlowsVariesAsBallsInBins) {
  const FlowSet& set = flow_sets()[GetParam()];
  constexpr unsigned kMembers = 16;
  constexpr size_t kFew = 64;
  constexpr uint64_t kTrials = 2000;
  const std::vector<Flow> few(set.flows.begin(), set.flows.begin() + kFew);
  double x = 0;
  for (uint64_t seed = 0; seed < kTrials; ++seed) {
    for (const uint64_t count : spread(hashes_of(few, seed), kMembers)) {
      const double off = static_cast<double>(count) - double{kFew} / kMembers;
      x += off * off / (double{kFew} / kMembers);
    }
  }
  // The sum of kTrials chi-squares of 15 degrees each: mean 15, variance 2 · 15 (1 − 1/64) per trial.
  const double degrees = (kMembers - 1) * double{kTrials};
  EXPECT_NEAR(x, degrees, 5 * std::sqrt(2 * degrees)) << set.description;
}

INSTANTIATE_TEST_SUITE_P(Flows, Spread, testing::Range(size_t{0}, flow_sets().size()));

TEST(LinuxSourcePort, IsWhatTheCapturesHold) {
  // tests/captures/rxe-multiqp-write.pcap: queue pairs 0x11–0x14 on both sides.
  EXPECT_EQ(support::linux_source_port(0x11, 0x11), 49'441);
  EXPECT_EQ(support::linux_source_port(0x12, 0x12), 49'476);
  EXPECT_EQ(support::linux_source_port(0x13, 0x13), 49'513);
  EXPECT_EQ(support::linux_source_port(0x14, 0x14), 49'552);
}

TEST(FlowSets, HoldDistinctFlows) {
  for (const FlowSet& set : flow_sets()) {
    std::vector<support::Bytes> frames;
    for (const Flow& flow : set.flows) frames.push_back(flow.frame);
    std::sort(frames.begin(), frames.end());
    EXPECT_EQ(std::unique(frames.begin(), frames.end()), frames.end()) << set.description;
    EXPECT_EQ(frames.size(), kFlows);
  }
}

TEST(ScaleHash, CoversEveryMemberAndNothingElse) {
  for (unsigned members = 1; members <= kMaxMembers; ++members) {
    EXPECT_EQ(scale_hash(0, members), 0U);
    EXPECT_EQ(scale_hash(~0U, members), members - 1);
    for (unsigned m = 1; m < members; ++m) {  // the first hash of each member's share
      const auto first = static_cast<uint32_t>(((uint64_t{m} << 32U) + members - 1) / members);
      EXPECT_EQ(scale_hash(first, members), m);
      EXPECT_EQ(scale_hash(first - 1, members), m - 1);
    }
  }
}

// -- two tiers --------------------------------------------------------------------------------------------------------

// Flows by the member the first switch sends them to (rows) and the member the second would (columns).
std::vector<uint64_t> joint(const std::vector<uint32_t>& first, unsigned rows, const std::vector<uint32_t>& second,
                            unsigned columns) {
  std::vector<uint64_t> table(size_t{rows} * columns);
  for (size_t i = 0; i < first.size(); ++i)
    table[scale_hash(first[i], rows) * columns + scale_hash(second[i], columns)]++;
  return table;
}

// The least p-value of the second switch's spread over `columns`, given each choice of the first.
double worst_conditional_p(const std::vector<uint64_t>& table, unsigned columns) {
  double worst = 1;
  for (size_t row = 0; row < table.size() / columns; ++row) {
    worst = std::min(worst, support::uniform_p_value(std::span(table).subspan(row * columns, columns)));
  }
  return worst;
}

class TwoTiers : public testing::TestWithParam<size_t> {};

TEST_P(TwoTiers, SecondSwitchSpreadsEveryShareOfTheFirstEvenly) {
  const FlowSet& set = flow_sets()[GetParam()];
  std::vector<std::vector<uint32_t>> hashes(kSeeds.size());
  for (size_t i = 0; i < kSeeds.size(); ++i) hashes[i] = hashes_of(set.flows, kSeeds[i]);
  for (size_t a = 0; a < kSeeds.size(); ++a) {
    for (const size_t step : {1, 2, 3, 7}) {  // neighbouring seeds above all: that is how people number switches
      const size_t b = (a + step) % kSeeds.size();
      for (const unsigned members : {2, 3, 4, 8, 16}) {
        const std::vector<uint64_t> table = joint(hashes[a], members, hashes[b], members);
        EXPECT_GE(support::independence_p_value(table, members), kFairAmongMany)
            << set.description << ": seeds " << kSeeds[a] << ", " << kSeeds[b] << ", members " << members;
        EXPECT_GE(worst_conditional_p(table, members), kFairAmongMany)
            << set.description << ": seeds " << kSeeds[a] << ", " << kSeeds[b] << ", members " << members;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Flows, TwoTiers, testing::Range(size_t{0}, flow_sets().size()));

// What the test above must be able to see: one seed twice, and the classic mistake of a hash that another seed only
// changes by XOR with a constant (a CRC with another initial value).
TEST(TwoTiers, SeesPolarisation) {
  const std::vector<uint32_t> first = hashes_of(flow_sets()[0].flows, 1);
  EXPECT_LT(worst_conditional_p(joint(first, 8, first, 8), 8), 1e-100) << "the same seed";
  std::vector<uint32_t> flipped = first;
  for (uint32_t& hash : flipped) hash ^= 0x5bd1e995U;
  EXPECT_LT(worst_conditional_p(joint(first, 8, flipped, 8), 8), 1e-100) << "XOR with a constant";
}

}  // namespace
}  // namespace heddle::lb
