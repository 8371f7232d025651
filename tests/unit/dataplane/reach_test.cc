#include "dataplane/reach.h"

#include <gtest/gtest.h>

#include "dataplane/tables.h"

namespace heddle::dataplane {
namespace {

using net::LidRange;
using net::ReachNotice;

// LIDs 1–4 by ports 0 and 1, 5 and 7 by port 2 alone, 6 nowhere.
ForwardingTables small_tables() {
  ForwardingTables tables;
  tables.groups.resize(2);
  for (const PortId port : {PortId{0}, PortId{1}}) tables.groups[0].members.push_back({.rewrite = {}, .port = port});
  tables.groups[1].members.push_back({.rewrite = {}, .port = PortId{2}});
  tables.group_of_route = std::vector<GroupId>{kNoGroup, 0, 0, 0, 0, 1, kNoGroup, 1};
  return tables;
}

ReachNotice notice(uint16_t sweep, bool restored, std::vector<LidRange> ranges) {
  ReachNotice of{.sweep = sweep, .restored = restored, .count = static_cast<uint8_t>(ranges.size()), .ranges = {}};
  std::copy(ranges.begin(), ranges.end(), of.ranges.begin());
  return of;
}

class ReachTest : public testing::Test {
 protected:
  ReachTest() { reach_.begin_sweep(); }
  std::vector<ReachNotice> reviewed() {
    reach_.review(tables_, ports_);
    return std::exchange(reach_.changes(), {});
  }
  std::vector<ReachNotice> after(PortId port, const ReachNotice& heard) {
    EXPECT_TRUE(reach_.hear(port, heard));
    reach_.review(tables_, ports_, heard);
    return std::exchange(reach_.changes(), {});
  }

  ForwardingTables tables_ = small_tables();
  PortStates ports_{3};
  Reach reach_{{.notify = true, .lid = 9, .buffer = 4096, .peers = {true, true, true}}, 3};
};

TEST_F(ReachTest, TellsWhatHasNoMemberLeftAndOnce) {
  EXPECT_TRUE(reviewed().empty());
  ports_.set(0, false);
  EXPECT_TRUE(reviewed().empty()) << "port 1 is there";
  ports_.set(1, false);
  EXPECT_EQ(reviewed(), std::vector{notice(1, false, {{1, 4}})});
  EXPECT_TRUE(reviewed().empty()) << "they know";
  ports_.set(2, false);
  EXPECT_EQ(reviewed(), std::vector{notice(1, false, {{5, 1}, {7, 1}})}) << "6 is nobody's";
  EXPECT_EQ(reach_.all_losses(tables_), std::vector{notice(1, false, {{1, 5}, {7, 1}})});
  ports_.set(0, true);
  EXPECT_EQ(reviewed(), std::vector{notice(1, true, {{1, 4}})});
}

TEST_F(ReachTest, PassesOnWhatItHearsOnlyIfItHasNoOtherWay) {
  EXPECT_FALSE(reach_.has_losses());
  EXPECT_TRUE(after(0, notice(1, false, {{2, 2}, {5, 1}})).empty()) << "port 1 leads there, and 5 not by port 0";
  EXPECT_TRUE(reach_.has_losses());
  EXPECT_FALSE(reach_.is_usable(0, 2));
  EXPECT_TRUE(reach_.is_usable(0, 1));
  EXPECT_TRUE(reach_.is_usable(1, 2));
  EXPECT_EQ(after(1, notice(1, false, {{3, 2}})), std::vector{notice(1, false, {{3, 1}})});
  EXPECT_EQ(after(0, notice(1, true, {{3, 1}})), std::vector{notice(1, true, {{3, 1}})});
}

TEST_F(ReachTest, ForgetsWithNewTablesAndDoesNotListenToTheOld) {
  after(0, notice(1, false, {{1, 4}}));
  reach_.begin_sweep();
  EXPECT_FALSE(reach_.has_losses());
  EXPECT_TRUE(reach_.is_usable(0, 1));
  EXPECT_FALSE(reach_.hear(0, notice(1, false, {{1, 4}})));
  EXPECT_TRUE(reach_.is_usable(0, 1));
}

TEST_F(ReachTest, ALinkThatComesUpBeginsAnew) {
  after(0, notice(1, false, {{1, 1}}));
  reach_.forget(0);
  EXPECT_TRUE(reach_.is_usable(0, 1));
}

// As it is then, not as it was when it was told; and what is told anew begins the count again.
TEST_F(ReachTest, RepeatsHowItStandsACoupleOfTimes) {
  Reach reach({.notify = true, .lid = 9, .buffer = 4096, .repeats = 2, .peers = {true, true, true}}, 3);
  reach.begin_sweep();
  const auto reviewed = [&] {
    reach.review(tables_, ports_);
    return std::exchange(reach.changes(), {});
  };
  const auto repeated = [&] {
    reach.repeat(tables_);
    return std::exchange(reach.changes(), {});
  };
  EXPECT_FALSE(reach.has_repeats());
  EXPECT_TRUE(repeated().empty()) << "nothing has been told";
  ports_.set(0, false);
  ports_.set(1, false);
  ASSERT_EQ(reviewed(), std::vector{notice(1, false, {{1, 4}})});
  EXPECT_TRUE(reach.has_repeats());
  EXPECT_EQ(repeated(), std::vector{notice(1, false, {{1, 4}})});
  ports_.set(1, true);
  ports_.set(2, false);
  EXPECT_EQ(reviewed(), (std::vector{notice(1, true, {{1, 4}}), notice(1, false, {{5, 1}, {7, 1}})}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(reach.has_repeats());
    EXPECT_EQ(repeated(), (std::vector{notice(1, true, {{1, 4}}), notice(1, false, {{5, 1}, {7, 1}})}));
  }
  EXPECT_FALSE(reach.has_repeats());
  EXPECT_TRUE(repeated().empty());
  ports_.set(2, true);
  reviewed();
  EXPECT_TRUE(reach.has_repeats());
  reach.begin_sweep();
  EXPECT_FALSE(reach.has_repeats()) << "there is nothing left of the old tables";
  EXPECT_TRUE(repeated().empty());
}

TEST_F(ReachTest, SplitsLongLists) {
  ForwardingTables sparse;
  sparse.groups.resize(1);
  sparse.groups[0].members.push_back({.rewrite = {}, .port = PortId{0}});
  std::vector<GroupId> group_of_lid;
  for (unsigned lid = 0; lid < 16; ++lid) group_of_lid.push_back(lid % 2 == 0 ? 0 : kNoGroup);
  sparse.group_of_route = group_of_lid;
  ports_.set(0, false);
  reach_.review(sparse, ports_);
  ASSERT_EQ(reach_.changes().size(), 2U);
  EXPECT_EQ(reach_.changes()[0].count, ReachNotice::kMostRanges);
  EXPECT_EQ(reach_.changes()[1], notice(1, false, {{12, 1}, {14, 1}}));
}

}  // namespace
}  // namespace heddle::dataplane
