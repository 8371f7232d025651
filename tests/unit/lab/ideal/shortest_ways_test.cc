// Lower bounds of whole scenarios: what fabrics whose links differ offer at best, by hand and against packets played
// through hop by hop.
#include "lab/ideal/shortest_ways.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lab/host/roce.h"
#include "lab/ideal/alone_time.h"
#include "lab/ideal/fabric_capacity.h"
#include "lab/scenario/experiment.h"
#include "lab/scenario/scenario.h"

namespace heddle::lab {
namespace {

Experiment make(const std::string& yaml) { return prepare(load_scenario_text(yaml, "x.yaml")); }

struct BoundRow {
  const char* what;
  const char* yaml;
  double microseconds;
};

// A full packet has 4096 + 58 + 24 = 4178 bytes: 334.24 ns at 100G, 83.56 ns at 400G, 3342.4 ns at 10G.
TEST(FabricBound, ByHand) {
  const BoundRow rows[] = {
      {"slow uplinks: the packet is on each of them once", R"(
topology: {kind: leaf-spine, hosts: 8, leaves: 2, spines: 1, host_link: {rate: 400G, delay: 100ns},
           uplink: {rate: 10G, delay: 100ns}}
workload: {kind: flows, flows: [{src: 0, dst: 4, size: 4096}]}
)",
       2 * 0.08356 + 2 * 3.3424 + 4 * 0.1},
      {"two slow tiers: on the core links and on those below", R"(
topology: {kind: fat-tree, k: 4, host_link: {rate: 400G}, aggregation_link: {rate: 10G}, core_link: {rate: 10G},
           link: {delay: 100ns}}
workload: {kind: flows, flows: [{src: 0, dst: 15, size: 4096}]}
)",
       2 * 0.08356 + 4 * 3.3424 + 6 * 0.1},
      {"uplinks that are faster than they were built", R"(
topology: {kind: leaf-spine, hosts: 8, leaves: 2, spines: 1, link: {delay: 100ns}, uplink: {rate: 10G}}
events: [{at: 0, link: leaf0-spine0, rate: 400G}, {at: 1us, link: leaf1-spine0, rate: 400G}]
workload: {kind: flows, flows: [{src: 0, dst: 4, size: 4096}]}
)",
       2 * 0.33424 + 2 * 0.08356 + 4 * 0.1},
      {"the links of two hosts that are neither the first nor the second of their leaf", R"(
topology: {kind: leaf-spine, hosts: 8, leaves: 2, spines: 1, link: {delay: 100ns, rate: 10G}}
events: [{at: 0, link: "host3:0", rate: 400G}, {at: 0, link: "host7:0", rate: 400G}]
workload: {kind: flows, flows: [{src: 3, dst: 7, size: 4096}]}
)",
       2 * 0.08356 + 2 * 3.3424 + 4 * 0.1},
      {"the shorter way of two, though the other one is wider", R"(
topology: {kind: graph, link: {rate: 100G, delay: 100ns}, switches: [{name: s0, hosts: 1}, {name: s1, hosts: 1}],
           links: [{a: s0, b: s1, rate: 400G, delay: 5us}, {a: s0, b: s1, rate: 100G}]}
workload: {kind: flows, flows: [{src: 0, dst: 1, size: 4096}]}
)",
       3 * 0.33424 + 3 * 0.1},
      // Both packets on the slower link, and the last one, 104 + 82 bytes, on the faster.
      {"a short last packet behind a slow link", R"(
topology: {kind: graph, link: {delay: 10ns}, switches: [{name: s0}], hosts: [a, b],
           links: [{a: a, b: s0, rate: 100G}, {a: b, b: s0, rate: 400G}]}
workload: {kind: flows, flows: [{src: 0, dst: 1, size: 4200}]}
)",
       (4200 + 2 * 82) * 0.00008 + (104 + 82) * 0.00002 + 2 * 0.01},
      // Counted as one packet on the host's link, as if it were not cut; then 1024 + 82 bytes on the switch's.
      {"a packet's bytes over four queue pairs", R"(
topology: {kind: single-switch, hosts: 2}
hosts: {qps_per_connection: 4}
workload: {kind: flows, flows: [{src: 0, dst: 1, size: 4096}]}
)",
       4178 * 0.00008 + (1024 + 82) * 0.00008 + 2},
      // Four messages of 489 packets, frames alone, through one uplink. Its first and last may have 1152 bytes.
      {"uplinks without gaps between frames", R"(
topology: {kind: leaf-spine, hosts: 8, leaves: 2, spines: 1, uplink: {overhead: 0}}
workload: {kind: shift, distance: 4, size: 2MB}
)",
       4 * (2e6 + 489 * 58) * 0.00008 + (2 * (1152 + 58 + 24) + 1152 + 58) * 0.00008 + 4},
  };
  for (const BoundRow& row : rows) {
    const LowerBound bound = make(row.yaml).bound;
    EXPECT_NEAR(static_cast<double>(bound.makespan) / 1e6, row.microseconds, 2e-6) << row.what << ": " << bound.limit;
  }
}

// A message alone in a fabric arrives no sooner than its bound says: packets in a row on the one path there is.
TEST(FabricBound, IsNoLaterThanAMessageAlone) {
  const std::string fabrics[] = {
      "{kind: leaf-spine, hosts: 16, leaves: 4, spines: 1, host_link: {rate: 400G}, uplink: {rate: 10G}}",
      "{kind: leaf-spine, hosts: 16, leaves: 4, spines: 1, host_link: {rate: 10G}, uplink: {rate: 400G}}",
      "{kind: leaf-spine, hosts: 16, leaves: 4, spines: 1, uplink: {overhead: 0}}",
      "{kind: fat-tree, k: 4, core_link: {rate: 10G, delay: 5us}, aggregation_link: {rate: 25G}}",
      "{kind: fat-tree, k: 4, core_link: {rate: 400G}, aggregation_link: {rate: 25G}, host_link: {rate: 25G}}"};
  for (const std::string& fabric : fabrics) {
    for (const HostId dst : {1, 3, 15}) {
      for (const uint64_t bytes : {1, 100, 4096, 4097, 5000, 8192, 12'289, 20'000, 1'000'000}) {
        const Experiment experiment = make(fmt::format(
            "topology: {}\nworkload: {{kind: flows, flows: [{{src: 0, dst: {}, size: {}}}]}}\n", fabric, dst, bytes));
        const Message& m = experiment.workload.messages.at(0);
        const LinkStates states(experiment.topology);
        const Duration back = BasePaths(experiment.topology).one_way(m.dst, m.src, kAckFrame);
        const Duration alone = AloneTimes(experiment.topology, states, experiment.settings.hosts).completion(m);
        EXPECT_LE(experiment.bound.makespan, alone - back) << fabric << ", to " << dst << ", " << bytes << " bytes";
      }
    }
  }
}

// In a fabric too large to measure from every leaf, links of which one was made faster count as all equally fast.
TEST(FabricBound, OfALargeFabricHoldsForItsFastestLinks) {
  const Experiment experiment = make(R"(
topology: {kind: leaf-spine, hosts: 2048, leaves: 1024, spines: 2, link: {rate: 10G, delay: 100ns}}
events:
  - {at: 0, link: "host1000:0", rate: 400G}
  - {at: 0, link: "host1500:0", rate: 400G}
  - {at: 0, link: leaf500-spine1, rate: 100G}
  - {at: 0, link: leaf750-spine1, rate: 100G}
workload: {kind: flows, flows: [{src: 1000, dst: 1500, size: 4096}]}
)");
  EXPECT_NEAR(static_cast<double>(experiment.bound.makespan) / 1e6, 2 * 0.08356 + 2 * 0.33424 + 4 * 0.1, 2e-6);
}

}  // namespace
}  // namespace heddle::lab
