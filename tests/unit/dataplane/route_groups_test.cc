#include "dataplane/route_groups.h"

#include <gtest/gtest.h>

#include "net/random.h"

namespace heddle::dataplane {
namespace {

void expect_same(const RouteGroups& packed, const std::vector<GroupId>& groups) {
  ASSERT_EQ(packed.size(), groups.size());
  for (RouteId route = 0; route < groups.size(); ++route) ASSERT_EQ(packed[route], groups[route]) << "route " << route;
}

TEST(RouteGroups, OfNoRoutesAreEmpty) {
  EXPECT_TRUE(RouteGroups().empty());
  EXPECT_TRUE(RouteGroups(std::vector<GroupId>{}).empty());
}

struct Row {
  const char* what;
  std::vector<GroupId> groups;
};

TEST(RouteGroups, SayWhatWasPutIn) {
  std::vector<Row> rows = {
      {"one route", {7}},
      {"all alike", std::vector<GroupId>(1000, 3)},
      {"all different", {}},
      {"no way anywhere", std::vector<GroupId>(17, kNoGroup)},
      {"leaves of 16 hosts, and one whose hosts differ", {}},
      {"a last leaf that is not full", {}},
      {"InfiniBand: no LID 0", {kNoGroup, 0, 0, 0, 0, 1, kNoGroup, 1}},
  };
  for (unsigned i = 0; i < 700; ++i) rows[2].groups.push_back(static_cast<GroupId>(i));
  for (unsigned i = 0; i < 4096; ++i) rows[4].groups.push_back(static_cast<GroupId>(i / 16 == 9 ? i : i / 16));
  for (unsigned i = 0; i < 100; ++i) rows[5].groups.push_back(static_cast<GroupId>(i / 24));
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    expect_same(row.groups, row.groups);
  }
}

TEST(RouteGroups, SayWhatWasPutInAtRandom) {
  Random random(1, 0);
  for (unsigned run = 0; run < 200; ++run) {
    std::vector<GroupId> groups;
    const uint64_t size = 1 + random.next() % 2000;
    while (groups.size() < size) {
      const auto group = static_cast<GroupId>(random.next() % 50 == 0 ? kNoGroup : random.next() % 40);
      const uint64_t length = 1 + random.next() % 60;
      for (uint64_t i = 0; i < length; ++i) groups.push_back(group);
    }
    expect_same(groups, groups);
  }
}

TEST(RouteGroups, TakeAKilobyteForThousandsOfHosts) {
  std::vector<GroupId> groups;  // an edge switch of the fat-tree with 8,192 hosts
  for (unsigned host = 0; host < 8192; ++host)
    groups.push_back(static_cast<GroupId>(host / 16 == 100 ? host % 16 : 16));
  EXPECT_LE(RouteGroups(groups).bytes(), 2200U);
}

TEST(RouteGroups, NeverTakeMuchMoreThanAListWould) {
  std::vector<GroupId> groups;
  for (unsigned host = 0; host < 8192; ++host) groups.push_back(static_cast<GroupId>(host));
  EXPECT_LE(RouteGroups(groups).bytes(), 8192 * sizeof(GroupId) * 102 / 100);
}

}  // namespace
}  // namespace heddle::dataplane
