// WeightedTable: shares, and what a change moves.
#include "lb/weighted_table.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::lb {
namespace {

using Members = std::vector<WeightedTable::Member>;

Members random_members(unsigned count, uint16_t heaviest, Random& random) {
  Members members;
  for (unsigned i = 0; i < count; ++i) {
    members.push_back({static_cast<uint16_t>(1 + random.below(heaviest)), 1000 + i});
  }
  return members;
}

uint64_t sum_of(const Members& members) {
  return std::accumulate(members.begin(), members.end(), uint64_t{0},
                         [](uint64_t sum, const auto& member) { return sum + member.weight; });
}

// Largest deviation of a member's slots from its share, as a part of the share.
double worst_error(const WeightedTable& table, const Members& members) {
  const std::vector<uint32_t> counts = table.counts();
  double worst = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const double want = static_cast<double>(members[i].weight) * table.size() / static_cast<double>(sum_of(members));
    worst = std::max(worst, std::abs(static_cast<double>(counts[i]) - want) / want);
  }
  return worst;
}

TEST(WeightedTable, EveryMemberIsWithinOnePercentOfItsWeight) {
  Random random(1);
  for (unsigned count = 1; count <= 64; ++count) {
    for (const uint16_t heaviest : {1, 2, 10, 30}) {
      const Members members = random_members(count, heaviest, random);
      const WeightedTable table(members);
      EXPECT_GE(table.size(), WeightedTable::kLeastSlots);
      EXPECT_LE(worst_error(table, members), 0.01) << count << " members of weight 1–" << heaviest;
    }
  }
}

TEST(WeightedTable, SharesBeyondItsSizeAreWithinOneSlot) {
  Members members(64, {1000, 0});
  for (size_t i = 0; i < members.size(); ++i) members[i].identity = i;
  members[7].weight = 1;  // a share of 1 in 63,001
  const WeightedTable table(members);
  EXPECT_EQ(table.size(), WeightedTable::kMostSlots);
  const double want = static_cast<double>(table.size()) / 63'001;
  EXPECT_NEAR(table.counts()[7], want, 1);
}

TEST(WeightedTable, HashesMeetMembersInProportion) {
  const Members members{{1, 1}, {2, 2}, {5, 3}};
  const WeightedTable table(members);
  std::vector<double> hits(3);
  Random random(7);
  constexpr int kDraws = 400'000;
  for (int i = 0; i < kDraws; ++i) hits[table.member(static_cast<uint32_t>(random.next() >> 32U))] += 1;
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(hits[i] / kDraws, members[i].weight / 8.0, 0.005);
}

TEST(WeightedTable, WithoutWeightsAllAreEqual) {
  const WeightedTable table(Members{{0, 1}, {0, 2}});
  EXPECT_EQ(table.counts()[0], table.counts()[1]);
}

TEST(WeightedTable, AMemberOfWeightNoughtGetsNothing) {
  const WeightedTable table(Members{{3, 1}, {0, 2}, {1, 3}});
  EXPECT_EQ(table.counts()[1], 0U);
}

// Slots that must change hands: what the losers lose.
double least_move(const WeightedTable& before, const Members& old, const WeightedTable& after, const Members& now) {
  const auto share = [](const WeightedTable& table, const Members& members, uint64_t identity) {
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i].identity == identity) return static_cast<double>(table.counts()[i]) / table.size();
    }
    return 0.0;
  };
  double lost = 0;
  for (const auto& member : old) {
    lost += std::max(0.0, share(before, old, member.identity) - share(after, now, member.identity));
  }
  return lost;
}

TEST(WeightedTable, NothingMovesThatNeedNot) {
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    Members members = random_members(2 + random.below(40), 20, random);
    const WeightedTable before(members);
    const Members old = members;
    switch (round % 4) {
      case 0:
        members.erase(members.begin() + random.below(static_cast<uint32_t>(members.size())));
        break;
      case 1:
        members.push_back({10, 5000});
        break;
      case 2:
        members[0].weight = static_cast<uint16_t>(members[0].weight + 7);
        break;
      default:
        std::reverse(members.begin(), members.end());  // other indices, same members
        break;
    }
    const WeightedTable after(members, &before);
    EXPECT_LE(worst_error(after, members), 0.01);
    // Where the table had to grow, members that were a slot off exchange that slot.
    const double rounding = before.size() == after.size() ? 1e-9 : static_cast<double>(members.size()) / 4096;
    EXPECT_LE(after.moved_from(before), least_move(before, old, after, members) + rounding) << "round " << round;
  }
}

TEST(WeightedTable, ADepartedMembersSlotsGoToAllOthers) {
  Members members(8, {1, 0});
  for (size_t i = 0; i < 8; ++i) members[i].identity = i;
  const WeightedTable before(members);
  members.erase(members.begin() + 3);
  const WeightedTable after(members, &before);
  EXPECT_NEAR(after.moved_from(before), 1.0 / 8, 0.001);
  EXPECT_LE(worst_error(after, members), 0.01);
}

TEST(WeightedTable, TheSameAgainMovesNothing) {
  Random random(9);
  const Members members = random_members(17, 100, random);
  const WeightedTable before(members);
  const WeightedTable after(members, &before);
  EXPECT_EQ(after.moved_from(before), 0);
  EXPECT_TRUE(after.is_of(members));
}

}  // namespace
}  // namespace heddle::lb
