#include "lab/workload/collectives.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "lab/workload/jobs.h"
#include "lab/workload/training.h"
#include "net/error.h"
#include "tests/unit/lab/ideal/ideal_executor.h"

namespace heddle::lab {
namespace {

constexpr Duration kOneWay = 2 * kMicrosecond;
constexpr Duration kPerByte = 80;
constexpr IdealFabric kFabric{kPerByte, kOneWay, kOneWay, kMicrosecond, true};

std::vector<HostId> hosts(uint32_t n) {
  std::vector<HostId> list(n);
  std::iota(list.begin(), list.end(), 0U);
  return list;
}

Workload train(uint32_t n, const Training& training) { return make_workload(n, {{"job", {hosts(n), 0}, training}}); }
Workload collective(uint32_t n, CollectiveKind kind, uint64_t bytes) { return train(n, {{kind, bytes, 1}}); }

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::kRingAllReduce,     CollectiveKind::kRingAllGather,
                                        CollectiveKind::kRingReduceScatter, CollectiveKind::kHalvingDoubling,
                                        CollectiveKind::kAllToAll,          CollectiveKind::kStaggeredAllToAll};

// N ranks, chunks or messages of c bytes: steps, and the time that they take on a switch whose hosts send and receive
// one message at a time. Sources: Thakur, Rabenseifner, Gropp 2005 (ring: 2 (N - 1) steps of S / N; halving and
// doubling: 2 log2 N steps, 2 S (N - 1) / N bytes); the all-to-alls by counting.
TEST(Collectives, TakeTheKnownStepsAndTimes) {
  for (const uint32_t n : {2U, 3U, 4U, 8U, 16U, 33U, 64U}) {
    const Duration chunk = 100'000 * kPerByte;
    const uint64_t size = uint64_t{100'000} * n;
    const struct {
      CollectiveKind kind;
      uint64_t bytes;
      uint32_t steps;
      Duration time;
    } rows[] = {
        {CollectiveKind::kRingAllReduce, size, 2 * (n - 1), 2 * (n - 1) * (chunk + kOneWay)},
        {CollectiveKind::kRingAllGather, size, n - 1, (n - 1) * (chunk + kOneWay)},
        {CollectiveKind::kRingReduceScatter, size, n - 1, (n - 1) * (chunk + kOneWay)},
        {CollectiveKind::kStaggeredAllToAll, 100'000, n - 1, (n - 1) * (chunk + kOneWay)},
        {CollectiveKind::kAllToAll, 100'000, 1, (n - 1) * chunk + kOneWay},
    };
    for (const auto& row : rows) {
      const Workload workload = collective(n, row.kind, row.bytes);
      EXPECT_EQ(size_of(workload).phases, row.steps) << collective_name(row.kind) << ", " << n;
      EXPECT_EQ(collective_phases(n, {row.kind, row.bytes, 1}), row.steps) << collective_name(row.kind) << ", " << n;
      const IdealRun run = run_ideally(workload, kFabric);
      EXPECT_TRUE(all_ran(run));
      EXPECT_EQ(run.makespan, row.time) << collective_name(row.kind) << ", " << n;
    }
  }
}

TEST(Collectives, HalvingDoublingTakesTwoLogStepsAndHalvesWhatItSends) {
  for (const uint32_t n : {2U, 4U, 8U, 64U, 128U}) {
    const uint64_t size = uint64_t{100'000} * n;
    const auto steps = static_cast<uint32_t>(2 * std::countr_zero(n));
    const Workload workload = collective(n, CollectiveKind::kHalvingDoubling, size);
    EXPECT_EQ(size_of(workload).phases, steps);
    const IdealRun run = run_ideally(workload, kFabric);
    EXPECT_TRUE(all_ran(run));
    EXPECT_EQ(run.makespan, 2 * (size - size / n) * kPerByte + steps * kOneWay) << n;
    EXPECT_EQ(run.most_receiving, 1U);
  }
}

TEST(Collectives, HalvingDoublingFoldsOtherRankCounts) {
  for (uint32_t n = 3; n < 40; ++n) {
    if (std::has_single_bit(n)) continue;
    const uint32_t members = std::bit_floor(n);
    const uint64_t size = uint64_t{1000} * members;
    const Workload workload = collective(n, CollectiveKind::kHalvingDoubling, size);
    const IdealRun run = run_ideally(workload, kFabric);
    EXPECT_TRUE(all_ran(run));
    const auto steps = static_cast<uint32_t>(2 * std::countr_zero(members)) + 2;
    EXPECT_EQ(size_of(workload).phases, steps) << n;
    EXPECT_EQ(collective_phases(n, {CollectiveKind::kHalvingDoubling, size, 1}), steps) << n;
    EXPECT_EQ(run.makespan, (2 * size + 2 * (size - size / members)) * kPerByte + steps * kOneWay) << n;
  }
}

TEST(Collectives, EveryHostSendsAndReceivesItsShare) {
  for (const uint32_t n : {2U, 4U, 7U, 16U, 32U}) {
    for (const uint64_t bytes : {uint64_t{n}, uint64_t{n} + 1, uint64_t{123'457}}) {
      const struct {
        CollectiveKind kind;
        double per_host;  // bytes
        uint64_t spread;  // by how much hosts may differ: chunks differ by a byte
      } rows[] = {
          {CollectiveKind::kRingAllReduce, 2.0 * static_cast<double>(bytes) * (n - 1) / n, 2},
          {CollectiveKind::kRingAllGather, 1.0 * static_cast<double>(bytes) * (n - 1) / n, 1},
          {CollectiveKind::kRingReduceScatter, 1.0 * static_cast<double>(bytes) * (n - 1) / n, 1},
          {CollectiveKind::kAllToAll, static_cast<double>(bytes) * (n - 1), 0},
          {CollectiveKind::kStaggeredAllToAll, static_cast<double>(bytes) * (n - 1), 0},
      };
      for (const auto& row : rows) {
        const Workload workload = collective(n, row.kind, bytes);
        for (const auto& shares : {bytes_sent_by_host(workload), bytes_received_by_host(workload)}) {
          for (const uint64_t share : shares) {
            EXPECT_NEAR(static_cast<double>(share), row.per_host, static_cast<double>(row.spread))
                << collective_name(row.kind) << ", " << n << " ranks, " << bytes << " bytes";
          }
        }
      }
    }
  }
}

// A rank may pass on only what it holds. For each chunk, whose contributions a rank has summed up follows from the
// messages; in the end every rank must have everything.
TEST(Collectives, RingAllReduceReallyReduces) {
  const uint32_t n = 9;
  const Workload workload = collective(n, CollectiveKind::kRingAllReduce, n * 10);
  ASSERT_EQ(workload.messages.size(), n * 2 * (n - 1));
  std::vector<std::vector<std::set<uint32_t>>> has(n, std::vector<std::set<uint32_t>>(n));  // has[rank][chunk]
  for (uint32_t rank = 0; rank < n; ++rank) {
    for (auto& chunk : has[rank]) chunk = {rank};
  }
  for (uint32_t step = 0; step < 2 * (n - 1); ++step) {
    auto after = has;
    for (uint32_t rank = 0; rank < n; ++rank) {
      const Message& m = workload.messages[step * n + rank];
      ASSERT_EQ(m.src, rank);
      ASSERT_EQ(m.dst, (rank + 1) % n);
      const uint32_t chunk = (rank + 2 * n - step) % n;
      after[m.dst][chunk].insert(has[rank][chunk].begin(), has[rank][chunk].end());
    }
    has = after;
  }
  for (const auto& chunks : has) {
    for (const auto& chunk : chunks) EXPECT_EQ(chunk.size(), n);
  }
}

TEST(Collectives, HalvingDoublingReallyReduces) {
  for (const uint32_t n : {2U, 4U, 6U, 8U, 11U, 16U}) {
    const Workload workload = collective(n, CollectiveKind::kHalvingDoubling, 1024);
    // After a rank has received a message it knows at least what the sender knew when it sent.
    const IdealRun run = run_ideally(workload, kFabric);
    std::vector<MessageId> by_release(workload.messages.size());
    std::iota(by_release.begin(), by_release.end(), 0U);
    std::vector<std::set<uint32_t>> knows(n);
    for (uint32_t rank = 0; rank < n; ++rank) knows[rank] = {rank};
    std::vector<std::set<uint32_t>> carried(workload.messages.size());
    std::vector<std::tuple<Time, int, MessageId>> events;  // receipts before sends at one instant
    for (const MessageId m : by_release) {
      events.emplace_back(run.released[m], 1, m);
      events.emplace_back(run.received[m], 0, m);
    }
    std::sort(events.begin(), events.end());
    for (const auto& [at, is_send, m] : events) {
      const Message& message = workload.messages[m];
      if (is_send == 1) carried[m] = knows[message.src];
      if (is_send == 0) knows[message.dst].insert(carried[m].begin(), carried[m].end());
    }
    for (uint32_t rank = 0; rank < n; ++rank) EXPECT_EQ(knows[rank].size(), n) << n << " ranks, rank " << rank;
  }
}

// By the graph alone, whatever the fabric does: a message is not released before its sender has received everything
// that earlier rounds bring it. Messages are numbered by round: those of the folded ranks, log2 of halving and of
// doubling with one of every member, and those back to the folded.
TEST(Collectives, HalvingDoublingSendsOnlyWhatHasArrived) {
  for (const uint32_t n : {2U, 3U, 4U, 6U, 8U, 11U, 16U, 24U, 33U}) {
    const Workload workload = collective(n, CollectiveKind::kHalvingDoubling, 1024);
    std::vector<std::set<MessageId>> before(workload.messages.size());  // what must have been received by the release
    for (const MessageId cause : topological_order(workload)) {
      for (const Trigger& trigger : workload.triggers_of(cause)) {  // what has been sent has been received, too
        before[trigger.to].insert(before[cause].begin(), before[cause].end());
        before[trigger.to].insert(cause);
      }
    }
    const uint32_t members = std::bit_floor(n);
    const auto round_of = [&](MessageId m) { return (m + members - (n - members)) / members; };
    for (MessageId m = 0; m < workload.messages.size(); ++m) {
      for (MessageId other = 0; other < m; ++other) {
        if (round_of(other) == round_of(m) || workload.messages[other].dst != workload.messages[m].src) continue;
        EXPECT_TRUE(before[m].contains(other)) << n << " ranks: message " << m << " without " << other;
      }
    }
  }
}

TEST(Collectives, AllToAllReachesEveryPairOnce) {
  for (const CollectiveKind kind : {CollectiveKind::kAllToAll, CollectiveKind::kStaggeredAllToAll}) {
    const Workload workload = collective(13, kind, 10);
    std::set<std::pair<HostId, HostId>> pairs;
    for (const Message& m : workload.messages) pairs.insert({m.src, m.dst});
    EXPECT_EQ(pairs.size(), 13U * 12);
    EXPECT_EQ(workload.messages.size(), 13U * 12);
  }
}

TEST(Collectives, NaiveAllToAllReleasesAllAtOnce) {
  const Workload workload = collective(10, CollectiveKind::kAllToAll, 10);
  EXPECT_TRUE(workload.triggers.empty());
  for (const Message& m : workload.messages) EXPECT_EQ(m.start, 0U);
}

TEST(Collectives, StaggeredStepsNeverShareAReceiver) {
  for (const uint32_t n : {2U, 5U, 16U, 31U}) {
    const IdealRun run = run_ideally(collective(n, CollectiveKind::kStaggeredAllToAll, 1000), kFabric);
    EXPECT_EQ(run.most_receiving, 1U);
    EXPECT_EQ(run.most_sending, 1U);
  }
}

TEST(Collectives, StaggeredWithStepsUnderWayHidesDelays) {
  const uint32_t n = 33;
  const Duration message = 1000 * kPerByte;
  for (const uint32_t in_flight : {1U, 2U, 4U, 8U, 40U}) {
    const Workload workload = train(n, {{CollectiveKind::kStaggeredAllToAll, 1000, in_flight}});
    const IdealRun run = run_ideally(workload, kFabric);
    EXPECT_TRUE(all_ran(run));
    EXPECT_EQ(size_of(workload).phases, (n - 2) / in_flight + 1);
    EXPECT_LE(run.most_sending, in_flight);
    EXPECT_GE(run.makespan, (n - 1) * message + kOneWay);
    EXPECT_LE(run.makespan, (n - 1) * message + ((n - 2) / in_flight + 1) * kOneWay) << in_flight;
  }
}

TEST(Collectives, ASlowRankHoldsNobodyFurtherThanTwoChunks) {
  // Rank 0's first message takes very long: its successor may not run ahead, nor may rank 0 pile up chunks.
  const uint32_t n = 6;
  Workload workload = collective(n, CollectiveKind::kRingAllReduce, n * 100);
  workload.messages[0].bytes = 1'000'000;
  const IdealRun run = run_ideally(workload, {kPerByte, kOneWay, kOneWay, 0, false});
  EXPECT_TRUE(all_ran(run));
  EXPECT_LE(run.most_sending, 2U);
}

TEST(Collectives, CountsAreKnownBeforehand) {
  for (const CollectiveKind kind : kAllKinds) {
    for (const uint32_t n : {2U, 3U, 5U, 8U, 12U, 17U}) {
      for (const uint32_t steps : {1U, 3U}) {
        for (const Duration spread : {Duration{0}, kMicrosecond}) {
          const Training training{{kind, 100, 1}, steps, kMicrosecond, spread, 1};
          const Workload workload = train(n, training);
          EXPECT_EQ(workload.messages.size(), training_messages(n, training)) << collective_name(kind) << ", " << n;
          EXPECT_EQ(size_of(workload).messages, steps * collective_messages(n, training.collective));
        }
      }
    }
  }
}

TEST(Collectives, HaveNames) {
  for (const CollectiveKind kind : kAllKinds) EXPECT_EQ(find_collective(collective_name(kind)), kind);
  EXPECT_THROW(find_collective("broadcast"), Error);
}

TEST(Collectives, RefuseWhatTheyCannotDo) {
  for (const CollectiveKind kind : kAllKinds) {
    EXPECT_THROW(collective(1, kind, 100), Error) << collective_name(kind);
    EXPECT_THROW(collective(4, kind, 0), Error) << collective_name(kind);
  }
  EXPECT_THROW(collective(16, CollectiveKind::kRingAllReduce, 15), Error);
  EXPECT_NO_THROW(collective(16, CollectiveKind::kRingAllReduce, 16));
  EXPECT_THROW(collective(17, CollectiveKind::kHalvingDoubling, 15), Error);
  EXPECT_NO_THROW(collective(17, CollectiveKind::kHalvingDoubling, 16));
  EXPECT_THROW(collective(16'384, CollectiveKind::kAllToAll, 1), Error);  // 268 million messages
  EXPECT_THROW(train(4, {{CollectiveKind::kStaggeredAllToAll, 100, 0}}), Error);
  EXPECT_THROW(train(4, {{CollectiveKind::kAllToAll, 100, 1}, 0}), Error);
  EXPECT_THROW(train(4, {{CollectiveKind::kAllToAll, 100, 1}, 1, kMaxDelay + 1}), Error);
  EXPECT_THROW(train(4, {{CollectiveKind::kAllToAll, 100, 1}, UINT32_MAX}), Error);
}

TEST(Training, AlternatesComputingAndCommunicating) {
  const Duration compute = 50 * kMicrosecond;
  for (const CollectiveKind kind : kAllKinds) {
    const uint32_t n = 8;
    const Collective once{kind, 8000, 1};
    const Duration alone = run_ideally(train(n, {once}), kFabric).makespan;
    const Workload workload = train(n, {once, 5, compute});
    const IdealRun run = run_ideally(workload, kFabric);
    EXPECT_TRUE(all_ran(run));
    EXPECT_EQ(run.makespan, 5 * (compute + alone)) << collective_name(kind);
    EXPECT_EQ(size_of(workload).phases, 5 * collective_phases(n, once)) << collective_name(kind);
  }
}

TEST(Training, StragglersHoldTheOthersUp) {
  const uint32_t n = 8;
  const Duration compute = 50 * kMicrosecond;
  const Duration spread = 200 * kMicrosecond;
  const Collective once{CollectiveKind::kRingAllReduce, 8000, 1};
  const Duration alone = run_ideally(train(n, {once}), kFabric).makespan;
  const Workload workload = train(n, {once, 4, compute, spread, 3});
  const IdealRun run = run_ideally(workload, kFabric);
  EXPECT_TRUE(all_ran(run));
  EXPECT_GT(run.makespan, 4 * (compute + alone) + spread);  // the largest of 8 in each of 4 steps: 3.6 spreads expected
  EXPECT_LT(run.makespan, 4 * (compute + spread + alone));
  // Nobody passes anything on before it has begun itself.
  const auto begins = [&](HostId host) {
    return std::find_if(workload.messages.begin(), workload.messages.end(),
                        [&](const Message& m) { return m.is_barrier() && m.src == host; }) -
           workload.messages.begin();
  };
  for (MessageId m = 0; m < workload.messages.size(); ++m) {
    EXPECT_GE(run.released[m], run.released[begins(workload.messages[m].src)]) << m;
  }
}

TEST(Training, FollowsFromTheSeed) {
  const auto makespan = [](uint64_t seed) {
    const Training training{{CollectiveKind::kAllToAll, 100, 1}, 3, kMicrosecond, kMillisecond, seed};
    return run_ideally(train(6, training), kFabric).makespan;
  };
  EXPECT_EQ(makespan(1), makespan(1));
  EXPECT_NE(makespan(1), makespan(2));
}

}  // namespace
}  // namespace heddle::lab
