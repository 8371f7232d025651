// A FIB that refuses in the middle of a change: what is in force is whole, whichever of the two versions it hits.
#include <climits>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rte_errno.h>
#include <rte_fib.h>

#include "net/error.h"
#include "tests/unit/control/route_table_fixture.h"

namespace {

// How many IPv4 routes FIBs take from now on.
int taken_from_now_on = INT_MAX;

}  // namespace

// In front of DPDK's own, of which no input makes the second version refuse what the first has taken.
extern "C" int rte_fib_add(struct rte_fib* fib, uint32_t ip, uint8_t depth, uint64_t next_hop) {
  static const auto real = reinterpret_cast<decltype(&rte_fib_add)>(dlsym(RTLD_NEXT, "rte_fib_add"));
  if (taken_from_now_on-- <= 0) return -ENOSPC;
  return real(fib, ip, depth, next_hop);
}

namespace heddle::control {
namespace {

class RouteTableFailures : public RouteTableTest {
 protected:
  ~RouteTableFailures() override { taken_from_now_on = INT_MAX; }
  void add(const char* to, const char* group) {
    RouteTable::Batch batch;
    batch.set_route(prefix(to), group);
    table->apply(batch);
  }
};

TEST_F(RouteTableFailures, ARefusedBatchChangesNothingEvenIfTheIdleVersionCannotBeMadeAnew) {
  taken_from_now_on = 0;
  EXPECT_THROW(add("11.0.0.0/8", "b"), Error);
  EXPECT_EQ(port_for("10.0.0.1"), 1);
  EXPECT_EQ(port_for("11.0.0.1"), kNoPort);
  lb::NextHopGroup measured;
  measured.members = {hop(1, 1)};
  table->measure({{"a", &measured}});
  EXPECT_EQ(port_for("10.0.0.1"), 1);

  taken_from_now_on = INT_MAX;
  add("12.0.0.0/8", "b");
  for (const char* next : {"13.0.0.0/8", "14.0.0.0/8"}) {  // each version once
    EXPECT_EQ(port_for("10.0.0.1"), 1);
    EXPECT_EQ(port_for("11.0.0.1"), kNoPort);
    EXPECT_EQ(port_for("12.0.0.1"), 2);
    add(next, "b");
  }
}

TEST_F(RouteTableFailures, WhatWorkersSeeIsNotWrittenAfterTheSecondVersionRefused) {
  taken_from_now_on = 1;
  EXPECT_NO_THROW(add("11.0.0.0/8", "b")) << "it is in force";
  EXPECT_EQ(port_for("11.0.0.1"), 2);
  EXPECT_EQ(table->routes().size(), 2U);

  taken_from_now_on = INT_MAX;
  const dataplane::ForwardingTables* seen = &now();
  add("12.0.0.0/8", "b");
  EXPECT_NE(&now(), seen);
  for (const char* next : {"13.0.0.0/8", "14.0.0.0/8"}) {
    EXPECT_EQ(port_for("10.0.0.1"), 1);
    EXPECT_EQ(port_for("11.0.0.1"), 2);
    EXPECT_EQ(port_for("12.0.0.1"), 2);
    add(next, "b");
  }
  EXPECT_EQ(table->routes().size(), 5U);
}

}  // namespace
}  // namespace heddle::control
