// Longest prefix match of a real switch: rte_fib and rte_fib6 (DIR-24-8 and its trie for IPv6).
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/route.h"
#include "net/prefix.h"

struct rte_fib;
struct rte_fib6;

namespace heddle::dataplane {

// One version of the route tables, for both families. Not safe to change while an lcore looks up in it: rte_fib of DPDK
// 22.11 reuses its second-level tables at once. Keep two, change the idle one, publish, wait, change the other
// (control/route_table.h).
class Fib : public RouteLookup {
 public:
  // Room for `max_routes` prefixes per family. Throws Error (failed) if DPDK's memory does not suffice. `name` is
  // unique in the process.
  Fib(const std::string& name, uint32_t max_routes);
  ~Fib() override;
  Fib(const Fib&) = delete;
  Fib& operator=(const Fib&) = delete;

  // Adds or replaces a prefix without host bits. Throws Error (failed) when the table is full.
  void add(const net::IpPrefix& prefix, RouteId route);
  // Removes; false if it was not there.
  bool remove(const net::IpPrefix& prefix);

  void lookup4(const uint32_t* destinations, RouteId* routes, unsigned count) const override;
  void lookup6(const Ipv6Address* destinations, RouteId* routes, unsigned count) const override;

  // DPDK memory that one Fib of this size takes.
  static uint64_t memory_bytes(uint32_t max_routes);

 private:
  rte_fib* four_;
  rte_fib6* six_;
};

}  // namespace heddle::dataplane
