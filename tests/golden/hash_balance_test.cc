// Flows hashed on links are balls thrown into bins: the busiest link's share against theory, on the hash the switches
// use and on whole leaf-spine fabrics.
//
// Expected values: Monte Carlo of this project, 4,000 draws of k n balls on n bins; E[max] / mean, and the throughput
// share of a stage whose links carry a flow's worth k each (flows capped by their link's share).
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "lab/host/roce.h"
#include "lab/topology/builders.h"
#include "lb/flow_hash.h"
#include "lb/next_hop_group.h"
#include "tests/golden/golden_run.h"
#include "tests/support/flows.h"

namespace heddle::golden {
namespace {

using namespace heddle::lab;

struct Row {
  uint32_t flows_per_link;
  uint32_t links;
  double maximum;  // E[max] / mean
  double share;
};

constexpr Row kTable[] = {
    {1, 4, 2.13, 0.684},  {1, 8, 2.60, 0.653},  {1, 16, 3.07, 0.645},  {1, 32, 3.53, 0.638},  {1, 64, 3.95, 0.635},
    {2, 4, 1.78, 0.765},  {2, 8, 2.10, 0.747},  {2, 16, 2.42, 0.739},  {2, 32, 2.71, 0.733},  {2, 64, 2.99, 0.731},
    {4, 4, 1.53, 0.833},  {4, 8, 1.77, 0.816},  {4, 16, 1.98, 0.811},  {4, 32, 2.17, 0.807},  {4, 64, 2.34, 0.806},
    {8, 4, 1.38, 0.879},  {8, 8, 1.53, 0.869},  {8, 16, 1.67, 0.865},  {8, 32, 1.80, 0.863},  {8, 64, 1.92, 0.861},
    {64, 4, 1.13, 0.957}, {64, 8, 1.18, 0.953}, {64, 16, 1.23, 0.951}, {64, 32, 1.27, 0.951}, {64, 64, 1.31, 0.950},
};

// Mean and standard error of draws.
struct Sample {
  double sum = 0;
  double squares = 0;
  double draws = 0;

  void add(double x) {
    sum += x;
    squares += x * x;
    draws += 1;
  }
  double mean() const { return sum / draws; }
  double error() const { return std::sqrt(std::max(0.0, squares / draws - mean() * mean()) / draws); }
};

struct Balance {
  Sample maximum;
  Sample share;

  void add(const std::vector<uint32_t>& counts, double flows_per_link) {
    double most = 0;
    double carried = 0;
    for (const uint32_t count : counts) {
      most = std::max(most, static_cast<double>(count));
      carried += std::min(static_cast<double>(count), flows_per_link);
    }
    maximum.add(most / flows_per_link);
    share.add(carried / (static_cast<double>(counts.size()) * flows_per_link));
  }
  // Four standard errors of our draws, and the rounding and errors of the table (4,000 draws, printed to 0.01 and
  // 0.001).
  void expect(const Row& row) const {
    EXPECT_NEAR(maximum.mean(), row.maximum, 4 * maximum.error() + 0.005 + 0.01 * row.maximum);
    EXPECT_NEAR(share.mean(), row.share, 4 * share.error() + 0.004);
  }
};

// Another seed of the hash for each draw; the flows are those of neighbouring hosts with the first queue pair numbers,
// as little different as flows of a cluster are.
TEST(GoldenHashBalance, OfTheFlowHash) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(testing::Message() << row.flows_per_link << " flows per link, " << row.links << " links");
    const uint32_t count = row.flows_per_link * row.links;
    std::vector<support::Flow> flows;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t qp = 0x11 + 2 * (i / 64);
      flows.push_back(support::roce_flow(L3::kIpv4, {static_cast<uint16_t>(i % 64), static_cast<uint16_t>(64 + i % 64),
                                                     support::linux_source_port(qp, qp), qp}));
    }
    Balance balance;
    const uint64_t draws = std::max<uint64_t>(100, 60'000 / count);
    for (uint64_t seed = 0; seed < std::min<uint64_t>(draws, 4000); ++seed) {
      const lb::FlowHasher hasher({.seed = mix64(seed)});
      std::vector<uint32_t> counts(row.links);
      for (const support::Flow& flow : flows) {
        counts[lb::scale_hash(hasher.hash(flow.frame.data(), flow.meta), row.links)]++;
      }
      balance.add(counts, row.flows_per_link);
    }
    balance.expect(row);
  }
}

// One packet from every host to a host of the next leaf; each leaf is a draw. Data packets and ACKs on an uplink are
// told apart by their sizes.
void draw(const Row& row, uint64_t seed, Balance& balance) {
  constexpr uint32_t kLeaves = 8;
  const uint32_t hosts = row.flows_per_link * row.links;
  const Topology t = build_leaf_spine(
      {.hosts = kLeaves * hosts, .leaves = kLeaves, .spines = row.links, .uplink = {.rate = Rate::gbps(100)}});
  const RunResult result =
      run_fabric(t, workload_of(t.host_count, Shift{.bytes = 4096, .distance = hosts}), open_loop("ecmp", seed));
  ASSERT_TRUE(all_done(result));
  constexpr uint64_t kData = 4096 + kDataFrameOverhead + kEthernetOverhead;
  constexpr uint64_t kAck = kAckFrame + kEthernetOverhead;
  for (uint32_t leaf = 0; leaf < kLeaves; ++leaf) {
    std::vector<uint32_t> counts;
    for (const PortIndex port : t.uplinks(t.host_count + leaf)) {
      const LinkId link = t.ports[t.host_count + leaf][port];
      const LinkLoad& load = result.links[link];
      const bool a = t.links[link].a == t.host_count + leaf;
      const uint64_t packets = a ? load.a_to_b_packets : load.b_to_a_packets;
      const uint64_t bytes = a ? load.a_to_b_bytes : load.b_to_a_bytes;
      counts.push_back(static_cast<uint32_t>((bytes - packets * kAck) / (kData - kAck)));
    }
    balance.add(counts, row.flows_per_link);
  }
}

TEST(GoldenHashBalance, OfLeafSpineFabrics) {
  for (const Row& row : {kTable[1], kTable[3], kTable[6], kTable[11], kTable[16]}) {
    SCOPED_TRACE(testing::Message() << row.flows_per_link << " flows per link, " << row.links << " links");
    Balance balance;
    for (uint64_t seed = 1; seed <= 25; ++seed) draw(row, seed, balance);
    EXPECT_EQ(balance.maximum.draws, 200);
    balance.expect(row);
  }
}

}  // namespace
}  // namespace heddle::golden
