// A route table with two groups and a route, and lookups in the tables that it has published.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "config/address.h"
#include "control/route_table.h"
#include "tests/support/eal.h"

namespace heddle::control {

inline net::IpPrefix prefix(const char* text) { return *config::parse_prefix(text); }

inline lb::NextHop hop(PortId port, uint8_t mac) {
  lb::NextHop made;
  made.port = port;
  made.rewrite.destination = {2, 0, 0, 0, 0, mac};
  return made;
}

inline Group group(const std::string& name, std::vector<lb::NextHop> members, bool in_place = false) {
  Group made;
  made.name = name;
  made.in_place = in_place;
  made.members.members = std::move(members);
  return made;
}

// Memory for RCU, and the one thing that workers share.
struct Shared {
  explicit Shared(uint32_t readers) : memory(rte_rcu_qsbr_get_memsize(readers) + 64) {
    void* at = memory.data();
    size_t room = memory.size();
    control.readers = static_cast<rte_rcu_qsbr*>(std::align(64, rte_rcu_qsbr_get_memsize(readers), at, room));
    rte_rcu_qsbr_init(control.readers, readers);
  }
  std::vector<std::byte> memory;
  dataplane::SwitchControl control;
};

inline const lb::NextHopGroup* find(const dataplane::ForwardingTables& tables, const char* address) {
  const uint32_t four =
      __builtin_bswap32(net::load<uint32_t>(config::parse_prefix(std::string(address) + "/32")->address.data()));
  dataplane::RouteId route = 0;
  tables.lookup->lookup4(&four, &route, 1);
  return tables.group_for(route);
}

class RouteTableTest : public ::testing::Test {
 protected:
  RouteTableTest() {
    support::need_eal();
    shared = std::make_unique<Shared>(2);
    table = std::make_unique<RouteTable>(shared->control, 4096);
    RouteTable::Batch batch;
    batch.set_group(group("a", {hop(1, 1)}));
    batch.set_group(group("b", {hop(2, 2), hop(3, 3)}));
    batch.set_route(prefix("10.0.0.0/8"), "a");
    table->apply(batch);
  }
  const dataplane::ForwardingTables& now() const { return *shared->control.tables.load(); }
  PortId port_for(const char* address) const {
    const lb::NextHopGroup* found = find(now(), address);
    return found == nullptr || found->members.empty() ? kNoPort : found->members[0].port;
  }

  std::unique_ptr<Shared> shared;
  std::unique_ptr<RouteTable> table;
};

}  // namespace heddle::control
