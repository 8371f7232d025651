// Routes and groups change while another thread looks up: no lookup may see half a change.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/error.h"
#include "tests/unit/control/route_table_fixture.h"

namespace heddle::control {
namespace {

using dataplane::ForwardingTables;

TEST_F(RouteTableTest, RoutesFollowTheirGroups) {
  EXPECT_EQ(port_for("10.1.2.3"), 1);
  EXPECT_EQ(port_for("11.1.2.3"), kNoPort);
  RouteTable::Batch batch;
  batch.set_route(prefix("10.1.2.0/25"), "b");
  batch.set_route_in_place(prefix("11.0.0.0/8"), group("p4/mac", {hop(4, 4)}, true));
  table->apply(batch);
  EXPECT_EQ(port_for("10.1.2.3"), 2);
  EXPECT_EQ(port_for("10.1.2.130"), 1);
  EXPECT_EQ(port_for("11.1.2.3"), 4);
  EXPECT_EQ(table->routes().size(), 3U);
}

TEST_F(RouteTableTest, AGroupMadeForOneRouteGoesWithIt) {
  RouteTable::Batch add;
  add.set_route_in_place(prefix("11.0.0.0/8"), group("p4/mac", {hop(4, 4)}, true));
  table->apply(add);
  EXPECT_EQ(table->groups().size(), 3U);
  RouteTable::Batch replace;
  replace.set_route(prefix("11.0.0.0/8"), "a");
  table->apply(replace);
  EXPECT_EQ(table->groups().size(), 2U);
  EXPECT_EQ(port_for("11.0.0.1"), 1);
}

TEST_F(RouteTableTest, MembersComeAndGo) {
  RouteTable::Batch batch;
  batch.add_member("a", hop(5, 5));
  table->apply(batch);
  EXPECT_EQ(find(now(), "10.0.0.1")->members.size(), 2U);
  RouteTable::Batch away;
  away.remove_member("a", hop(1, 1));
  table->apply(away);
  ASSERT_EQ(find(now(), "10.0.0.1")->members.size(), 1U);
  EXPECT_EQ(port_for("10.0.0.1"), 5);
}

// A worker that naps, or whose CPU is taken away at the wrong moment, sees every second one only.
TEST_F(RouteTableTest, EveryPublicationIsNewsAlsoWhereTheTablesLieAsBefore) {
  dataplane::SeenTables seen;
  EXPECT_TRUE(seen.are_news(now()));
  EXPECT_FALSE(seen.are_news(now()));
  const ForwardingTables* before = &now();
  const auto add = [&](const char* to, const char* name) {
    RouteTable::Batch batch;
    batch.set_route_in_place(prefix(to), group(name, {hop(4, 4)}, true));
    table->apply(batch);
  };
  add("11.0.0.0/8", "p4/mac");
  add("12.0.0.0/8", "p5/mac");
  EXPECT_EQ(&now(), before);
  EXPECT_TRUE(seen.are_news(now())) << "two groups more";

  lb::NextHopGroup measured;
  measured.members = {hop(2, 2), hop(3, 3)};
  table->measure({{"b", &measured}});
  table->measure({{"b", &measured}});
  EXPECT_EQ(&now(), before);
  EXPECT_TRUE(seen.are_news(now()));
}

TEST_F(RouteTableTest, SchedulersChangeAtRunTime) {
  EXPECT_FALSE(now().flowlets || now().quality);
  RouteTable::Batch batch;
  lb::SchedulerOverrides overrides;
  overrides.of_class[3] = lb::scheduler_named("flowlet-wcmp");
  batch.set_route(prefix("10.2.0.0/16"), "b");
  batch.set_schedulers("b", *lb::scheduler_named("adaptive"),
                       std::make_shared<const lb::SchedulerOverrides>(overrides));
  table->apply(batch);
  const lb::NextHopGroup* b = find(now(), "10.2.0.1");
  EXPECT_EQ(b->scheduler, lb::scheduler_named("adaptive"));
  EXPECT_TRUE(now().flowlets && now().quality);
  ASSERT_NE(b->table, nullptr) << "weights are asked for by a class";

  RouteTable::Batch more;
  const std::shared_ptr<const lb::WeightedTable> before = b->table;
  more.add_member("b", hop(5, 5));
  table->apply(more);
  b = find(now(), "10.2.0.1");
  EXPECT_NEAR(b->table->moved_from(*before), 1.0 / 3, 0.001) << "only what the new member gets";

  RouteTable::Batch back;
  back.set_schedulers("b", *lb::scheduler_named("ecmp"), nullptr);
  table->apply(back);
  b = find(now(), "10.2.0.1");
  EXPECT_EQ(b->table, nullptr);
  EXPECT_FALSE(now().flowlets || now().quality);
}

TEST_F(RouteTableTest, RefusedBatchesChangeNothing) {
  RouteTable::Batch come;  // leaves a free slot, which has no name
  come.set_route_in_place(prefix("11.0.0.0/8"), group("p4/mac", {hop(4, 4)}, true));
  table->apply(come);
  RouteTable::Batch go;
  go.remove_route(prefix("11.0.0.0/8"));
  table->apply(go);
  const auto refused = [&](const std::function<void(RouteTable::Batch&)>& fill, const std::string& text) {
    RouteTable::Batch batch;
    batch.set_route(prefix("12.0.0.0/8"), "a");  // fine by itself, must not stay
    fill(batch);
    try {
      table->apply(batch);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
      EXPECT_EQ(std::string(error.what()), text);
    }
    EXPECT_EQ(port_for("12.0.0.1"), kNoPort);
    EXPECT_EQ(table->routes().size(), 1U);
  };
  refused([](auto& b) { b.set_route(prefix("10.2.0.0/16"), "nobody"); }, "route 10.2.0.0/16: no group 'nobody'");
  refused([](auto& b) { b.set_route(prefix("10.2.0.0/16"), ""); }, "route 10.2.0.0/16: no group ''");
  refused([](auto& b) { b.add_member("", hop(9, 9)); }, "no group ''");
  refused([](auto& b) { b.remove_route(prefix("10.2.0.0/16")); }, "no route 10.2.0.0/16");
  refused([](auto& b) { b.remove_member("a", hop(9, 9)); }, "group 'a' has no member 02:00:00:00:00:09");
  refused([](auto& b) { b.add_member("nobody", hop(9, 9)); }, "no group 'nobody'");
  refused([](auto& b) { b.set_group(group("a", {})); }, "group 'a' exists already");
}

// A parent that leaves before its child makes rte_fib6 of 22.11 lose count of its second-level tables: without a
// rebuild, the table of 4,096 routes here refuses its one route from some hundred rounds on.
TEST_F(RouteTableTest, PrefixesThatGoInAnotherOrderThanTheyCameNeverFillTheTable) {
  for (int round = 0; round < 3'000; ++round) {
    RouteTable::Batch come;
    come.set_route(prefix("2001:db8:2:4::/64"), "a");
    come.set_route(prefix("2001:db8:2:4::8/128"), "b");
    ASSERT_NO_THROW(table->apply(come)) << "round " << round;
    RouteTable::Batch go;
    go.remove_route(prefix("2001:db8:2:4::/64"));
    go.remove_route(prefix("2001:db8:2:4::8/128"));
    ASSERT_NO_THROW(table->apply(go)) << "round " << round;
  }
  EXPECT_EQ(port_for("10.1.2.3"), 1) << "routes that nobody touched are still there";
}

// 4,096 routes have room for 8,192 second-level tables; each of these takes 13 of its own.
TEST_F(RouteTableTest, AFullTableRefusesAndKeepsWhatItHad) {
  RouteTable::Batch too_many;
  for (int i = 0; i < 1'000; ++i) {
    too_many.set_route(prefix(fmt::format("{:x}:{:x}::8/128", 0x2000 + i, i).c_str()), "b");
  }
  EXPECT_THROW(table->apply(too_many), Error);
  EXPECT_EQ(port_for("10.1.2.3"), 1);
  EXPECT_EQ(table->routes().size(), 1U);
  RouteTable::Batch fits;
  fits.set_route(prefix("2001:db8:2:4::8/128"), "b");
  EXPECT_NO_THROW(table->apply(fits));
}

// Each batch brings more members than a sixteenth of all counters.
TEST_F(RouteTableTest, RefusedBatchesGiveBackTheirCounters) {
  RouteTable::Batch too_many;
  for (int i = 0; i < 1'100; ++i) {
    too_many.set_route_in_place(prefix(fmt::format("{:x}:{:x}::8/128", 0x2000 + i, i).c_str()),
                                group(fmt::format("p{}/mac", i), {hop(4, 4)}, true));
  }
  for (int i = 0; i < 16; ++i) EXPECT_THROW(table->apply(too_many), Error);
  RouteTable::Batch fits;
  fits.add_member("a", hop(5, 5));
  EXPECT_NO_THROW(table->apply(fits));
}

TEST_F(RouteTableTest, CountersStayWithTheirMember) {
  std::vector<uint64_t> packets(RouteTable::kMaxPathCounters, 0);
  table->set_path_reader([&](uint32_t counter) {
    telemetry::PathCounters counted;
    counted.packets.set(packets[counter]);
    return counted;
  });
  const auto member = [&](const char* name, size_t i) {
    for (const Group& g : table->groups()) {
      if (g.name == name) return g.members.members.at(i);
    }
    return lb::NextHop{};
  };
  const uint32_t counter = find(now(), "10.0.0.1")->members[0].counter;
  packets[counter] = 100;
  EXPECT_EQ(table->traffic_of(member("a", 0)).packets.get(), 100U);
  RouteTable::Batch batch;
  batch.add_member("a", hop(7, 7));
  table->apply(batch);
  EXPECT_EQ(table->traffic_of(member("a", 0)).packets.get(), 100U) << "another member came";
  EXPECT_EQ(table->traffic_of(member("a", 1)).packets.get(), 0U) << "a new member starts at 0";
}

// The case: routes longer than /24 go and come under lookups. rte_fib of 22.11 recycles a tbl8 at once, so a
// reader that still used the changed FIB would see another prefix's next hop.
TEST_F(RouteTableTest, LookupsSeeTheOldRouteOrTheNewOneAndNothingElse) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> lookups{0};
  std::atomic<uint64_t> wrong{0};
  std::thread reader([&] {
    rte_rcu_qsbr_thread_register(shared->control.readers, 0);
    rte_rcu_qsbr_thread_online(shared->control.readers, 0);
    while (!stop.load()) {
      const ForwardingTables& tables = *shared->control.tables.load(std::memory_order_acquire);
      for (const char* address : {"10.7.7.1", "10.7.7.129", "10.8.8.5"}) {
        const lb::NextHopGroup* found = find(tables, address);
        const PortId port = found == nullptr || found->members.empty() ? kNoPort : found->members[0].port;
        if (port != 1 && port != 2) wrong++;
        lookups++;
      }
      rte_rcu_qsbr_quiescent(shared->control.readers, 0);
    }
    rte_rcu_qsbr_thread_offline(shared->control.readers, 0);
  });
  while (lookups.load() == 0) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) {
    RouteTable::Batch add;
    add.set_route(prefix("10.7.7.0/25"), "b");
    add.set_route(prefix("10.7.7.128/26"), "a");
    table->apply(add);
    RouteTable::Batch swap;
    swap.remove_route(prefix("10.7.7.0/25"));
    swap.set_route(prefix("10.8.8.0/27"), "b");
    table->apply(swap);
    RouteTable::Batch remove;
    remove.remove_route(prefix("10.7.7.128/26"));
    remove.remove_route(prefix("10.8.8.0/27"));
    table->apply(remove);
  }
  stop = true;
  reader.join();
  EXPECT_GT(lookups.load(), 1000U);
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_EQ(table->routes().size(), 1U);
}

}  // namespace
}  // namespace heddle::control
