#include "lab/ideal/lower_bound.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "lab/workload/builder.h"
#include "lab/workload/jobs.h"
#include "net/error.h"
#include "net/random.h"
#include "tests/unit/lab/ideal/ideal_executor.h"

namespace heddle::lab {
namespace {

constexpr Duration kOneWay = 2 * kMicrosecond;

std::vector<HostId> hosts(uint32_t n) {
  std::vector<HostId> list(n);
  std::iota(list.begin(), list.end(), 0U);
  return list;
}

// As long for every packet, whatever is measured.
Ways constant(Duration way) { return {{way}, {way}, {way}}; }

FabricCapacity one_switch(uint32_t n) {
  FabricCapacity fabric;
  fabric.host_rate.assign(n, Rate::gbps(100));
  fabric.across = constant(kOneWay);
  return fabric;
}

// Leaves of `hosts_per_leaf`, each with `uplinks` of 100 Gb/s.
FabricCapacity leaves_of(uint32_t n, uint32_t hosts_per_leaf, double uplinks) {
  FabricCapacity fabric = one_switch(n);
  for (uint32_t host = 0; host < n; ++host) fabric.leaf_of_host.push_back(host / hosts_per_leaf);
  fabric.leaf_up_bps.assign(n / hosts_per_leaf, uplinks * 100e9);
  fabric.leaf_down_bps = fabric.leaf_up_bps;
  return fabric;
}

// The same without headers, so that the ideal executor's times can be compared.
FabricCapacity bare(FabricCapacity fabric) {
  fabric.header_bytes_per_packet = 0;
  fabric.overhead = 0;
  return fabric;
}

// 100 Gb/s: 80 ps a byte.
Duration wire_time(uint64_t bytes) { return wire_bytes(bytes, one_switch(1)) * 80; }

Workload job(uint32_t n, const Pattern& pattern) { return make_workload(n, {{"job", {hosts(n), 0}, pattern}}); }
Workload run(uint32_t n, CollectiveKind kind, uint64_t bytes) { return job(n, Training{{kind, bytes, 1}}); }

void expect_bound(const Workload& workload, const FabricCapacity& fabric, Duration expected, const char* what,
                  const char* limit = "") {
  const LowerBound bound = lower_bound(workload, fabric);
  EXPECT_NEAR(static_cast<double>(bound.makespan), static_cast<double>(expected), 2) << what << ": " << bound.limit;
  EXPECT_NE(bound.limit.find(limit), std::string::npos) << what << ": " << bound.limit;
}

TEST(LowerBound, WireBytesCountEveryPacketsHeaders) {
  const FabricCapacity fabric = one_switch(1);
  const struct {
    const char* what;
    uint64_t bytes;
    uint64_t wire;
  } rows[] = {{"one byte", 1, 1 + 82},
              {"one packet", 4096, 4096 + 82},
              {"a byte more", 4097, 4097 + 2 * 82},
              {"2 MB, 489 packets", 2'000'000, 2'000'000 + 489 * 82}};
  for (const auto& row : rows) EXPECT_EQ(wire_bytes(row.bytes, fabric), row.wire) << row.what;
}

TEST(LowerBound, SimplePatternsByHand) {
  const Duration w = wire_time(2'000'000);  // 163.2 us
  expect_bound(job(2, Flows{{{0, 1, 2'000'000, 0}}}), one_switch(2), w + kOneWay, "a single flow");
  expect_bound(job(2, Flows{{{0, 1, 2'000'000, 0}, {1, 0, 2'000'000, 0}}}), one_switch(2), w + kOneWay, "both ways");
  expect_bound(job(16, Permutation{}), one_switch(16), w + kOneWay, "a permutation");
  expect_bound(job(16, Incast{}), one_switch(16), 15 * w + kOneWay, "15 to 1");
  expect_bound(job(4, Flows{{{0, 1, 2'000'000, kMillisecond}}}), one_switch(2 + 2), kMillisecond + w + kOneWay,
               "a late flow");
}

TEST(LowerBound, CollectivesOnOneSwitch) {
  const uint32_t n = 16;
  const Duration chunk = wire_time(1'000'000);
  expect_bound(run(n, CollectiveKind::kRingAllReduce, uint64_t{n} * 1'000'000), one_switch(n),
               2 * (n - 1) * (chunk + kOneWay), "ring all-reduce", "phases of job job");
  expect_bound(run(n, CollectiveKind::kRingAllGather, uint64_t{n} * 1'000'000), one_switch(n),
               (n - 1) * (chunk + kOneWay), "all-gather");
  expect_bound(run(n, CollectiveKind::kAllToAll, 1'000'000), one_switch(n), (n - 1) * chunk + kOneWay, "all-to-all");
  expect_bound(run(n, CollectiveKind::kStaggeredAllToAll, 1'000'000), one_switch(n), (n - 1) * (chunk + kOneWay),
               "staggered all-to-all");
  Duration halving = 0;
  for (uint64_t part = 8'000'000; part >= 1'000'000; part /= 2) halving += 2 * (wire_time(part) + kOneWay);
  expect_bound(run(n, CollectiveKind::kHalvingDoubling, 16'000'000), one_switch(n), halving, "halving-doubling");
}

// 16 ranks in order over leaves of 4: of four steps of a chunk around the ring, one leaves the leaf.
TEST(LowerBound, ARingWhoseNeighboursShareALeafPaysTheLongWayWhereItIsLong) {
  const uint32_t n = 16;
  FabricCapacity fabric = leaves_of(n, 4, 4);
  fabric.in_leaf = constant(kOneWay / 3);
  const uint32_t steps = 2 * (n - 1);
  const uint32_t longest = (steps + 3) / 4;  // that any chunk's way has, beginning with a long one
  const Duration chunk = wire_time(1'000'000);
  expect_bound(run(n, CollectiveKind::kRingAllReduce, uint64_t{n} * 1'000'000), fabric,
               steps * chunk + longest * kOneWay + (steps - longest) * (kOneWay / 3), "ring in order");
}

TEST(LowerBound, ComputeGapsCostTheirLength) {
  const uint32_t n = 8;
  const Duration compute = 300 * kMicrosecond;
  for (const CollectiveKind kind : {CollectiveKind::kRingAllReduce, CollectiveKind::kAllToAll}) {
    const Time alone = lower_bound(run(n, kind, 800'000), one_switch(n)).makespan;
    expect_bound(job(n, Training{{kind, 800'000, 1}, 6, compute}), one_switch(n), 6 * (compute + alone),
                 collective_name(kind).data());
  }
}

TEST(LowerBound, OversubscribedLeavesCostTheirBytes) {
  const Duration w = wire_time(2'000'000);
  // 16 hosts, leaves of 4, 2 uplinks: everybody sends out of the leaf, 4 messages through 2 links.
  expect_bound(job(16, Shift{2'000'000, 4}), leaves_of(16, 4, 2), 2 * w + kOneWay, "2:1", "leaf 0 upwards of job job");
  expect_bound(job(16, Shift{2'000'000, 4}), leaves_of(16, 4, 4), w + kOneWay, "1:1");
  expect_bound(job(16, Shift{2'000'000, 1}), leaves_of(16, 4, 1), w + kOneWay, "only one leaves");
  // All-to-all: of 15 messages a host, 12 leave; 4 × 12 through 2 links.
  expect_bound(run(16, CollectiveKind::kAllToAll, 2'000'000), leaves_of(16, 4, 2), 24 * w + kOneWay, "all-to-all");
  // A dead uplink on leaf 1 only counts there, and in the direction that is short.
  FabricCapacity uneven = leaves_of(16, 4, 4);
  uneven.leaf_up_bps[1] = 100e9;
  expect_bound(job(16, Shift{2'000'000, 4}), uneven, 4 * w + kOneWay, "one weak leaf");
  uneven.leaf_up_bps[1] = 0;
  uneven.leaf_down_bps[2] = std::numeric_limits<double>::infinity();
  expect_bound(job(16, Shift{2'000'000, 4}), uneven, w + kOneWay, "no known limit");
}

TEST(LowerBound, PodsCountBesideLeaves) {
  const Duration w = wire_time(2'000'000);
  FabricCapacity fabric = leaves_of(16, 4, 4);
  for (uint32_t host = 0; host < 16; ++host) fabric.pod_of_host.push_back(host / 8);
  fabric.pod_up_bps = {200e9, 200e9};
  fabric.pod_down_bps = fabric.pod_up_bps;
  fabric.in_leaf = constant(kMicrosecond);
  fabric.in_pod = constant(kMicrosecond * 3 / 2);
  expect_bound(job(16, Shift{2'000'000, 8}), fabric, 4 * w + kOneWay, "all change the pod: 8 through 2 links");
  expect_bound(job(16, Shift{2'000'000, 4}), fabric, 2 * w + kOneWay, "half of them do");
  expect_bound(job(16, Flows{{{0, 4, 2'000'000, 0}}}), fabric, w + kMicrosecond * 3 / 2, "within a pod");
  expect_bound(job(16, Flows{{{0, 1, 2'000'000, 0}}}), fabric, w + kMicrosecond, "within a leaf");
}

TEST(LowerBound, SlowHostsAndUnlimitedOnes) {
  FabricCapacity fabric = one_switch(4);
  fabric.host_rate[2] = Rate::gbps(25);
  const Duration w = wire_time(2'000'000);
  expect_bound(job(4, Shift{}), fabric, 4 * w + kOneWay, "one host at a quarter of the rate");
  fabric.host_rate.assign(4, Rate::unlimited());
  expect_bound(job(4, Shift{}), fabric, kOneWay, "no rates at all");
}

TEST(LowerBound, SeveralJobsShareTheBusiestHost) {
  const Duration w = wire_time(2'000'000);
  const std::vector<Job> jobs{{"a", {{0, 1}, 0}, Flows{{{0, 1, 2'000'000, 0}}}},
                              {"b", {{0, 2}, 0}, Flows{{{0, 1, 2'000'000, 0}}}},
                              {"c", {{0, 3}, 0}, Flows{{{0, 1, 2'000'000, 0}, {1, 0, 2'000'000, 0}}}}};
  const LowerBound bound = lower_bound(make_workload(4, jobs), one_switch(4));
  EXPECT_EQ(bound.makespan, 3 * w + kOneWay);
  EXPECT_EQ(bound.limit, "host 0 sending, all jobs");
  EXPECT_EQ(bound.job_end, (std::vector<Time>(3, w + kOneWay)));
}

TEST(LowerBound, ArrivalsQueueBehindEachOther) {
  // Two messages at 0, a pause, two more: the last cannot wait for less than its own burst.
  const Duration w = wire_time(2'000'000);
  const Job arrivals{
      "job",
      {hosts(3), 0},
      Flows{{{0, 1, 2'000'000, 0}, {0, 2, 2'000'000, 0}, {0, 1, 2'000'000, 10 * w}, {0, 2, 2'000'000, 10 * w + 5}}}};
  expect_bound(make_workload(3, {arrivals}), one_switch(3), 12 * w + kOneWay, "two bursts", "host 0 sending");
}

TEST(LowerBound, ChainsOfTriggersAddUp) {
  WorkloadBuilder builder(4);
  builder.add_job("chain", false);
  const MessageId a = builder.add_message(0, 1, 2'000'000, 100);
  const MessageId b = builder.add_message(2, 3, 2'000'000, 40);
  const MessageId c = builder.add_message(3, 0, 2'000'000);
  builder.add_trigger({a, TriggerOn::kSent}, b, 20);
  builder.add_trigger({b, TriggerOn::kReceived}, c, 3);
  FabricCapacity fabric = one_switch(4);
  fabric.ack_one_way = 5000;
  fabric.trigger_delay = 700;
  const Duration one = wire_time(2'000'000) + kOneWay;
  expect_bound(builder.finish(), fabric, 100 + one + 5000 + 700 + 20 + 40 + one + 3 + one, "a chain", "longest chain");
}

TEST(LowerBound, WaitingForManyCostsWhatTheyShare) {
  // Three senders to host 3, then one message on: it waits for three messages through one link.
  WorkloadBuilder builder(5);
  builder.add_job("join", false);
  const MessageId next = builder.add_message(3, 4, 2'000'000);
  for (HostId host = 0; host < 3; ++host) {
    builder.add_trigger({builder.add_message(host, 3, 2'000'000), TriggerOn::kReceived}, next, 9);
  }
  const Duration w = wire_time(2'000'000);
  expect_bound(builder.finish(), one_switch(5), 3 * w + kOneWay + 9 + w + kOneWay, "a join");
}

TEST(LowerBound, AnEarlyReleaseWaitsForTheFirstOnes) {
  WorkloadBuilder builder(5);
  builder.add_job("early", false);
  const MessageId next = builder.add_message(3, 4, 100);
  for (HostId host = 0; host < 3; ++host) {
    builder.add_trigger({builder.add_message(host, 3, 100, (host + 1) * kMillisecond), TriggerOn::kReceived}, next);
  }
  builder.release_after(next, 2);
  const Duration one = wire_time(100) + kOneWay;
  expect_bound(builder.finish(), one_switch(5), 3 * kMillisecond + one, "the third arrival is later than two + one");
}

TEST(LowerBound, EmptyWorkloadsTakeNoTime) {
  const LowerBound bound = lower_bound(WorkloadBuilder(3).finish(), one_switch(3));
  EXPECT_EQ(bound.makespan, 0U);
}

TEST(LowerBound, RefusesAFabricThatDoesNotFit) {
  const Workload workload = job(8, Permutation{});
  const struct {
    const char* what;
    void (*damage)(FabricCapacity&);
  } rows[] = {{"too few hosts", [](FabricCapacity& f) { f.host_rate.pop_back(); }},
              {"too few leaves of hosts", [](FabricCapacity& f) { f.leaf_of_host.pop_back(); }},
              {"a leaf that is not there", [](FabricCapacity& f) { f.leaf_of_host[0] = 2; }},
              {"directions that differ", [](FabricCapacity& f) { f.leaf_down_bps.pop_back(); }},
              {"pods without hosts", [](FabricCapacity& f) { f.pod_up_bps = f.pod_down_bps = {1e9}; }},
              {"empty packets", [](FabricCapacity& f) { f.payload_per_packet = 0; }}};
  for (const auto& row : rows) {
    FabricCapacity fabric = leaves_of(8, 4, 4);
    EXPECT_NO_THROW(lower_bound(workload, fabric));
    row.damage(fabric);
    EXPECT_THROW(lower_bound(workload, fabric), Error) << row.what;
  }
}

// Where the ideal executor can reach the bound, it is the makespan.
// Times are 64-bit picoseconds, 213 days; what would not fit into them fifty times over is no run.
TEST(LowerBound, RefusesWorkloadsOfDays) {
  FabricCapacity slow = one_switch(4);
  slow.host_rate.assign(4, Rate(1'000'000));
  const auto incast = [](uint64_t bytes) {
    return job(4, Flows{{{.src = 0, .dst = 3, .bytes = bytes}, {.src = 1, .dst = 3, .bytes = bytes}}});
  };
  EXPECT_NEAR(to_seconds(lower_bound(incast(1'000'000'000), slow).makespan), 16'000, 1'000);
  EXPECT_THROW(lower_bound(incast(uint64_t{1} << 40U), slow), Error);
}

TEST(LowerBound, IsReachedByIdealSchedules) {
  const IdealFabric ideal{80, kOneWay, kOneWay, 0, true};
  for (const uint32_t n : {2U, 5U, 8U, 16U}) {
    const FabricCapacity fabric = bare(one_switch(n));
    for (const CollectiveKind kind :
         {CollectiveKind::kRingAllReduce, CollectiveKind::kRingAllGather, CollectiveKind::kRingReduceScatter,
          CollectiveKind::kHalvingDoubling, CollectiveKind::kAllToAll, CollectiveKind::kStaggeredAllToAll}) {
      if (!collective_runs_in_steps(n, {kind, 1, 1})) continue;
      const Workload workload = job(n, Training{{kind, uint64_t{n} * 50'000, 1}, 3, 77 * kMicrosecond});
      EXPECT_EQ(lower_bound(workload, fabric).makespan, run_ideally(workload, ideal).makespan)
          << collective_name(kind) << ", " << n;
    }
    const Workload pipeline = job(n, Pipeline{100'000, 9, 20 * kMicrosecond, true, 30 * kMicrosecond});
    EXPECT_EQ(lower_bound(pipeline, fabric).makespan, run_ideally(pipeline, ideal).makespan) << "pipeline, " << n;
  }
}

// On graphs of all kinds no schedule beats the bound: the ideal executor's is one.
TEST(LowerBound, NeverExceedsASchedule) {
  double tightest = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const uint32_t n = 2 + random.below(10);
    WorkloadBuilder builder(n);
    const uint32_t jobs = 1 + random.below(3);
    MessageId first = 0;
    for (uint32_t j = 0; j < jobs; ++j) {
      builder.add_job("random", false);
      first = static_cast<MessageId>(builder.message_count());
      const uint32_t messages = 1 + random.below(40);
      for (uint32_t i = 0; i < messages; ++i) {
        const HostId src = random.below(n);
        const Duration start = random.below(4) == 0 ? random.below(20'000'000) : 0;
        const MessageId m = random.below(6) == 0 ? builder.add_barrier(src, start)
                                                 : builder.add_message(src, (src + 1 + random.below(n - 1)) % n,
                                                                       1 + random.below(200'000), start);
        const uint32_t causes = m == first ? 0 : random.below(4);
        for (uint32_t c = 0; c < causes; ++c) {
          const TriggerOn on = random.below(2) == 0 ? TriggerOn::kSent : TriggerOn::kReceived;
          builder.add_trigger({first + random.below(m - first), on}, m, random.below(3) * kMicrosecond);
        }
        if (causes > 1 && random.below(4) == 0) builder.release_after(m, 1 + random.below(causes));
      }
    }
    const Workload workload = builder.finish();
    FabricCapacity fabric = bare(one_switch(n));
    fabric.ack_one_way = kMicrosecond;
    fabric.trigger_delay = 300'000;
    const Time makespan = run_ideally(workload, {80, kOneWay, kMicrosecond, 300'000, true}).makespan;
    const Time bound = lower_bound(workload, fabric).makespan;
    EXPECT_LE(bound, makespan) << "seed " << seed;
    if (makespan > 0) tightest = std::max(tightest, static_cast<double>(bound) / static_cast<double>(makespan));
  }
  EXPECT_GT(tightest, 0.999);  // and some reach it
}

// Collectives in several jobs on shared hosts: the bound, phases included, stays below the schedule.
TEST(LowerBound, NeverExceedsAScheduleOfCollectives) {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::kRingAllReduce, CollectiveKind::kHalvingDoubling,
                                       CollectiveKind::kAllToAll, CollectiveKind::kStaggeredAllToAll};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const uint32_t n = 4 + random.below(12);
    std::vector<Job> jobs;
    for (uint32_t j = 0; j <= random.below(3); ++j) {
      const auto placed = place_jobs(n, {2 + random.below(n - 1)}, {PlacementOrder::kRandom, random.next(), {}});
      const Training training{{kKinds[random.below(4)], 1000 + random.below(500'000), 1 + random.below(3)},
                              1 + random.below(3),
                              random.below(100) * kMicrosecond,
                              random.below(2) * random.below(100) * kMicrosecond,
                              seed};
      jobs.push_back({"job", {placed[0], random.below(50) * kMicrosecond}, training});
    }
    const Workload workload = make_workload(n, jobs);
    const Time makespan = run_ideally(workload, {80, kOneWay, kOneWay, 0, true}).makespan;
    // Chunks that do not divide differ by a byte, and a phase counts its largest: 80 ps each.
    const Time rounding = size_of(workload).phases * Time{80};
    EXPECT_LE(lower_bound(workload, bare(one_switch(n))).makespan, makespan + rounding) << "seed " << seed;
  }
}

}  // namespace
}  // namespace heddle::lab
