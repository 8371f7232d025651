// The engine against queues in a row that share nothing with it but the paths.
#include "tests/golden/fifo_model.h"

#include <numeric>

#include <gtest/gtest.h>

#include "lab/topology/builders.h"
#include "tests/golden/flow_paths.h"
#include "tests/golden/golden_run.h"
#include "tests/support/sanitizer.h"

namespace heddle::golden {
namespace {

using namespace heddle::lab;

constexpr int64_t kPicosecondsPerByte = 80;  // 100 Gb/s

TEST(FifoModel, ServesInOrderOfArrival) {
  // Two packets of flow 0 and one of flow 1 meet on link 2: the one that came first goes first, whosever it is.
  const std::vector<FifoFlow> flows{{0, {10, 10}, {0, 2}}, {2, {10}, {1, 2}}};
  // Flow 0 is at link 2 at 11 and 21, flow 1 at 13: served 11–21, 21–31 (flow 1), 31–41.
  EXPECT_EQ(fifo_completions(flows, 3, 1), (std::vector<int64_t>{42, 32}));
}

std::vector<FifoFlow> fifo_flows(const Topology& t, const Workload& workload, const FabricSettings& settings) {
  std::vector<FifoFlow> flows;
  Random random(settings.run.seed);
  for (const std::vector<uint32_t>& path : paths_of(t, workload, settings)) {
    FifoFlow flow{.start = 0, .packets = {}, .links = path};
    for (uint64_t left = workload.messages[flows.size()].bytes; left > 0;) {
      const uint64_t bytes = std::min<uint64_t>(left, 4096);
      flow.packets.push_back(static_cast<int64_t>(bytes + kFrameOverhead) * kPicosecondsPerByte);
      left -= bytes;
    }
    // As hosts start: spread over one packet time, by other lots.
    flow.start = static_cast<int64_t>(random.below(static_cast<uint32_t>(flow.packets.front())));
    flows.push_back(flow);
  }
  return flows;
}

// When every link could be done that had nothing else to wait for, ps.
int64_t busiest_link(const std::vector<FifoFlow>& flows, size_t link_count) {
  std::vector<int64_t> busy(link_count, 0);
  for (const FifoFlow& flow : flows) {
    const int64_t time = std::accumulate(flow.packets.begin(), flow.packets.end(), int64_t{0});
    for (const uint32_t link : flow.links) busy[link] += time;
  }
  return *std::max_element(busy.begin(), busy.end());
}

class FifoModelOfAPermutation : public testing::Test {
 protected:
  void SetUp() override {
    if (support::kAddressSanitizer) GTEST_SKIP() << "millions of packets";
  }

  // Every flow of both, from its start to its last byte: 0.3 % between them at most, seen.
  static void expect_agreement(uint32_t hosts, uint64_t seed) {
    const Topology t = build_fat_tree({.hosts = hosts});
    FabricSettings settings = open_loop("ecmp", seed);
    settings.hosts.ack_every = 1024;  // one a message: the model has none
    const Workload workload = workload_of(hosts, Permutation{.seed = seed});
    const std::vector<FifoFlow> flows = fifo_flows(t, workload, settings);
    const std::vector<int64_t> model = fifo_completions(flows, 2 * t.links.size(), kMicrosecond);
    const RunResult result = run_fabric(t, workload, settings);
    std::vector<double> ratios;
    for (MessageId m = 0; m < flows.size(); ++m) {
      const MessageTimes& times = result.messages[m];
      ratios.push_back(static_cast<double>(times.received - times.released) /
                       static_cast<double>(model[m] - flows[m].start));
      EXPECT_NEAR(ratios[m], 1, 0.006) << "flow " << m;
    }
    EXPECT_NEAR(mean(ratios), 1, 0.001);
  }
};

TEST_F(FifoModelOfAPermutation, AgreesOn432Hosts) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    expect_agreement(432, seed);
  }
}

TEST_F(FifoModelOfAPermutation, AgreesOn1024Hosts) { expect_agreement(1024, 1); }

// What queues in a row owe one another: a flow that crosses two links which are nearly as busy comes late to the
// second, and that has stood idle for it. With seed 2 the last byte arrives 7 % after the busiest link could have been
// done; max-min would be in time. Other seeds end with their busiest link.
TEST_F(FifoModelOfAPermutation, MayEndAfterItsBusiestLink) {
  const Topology t = build_fat_tree({.hosts = 432});
  for (const auto& [seed, least, most] : {std::tuple{1, 1.0, 1.012}, {2, 1.065, 1.08}, {3, 1.0, 1.012}}) {
    const FabricSettings settings = open_loop("ecmp", seed);
    const std::vector<FifoFlow> flows =
        fifo_flows(t, workload_of(432, Permutation{.seed = settings.run.seed}), settings);
    const std::vector<int64_t> done = fifo_completions(flows, 2 * t.links.size(), kMicrosecond);
    const double after = static_cast<double>(*std::max_element(done.begin(), done.end())) /
                         static_cast<double>(busiest_link(flows, 2 * t.links.size()));
    EXPECT_GE(after, least) << "seed " << seed;
    EXPECT_LE(after, most) << "seed " << seed;
  }
}

}  // namespace
}  // namespace heddle::golden
