// PathSelector: how each scheduler spreads packets, and what a dead member moves.
#include "lb/path_selector.h"

#include <algorithm>
#include <bitset>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/flows.h"
#include "tests/support/statistics.h"

namespace heddle::lb {
namespace {

using support::Flow;

constexpr double kFair = 1e-4;
constexpr unsigned kNone = PathSelector::kNone;
using Dead = std::bitset<kMaxMembers>;

NextHopGroup group_of(unsigned members, Choice choice) {
  NextHopGroup group;
  for (unsigned i = 0; i < members; ++i) group.members.push_back({.rewrite = {}, .port = static_cast<PortId>(i)});
  group.scheduler = {choice == Choice::kHash ? Granularity::kFlow : Granularity::kPacket, choice};
  group.make_table();
  return group;
}

struct Ports {
  Dead dead;
  bool is_up(PortId port) const { return !dead[port]; }
  Duration drain_time(PortId /*port*/) const { return 0; }
};

// A selector with one group, whose members' ports are up unless named dead.
class Bench {
 public:
  Bench(unsigned members, Choice choice, uint64_t seed = 1)
      : group_(group_of(members, choice)), hasher_({.seed = seed}), selector_({.seed = seed, .ports = kMaxMembers}) {}

  unsigned pick(Flow& flow) {
    flow.meta.flow_hash = hasher_.hash(flow.frame.data(), flow.meta);
    return selector_.select(group_, state_, flow.meta.flow_hash, 0, Ports{dead_});
  }
  unsigned pick() { return pick(any_); }
  void resize(unsigned members) { group_ = group_of(members, group_.scheduler.choice); }
  void set_dead(const Dead& dead) { dead_ = dead; }

 private:
  NextHopGroup group_;
  GroupState state_;
  FlowHasher hasher_;
  PathSelector selector_;
  Dead dead_;
  Flow any_ = support::roce_flow(L3::kIpv4, {0, 1, 0xc000, 0x11});
};

std::vector<Flow> sequential_qps(unsigned count) {
  std::vector<Flow> flows;
  for (unsigned i = 0; i < count; ++i) flows.push_back(support::roce_flow(L3::kIpv4, {0, 1, 0xc000, 0x11 + i}));
  return flows;
}

std::vector<unsigned> picks_of(Bench& bench, std::vector<Flow>& flows) {
  std::vector<unsigned> picks(flows.size());
  std::transform(flows.begin(), flows.end(), picks.begin(), [&](Flow& flow) { return bench.pick(flow); });
  return picks;
}

Dead first_members(unsigned count) {
  Dead dead;
  for (unsigned i = 0; i < count; ++i) dead.set(i);
  return dead;
}

// -- groups of none and one -------------------------------------------------------------------------------------------

class EveryChoice : public testing::TestWithParam<Choice> {};
INSTANTIATE_TEST_SUITE_P(All, EveryChoice,
                         testing::Values(Choice::kHash, Choice::kRandom, Choice::kRoundRobin, Choice::kWeighted,
                                         Choice::kQuality));

TEST_P(EveryChoice, AnEmptyGroupHasNoPath) { EXPECT_EQ(Bench(0, GetParam()).pick(), kNone); }

TEST_P(EveryChoice, TheOnlyMemberTakesAll) {
  Bench bench(1, GetParam());
  for (Flow& flow : sequential_qps(100)) EXPECT_EQ(bench.pick(flow), 0U);
  bench.set_dead(first_members(1));
  EXPECT_EQ(bench.pick(), kNone);
}

TEST_P(EveryChoice, AllDeadHasNoPathAtAnySize) {
  for (unsigned members = 1; members <= kMaxMembers; ++members) {
    Bench bench(members, GetParam());
    bench.set_dead(first_members(members));
    for (int i = 0; i < 10; ++i) EXPECT_EQ(bench.pick(), kNone) << members << " members";
  }
}

TEST_P(EveryChoice, TheLastLiveMemberTakesAllWhereverItStands) {
  for (unsigned members = 2; members <= kMaxMembers; ++members) {
    for (unsigned live = 0; live < members; ++live) {
      Bench bench(members, GetParam());
      bench.set_dead(first_members(members).reset(live));
      for (int i = 0; i < 4; ++i) EXPECT_EQ(bench.pick(), live) << members << " members";
    }
  }
}

TEST_P(EveryChoice, PacketsOfADeadMemberSpreadEvenlyOverTheLive) {
  struct Row {
    const char* description;
    unsigned members;
    Dead dead;
  };
  for (const Row& row : {Row{"one of three", 3, Dead(0b001)}, Row{"one of four", 4, Dead(0b0100)},
                         Row{"two neighbours of four", 4, Dead(3)}, Row{"first half of eight", 8, Dead(0x0f)},
                         Row{"last half of eight", 8, Dead(0xf0)}, Row{"every other of eight", 8, Dead(0x55)},
                         Row{"six neighbours of eight", 8, Dead(0x7e)}, Row{"first 48 of 64", 64, first_members(48)},
                         Row{"last 62 of 64", 64, Dead(~3ULL)}}) {
    Bench bench(row.members, GetParam());
    bench.set_dead(row.dead);
    std::vector<Flow> flows = sequential_qps(40'000);
    std::vector<uint64_t> counts(row.members);
    for (Flow& flow : flows) counts.at(bench.pick(flow))++;
    std::vector<uint64_t> live;
    for (unsigned m = 0; m < row.members; ++m) {
      if (row.dead[m]) {
        EXPECT_EQ(counts[m], 0U) << row.description << ": dead member " << m;
      } else {
        live.push_back(counts[m]);
      }
    }
    EXPECT_GE(support::uniform_p_value(live), kFair) << row.description;
  }
}

// -- ecmp -------------------------------------------------------------------------------------------------------------

TEST(Ecmp, AFlowKeepsItsMemberAndItsHash) {
  Bench bench(8, Choice::kHash);
  for (Flow& flow : sequential_qps(200)) {
    const unsigned first = bench.pick(flow);
    const uint32_t hash = flow.meta.flow_hash;
    EXPECT_EQ(first, scale_hash(hash, 8));
    flow.frame[34 + 8 + 11] ^= 0xff;  // the next packets: other PSN, other opcode
    flow.frame[34 + 8] ^= 0x03;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(bench.pick(flow), first);
    EXPECT_EQ(flow.meta.flow_hash, hash);
  }
}

// Every group size, every dead member: flows of other members stay, its own find a live one evenly.
TEST(Ecmp, ADeadMemberMovesOnlyItsOwnFlows) {
  std::vector<Flow> flows = sequential_qps(6400);
  for (unsigned members = 2; members <= kMaxMembers; ++members) {
    Bench bench(members, Choice::kHash);
    std::vector<unsigned> before = picks_of(bench, flows);
    std::vector<uint64_t> steps(members - 1);  // how far a moved flow went: uniform if every live member gets its part
    for (unsigned dead = 0; dead < members; ++dead) {
      bench.set_dead(Dead().set(dead));
      for (size_t i = 0; i < flows.size(); ++i) {
        const unsigned after = bench.pick(flows[i]);
        if (before[i] != dead) {
          ASSERT_EQ(after, before[i]) << members << " members, " << dead << " dead: a live member's flow moved";
        } else {
          ASSERT_NE(after, dead);
          steps[(after + members - dead) % members - 1]++;
        }
      }
    }
    EXPECT_GE(support::uniform_p_value(steps), kFair) << members << " members";
    bench.set_dead({});
    for (size_t i = 0; i < flows.size(); ++i) ASSERT_EQ(bench.pick(flows[i]), before[i]) << "after recovery";
  }
}

// Members die one after another in a random order: at each step only flows of the one that died move.
TEST(Ecmp, FurtherDeathsMoveOnlyTheirOwnFlows) {
  std::vector<Flow> flows = sequential_qps(5000);
  for (const unsigned members : {3U, 4U, 8U, 16U, 64U}) {
    Bench bench(members, Choice::kHash);
    std::vector<unsigned> order(members);
    std::iota(order.begin(), order.end(), 0);
    Random random(members);
    for (unsigned i = members - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    Dead dead;
    std::vector<unsigned> before = picks_of(bench, flows);
    for (unsigned step = 0; step + 1 < members; ++step) {
      bench.set_dead(dead.set(order[step]));
      for (size_t i = 0; i < flows.size(); ++i) {
        const unsigned after = bench.pick(flows[i]);
        if (before[i] != order[step]) {
          ASSERT_EQ(after, before[i]) << members << " members, " << step + 1 << " dead";
        }
        before[i] = after;
      }
    }
  }
}

// -- rps --------------------------------------------------------------------------------------------------------------

TEST(RandomSpraying, IsFairForEveryGroupSizeAtEverySeed) {
  for (unsigned members = 2; members <= kMaxMembers; ++members) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Bench bench(members, Choice::kRandom, seed);
      std::vector<uint64_t> counts(members);
      for (unsigned i = 0; i < 200 * members; ++i) counts.at(bench.pick())++;
      EXPECT_GE(support::uniform_p_value(counts), kFair) << members << " members, seed " << seed;
      EXPECT_LE(support::largest_deviation(counts), 5) << members << " members, seed " << seed;
    }
  }
}

TEST(RandomSpraying, APacketsMemberSaysNothingAboutTheNext) {
  for (const unsigned members : {2U, 4U, 8U}) {
    Bench bench(members, Choice::kRandom);
    std::vector<uint64_t> table(size_t{members} * members);
    unsigned last = bench.pick();
    for (int i = 0; i < 50'000; ++i) {
      const unsigned next = bench.pick();
      table[last * members + next]++;
      last = next;
    }
    EXPECT_GE(support::independence_p_value(table, members), kFair) << members << " members";
  }
}

// -- round-robin ------------------------------------------------------------------------------------------------------

std::vector<unsigned> round_of(Bench& bench, unsigned members) {
  std::vector<unsigned> picks;
  for (unsigned i = 0; i < members; ++i) picks.push_back(bench.pick());
  return picks;
}

TEST(RoundRobin, EveryRoundTakesEachMemberOnce) {
  for (unsigned members = 2; members <= kMaxMembers; ++members) {
    Bench bench(members, Choice::kRoundRobin);
    for (int round = 0; round < 20; ++round) {
      const std::vector<unsigned> picks = round_of(bench, members);
      EXPECT_EQ(std::set<unsigned>(picks.begin(), picks.end()).size(), members) << members << " members";
    }
  }
}

TEST(RoundRobin, TheOrderIsDrawnAnewEachRound) {
  // All 24 orders of four members, equally often, whatever the order before.
  constexpr unsigned kMembers = 4;
  Bench bench(kMembers, Choice::kRoundRobin);
  std::vector<unsigned> order(kMembers);
  std::vector<std::vector<unsigned>> orders;
  std::iota(order.begin(), order.end(), 0);
  do orders.push_back(order);
  while (std::next_permutation(order.begin(), order.end()));
  std::vector<uint64_t> counts(orders.size());
  std::vector<uint64_t> follows(orders.size() * orders.size());
  size_t last = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::vector<unsigned> picks = round_of(bench, kMembers);
    const auto which = static_cast<size_t>(std::find(orders.begin(), orders.end(), picks) - orders.begin());
    counts.at(which)++;
    follows[last * orders.size() + which]++;
    last = which;
  }
  EXPECT_GE(support::uniform_p_value(counts), kFair);
  EXPECT_GE(support::independence_p_value(follows, orders.size()), kFair);
}

TEST(RoundRobin, TwoSwitchesDoNotFallInStep) {
  constexpr unsigned kMembers = 8;
  Bench a(kMembers, Choice::kRoundRobin, 1);
  Bench b(kMembers, Choice::kRoundRobin, 2);
  unsigned alike = 0;
  constexpr unsigned kPicks = 8000;
  for (unsigned i = 0; i < kPicks; ++i) alike += a.pick() == b.pick() ? 1U : 0U;
  EXPECT_NEAR(alike, double{kPicks} / kMembers, 5 * std::sqrt(double{kPicks} / kMembers));
}

TEST(RoundRobin, AResizedGroupStartsAFreshRound) {
  for (const auto& [from, to] : {std::pair{8U, 4U}, {4U, 8U}, {64U, 2U}, {2U, 64U}, {5U, 3U}}) {
    for (unsigned taken = 0; taken < from; ++taken) {
      Bench bench(from, Choice::kRoundRobin);
      for (unsigned i = 0; i < taken; ++i) bench.pick();
      bench.resize(to);
      for (int round = 0; round < 3; ++round) {
        const std::vector<unsigned> picks = round_of(bench, to);
        EXPECT_EQ(std::set<unsigned>(picks.begin(), picks.end()).size(), to)
            << from << " → " << to << " after " << taken;
        EXPECT_LT(*std::max_element(picks.begin(), picks.end()), to);
      }
    }
  }
}

TEST(RoundRobin, AGroupGoneToOneMemberAndBackStaysBalanced) {
  Bench bench(4, Choice::kRoundRobin);
  bench.pick();
  bench.resize(1);
  EXPECT_EQ(bench.pick(), 0U);
  bench.resize(3);
  for (int round = 0; round < 3; ++round) {
    const std::vector<unsigned> picks = round_of(bench, 3);
    EXPECT_EQ(std::set<unsigned>(picks.begin(), picks.end()).size(), 3U);
  }
}

TEST(RoundRobin, GroupsTakeTurnsOnTheirOwn) {
  const NextHopGroup group = group_of(4, Choice::kRoundRobin);
  PathSelector selector({.seed = 1, .ports = 4});
  GroupState one;
  GroupState two;
  for (int round = 0; round < 10; ++round) {
    std::set<unsigned> of_one;
    std::set<unsigned> of_two;
    for (int i = 0; i < 4; ++i) {
      of_one.insert(selector.select(group, one, 0, 0, Ports{}));
      of_two.insert(selector.select(group, two, 0, 0, Ports{}));
    }
    EXPECT_EQ(of_one.size(), 4U);
    EXPECT_EQ(of_two.size(), 4U);
  }
}

}  // namespace
}  // namespace heddle::lb
