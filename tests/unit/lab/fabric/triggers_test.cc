// When messages are released: by time, by what they wait for, over barriers.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/host/roce.h"
#include "lab/ideal/alone_time.h"
#include "lab/topology/builders.h"
#include "lab/workload/builder.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

using support::all_done;
using support::exact_settings;

Topology one_switch(uint32_t hosts) { return build_single_switch({.hosts = hosts}); }

struct TriggerRow {
  const char* description;
  HostId source;  // of the message that waits; its cause goes from host 0 to host 1
  TriggerOn on;
  Duration delay;
  Duration start;          // the waiting message's own
  Duration trigger_delay;  // setting; 0 = default
  Duration expected;       // after the cause's time
};

TEST(Triggers, TakeEffectWhereAndWhenTheyShould) {
  const Topology t = one_switch(4);
  constexpr Duration kLink = kMicrosecond;  // the smallest link delay, and the default
  for (const TriggerRow& row : {
           TriggerRow{"received, next sent by the receiver: at once", 1, TriggerOn::kReceived, 0, 0, 0, 0},
           TriggerRow{"received, next sent by the receiver after a delay", 1, TriggerOn::kReceived, 777, 0, 0, 777},
           TriggerRow{"received, next sent by the sender", 0, TriggerOn::kReceived, 0, 0, 0, kLink},
           TriggerRow{"received, next sent by a third", 2, TriggerOn::kReceived, 777, 0, 0, kLink + 777},
           TriggerRow{"sent, next sent by the sender: at once", 0, TriggerOn::kSent, 0, 0, 0, 0},
           TriggerRow{"sent, next sent by the sender after a delay", 0, TriggerOn::kSent, 777, 0, 0, 777},
           TriggerRow{"sent, next sent by the receiver", 1, TriggerOn::kSent, 0, 0, 0, kLink},
           TriggerRow{"sent, next sent by a third", 2, TriggerOn::kSent, 777, 0, 0, kLink + 777},
           TriggerRow{"the message's own delay comes on top", 1, TriggerOn::kReceived, 777, 333, 0, 1110},
           TriggerRow{"the message's own delay comes on top of the trigger delay", 2, TriggerOn::kReceived, 0, 333, 0,
                      kLink + 333},
           TriggerRow{"a longer trigger delay", 2, TriggerOn::kReceived, 0, 0, 5 * kLink, 5 * kLink},
           TriggerRow{"a longer trigger delay is not for the same host", 1, TriggerOn::kReceived, 0, 0, 5 * kLink, 0},
       }) {
    SCOPED_TRACE(row.description);
    WorkloadBuilder builder(4);
    builder.add_job("two", false);
    const MessageId cause = builder.add_message(0, 1, 30'000);
    const MessageId effect = builder.add_message(row.source, 3, 1000, row.start);
    builder.add_trigger({cause, row.on}, effect, row.delay);
    FabricSettings settings = exact_settings();
    settings.hosts.start_jitter = true;  // concerns the first alone
    settings.run.trigger_delay = row.trigger_delay;
    const RunResult result = run_fabric(t, builder.finish(), settings);
    ASSERT_TRUE(all_done(result));
    const MessageTimes& times = result.messages[cause];
    const Time happened = row.on == TriggerOn::kReceived ? times.received : times.sent;
    EXPECT_EQ(result.messages[effect].released, happened + row.expected);
  }
}

TEST(Triggers, AMessageWaitsForAsManyAsItSays) {
  const Topology t = one_switch(6);
  for (const uint32_t needed : {1U, 2U, 3U}) {
    WorkloadBuilder builder(6);
    builder.add_job("some of three", false);
    std::vector<MessageId> causes;
    for (uint32_t i = 0; i < 3; ++i) causes.push_back(builder.add_message(i, 3, 1000, i * 50 * kMicrosecond));
    const MessageId effect = builder.add_message(3, 4, 1000);
    for (const MessageId cause : causes) builder.add_trigger({cause, TriggerOn::kReceived}, effect);
    if (needed < 3) builder.release_after(effect, needed);
    const RunResult result = run_fabric(t, builder.finish(), exact_settings());
    ASSERT_TRUE(all_done(result));
    EXPECT_EQ(result.messages[effect].released, result.messages[causes[needed - 1]].received);
  }
}

TEST(Triggers, ABarrierOpensWhenTheLastCauseIsThere) {
  const Topology t = one_switch(8);
  WorkloadBuilder builder(8);
  builder.add_job("barrier", false);
  std::vector<MessageId> before;
  for (uint32_t i = 0; i < 4; ++i) before.push_back(builder.add_message(i, i + 1, 10'000 * (i + 1)));
  const MessageId barrier = builder.add_barrier(4, 2500);
  const MessageId second = builder.add_barrier(4);
  std::vector<MessageId> after;
  for (uint32_t i = 3; i < 6; ++i) after.push_back(builder.add_message(i, 7, 5000));
  for (const MessageId m : before) builder.add_trigger({m, TriggerOn::kReceived}, barrier);
  builder.add_trigger({barrier, TriggerOn::kSent}, second, 100);
  for (const MessageId m : after) builder.add_trigger({second, TriggerOn::kReceived}, m);
  const RunResult result = run_fabric(t, builder.finish(), exact_settings());
  ASSERT_TRUE(all_done(result));
  Time opens = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const bool here = i + 1 == 4;  // received on the barrier's host
    opens = std::max(opens, result.messages[before[i]].received + (here ? 0 : kMicrosecond));
  }
  opens += 2500;
  const MessageTimes& at = result.messages[barrier];
  EXPECT_EQ(at.released, opens);
  EXPECT_EQ(at.received, opens);
  EXPECT_EQ(at.sent, opens);
  EXPECT_EQ(result.messages[second].released, opens + 100);
  for (uint32_t i = 0; i < after.size(); ++i) {
    const bool here = i + 3 == 4;
    EXPECT_EQ(result.messages[after[i]].released, opens + 100 + (here ? 0 : kMicrosecond)) << "host " << i + 3;
  }
  EXPECT_EQ(result.data_packets, 3U + 5U + 8U + 10U + 3U * 2U);  // barriers cross no link
}

TEST(Triggers, AChainTakesTheSumOfItsLinks) {
  const Topology t = one_switch(5);
  WorkloadBuilder builder(5);
  builder.add_job("relay", false);
  std::vector<MessageId> legs;
  for (uint32_t i = 0; i < 40; ++i) {
    legs.push_back(builder.add_message(i % 5, (i + 1) % 5, 50'000));
    if (i != 0) builder.add_trigger({legs[i - 1], TriggerOn::kReceived}, legs[i]);
  }
  const FabricSettings settings = exact_settings();
  const RunResult result = run_fabric(t, builder.finish(), settings);
  ASSERT_TRUE(all_done(result));
  // Every leg alone; the ACK of the one before leaves just as this one's first packet wants to.
  const Duration leg = result.messages[legs[0]].received;
  for (uint32_t i = 1; i < 40; ++i) {
    EXPECT_EQ(result.messages[legs[i]].released, result.messages[legs[i - 1]].received);
    const Duration takes = result.messages[legs[i]].received - result.messages[legs[i]].released;
    EXPECT_EQ(takes, leg + Rate::gbps(100).time_for(kAckFrame + kEthernetOverhead)) << "leg " << i;
  }
}

TEST(Triggers, JitterIsUpToOnePacketTimeAndOnlyForMessagesReleasedByTime) {
  const Topology t = one_switch(64);
  WorkloadBuilder builder(64);
  builder.add_job("jitter", false);
  for (uint32_t h = 0; h < 64; h += 2) builder.add_message(h, h + 1, 100, 7 * kMicrosecond);
  FabricSettings settings = exact_settings();
  const Workload workload = builder.finish();
  for (const MessageTimes& times : run_fabric(t, workload, settings).messages) {
    EXPECT_EQ(times.released, 7 * kMicrosecond);
  }
  settings.hosts.start_jitter = true;
  const Duration packet = Rate::gbps(100).time_for(4096 + kDataFrameOverhead + kEthernetOverhead);
  Duration sum = 0;
  Duration most = 0;
  for (const MessageTimes& times : run_fabric(t, workload, settings).messages) {
    ASSERT_GE(times.released, 7 * kMicrosecond);
    const Duration jitter = times.released - 7 * kMicrosecond;
    EXPECT_LT(jitter, packet);
    sum += jitter;
    most = std::max(most, jitter);
  }
  // Uniform: mean 1/2 ± 4 standard errors of 32 draws, and some beyond 3/4.
  EXPECT_NEAR(static_cast<double>(sum) / 32 / static_cast<double>(packet), 0.5, 4 * 0.289 / 5.66);
  EXPECT_GT(most, packet * 3 / 4);
}

struct SplitRow {
  const char* description;
  uint32_t qps;
  uint64_t bytes;
  uint64_t packets;
};

// A message over several queue pairs is done when all its parts are; no part is empty.
TEST(QueuePairs, ShareAMessage) {
  const Topology t = one_switch(2);
  for (const SplitRow& row :
       {SplitRow{"one queue pair", 1, 10'000, 3}, SplitRow{"four parts of 2,500", 4, 10'000, 4},
        SplitRow{"parts of 5,001 and 5,000", 2, 10'001, 4}, SplitRow{"fewer bytes than queue pairs", 4, 3, 3},
        SplitRow{"a single byte", 16, 1, 1}, SplitRow{"whole packets each", 8, 8 * 4096 * 5, 40}}) {
    SCOPED_TRACE(row.description);
    FabricSettings settings = exact_settings();
    settings.hosts.qps_per_connection = row.qps;
    const RunResult result =
        run_fabric(t, support::workload_of(2, {{.src = 0, .dst = 1, .bytes = row.bytes}}), settings);
    ASSERT_TRUE(all_done(result));
    EXPECT_EQ(result.data_packets, row.packets);
    const LinkLoad& out = result.links[t.ports[0][0]];
    const bool a = t.links[t.ports[0][0]].a == 0;
    EXPECT_EQ(a ? out.a_to_b_bytes : out.b_to_a_bytes,
              row.bytes + row.packets * (kDataFrameOverhead + kEthernetOverhead));
    // The NIC takes turns, so that the parts end together. AloneTimes is exact for one queue pair, and off by less than
    // a packet for several.
    const Duration alone =
        AloneTimes(t, LinkStates(t), settings.hosts).completion({.src = 0, .dst = 1, .bytes = row.bytes});
    const Duration packet = Rate::gbps(100).time_for(4096 + kDataFrameOverhead + kEthernetOverhead);
    EXPECT_NEAR(static_cast<double>(support::last_completion(result)), static_cast<double>(alone),
                row.qps == 1 ? 0 : static_cast<double>(packet));
  }
}

TEST(QueuePairs, SpreadOverPathsByTheirPorts) {
  const Topology t = build_leaf_spine({.hosts = 4, .leaves = 2, .spines = 8});
  const auto spines_used = [&](uint32_t qps, Entropy entropy) {
    FabricSettings settings = exact_settings();
    settings.hosts.qps_per_connection = qps;
    settings.hosts.entropy = entropy;
    settings.hosts.out_of_order = OutOfOrder::kAnyOrderPlacement;
    const RunResult result =
        run_fabric(t, support::workload_of(4, {{.src = 0, .dst = 3, .bytes = 512 * 4096}}), settings);
    EXPECT_TRUE(all_done(result));
    unsigned used = 0;
    for (LinkId id = 0; id < t.links.size(); ++id) {
      if (t.links[id].a == t.host_count) used += result.links[id].a_to_b_bytes > 4096 ? 1 : 0;
    }
    return used;
  };
  EXPECT_EQ(spines_used(1, Entropy::kPerQp), 1U);
  EXPECT_EQ(spines_used(1, Entropy::kNone), 1U);
  EXPECT_GE(spines_used(16, Entropy::kPerQp), 5U);  // 16 balls, 8 bins: 7.1 ± 0.7 used
  EXPECT_EQ(spines_used(1, Entropy::kPerPacket), 8U);
}

}  // namespace
}  // namespace heddle::lab
