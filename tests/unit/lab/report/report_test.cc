// Every metric of a report, computed by hand from results made up for it.
#include "lab/report/report.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lab/fabric/fabric.h"
#include "lab/scenario/experiment.h"

namespace heddle::lab {
namespace {

using Json = nlohmann::ordered_json;

// Three messages of one packet among three hosts on one switch. Alone, each takes 2 × (4178 + 86) × 80 ps + 4 µs.
constexpr Duration kAlone = 2 * (4178 + 86) * 80 + 4 * kMicrosecond;

Experiment three_messages() {
  return prepare(load_scenario_text(R"(
topology: {kind: single-switch, hosts: 3}
fabric: {scheduler: rps}
workload: {kind: flows, size: 4096, flows: [{src: 0, dst: 1}, {src: 1, dst: 2}, {src: 2, dst: 0}]}
run: {seed: 9}
)",
                                    "x.yaml"));
}

RunResult all_done() {
  RunResult result;
  result.ended_at = 30 * kMicrosecond;
  result.messages = {{0, 10 * kMicrosecond, 1 * kAlone},
                     {kMicrosecond, 20 * kMicrosecond, kMicrosecond + 2 * kAlone},
                     {0, 16 * kMicrosecond, 4 * kAlone}};
  result.links.resize(3);
  result.links[1] = {7, 700, 10, 125'000};
  result.links[2] = {3, 300, 0, 0};
  result.imbalance = {{3, 100, 0.5}, {3, 200, 0.1}, {3, 300, 0.3}};
  result.packets_sent = 9;
  result.data_packets = 5;
  result.packets_received = 6;
  result.packets_in_flight = 1;
  result.drops[static_cast<size_t>(DropReason::kQueueFull)] = 2;
  result.retransmitted = 2;
  result.timeouts = 1;
  result.naks = 3;
  result.duplicates = 4;
  result.out_of_order_packets = 5;
  result.out_of_order_degree = 6;
  result.peak_queue_bytes = 12'345;
  result.packet_hops = 1'000;
  result.wall_seconds = 0.5;
  result.threads = 2;
  result.peak_rss_bytes = 3 << 20U;
  return result;
}

TEST(Report, EveryMetricByHand) {
  const Experiment experiment = three_messages();
  const RunResult result = all_done();
  const Json json = Report(experiment, result).to_json();
  EXPECT_EQ(json["scheme"], "rps");
  EXPECT_EQ(json["seed"], 9);
  EXPECT_EQ(json["ended"], "done");
  EXPECT_EQ(json["flows"], 3);
  EXPECT_EQ(json["completed"], 3);
  EXPECT_EQ(json["makespan_us"], 20.0);
  // Slowdowns 1, 2 and 4.
  const double alone_us = kAlone / 1e6;
  EXPECT_DOUBLE_EQ(json["fct_us"]["min"], alone_us);
  EXPECT_DOUBLE_EQ(json["fct_us"]["mean"], 7 * alone_us / 3);
  EXPECT_DOUBLE_EQ(json["fct_us"]["p50"], 2 * alone_us);
  EXPECT_DOUBLE_EQ(json["fct_us"]["p99"], 4 * alone_us);
  EXPECT_DOUBLE_EQ(json["fct_us"]["max"], 4 * alone_us);
  EXPECT_DOUBLE_EQ(json["slowdown"]["mean"], 7.0 / 3);
  EXPECT_DOUBLE_EQ(json["slowdown"]["p50"], 2);
  EXPECT_DOUBLE_EQ(json["slowdown"]["p99"], 4);
  EXPECT_DOUBLE_EQ(json["utilization"], (1 + 0.5 + 0.25) / 3);
  EXPECT_DOUBLE_EQ(json["goodput_gbps"], 3 * 4096 * 8 / 20e3);
  // One packet from each host to each: 2 × 334.24 ns and 2 µs.
  EXPECT_DOUBLE_EQ(json["lower_bound_us"], 2.66848);
  EXPECT_DOUBLE_EQ(json["efficiency"], 2.66848 / 20);
  EXPECT_EQ(json["jobs"][0]["name"], "flows");
  EXPECT_DOUBLE_EQ(json["jobs"][0]["efficiency"], 2.66848 / 20);

  EXPECT_EQ(json["drops"], (Json{{"queue_full", 2}}));
  EXPECT_EQ(json["out_of_order"], (Json{{"packets", 5}, {"max_degree", 6}, {"max_extent", 0}}));
  EXPECT_EQ(json["retransmitted"], 2);
  EXPECT_EQ(json["timeouts"], 1);
  EXPECT_EQ(json["naks"], 3);
  EXPECT_EQ(json["duplicates"], 4);
  EXPECT_EQ(json["packets"], (Json{{"sent", 9}, {"data", 5}, {"received", 6}, {"dropped", 2}, {"in_flight", 1}}));
  EXPECT_DOUBLE_EQ(json["uplink_imbalance"]["mean"], 0.3);
  EXPECT_DOUBLE_EQ(json["uplink_imbalance"]["p99"], 0.5);
  EXPECT_EQ(json["peak_queue_bytes"], 12'345);
  // 125,000 bytes at 100G from the switch to host 1.
  EXPECT_EQ(json["busiest_link"]["link"], "host1:0-switch0:1");
  EXPECT_EQ(json["busiest_link"]["from"], "switch0");
  EXPECT_EQ(json["busiest_link"]["packets"], 10);
  EXPECT_DOUBLE_EQ(json["busiest_link"]["busy_us"], 10);
  EXPECT_EQ(json["packet_hops"], 1'000);
  EXPECT_EQ(json["hops_per_s"], 2'000.0);
  EXPECT_EQ(json["peak_rss_mib"], 3.0);
  EXPECT_EQ(json["threads"], 2);
  for (const char* field : {"lossless_violations", "pauses_sent", "pause_time_us", "ecn_marked", "cnps",
                            "credit_stall_us", "deadlock", "pauses", "ecn_eligible", "peak_buffer_bytes"}) {
    EXPECT_TRUE(json.at(field).is_null()) << field;
  }
}

// Its configuration makes the same run again: what was left to the scheme and the run's seed is written out.
// 100 packets of 4178 bytes on the wire: 48 begin at 10G before the rate changes, the others at 100G.
TEST(Report, ALinkIsBusyAtTheRatesThatItHas) {
  const std::string yaml =
      "topology: {kind: single-switch, hosts: 2}\n"
      "hosts: {start_jitter: false}\n"
      "workload: {kind: flows, flows: [{src: 0, dst: 1, size: 409600}]}\n"
      "events: [{at: 0, link: \"host0:0\", rate: 10G}";
  const auto busiest = [](const std::string& text) {
    const Experiment experiment = prepare(load_scenario_text(text, "x.yaml"));
    const RunResult result = run_fabric(experiment.topology, experiment.workload, experiment.settings);
    return Report(experiment, result).to_json()["busiest_link"];
  };
  const Json slow = busiest(yaml + "]\n");
  EXPECT_EQ(slow["from"], "host0");
  EXPECT_EQ(slow["packets"], 100);
  EXPECT_DOUBLE_EQ(slow["busy_us"], 100 * 4178 * 8e-4);
  const Json faster = busiest(yaml + ", {at: 160us, link: \"host0:0\", rate: 100G}]\n");
  EXPECT_EQ(faster["from"], "host0");
  EXPECT_DOUBLE_EQ(faster["busy_us"], 48 * 4178 * 8e-4 + 52 * 4178 * 8e-5);
}

TEST(Report, HoldsTheEffectiveConfigurationAndVersion) {
  const Experiment experiment = three_messages();
  const RunResult result = all_done();
  const Json json = Report(experiment, result).to_json();
  EXPECT_EQ(json["version"], HEDDLE_VERSION);
  EXPECT_EQ(json["configuration"]["hosts"]["out_of_order"], "any-order-placement");
  EXPECT_EQ(json["configuration"]["workload"]["seed"], 9);
  const Experiment again = prepare(load_scenario_text(json["configuration"].dump(), "again.yaml"));
  EXPECT_EQ(Report(again, result).to_json().dump(), json.dump());
}

TEST(Report, WhatDidNotCompleteIsNeitherFastNorSlow) {
  const Experiment experiment = three_messages();
  RunResult result = all_done();
  result.end = RunResult::End::kTimeLimit;
  result.ended_at = 40 * kMicrosecond;
  result.messages[1].sent = kNever;  // received, its ACK under way
  result.messages[2] = {0, kNever, kNever};
  const Json json = Report(experiment, result).to_json();
  EXPECT_EQ(json["ended"], "time-limit");
  EXPECT_EQ(json["ended_at_us"], 40.0);
  EXPECT_EQ(json["flows"], 3);
  EXPECT_EQ(json["completed"], 1);
  EXPECT_TRUE(json["makespan_us"].is_null());
  EXPECT_TRUE(json["efficiency"].is_null());
  EXPECT_DOUBLE_EQ(json["fct_us"]["max"], kAlone / 1e6);
  EXPECT_DOUBLE_EQ(json["utilization"], 1.0 / 3) << "a flow that is not done counts as 0";
  EXPECT_DOUBLE_EQ(json["goodput_gbps"], 2 * 4096 * 8 / 40e3) << "two messages received in 40 us";
  EXPECT_TRUE(json["jobs"][0]["makespan_us"].is_null());
}

TEST(Report, NothingDone) {
  const Experiment experiment = three_messages();
  RunResult result;
  result.end = RunResult::End::kInterrupted;
  result.messages.resize(3);
  const Json json = Report(experiment, result).to_json();
  EXPECT_EQ(json["completed"], 0);
  for (const char* field : {"makespan_us", "fct_us", "slowdown", "efficiency", "uplink_imbalance", "busiest_link",
                            "hops_per_s", "goodput_gbps"}) {
    EXPECT_TRUE(json.at(field).is_null()) << field;
  }
  EXPECT_EQ(json["utilization"], 0.0);
  EXPECT_EQ(json["drops"], Json::object());
}

TEST(Report, OfAWorkloadWithoutFlows) {
  const Experiment experiment = prepare(load_scenario_text(
      "{topology: {kind: single-switch, hosts: 3}, workload: {kind: poisson, duration: 1ns}}", "x.yaml"));
  ASSERT_TRUE(experiment.workload.messages.empty());
  const RunResult result = run_fabric(experiment.topology, experiment.workload, experiment.settings);
  const Json report = Report(experiment, result).to_json();
  EXPECT_TRUE(report["efficiency"].is_null());
  EXPECT_TRUE(report["utilization"].is_null());
}

TEST(Report, FlowsAsCsv) {
  const Experiment experiment = three_messages();
  RunResult result = all_done();
  result.messages[2] = {5, kNever, kNever};
  const std::string csv = Report(experiment, result).flows_csv("0,w,rps,");
  EXPECT_EQ(flows_csv_header(),
            "run,workload,scheme,flow,job,phase,src,dst,bytes,release_us,received_us,sent_us,fct_us,alone_us,slowdown,"
            "held_us,held_by_others_us");
  EXPECT_EQ(csv,
            "0,w,rps,0,flows,0,0,1,4096,0.000000,10.000000,4.682240,4.682240,4.682240,1.000000,,\n"
            "0,w,rps,1,flows,0,1,2,4096,1.000000,20.000000,10.364480,9.364480,4.682240,2.000000,,\n"
            "0,w,rps,2,flows,0,2,0,4096,0.000005,,,,4.682240,,,\n");
}

// The second tier hashes like the first: it sees only flows that lead to every other of its uplinks.
TEST(Report, ShowsPolarisationByTier) {
  const Experiment experiment = prepare(load_scenario_text("topology: {kind: fat-tree, k: 4}", "x.yaml"));
  const Topology& t = experiment.topology;
  RunResult result;
  result.messages.resize(experiment.workload.messages.size());
  result.links.resize(t.links.size());
  for (NodeId node = t.host_count; node < t.nodes.size(); ++node) {
    const std::vector<PortIndex> uplinks = t.uplinks(node);
    for (size_t i = 0; i < uplinks.size(); ++i) {
      const LinkId link = t.ports[node][uplinks[i]];
      LinkLoad& load = result.links[link];
      (t.links[link].a == node ? load.a_to_b_bytes : load.b_to_a_bytes) = t.nodes[node].tier == 1 || i == 0 ? 1000 : 0;
    }
  }
  const Json tiers = Report(experiment, result).to_json().at("uplink_share").at("tiers");
  ASSERT_EQ(tiers.size(), 2U);
  EXPECT_EQ(tiers[0], (Json{{"tier", 1}, {"switches", 8}, {"uplinks", 16}, {"idle", 0}, {"jain", 1.0}}));
  EXPECT_EQ(tiers[1], (Json{{"tier", 2}, {"switches", 8}, {"uplinks", 16}, {"idle", 8}, {"jain", 0.5}}));
}

TEST(Report, ShowsHowLongQueuePairsPause) {
  const Experiment experiment = prepare(load_scenario_text("topology: {kind: single-switch, hosts: 2}", "x.yaml"));
  RunResult result;
  result.messages.resize(experiment.workload.messages.size());
  result.gaps.note(kMicrosecond);
  result.gaps.note(40 * kMicrosecond);
  const Json gaps = Report(experiment, result).to_json().at("send_gaps");
  ASSERT_EQ(gaps.size(), 11U);
  EXPECT_EQ(gaps[0], (Json{{"at_least_us", 1}, {"count", 2}}));
  EXPECT_EQ(gaps[5], (Json{{"at_least_us", 32}, {"count", 1}}));
  EXPECT_EQ(gaps[6], (Json{{"at_least_us", 64}, {"count", 0}}));
}

// Barriers are no flows.
TEST(Report, CountsMessagesOnly) {
  const Experiment experiment = prepare(load_scenario_text(
      "{topology: {kind: single-switch, hosts: 2}, workload: {kind: pipeline, microbatches: 3}}", "x.yaml"));
  RunResult result;
  for (const Message& m : experiment.workload.messages) {
    result.messages.push_back(m.is_barrier() ? MessageTimes{9 * kSecond, 9 * kSecond, 9 * kSecond}
                                             : MessageTimes{0, kMillisecond, 2 * kMillisecond});
  }
  ASSERT_GT(result.messages.size(), 3U);
  const Json json = Report(experiment, result).to_json();
  EXPECT_EQ(json["flows"], 3);
  EXPECT_EQ(json["completed"], 3);
  EXPECT_EQ(json["makespan_us"], 1000.0);
}

TEST(Percentile, IsTheNearestRank) {
  std::vector<int> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  EXPECT_EQ(percentile(values, 0.99), 99);
  EXPECT_EQ(percentile(values, 0.5), 50);
  EXPECT_EQ(percentile(values, 1), 100);
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(std::vector<int>{1, 2, 3}, 0.5), 2);
  EXPECT_EQ(percentile(std::vector<int>{1, 2, 3, 4}, 0.5), 2);
  EXPECT_EQ(percentile(std::vector<int>{7}, 0.99), 7);
  EXPECT_EQ(percentile(std::vector<int>{}, 0.99), 0);
  values.push_back(101);
  EXPECT_EQ(percentile(values, 0.99), 100) << "of 101 values, 100 are at least 99 %";
}

}  // namespace
}  // namespace heddle::lab
