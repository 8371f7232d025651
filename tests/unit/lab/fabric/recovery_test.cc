// What a failure has cost: by hand, and in a fabric.
#include "lab/fabric/recovery.h"

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

constexpr Duration kInterval = 100 * kMicrosecond;

Topology fabric() { return build_leaf_spine({.hosts = 32, .leaves = 4, .spines = 8, .links_per_pair = 1}); }

LinkId link_between(const Topology& t, const std::string& a, const std::string& b) {
  for (LinkId id = 0; id < t.links.size(); ++id) {
    const std::string& x = t.nodes[t.links[id].a].name;
    const std::string& y = t.nodes[t.links[id].b].name;
    if ((x == a && y == b) || (x == b && y == a)) return id;
  }
  ADD_FAILURE() << "no link " << a << "-" << b;
  return 0;
}

// 1 GB/s: 100,000 bytes in each interval.
RunResult steady() {
  RunResult result;
  result.ended_at = 40 * kInterval;
  result.goodput.assign(40, 100'000);
  result.goodput[0] = 0;
  result.messages.push_back({.released = 0, .received = 35 * kInterval, .sent = 36 * kInterval});
  return result;
}

struct Row {
  const char* what;
  std::vector<std::pair<size_t, uint64_t>> goodput;  // of intervals, beside 100,000
  std::optional<double> least_gbps;
  std::optional<double> recovered_us;
};

TEST(Recovery, ByHand) {
  const Topology t = fabric();
  const std::vector<LinkEvent> events{{.at = 10 * kInterval + 1, .link = 40, .kind = LinkEvent::Kind::kDown}};
  const Row rows[] = {
      {"nothing happened", {}, 8, 0},
      {"a little less is not less", {{12, 90'000}}, 7.2, 0},
      {"less for three intervals", {{11, 50'000}, {12, 50'000}, {13, 89'999}}, 4, 500},
      {"twice", {{12, 0}, {20, 80'000}}, 0, 1200},
      {"at the end, when there is less to send", {{36, 0}, {37, 0}}, 8, 0},
      {"until the end", {{30, 1'000}, {31, 1'000}, {32, 1'000}, {33, 1'000}, {34, 1'000}}, 0.08, std::nullopt},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    RunResult result = steady();
    for (const auto& [interval, bytes] : row.goodput) result.goodput[interval] = bytes;
    const auto recovery = recovery_of(t, events, result, kInterval);
    ASSERT_TRUE(recovery.has_value());
    EXPECT_EQ(recovery->at, 10 * kInterval + 1);
    ASSERT_TRUE(recovery->before_gbps.has_value());
    EXPECT_DOUBLE_EQ(*recovery->before_gbps, 8);
    ASSERT_EQ(recovery->least_gbps.has_value(), row.least_gbps.has_value());
    EXPECT_NEAR(recovery->least_gbps.value_or(0), row.least_gbps.value_or(0), 1e-9);
    ASSERT_EQ(recovery->recovered.has_value(), row.recovered_us.has_value());
    EXPECT_NEAR(to_microseconds(recovery->recovered.value_or(0)), row.recovered_us.value_or(0), 0.001);
  }
}

TEST(Recovery, IsOfEventsThatTakeSomethingAwayLater) {
  const Topology t = fabric();
  struct {
    const char* what;
    LinkEvent event;
    bool counts;
  } const rows[] = {
      {"down from the start", {.at = 0, .link = 1, .kind = LinkEvent::Kind::kDown}, false},
      {"down later", {.at = 5, .link = 1, .kind = LinkEvent::Kind::kDown}, true},
      {"up", {.at = 5, .link = 1, .kind = LinkEvent::Kind::kUp}, false},
      {"slower", {.at = 5, .link = 1, .kind = LinkEvent::Kind::kRate, .rate = Rate::gbps(10)}, true},
      {"faster", {.at = 5, .link = 1, .kind = LinkEvent::Kind::kRate, .rate = Rate::gbps(400)}, false},
      {"lossy", {.at = 5, .link = 1, .kind = LinkEvent::Kind::kLoss, .loss = 0.1}, true},
      {"after the end", {.at = kSecond, .link = 1, .kind = LinkEvent::Kind::kDown}, false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(recovery_of(t, {row.event}, steady(), kInterval).has_value(), row.counts) << row.what;
  }
}

// It is the state before the event that counts, in the direction that the event is about.
TEST(Recovery, IsOfWhatWasThereBefore) {
  const Topology t = fabric();
  using Kind = LinkEvent::Kind;
  const auto rate = [](Time at, int gbps, LinkDirection direction = LinkDirection::kBoth) {
    return LinkEvent{.at = at, .link = 1, .kind = Kind::kRate, .direction = direction, .rate = Rate::gbps(gbps)};
  };
  const auto loss = [](Time at, double of, LinkDirection direction = LinkDirection::kBoth) {
    return LinkEvent{.at = at, .link = 1, .kind = Kind::kLoss, .direction = direction, .loss = of};
  };
  const LinkEvent down{.at = 0, .link = 1, .kind = Kind::kDown};
  const struct {
    const char* what;
    std::vector<LinkEvent> events;
    std::optional<Time> at;
  } rows[] = {
      {"a rise to less than the link was built for", {rate(0, 10), rate(5, 50)}, std::nullopt},
      {"a fall to what the link was built for", {rate(0, 400), rate(5, 100)}, 5},
      {"a fall after a rise", {rate(0, 10), rate(5, 50), rate(6, 20)}, 6},
      {"a fall of the other direction",
       {rate(0, 400, LinkDirection::kAToB), rate(5, 100, LinkDirection::kBToA)},
       std::nullopt},
      {"a fall of both, of which one falls", {rate(0, 400, LinkDirection::kAToB), rate(5, 100)}, 5},
      {"less loss than before", {loss(0, 0.5), loss(5, 0.1)}, std::nullopt},
      {"more loss than before", {loss(0, 0.5), loss(5, 0.1), loss(6, 0.2)}, 6},
      {"loss the other way", {loss(0, 0.5, LinkDirection::kAToB), loss(5, 0.1, LinkDirection::kBToA)}, 5},
      {"of a link that is down", {down, rate(5, 10), loss(6, 0.1)}, std::nullopt},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    const auto recovery = recovery_of(t, row.events, steady(), kInterval);
    EXPECT_EQ(recovery ? std::optional(recovery->at) : std::nullopt, row.at);
  }
}

// A spine loses its link to leaf0: other leaves send into the hole until routing has converged, and what was lost is
// sent again after the time-out.
TEST(Recovery, OfALinkFailureInAFabric) {
  const Topology t = fabric();
  FabricSettings settings = support::exact_settings();
  settings.switches.scheduler = *lb::scheduler_named("rps");
  settings.switches.convergence = 300 * kMicrosecond;
  settings.hosts.out_of_order = OutOfOrder::kSelectiveRepeat;
  settings.hosts.retransmit_timeout = kMillisecond;
  settings.events.push_back(
      {.at = 500 * kMicrosecond, .link = link_between(t, "leaf0", "spine0"), .kind = LinkEvent::Kind::kDown});
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < 32; ++i) flows.push_back({.src = i, .dst = (i + 8) % 32, .bytes = 16'000'000});
  const RunResult result = run_fabric(t, support::workload_of(32, flows), settings);
  ASSERT_TRUE(support::all_done(result));
  const auto recovery = recovery_of(t, settings.events, result, kInterval);
  ASSERT_TRUE(recovery.has_value());
  const uint64_t unrouted = support::drops_of(result, DropReason::kNoLiveNextHop);
  EXPECT_GT(unrouted, 0U);
  EXPECT_EQ(recovery->lost, unrouted + support::drops_of(result, DropReason::kLinkDown) +
                                support::drops_of(result, DropReason::kPortDown));
  EXPECT_GT(recovery->losing, 290 * kMicrosecond);
  EXPECT_LE(recovery->losing, 310 * kMicrosecond) << "until all switches know, and what was under way then";
  ASSERT_TRUE(recovery->repaired.has_value());
  EXPECT_GT(*recovery->repaired, recovery->losing);
  EXPECT_GE(result.retransmitted_bytes, recovery->lost * 1000);
  // Of 32 hosts at 100G; spraying to hosts that ask for what is late costs about half of it.
  EXPECT_GT(recovery->before_gbps.value_or(0), 1000);
  EXPECT_LT(recovery->before_gbps.value_or(0), 3200);
}

}  // namespace
}  // namespace heddle::lab
