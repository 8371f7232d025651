#include "lab/workload/jobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "net/error.h"

namespace heddle::lab {
namespace {

std::vector<HostId> hosts(uint32_t n) {
  std::vector<HostId> list(n);
  std::iota(list.begin(), list.end(), 0U);
  return list;
}

TEST(Placement, InOrderFillsFromTheFirstHost) {
  const auto placed = place_jobs(10, {3, 4}, {});
  EXPECT_EQ(placed, (std::vector<std::vector<HostId>>{{0, 1, 2}, {3, 4, 5, 6}}));
}

TEST(Placement, UsesTheHostsItIsGiven) {
  EXPECT_EQ(place_jobs(10, {2, 1}, {PlacementOrder::kInOrder, 1, {9, 2, 5, 7}}),
            (std::vector<std::vector<HostId>>{{9, 2}, {5}}));
}

TEST(Placement, AtRandomIsSeededDisjointAndUniform) {
  const Placement random{PlacementOrder::kRandom, 5, {}};
  const auto placed = place_jobs(100, {30, 30, 40}, random);
  EXPECT_EQ(placed, place_jobs(100, {30, 30, 40}, random));
  EXPECT_NE(placed, place_jobs(100, {30, 30, 40}, {PlacementOrder::kRandom, 6, {}}));
  std::set<HostId> used;
  for (const auto& job : placed) used.insert(job.begin(), job.end());
  EXPECT_EQ(used.size(), 100U);
  // Where rank 0 lands over 8,000 seeds: 1,000 on each of 8 hosts, standard deviation 29.6.
  std::vector<int> seen(8, 0);
  for (uint64_t seed = 0; seed < 8000; ++seed) ++seen[place_jobs(8, {4}, {PlacementOrder::kRandom, seed, {}})[0][0]];
  for (const int count : seen) EXPECT_NEAR(count, 1000, 5 * 29.6);
}

TEST(Placement, RefusesTooFewOrUnusableHosts) {
  EXPECT_THROW(place_jobs(6, {3, 4}, {}), Error);
  EXPECT_THROW(place_jobs(10, {3}, {PlacementOrder::kInOrder, 1, {1, 2}}), Error);
  EXPECT_THROW(place_jobs(10, {2}, {PlacementOrder::kInOrder, 1, {1, 1, 2}}), Error);
  EXPECT_THROW(place_jobs(10, {2}, {PlacementOrder::kInOrder, 1, {1, 10}}), Error);
  EXPECT_THROW(place_jobs(10, {UINT32_MAX, UINT32_MAX}, {}), Error);
}

TEST(Jobs, SeveralRunBesideEachOther) {
  const auto placed = place_jobs(16, {4, 4, 8}, {PlacementOrder::kRandom, 3, {}});
  const std::vector<Job> jobs{
      {"train", {placed[0], 0}, Training{{CollectiveKind::kRingAllReduce, 4000, 1}, 2, kMicrosecond}},
      {"again", {placed[1], kMicrosecond}, Training{{CollectiveKind::kAllToAll, 100, 1}}},
      {"background", {placed[2], 0}, Permutation{500, 1}}};
  const Workload workload = make_workload(16, jobs);
  EXPECT_EQ(workload.jobs, (std::vector<std::string>{"train", "again", "background"}));
  std::vector<uint64_t> messages(3, 0);
  for (const Message& m : workload.messages) {
    ++messages[m.job];
    const auto& mine = placed[m.job];
    EXPECT_NE(std::find(mine.begin(), mine.end(), m.src), mine.end());
    EXPECT_NE(std::find(mine.begin(), mine.end(), m.dst), mine.end());
  }
  for (size_t job = 0; job < jobs.size(); ++job) EXPECT_EQ(messages[job], expected_messages(jobs[job]));
  for (const Trigger& trigger : workload.triggers) {
    EXPECT_EQ(workload.messages[trigger.from].job, workload.messages[trigger.to].job);
  }
}

TEST(Jobs, SayWhichRunInSteps) {
  const auto train = [](CollectiveKind kind, uint32_t in_flight, Duration spread) {
    return Training{{kind, 1000, in_flight}, 2, kMicrosecond, spread, 1};
  };
  const struct {
    const char* what;
    uint32_t ranks;
    Pattern pattern;
    uint8_t in_steps;
  } rows[] = {{"permutation", 4, Permutation{}, 0},
              {"flows", 4, Flows{{{0, 1, 1, 0}}}, 0},
              {"shift", 4, Shift{}, 0},
              {"incast", 4, Incast{}, 0},
              {"pipeline", 4, Pipeline{}, 0},
              {"arrivals", 4, Poisson{}, 0},
              {"ring", 4, train(CollectiveKind::kRingAllReduce, 1, 0), 1},
              {"ring with stragglers", 4, train(CollectiveKind::kRingAllReduce, 1, kMicrosecond), 0},
              {"halving and doubling", 4, train(CollectiveKind::kHalvingDoubling, 1, 0), 1},
              {"the same with folded ranks", 5, train(CollectiveKind::kHalvingDoubling, 1, 0), 0},
              {"all-to-all", 4, train(CollectiveKind::kAllToAll, 1, 0), 1},
              {"step after step", 4, train(CollectiveKind::kStaggeredAllToAll, 1, 0), 1},
              {"two steps at a time", 4, train(CollectiveKind::kStaggeredAllToAll, 2, 0), 0}};
  for (const auto& row : rows) {
    const Workload workload = make_workload(8, {{"job", {hosts(row.ranks), 0}, row.pattern}});
    EXPECT_EQ(workload.job_runs_in_steps[0], row.in_steps) << row.what;
  }
}

TEST(Jobs, MessagesAreCountedBeforehand) {
  Incast incast;
  incast.victim_count = 2;
  const std::vector<Job> jobs{{"flows", {hosts(4), 0}, Flows{{{0, 1, 1, 0}, {1, 2, 1, 0}}}},
                              {"permutation", {hosts(9), 0}, Permutation{}},
                              {"shift", {hosts(9), 0}, Shift{}},
                              {"incast", {hosts(9), 0}, incast},
                              {"pipeline", {hosts(5), 0}, Pipeline{1, 3, 0, false, 0}},
                              {"pipeline", {hosts(5), 0}, Pipeline{1, 3, 0, true, 0}},
                              {"training", {hosts(6), 0}, Training{{CollectiveKind::kHalvingDoubling, 100, 1}, 4, 1}}};
  for (const Job& job : jobs) EXPECT_EQ(make_workload(9, {job}).messages.size(), expected_messages(job)) << job.name;
  Poisson poisson;
  poisson.duration = kSecond;
  const Job arrivals{"poisson", {hosts(8), 0}, poisson};
  const double count = static_cast<double>(make_workload(8, {arrivals}).messages.size());
  EXPECT_NEAR(count, static_cast<double>(expected_messages(arrivals)), 5 * std::sqrt(count));
}

TEST(Jobs, ErrorsNameTheJob) {
  try {
    make_workload(4, {{"good", {hosts(4), 0}, Permutation{}}, {"bad", {{1}, 0}, Permutation{}}});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("job bad: ", 0), 0U) << error.what();
  }
}

}  // namespace
}  // namespace heddle::lab
