// The result of a run depends on its inputs alone: not on threads, on the window, on what ran before, or on whether all
// ports of a switch send in the order of time.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "flowctl/dcqcn.h"
#include "lab/topology/builders.h"
#include "lab/workload/builder.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

using support::expect_books_balance;
using support::expect_same;

Topology lossy_leaf_spine() {
  LeafSpineSettings settings{.hosts = 16, .leaves = 4, .spines = 3, .links_per_pair = 1};
  settings.host_link.bit_error = 4e-7;
  settings.host_link.delay = 700 * kNanosecond;
  settings.uplink = {.rate = Rate::gbps(100), .delay = 1100 * kNanosecond, .loss = 1e-3};
  return build_leaf_spine(settings);
}

Topology lossy_fat_tree() {
  FatTreeSettings settings{.k = 4};
  settings.host_link.loss = 1e-3;
  settings.core_link = {.rate = Rate::gbps(100), .delay = 3 * kMicrosecond, .bit_error = 4e-7};
  return build_fat_tree(settings);
}

// Two waves of messages of odd sizes between all hosts; the second waits, partly over a barrier, for the first.
Workload waves(uint32_t hosts) {
  WorkloadBuilder builder(hosts);
  builder.add_job("waves", false);
  std::vector<MessageId> first;
  for (uint32_t h = 0; h < hosts; ++h) {
    first.push_back(builder.add_message(h, (h + 5) % hosts, 60'001 + 7'919 * h, h % 3 * 700 * kNanosecond));
    builder.add_message(h, (h + 3) % hosts, 3 + h);
  }
  const MessageId barrier = builder.add_barrier(2, 500 * kNanosecond);
  for (uint32_t h = 0; h < hosts; h += 2) builder.add_trigger({first[h], TriggerOn::kReceived}, barrier);
  for (uint32_t h = 0; h < hosts; ++h) {
    const MessageId m = builder.add_message(h, (h + 7) % hosts, 90'000, h * 11 * kNanosecond);
    builder.add_trigger({barrier, TriggerOn::kReceived}, m);
    builder.add_trigger({first[h], TriggerOn::kSent}, m, 300 * kNanosecond);
    const MessageId answer = builder.add_message((h + 7) % hosts, h, 20'000);
    builder.add_trigger({m, TriggerOn::kReceived}, answer);
  }
  return builder.finish();
}

// A link goes down and comes back, one loses rate one way, one begins to lose packets; some at equal times.
std::vector<LinkEvent> trouble(const Topology& t) {
  const auto link = [&](size_t i) { return static_cast<LinkId>(t.links.size() - 1 - i); };
  const Time t1 = 9'123'457;
  return {{.at = 2 * kMicrosecond,
           .link = link(1),
           .kind = LinkEvent::Kind::kRate,
           .direction = LinkDirection::kBToA,
           .rate = Rate::gbps(40)},
          {.at = t1, .link = link(2), .kind = LinkEvent::Kind::kRate, .rate = Rate::gbps(25)},
          {.at = t1, .link = link(0), .kind = LinkEvent::Kind::kDown},
          {.at = 15 * kMicrosecond,
           .link = link(1),
           .kind = LinkEvent::Kind::kLoss,
           .direction = LinkDirection::kAToB,
           .loss = 0.02},
          {.at = 40 * kMicrosecond, .link = link(0), .kind = LinkEvent::Kind::kUp}};
}

struct Case {
  std::string scheduler;
  OutOfOrder out_of_order;
  Entropy entropy;
  const char* name;
};

FabricSettings settings_of(const Case& c, const Topology& t) {
  FabricSettings settings;
  settings.switches.scheduler = *lb::scheduler_named(c.scheduler);
  settings.switches.queue_limit = 150'000;
  settings.switches.convergence = 7 * kMicrosecond;
  settings.switches.sample_interval = 5 * kMicrosecond;
  settings.hosts.out_of_order = c.out_of_order;
  settings.hosts.entropy = c.entropy;
  settings.hosts.spray_ports = 16;
  settings.hosts.qps_per_connection = 3;
  settings.hosts.ack_every = 3;
  settings.hosts.reorder_bytes = 40'000;
  settings.hosts.retransmit_timeout = 60 * kMicrosecond;
  settings.run.threads = 1;
  settings.run.seed = 7;
  settings.run.until = kSecond;  // a run that hangs fails instead
  settings.events = trouble(t);
  return settings;
}

class Determinism : public testing::TestWithParam<Case> {};

TEST_P(Determinism, OnAnyThreadsAndAnyWindow) {
  for (const Topology& t : {lossy_leaf_spine(), lossy_fat_tree()}) {
    const Workload workload = waves(t.host_count);
    FabricSettings settings = settings_of(GetParam(), t);
    const RunResult base = run_fabric(t, workload, settings);
    expect_books_balance(base);
    EXPECT_TRUE(support::all_done(base));
    // Otherwise the run shows nothing.
    EXPECT_GT(support::drops_of(base, DropReason::kLinkLoss), 0U);
    EXPECT_GT(support::drops_of(base, DropReason::kBitError), 0U);
    EXPECT_GT(base.retransmitted, 0U);
    EXPECT_GT(base.imbalance.size(), 0U);

    const auto again = [&](const std::string& what, const FabricSettings& changed) {
      SCOPED_TRACE(t.kind + ", " + what);
      expect_same(base, run_fabric(t, workload, changed));
    };
    again("repeated", settings);
    for (const unsigned threads : {2U, 4U}) {
      settings.run.threads = threads;
      again(std::to_string(threads) + " threads", settings);
    }
    for (const uint64_t divisor : {2U, 3U, 7U}) {
      settings.run.window = t.smallest_delay() / divisor;
      settings.run.threads = divisor == 3 ? 2 : 1;
      again("window divided by " + std::to_string(divisor), settings);
    }
    settings.run.window = 0;
    settings.switches.in_time_order = true;
    again("all ports in time order", settings);
    settings.run.seed = 8;
    EXPECT_NE(run_fabric(t, workload, settings).ended_at, base.ended_at) << "the seed has no effect";
  }
}

// With pauses, marks and losses for want of buffer, where all ports of a switch depend on each other.
TEST(DeterminismOfFlowControl, OnAnyThreadsAndAnyWindow) {
  for (const bool troubled : {false, true}) {
    const Topology t = lossy_leaf_spine();
    const Workload workload = waves(t.host_count);
    FabricSettings settings = settings_of({"rps", OutOfOrder::kAnyOrderPlacement, Entropy::kPerQp, ""}, t);
    settings.switches.queue_limit = dataplane::EgressQueue::kUnlimited;
    FlowControlSettings& control = settings.switches.flow_control;
    control.buffer = 1'500'000;
    control.lossless = 1U << 3U;
    control.xoff = dataplane::Threshold::fixed(20'000);
    control.quanta = 300;  // repeated every 0.77 us at 100G
    control.ecn = {.min_bytes = 5'000, .max_bytes = 100'000, .max_probability = 0.5};
    settings.hosts.dcqcn = flowctl::dcqcn_sets().front();
    if (!troubled) settings.events.clear();
    const RunResult base = run_fabric(t, workload, settings);
    expect_books_balance(base);
    EXPECT_GT(base.control_frames, 100U) << "the run shows nothing";
    EXPECT_GT(base.ecn_marked, 0U);
    for (const unsigned threads : {2U, 4U}) {
      settings.run.threads = threads;
      SCOPED_TRACE(threads);
      expect_same(base, run_fabric(t, workload, settings));
    }
    for (const uint64_t divisor : {2U, 3U, 7U}) {
      settings.run.window = t.smallest_delay() / divisor;
      SCOPED_TRACE(divisor);
      expect_same(base, run_fabric(t, workload, settings));
    }
  }
}

// Probes end once nobody has anything left to measure for: when that is, no window says.
TEST(DeterminismOfProbes, OnAnyWindow) {
  const Topology t = build_leaf_spine({.hosts = 8, .leaves = 4, .spines = 2});
  const Workload workload = support::workload_of(8, Shift{.bytes = 3'000'000, .distance = 3});
  FabricSettings settings = support::exact_settings();
  settings.switches.scheduler = *lb::scheduler_named("spray-wcmp");
  settings.hosts.out_of_order = OutOfOrder::kAnyOrderPlacement;
  settings.switches.path_delay.enabled = true;
  settings.switches.path_delay.rate = 0.05;
  const RunResult base = run_fabric(t, workload, settings);
  EXPECT_GT(base.probes.sent, 50U) << "the run shows nothing";
  for (const uint64_t divisor : {2U, 3U, 7U, 100U}) {
    settings.run.window = t.smallest_delay() / divisor;
    SCOPED_TRACE(divisor);
    const RunResult again = run_fabric(t, workload, settings);
    expect_same(base, again);
    EXPECT_EQ(base.probes.sent, again.probes.sent);
  }
}

// Neighbours are told again an interval after they were told, and not after the window in which that was.
TEST(DeterminismOfNotices, OnAnyWindow) {
  const LinkSettings link{.rate = Rate::gbps(25), .delay = kMicrosecond, .overhead = net::kInfinibandOverhead};
  const Topology t = build_leaf_spine({.hosts = 16, .leaves = 4, .spines = 4, .host_link = link, .uplink = link});
  const Workload workload = support::workload_of(16, Shift{.bytes = 2'000'000, .distance = 5});
  FabricSettings settings = support::exact_settings();
  settings.hosts.link_layer = LinkLayer::kInfiniband;
  settings.hosts.retransmit_timeout = 500 * kMicrosecond;
  settings.switches.infiniband.self_healing = SelfHealing::kNotify;
  settings.switches.infiniband.notice_repeats = 3;
  settings.switches.infiniband.notice_interval = 10 * kMicrosecond;
  settings.switches.convergence = 300 * kMicrosecond;
  const NodeId leaf = t.leaf_of(4);
  settings.events = {
      {.at = 155 * kMicrosecond + 123, .link = t.ports[leaf][t.uplinks(leaf)[2]], .kind = LinkEvent::Kind::kDown}};
  const RunResult base = run_fabric(t, workload, settings);
  EXPECT_TRUE(support::all_done(base));
  EXPECT_GT(base.healing.notices_sent, 3U) << "the run shows nothing";
  for (const uint64_t divisor : {2U, 3U, 7U}) {
    settings.run.window = t.smallest_delay() / divisor;
    SCOPED_TRACE(divisor);
    const RunResult again = run_fabric(t, workload, settings);
    expect_same(base, again);
    EXPECT_EQ(base.healing.notices_sent, again.healing.notices_sent);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const lb::SchedulerPreset& preset : lb::kSchedulerPresets) {
    const std::string scheduler(preset.name);
    all.push_back({scheduler, OutOfOrder::kGoBackN, Entropy::kPerQp, "go_back_n"});
    all.push_back({scheduler, OutOfOrder::kSelectiveRepeat, Entropy::kPerPacket, "selective_repeat_sprayed"});
    all.push_back({scheduler, OutOfOrder::kInOrderPlacement, Entropy::kNone, "in_order_one_port"});
    all.push_back({scheduler, OutOfOrder::kAnyOrderPlacement, Entropy::kPerPacket, "any_order_sprayed"});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fabric, Determinism, testing::ValuesIn(cases()), [](const auto& row) {
  std::string name = row.param.scheduler + "_" + row.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace heddle::lab
