// What probes say of groups, in the tables that workers see.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/control/route_table_fixture.h"

namespace heddle::control {
namespace {

using dataplane::ForwardingTables;

// Group b as probes found it: shares by member, the last one bad.
lb::NextHopGroup measured_b(uint16_t first, uint16_t second) {
  lb::NextHopGroup measured;
  measured.members = {hop(2, 2), hop(3, 3)};
  measured.members[0].share = first;
  measured.members[1].share = second;
  return measured;
}

TEST_F(RouteTableTest, SharesFromProbesReplaceWeights) {
  RouteTable::Batch batch;
  batch.set_route(prefix("10.2.0.0/16"), "b");
  batch.set_schedulers("b", *lb::scheduler_named("wcmp"), nullptr);
  table->apply(batch);
  const uint64_t generation = table->generation();
  const std::shared_ptr<const lb::WeightedTable> even = find(now(), "10.2.0.1")->table;
  const lb::NextHopGroup measured = measured_b(3072, 1024);
  table->measure({{"b", &measured}, {"gone", &measured}});
  const ForwardingTables* first = &now();
  const lb::NextHopGroup* b = find(now(), "10.2.0.1");
  EXPECT_EQ(b->table->counts(), (std::vector<uint32_t>{3072, 1024}));
  EXPECT_NEAR(b->table->moved_from(*even), 0.25, 1e-9) << "only what must";
  EXPECT_TRUE(b->measured);
  EXPECT_EQ(table->generation(), generation) << "no member has changed";

  const lb::NextHopGroup back = measured_b(2048, 2048);
  table->measure({{"b", &back}});
  EXPECT_NE(&now(), first) << "the other version";
  EXPECT_EQ(find(now(), "10.2.0.1")->table->counts(), (std::vector<uint32_t>{2048, 2048}));

  RouteTable::Batch more;  // a batch leaves what is known where it is
  more.set_route(prefix("10.3.0.0/16"), "b");
  const lb::NextHopGroup uneven = measured_b(4000, 96);
  table->measure({{"b", &uneven}});
  table->apply(more);
  EXPECT_EQ(find(now(), "10.3.0.1")->table->counts(), (std::vector<uint32_t>{4000, 96}));
  EXPECT_EQ(table->generation(), generation + 1);
  EXPECT_EQ(find(now(), "10.2.0.1")->members[0].weight, 1);
}

TEST_F(RouteTableTest, ABadMemberHasADeadPortInBothVersions) {
  constexpr PortId kDead = 60;
  table.reset();  // a FIB's name is for one
  table = std::make_unique<RouteTable>(shared->control, 64, kDead);
  RouteTable::Batch batch;
  batch.set_group(group("b", {hop(2, 2), hop(3, 3)}));
  batch.set_route(prefix("10.2.0.0/16"), "b");
  table->apply(batch);
  lb::NextHopGroup measured = measured_b(4096, 0);
  measured.members[1].bad = true;
  const auto ports = [&] {
    const lb::NextHopGroup* b = find(now(), "10.2.0.1");
    return std::vector<PortId>{b->members[0].port, b->members[1].port};
  };
  table->measure({{"b", &measured}});
  EXPECT_EQ(ports(), (std::vector<PortId>{2, kDead}));
  RouteTable::Batch more;
  more.set_route(prefix("10.3.0.0/16"), "b");
  table->apply(more);
  EXPECT_EQ(ports(), (std::vector<PortId>{2, kDead}));
  EXPECT_EQ(table->groups()[0].members.members[1].port, 3) << "as people are shown it";
  const lb::NextHopGroup good = measured_b(2048, 2048);
  table->measure({{"b", &good}});
  EXPECT_EQ(ports(), (std::vector<PortId>{2, 3}));
}

TEST_F(RouteTableTest, ABadMemberThatIsLeftAloneIsUsedAgain) {
  constexpr PortId kDead = 60;
  table.reset();
  table = std::make_unique<RouteTable>(shared->control, 64, kDead);
  RouteTable::Batch batch;
  batch.set_group(group("b", {hop(2, 2), hop(3, 3), hop(4, 4)}));
  batch.set_route(prefix("10.2.0.0/16"), "b");
  table->apply(batch);
  lb::NextHopGroup measured;
  measured.members = {hop(2, 2), hop(3, 3), hop(4, 4)};
  for (lb::NextHop& member : measured.members) member.bad = member.port != 2;
  table->measure({{"b", &measured}});
  const auto ports = [&] {
    std::vector<PortId> found;
    for (const lb::NextHop& member : find(now(), "10.2.0.1")->members) found.push_back(member.port);
    return found;
  };
  EXPECT_EQ(ports(), (std::vector<PortId>{2, kDead, kDead}));
  const auto remove = [&](const lb::NextHop& member) {
    RouteTable::Batch gone;
    gone.remove_member("b", member);
    table->apply(gone);
  };
  remove(hop(2, 2));
  EXPECT_EQ(ports(), (std::vector<PortId>{3, 4})) << "where all are bad, none is";
  table->measure({{"b", &measured}});  // by who does not know yet that one has gone
  EXPECT_EQ(ports(), (std::vector<PortId>{3, 4}));
  remove(hop(3, 3));
  table->measure({{"b", &measured}});
  EXPECT_EQ(ports(), (std::vector<PortId>{4}));
  EXPECT_FALSE(table->groups()[0].members.measured) << "nobody probes it";
}

}  // namespace
}  // namespace heddle::control
