// Runs of the lab as tests make them, and what they read from the results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/fabric/fabric.h"
#include "lab/workload/jobs.h"
#include "net/random.h"

namespace heddle::support {

inline std::vector<lab::HostId> all_hosts(uint32_t n) {
  std::vector<lab::HostId> hosts(n);
  std::iota(hosts.begin(), hosts.end(), 0U);
  return hosts;
}

// One job on all hosts, rank r on host r.
inline lab::Workload workload_of(uint32_t hosts, const lab::Pattern& pattern) {
  return lab::make_workload(hosts, {{"job", {all_hosts(hosts), 0}, pattern}});
}
inline lab::Workload workload_of(uint32_t hosts, const std::vector<lab::Flow>& flows) {
  return workload_of(hosts, lab::Flows{flows});
}

// As a test wants them: one thread, and every message released exactly when the workload says.
inline lab::FabricSettings exact_settings() {
  lab::FabricSettings settings;
  settings.run.threads = 1;
  settings.hosts.start_jitter = false;
  return settings;
}

inline uint64_t drops_of(const lab::RunResult& result, DropReason reason) {
  return result.drops[static_cast<size_t>(reason)];
}
inline uint64_t all_drops(const lab::RunResult& result) {
  return std::accumulate(result.drops.begin(), result.drops.end(), uint64_t{0});
}

inline bool all_done(const lab::RunResult& result) {
  return result.end == lab::RunResult::End::kDone &&
         std::all_of(result.messages.begin(), result.messages.end(), [](const lab::MessageTimes& times) {
           return times.released <= times.received && times.received <= times.sent && times.sent != lab::kNever;
         });
}

// From release to the last ACK.
inline Duration completion_of(const lab::MessageTimes& times) { return times.sent - times.released; }
inline Duration last_completion(const lab::RunResult& result) {
  Duration last = 0;
  for (const lab::MessageTimes& times : result.messages) last = std::max(last, completion_of(times));
  return last;
}

// How long the busiest direction of a link was busy in all.
inline Duration busiest_link(const lab::Topology& topology, const lab::RunResult& result) {
  Duration most = 0;
  for (lab::LinkId id = 0; id < topology.links.size(); ++id) {
    for (const uint64_t bytes : {result.links[id].a_to_b_bytes, result.links[id].b_to_a_bytes}) {
      const auto picoseconds =
          static_cast<double>(bytes) * 8e12 / static_cast<double>(topology.links[id].rate.bits_per_second());
      most = std::max(most, static_cast<Duration>(picoseconds));
    }
  }
  return most;
}

// Both runs saw and did the same, wall clock and memory apart.
inline void expect_same(const lab::RunResult& a, const lab::RunResult& b) {
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.ended_at, b.ended_at);
  EXPECT_EQ(a.packets_sent, b.packets_sent);
  EXPECT_EQ(a.data_packets, b.data_packets);
  EXPECT_EQ(a.packets_received, b.packets_received);
  EXPECT_EQ(a.packets_in_flight, b.packets_in_flight);
  EXPECT_EQ(a.drops, b.drops);
  EXPECT_EQ(a.retransmitted, b.retransmitted);
  EXPECT_EQ(a.timeouts, b.timeouts);
  EXPECT_EQ(a.naks, b.naks);
  EXPECT_EQ(a.duplicates, b.duplicates);
  EXPECT_EQ(a.out_of_order_packets, b.out_of_order_packets);
  EXPECT_EQ(a.out_of_order_degree, b.out_of_order_degree);
  EXPECT_EQ(a.peak_queue_bytes, b.peak_queue_bytes);
  EXPECT_EQ(a.packet_hops, b.packet_hops);
  ASSERT_EQ(a.messages.size(), b.messages.size());
  for (size_t m = 0; m < a.messages.size(); ++m) {
    ASSERT_EQ(a.messages[m].released, b.messages[m].released) << "message " << m;
    ASSERT_EQ(a.messages[m].received, b.messages[m].received) << "message " << m;
    ASSERT_EQ(a.messages[m].sent, b.messages[m].sent) << "message " << m;
  }
  ASSERT_EQ(a.links.size(), b.links.size());
  for (size_t id = 0; id < a.links.size(); ++id) {
    ASSERT_EQ(a.links[id].a_to_b_packets, b.links[id].a_to_b_packets) << "link " << id;
    ASSERT_EQ(a.links[id].a_to_b_bytes, b.links[id].a_to_b_bytes) << "link " << id;
    ASSERT_EQ(a.links[id].b_to_a_packets, b.links[id].b_to_a_packets) << "link " << id;
    ASSERT_EQ(a.links[id].b_to_a_bytes, b.links[id].b_to_a_bytes) << "link " << id;
  }
  EXPECT_EQ(a.ecn_marked, b.ecn_marked);
  EXPECT_EQ(a.ecn_eligible, b.ecn_eligible);
  EXPECT_EQ(a.control_frames, b.control_frames);
  EXPECT_EQ(a.peak_buffer_bytes, b.peak_buffer_bytes);
  EXPECT_EQ(a.host_pause_time, b.host_pause_time);
  ASSERT_EQ(a.pauses.size(), b.pauses.size());
  for (size_t i = 0; i < a.pauses.size(); ++i) {
    ASSERT_EQ(a.pauses[i].node, b.pauses[i].node) << "pauses " << i;
    ASSERT_EQ(a.pauses[i].port, b.pauses[i].port) << "pauses " << i;
    ASSERT_EQ(a.pauses[i].sent, b.pauses[i].sent) << "pauses " << i;
    ASSERT_EQ(a.pauses[i].received, b.pauses[i].received) << "pauses " << i;
    ASSERT_EQ(a.pauses[i].paused, b.pauses[i].paused) << "pauses " << i;
    ASSERT_EQ(a.pauses[i].violations, b.pauses[i].violations) << "pauses " << i;
  }
  ASSERT_EQ(a.imbalance.size(), b.imbalance.size());
  for (size_t i = 0; i < a.imbalance.size(); ++i) {
    ASSERT_EQ(a.imbalance[i].node, b.imbalance[i].node) << "sample " << i;
    ASSERT_EQ(a.imbalance[i].at, b.imbalance[i].at) << "sample " << i;
    ASSERT_EQ(a.imbalance[i].imbalance, b.imbalance[i].imbalance) << "sample " << i;
  }
}

// The engine checks the books itself; a test checks the engine.
inline void expect_books_balance(const lab::RunResult& result) {
  EXPECT_EQ(result.packets_sent + result.control_frames + result.probes.sent,
            result.packets_received + result.control_frames_ended + result.probes.ended + all_drops(result) +
                result.packets_in_flight);
  EXPECT_LE(result.data_packets, result.packets_sent);
  EXPECT_LE(result.retransmitted, result.data_packets);
  uint64_t crossed = 0;
  for (const lab::LinkLoad& link : result.links) crossed += link.a_to_b_packets + link.b_to_a_packets;
  EXPECT_EQ(result.packet_hops + result.control_frames + result.healing.notices_sent, crossed);
}

}  // namespace heddle::support
