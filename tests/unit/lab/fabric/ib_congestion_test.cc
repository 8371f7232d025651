// Congestion on InfiniBand links: who is held back by whose, and what FECN and BECN do about it.
#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "lab/report/victims.h"
#include "lab/scenario/experiment.h"
#include "lab/scenario/scenario.h"
#include "tests/support/fabric_runs.h"

namespace heddle::lab {
namespace {

using support::all_done;

constexpr const char* kControlled = ", congestion_control: infiniband";

struct Outcome {
  Experiment experiment;
  RunResult result;
  std::vector<HeldFlow> held;

  explicit Outcome(const std::string& yaml) : experiment(prepare(load_scenario_text(yaml, "x.yaml"))) {
    experiment.settings.run.threads = 1;
    result = run_fabric(experiment.topology, experiment.workload, experiment.settings);
    EXPECT_TRUE(all_done(result));
    EXPECT_EQ(support::all_drops(result), 0U);
    held = find_held_flows(experiment.topology, experiment.settings.events, experiment.workload, result.held);
  }
  std::set<MessageId> victims() const {
    std::set<MessageId> of;
    for (const HeldFlow& flow : held) {
      if (flow.by_others != 0) of.insert(flow.message);
    }
    return of;
  }
  Duration stalled() const {
    Duration sum = 0;
    for (const LaneUse& lane : result.lanes) sum += lane.stalled;
    return sum;
  }
};

// Five leaves with four hosts each and four spines, by destination modulo four. Hosts 0, 4, 8 and 12, each of its own
// leaf, send to 16 over spine 0, whose port to the last leaf is the congestion; 1 sends to 8, which shares the way from
// its leaf to that spine; 2 sends to 17 and shares nothing.
std::string five_leaves(const std::string& more) {
  return "topology: {kind: leaf-spine, hosts: 20, leaves: 5, spines: 4}\n"
         "fabric: {link_layer: infiniband, fecn: {threshold: 15}}\n"
         "hosts: {start_jitter: false" +
         more +
         "}\n"
         "workload:\n"
         "  kind: flows\n"
         "  flows: [{src: 0, dst: 16}, {src: 4, dst: 16}, {src: 8, dst: 16}, {src: 12, dst: 16}, {src: 1, dst: 8},\n"
         "          {src: 2, dst: 17}]\n";
}

TEST(InfinibandVictims, AreThoseWhoWaitForCreditThatOthersHold) {
  const Outcome run(five_leaves(""));
  EXPECT_EQ(run.victims(), (std::set<MessageId>{4}));
  const Topology& topology = run.experiment.topology;
  for (const HeldFlow& flow : run.held) {
    EXPECT_NE(flow.message, 5U) << "nothing on its way was held back";
    EXPECT_GT(flow.held, 0U);
    if (flow.by_others == 0) continue;
    EXPECT_EQ(topology.nodes[flow.origin.node()].name, "spine0");
    EXPECT_EQ(topology.neighbor(flow.origin.node(), flow.origin.port()), topology.leaf_of(16));
    const MessageTimes& times = run.result.messages[flow.message];
    EXPECT_LT(flow.by_others, times.sent - times.released);
    EXPECT_GT(flow.by_others, (times.sent - times.released) / 4) << "most of what it took beyond 160 us";
  }
  EXPECT_EQ(run.held.size(), 5U) << "the four of the incast wait for each other";
}

TEST(InfinibandVictims, ThereAreNoneWhereEverybodyGoesToTheSamePort) {
  const Outcome run(
      "topology: {kind: single-switch, hosts: 16}\n"
      "fabric: {link_layer: infiniband}\n"
      "workload: {kind: incast, size: 500kB, fan_in: 15}\n");
  EXPECT_TRUE(run.victims().empty());
  EXPECT_EQ(run.held.size(), 15U);
  EXPECT_GT(run.stalled(), kMillisecond);
}

// examples/lab/ib-incast-victim.yaml: 32 senders to one host, and bystanders, 29 of whom wait for the incast's stalls.
TEST(InfinibandCongestion, ControlFreesTheVictims) {
  const std::string yaml =
      "topology: {kind: leaf-spine, hosts: 64, leaves: 4}\n"
      "fabric: {link_layer: infiniband}\n"
      "workload: {kind: incast, size: 2MB, fan_in: 32, victims: 60}\n";
  const Outcome without(yaml);
  const Outcome with(yaml + "hosts: {congestion_control: infiniband}\n");
  EXPECT_EQ(without.result.ecn_marked, 0U);
  EXPECT_GT(with.result.ecn_marked, 0U);
  EXPECT_LE(with.result.ce_packets, with.result.ecn_marked) << "some are marked twice";
  EXPECT_GT(with.result.ce_packets, with.result.ecn_marked * 9 / 10);
  EXPECT_EQ(with.result.cnps, with.result.ce_packets) << "each is sent back, here in as many ACKs";
  EXPECT_EQ(with.result.cnps_received, with.result.cnps);
  EXPECT_GE(with.result.throttled_queues, 32U);
  EXPECT_GT(with.result.peak_ccti, 0U);

  EXPECT_LT(with.stalled(), without.stalled() / 4);
  const std::set<MessageId> victims = without.victims();
  EXPECT_GT(victims.size(), 20U);
  const auto took = [&victims](const Outcome& of) {
    Duration sum = 0;
    for (const MessageId m : victims) sum += support::completion_of(of.result.messages[m]);
    return sum;
  };
  EXPECT_LT(took(with), took(without) / 3);
  // The incast itself, which cannot be faster than its receiver's link, hardly notices.
  EXPECT_LT(support::last_completion(with.result), support::last_completion(without.result) * 21 / 20);
}

// Only the root of the congestion marks, unless the mask says otherwise.
TEST(InfinibandCongestion, VictimsMarkWhereTheirMaskSaysSo) {
  const auto marks = [](const char* mask) {
    const std::string plain = "fecn: {threshold: 15}";
    std::string yaml = five_leaves(kControlled);
    yaml.replace(yaml.find(plain), plain.size(), std::string("fecn: {victim_mask: ") + mask + "}");
    return Outcome(yaml).result.ecn_marked;
  };
  const uint64_t of_roots = marks("none");
  EXPECT_GT(of_roots, 0U);
  EXPECT_EQ(marks("hosts"), of_roots) << "hosts give credit all the time: their ports are roots anyway";
  EXPECT_GT(marks("all"), of_roots + 50) << "the leaves' uplinks wait for credit, and mark as well";
}

// ACKs that nobody asked for carry the mark back at once.
TEST(InfinibandCongestion, DoesNotWaitForTheNextAcknowledgement) {
  const Outcome run(five_leaves(std::string(kControlled) + ", ack_every: 512"));
  EXPECT_GT(run.result.ecn_marked, 0U);
  EXPECT_EQ(run.result.cnps_received, run.result.ce_packets);
}

// A packet of its own for each mark, and none of them in an ACK; it frees the victims as well.
TEST(InfinibandCongestion, NotificationsBringMarksBackToo) {
  const std::string by_cnp = ", congestion_control: {kind: infiniband, notify_by: cnp}";
  const Outcome without(five_leaves(""));
  const Outcome acks(five_leaves(kControlled));
  const Outcome cnps(five_leaves(by_cnp));
  EXPECT_GT(cnps.result.ce_packets, 0U);
  EXPECT_EQ(cnps.result.cnps, cnps.result.ce_packets);
  EXPECT_EQ(cnps.result.cnps_received, cnps.result.cnps);
  EXPECT_EQ(cnps.result.packets_sent, 2 * cnps.result.data_packets + cnps.result.cnps) << "data, ACKs and CNPs";
  EXPECT_EQ(acks.result.packets_sent, 2 * acks.result.data_packets);
  EXPECT_GT(cnps.result.peak_ccti, 0U);
  EXPECT_LT(cnps.stalled(), without.stalled() / 2);
  // Where few ACKs are asked for, nothing but CNPs is added.
  const Outcome rare(five_leaves(by_cnp + ", ack_every: 512"));
  EXPECT_EQ(rare.result.cnps_received, rare.result.ce_packets);
  EXPECT_LE(rare.result.packets_sent, rare.result.data_packets + rare.result.cnps + 2 * 6);
}

// Host 0 sends to the incast's target and, innocently, to a host that nobody else sends to.
TEST(InfinibandCongestion, AServiceLevelIsHeldBackAsOne) {
  const auto took = [](const std::string& more) {
    std::string yaml = five_leaves(", congestion_control: {kind: infiniband" + more + "}");
    yaml.replace(yaml.find("{src: 1, dst: 8}"), std::string("{src: 1, dst: 8}").size(), "{src: 0, dst: 19}");
    const Outcome run(yaml);
    EXPECT_GT(run.result.ecn_marked, 0U);
    EXPECT_EQ(run.result.peak_ccti == 0, more == ", service_levels: [1-15]") << "everybody is on level 0";
    EXPECT_LE(run.result.throttled_queues, 4U) << "one for each that sends into the incast";
    return support::completion_of(run.result.messages[4]);
  };
  const Duration alone = took("");
  EXPECT_GT(took(", per: service-level"), alone * 5 / 4) << "the innocent flow waits with the other";
  took(", service_levels: [1-15]");
}

// With one index for ever, a packet and three times its time: each queue pair has a quarter of the port, or the whole
// service level has, however many queue pairs share it.
TEST(InfinibandCongestion, TheDelayIsKeptBetweenPacketsOfAQueuePairOrOfALevel) {
  const auto took = [](const std::string& more) {
    const Outcome run(
        "topology: {kind: single-switch, hosts: 4}\n"
        "fabric: {link_layer: infiniband}\n"
        "hosts: {start_jitter: false, congestion_control: {kind: infiniband, cct: ['0:0', '0:3'], ccti_min: 1" +
        more +
        "}}\n"
        "workload: {kind: flows, flows: [{src: 0, dst: 1}, {src: 0, dst: 2}, {src: 0, dst: 3}]}\n");
    return static_cast<double>(support::last_completion(run.result));
  };
  const double line = took(", service_levels: [1]");  // nobody is held back: three flows share the port
  EXPECT_NEAR(took("") / line, 4.0 / 3.0, 0.02);
  EXPECT_NEAR(took(", per: service-level") / line, 4.0, 0.06);
  EXPECT_NEAR(took(", per: service-level, service_levels: [1]") / line, 1.0, 0.001);
}

TEST(InfinibandCongestion, ThresholdAndPacketSizeTurnMarkingOff) {
  for (const char* fecn : {"{threshold: 0}", "{packet_size: 8192}"}) {
    SCOPED_TRACE(fecn);
    std::string yaml = five_leaves(kControlled);
    yaml.replace(yaml.find("{threshold: 15}"), std::string("{threshold: 15}").size(), fecn);
    const Outcome run(yaml);
    EXPECT_EQ(run.result.ecn_marked, 0U);
    EXPECT_EQ(run.result.peak_ccti, 0U);
  }
}

}  // namespace
}  // namespace heddle::lab
