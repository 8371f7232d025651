// What a good scenario means: defaults, every key but those of workloads, overlays, the JSON form, what is resolved
// later.
#include "lab/scenario/scenario.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lab/scenario/experiment.h"
#include "net/error.h"
#include "tests/unit/lab/scenario/loading.h"

namespace heddle::lab {
namespace {

using ::testing::ElementsAre;

TEST(Scenario, EverythingHasADefault) {
  const Scenario scenario = load("{}");
  EXPECT_EQ(shape<LeafSpineSettings>(scenario).hosts, 128U);
  EXPECT_EQ(scenario.switches.scheduler, *lb::scheduler_named("ecmp"));
  EXPECT_EQ(scenario.switches.queue_limit, dataplane::EgressQueue::kUnlimited);
  EXPECT_EQ(scenario.hosts.mtu, 4096U);
  EXPECT_FALSE(scenario.out_of_order);
  EXPECT_EQ(pattern<Permutation>(scenario).bytes, 2'000'000U);
  EXPECT_EQ(scenario.run.seed, 1U);
  EXPECT_EQ(scenario.run.until, 0U);
  EXPECT_TRUE(scenario.events.empty());
  const Experiment experiment = prepare(scenario);
  EXPECT_EQ(experiment.topology.host_count, 128U);
  EXPECT_EQ(experiment.topology.switch_count(), 8U + 16U) << "over-subscription 1";
  EXPECT_EQ(experiment.workload.messages.size(), 128U);
}

TEST(Scenario, ReadsEveryKeyOfFlowControl) {
  const FlowControlSettings of = load(R"(
fabric:
  buffer: 9MB
  lossless: [3, 6]
  pfc: {alpha: 0.0625, xon_offset: 5kB, headroom: 60kB, quanta: 1000}
  ecn: {kmin: 100kB, kmax: 400kB, pmax: 20%, classes: [3, 4]}
)")
                                     .switches.flow_control;
  EXPECT_EQ(of.buffer, 9'000'000U);
  EXPECT_EQ(of.lossless, 0x48);
  EXPECT_TRUE(of.pfc);
  EXPECT_EQ(of.xoff.alpha_256ths, 16U);
  EXPECT_EQ(of.xon_offset, 5'000U);
  EXPECT_EQ(of.headroom, 60'000U);
  EXPECT_EQ(of.quanta, 1000);
  EXPECT_EQ(of.ecn.min_bytes, 100'000U);
  EXPECT_EQ(of.ecn.max_bytes, 400'000U);
  EXPECT_DOUBLE_EQ(of.ecn.max_probability, 0.2);
  EXPECT_EQ(of.ecn_classes, 0x18);
  EXPECT_FALSE(load("fabric: {buffer: 9MB, lossless: [3], pfc: none}").switches.flow_control.pfc);
  EXPECT_EQ(load("fabric: {buffer: 9MB, lossless: [3], pfc: {xoff: 1MB}}").switches.flow_control.xoff.bytes,
            1'000'000U);
  EXPECT_EQ(load("{}").switches.flow_control.buffer, 0U);
  EXPECT_FALSE(load("{}").switches.flow_control.pauses());
}

// The example of DESIGN §7's sections, key by key.
TEST(Scenario, ReadsEveryKeyOfFabricHostsAndRun) {
  const Scenario scenario = load(R"(
fabric: {link_layer: ethernet, scheduler: rps, buffer: unlimited, queue_limit: 2MB, convergence: 1ms,
         sample_interval: 10us}
hosts: {mtu: 1024, congestion_control: none, loss_recovery: selective-repeat, out_of_order: in-order-placement,
        reorder_buffer: 64KiB, qps_per_connection: 4, entropy: per-packet, spray_ports: 32, ack_every: 16, window: 1MB,
        retransmit_timeout: 100us, start_jitter: false}
run: {seed: 7, until: 3ms, threads: 2, window: 500ns, trigger_delay: 2us}
)");
  EXPECT_EQ(scenario.switches.scheduler, *lb::scheduler_named("rps"));
  EXPECT_EQ(scenario.switches.queue_limit, 2'000'000U);
  EXPECT_EQ(scenario.switches.convergence, kMillisecond);
  EXPECT_EQ(scenario.switches.sample_interval, 10 * kMicrosecond);
  const HostSettings& hosts = scenario.hosts;
  EXPECT_EQ(hosts.mtu, 1024U);
  EXPECT_EQ(scenario.loss_recovery, OutOfOrder::kSelectiveRepeat);
  EXPECT_EQ(scenario.out_of_order, OutOfOrder::kInOrderPlacement);
  EXPECT_EQ(hosts.reorder_bytes, 65'536U);
  EXPECT_EQ(hosts.qps_per_connection, 4U);
  EXPECT_EQ(hosts.entropy, Entropy::kPerPacket);
  EXPECT_EQ(hosts.spray_ports, 32U);
  EXPECT_EQ(hosts.ack_every, 16U);
  EXPECT_EQ(hosts.window_bytes, 1'000'000U);
  EXPECT_EQ(hosts.retransmit_timeout, 100 * kMicrosecond);
  EXPECT_FALSE(hosts.start_jitter);
  EXPECT_EQ(scenario.run.seed, 7U);
  EXPECT_EQ(scenario.run.until, 3 * kMillisecond);
  EXPECT_EQ(scenario.run.threads, 2U);
  EXPECT_EQ(scenario.run.window, 500 * kNanosecond);
  EXPECT_EQ(scenario.run.trigger_delay, 2 * kMicrosecond);
}

TEST(Scenario, ReadsASchedulerByItsTwoChoices) {
  EXPECT_EQ(load("fabric: {scheduler: {granularity: packet, choice: round-robin}}").switches.scheduler,
            *lb::scheduler_named("round-robin"));
}

TEST(Scenario, ReadsPathSelection) {
  const Scenario scenario = load(R"(
fabric:
  scheduler: adaptive
  control_scheduler: ecmp
  ars: {idle_time: 20us, max_flows: 1000, quality_rule: bands, sampling_interval: 4us, ewma: false,
        port_load_exponent: 3, port_load_past_weight: 5, port_load_future_weight: 6,
        quant_bands: [1us, 2us, 3us, 4us, 5us, 6us, 7us], primary_path_quality_threshold: 4, alternate_path_cost: 2}
)");
  EXPECT_EQ(scenario.switches.control_scheduler, lb::scheduler_named("ecmp"));
  const lb::ArsSettings& ars = scenario.switches.ars;
  EXPECT_EQ(ars.idle_time, 20 * kMicrosecond);
  EXPECT_EQ(ars.max_flows, 1000U);
  EXPECT_EQ(ars.quality_rule, lb::QualityRule::kBands);
  EXPECT_EQ(ars.sampling_interval, 4 * kMicrosecond);
  EXPECT_FALSE(ars.ewma);
  EXPECT_EQ(ars.port_load_exponent, 3);
  EXPECT_EQ(ars.port_load_past_weight, 5);
  EXPECT_EQ(ars.port_load_future_weight, 6);
  EXPECT_EQ(ars.quant_bands[6], 7 * kMicrosecond);
  EXPECT_EQ(ars.primary_path_quality_threshold, 4U);
  EXPECT_EQ(ars.alternate_path_cost, 2U);
  EXPECT_EQ(to_json(load(to_json(scenario).dump())), to_json(scenario));
  EXPECT_EQ(load("fabric: {control_scheduler: default}").switches.control_scheduler, std::nullopt);
}

TEST(Scenario, ReadsEveryTopology) {
  const Scenario leaf_spine = load(R"(
topology: {kind: leaf-spine, hosts: 32, leaves: 4, spines: 2, links_per_pair: 2, link: {delay: 2us, loss: 0.1%},
           host_link: {rate: 25G}, uplink: {rate: 50G, delay: 3us, overhead: 0, bit_error: 1e-12}}
)");
  const auto& two_tiers = shape<LeafSpineSettings>(leaf_spine);
  EXPECT_EQ(two_tiers.spines, 2U);
  EXPECT_EQ(two_tiers.links_per_pair, 2U);
  EXPECT_EQ(two_tiers.oversubscription, 0) << "follows from the other two";
  EXPECT_EQ(two_tiers.host_link.rate, Rate::gbps(25));
  EXPECT_EQ(two_tiers.host_link.delay, 2 * kMicrosecond);
  EXPECT_EQ(two_tiers.host_link.loss, 0.001);
  EXPECT_EQ(two_tiers.uplink.rate, Rate::gbps(50));
  EXPECT_EQ(two_tiers.uplink.delay, 3 * kMicrosecond);
  EXPECT_EQ(two_tiers.uplink.overhead, 0);
  EXPECT_EQ(two_tiers.uplink.bit_error, 1e-12);
  EXPECT_EQ(two_tiers.uplink.loss, 0.001);

  const auto tree = shape<FatTreeSettings>(load("topology: {kind: fat-tree, radix: 8, pods: 4, oversubscription: 3}"));
  EXPECT_EQ(tree.radix, 8U);
  EXPECT_EQ(tree.pods, 4U);
  EXPECT_EQ(tree.oversubscription, 3);

  const auto rail = shape<RailSettings>(load("topology: {kind: rail, hosts: 64, nics_per_server: 4, spines: 4}"));
  EXPECT_EQ(rail.nics_per_server, 4U);
  EXPECT_EQ(rail.spines, 4U);

  const auto one = shape<SingleSwitchSettings>(load("topology: {kind: single-switch, hosts: 3, link: {rate: 10G}}"));
  EXPECT_EQ(one.hosts, 3U);
  EXPECT_EQ(one.link.rate, Rate::gbps(10));

  const Experiment graph = prepare(load(R"(
topology:
  kind: graph
  hosts: [alice]
  switches: [{name: a, hosts: 1}, {name: b, hosts: 2, host_link: {rate: 25G}}]
  links: [{a: alice, b: a}, {a: a, b: b, count: 2, rate: 400G}]
workload: {kind: permutation}
)"));
  EXPECT_EQ(graph.topology.host_count, 4U);
  EXPECT_EQ(graph.topology.links_between(4, 5).size(), 2U);
  EXPECT_EQ(graph.topology.links[graph.topology.links_between(4, 5)[0]].rate, Rate::gbps(400));
  EXPECT_EQ(graph.topology.links[graph.topology.ports[2][0]].rate, Rate::gbps(25));
}

// Whose rate `link.rate` is: the hosts', with the tiers above derived; of all tiers where hosts have one of their own.
TEST(Scenario, LinkRateIsTheHostsUnlessTheyHaveTheirOwn) {
  struct Case {
    std::string what;
    std::string yaml;
    Rate host;
    Rate uplink;
  };
  const std::vector<Case> cases{
      {"link alone", "spines: 4, link: {rate: 50G}", Rate::gbps(50), Rate::gbps(50)},
      {"derived from over-subscription", "spines: 4, oversubscription: 2, link: {rate: 50G}", Rate::gbps(50),
       Rate::gbps(25)},
      {"hosts by themselves", "spines: 4, link: {rate: 100G}, host_link: {rate: 25G}", Rate::gbps(25), Rate::gbps(100)},
      {"uplinks by themselves", "spines: 4, link: {rate: 100G}, uplink: {rate: 400G}", Rate::gbps(100),
       Rate::gbps(400)},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Topology topology =
        prepare(load("topology: {kind: leaf-spine, hosts: 16, leaves: 4, " + c.yaml + "}")).topology;
    EXPECT_EQ(topology.links.front().rate, c.host);
    EXPECT_EQ(topology.links.back().rate, c.uplink);
  }
}

TEST(Scenario, OutOfOrderFollowsFromTheScheme) {
  struct Case {
    std::string what;
    std::string yaml;
    OutOfOrder expected;
    std::string name;
  };
  const std::vector<Case> cases{
      {"ECMP keeps a flow's order", "{}", OutOfOrder::kGoBackN, "ecmp"},
      {"as loss recovery says", "hosts: {loss_recovery: selective-repeat}", OutOfOrder::kSelectiveRepeat, "ecmp"},
      {"per-packet schemes reorder", "fabric: {scheduler: rps}", OutOfOrder::kAnyOrderPlacement, "rps"},
      {"so do hosts that spray", "hosts: {entropy: per-packet}", OutOfOrder::kAnyOrderPlacement, "host-spray"},
      {"both", "{fabric: {scheduler: rps}, hosts: {entropy: per-packet}}", OutOfOrder::kAnyOrderPlacement,
       "rps+host-spray"},
      {"what is written counts", "{fabric: {scheduler: rps}, hosts: {out_of_order: go-back-n}}", OutOfOrder::kGoBackN,
       "rps+gbn"},
      {"the word default is the default", "{fabric: {scheduler: rps}, hosts: {out_of_order: default}}",
       OutOfOrder::kAnyOrderPlacement, "rps"},
      {"strict hosts may repeat selectively",
       "{fabric: {scheduler: round-robin}, hosts: {out_of_order: selective-repeat}}", OutOfOrder::kSelectiveRepeat,
       "round-robin+sr"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Experiment experiment = prepare(load(c.yaml));
    EXPECT_EQ(experiment.settings.hosts.out_of_order, c.expected);
    EXPECT_EQ(scheme_name(experiment.scenario), c.name);
  }
}

struct ControlCase {
  const char* what;
  const char* yaml;
  const char* set;  // null: no congestion control
  Rate additive;    // at 100G
  Duration cnp_interval;
};

TEST(Scenario, CongestionControl) {
  const ControlCase cases[] = {
      {"none is the default", "{}", nullptr, Rate(), 0},
      {"none", "hosts: {congestion_control: none}", nullptr, Rate(), 0},
      {"none as a kind", "hosts: {congestion_control: {kind: none}}", nullptr, Rate(), 0},
      {"dcqcn is its first set", "hosts: {congestion_control: dcqcn}", "hpcc", Rate(20'000'000), 0},
      {"a set", "hosts: {congestion_control: {kind: dcqcn, set: nvidia}}", "nvidia", Rate(5'000'000), 4 * kMicrosecond},
      {"a set with something else", "hosts: {congestion_control: {set: conweave, additive: 80M, cnp_interval: 2us}}",
       "conweave", Rate(80'000'000), 2 * kMicrosecond},
  };
  for (const ControlCase& c : cases) {
    SCOPED_TRACE(c.what);
    const Scenario scenario = load(c.yaml);
    const std::optional<flowctl::DcqcnSet>& dcqcn = scenario.hosts.dcqcn;
    ASSERT_EQ(dcqcn.has_value(), c.set != nullptr);
    // What is printed is a scenario again, and means the same.
    const Scenario again = load_scenario_text(to_json(scenario).dump(), "printed.yaml");
    ASSERT_EQ(again.hosts.dcqcn.has_value(), c.set != nullptr);
    if (!dcqcn) continue;
    EXPECT_EQ(dcqcn->name, c.set);
    EXPECT_EQ(dcqcn->at_100g.additive, c.additive);
    EXPECT_EQ(dcqcn->at_100g.cnp_interval, c.cnp_interval);
    EXPECT_EQ(again.hosts.dcqcn->at_100g, dcqcn->at_100g);
    EXPECT_EQ(again.hosts.dcqcn->name, dcqcn->name);
  }
}

TEST(Scenario, HostsOfOtherSimulators) {
  const Scenario scenario =
      load("{topology: {link: {overhead: -10}}, hosts: {connections: per-message, ack_dscp: 48}}");
  EXPECT_EQ(scenario.hosts.connections, Connections::kPerMessage);
  EXPECT_EQ(scenario.hosts.ack_dscp, 48);
  EXPECT_EQ(shape<LeafSpineSettings>(scenario).uplink.overhead, -10);
  const Scenario again = load_scenario_text(to_json(scenario).dump(), "printed.yaml");
  EXPECT_EQ(again.hosts.connections, Connections::kPerMessage);
  EXPECT_EQ(again.hosts.ack_dscp, 48);
  EXPECT_EQ(shape<LeafSpineSettings>(again).uplink.overhead, -10);
}

TEST(Scenario, ANewKindDropsTheKeysOfTheOld) {
  const std::string yaml = "topology: {kind: fat-tree, k: 4}\nworkload: {kind: incast, fan_in: 3}\n";
  const Scenario scenario = load(yaml, {"topology.kind=single-switch", "topology.hosts=8", "workload.kind=shift"});
  EXPECT_EQ(shape<SingleSwitchSettings>(scenario).hosts, 8U);
  EXPECT_EQ(pattern<Shift>(scenario).distance, 1U);
  // Naming the default kind of a section that does not say drops nothing.
  EXPECT_EQ(shape<LeafSpineSettings>(load("topology: {hosts: 64}", {"topology.kind=leaf-spine"})).hosts, 64U);
  EXPECT_EQ(pattern<Permutation>(load("workload: {size: 9kB}", {"workload.kind=permutation"})).bytes, 9'000U);
}

TEST(Scenario, EventsNameLinksByNeighboursOrPort) {
  const Experiment experiment = prepare(load(R"(
topology: {kind: leaf-spine, hosts: 4, leaves: 2, spines: 2, links_per_pair: 2}
events:
  - {at: 2us, link: leaf0-spine1, rate: 25G, direction: in}
  - {at: 1us, link: "leaf1:2", state: down}
  - {at: 3us, link: spine0:0, loss: 1%, direction: out}
  - {at: 3us, link: "leaf0:2-spine0:0", state: up}
)"));
  const Topology& topology = experiment.topology;
  const NodeId leaf0 = *find_node(topology, "leaf0");
  const NodeId leaf1 = *find_node(topology, "leaf1");
  const auto& events = experiment.settings.events;
  ASSERT_EQ(events.size(), 5U) << "two parallel links between leaf0 and spine1";
  EXPECT_EQ(events[0].link, topology.ports[leaf1][2]);
  EXPECT_EQ(events[0].kind, LinkEvent::Kind::kDown);
  EXPECT_EQ(events[1].link, topology.links_between(leaf0, *find_node(topology, "spine1"))[0]);
  EXPECT_EQ(events[2].link, topology.links_between(leaf0, *find_node(topology, "spine1"))[1]);
  EXPECT_EQ(events[1].direction, LinkDirection::kBToA) << "towards leaf0, the link's end a";
  EXPECT_EQ(events[1].rate, Rate::gbps(25));
  EXPECT_EQ(events[3].link, topology.ports[leaf0][2]);
  EXPECT_EQ(events[3].direction, LinkDirection::kBToA) << "out of spine0, the link's end b";
  EXPECT_DOUBLE_EQ(events[3].loss, 0.01);
  EXPECT_EQ(events[4].link, topology.ports[leaf0][2]);
}

// Whatever can be written comes back from its JSON form as the same scenario.
TEST(Scenario, ItsJsonIsTheSameScenario) {
  const std::vector<std::string> scenarios{
      "{}",
      "topology: {kind: leaf-spine, hosts: 32, leaves: 4, spines: 2, link: {rate: 40G, loss: 0.00001, bit_error: "
      "1e-13}}",
      "topology: {kind: leaf-spine, hosts: 32, leaves: 4, oversubscription: 2}",
      "topology: {kind: fat-tree, k: 4, core_link: {rate: 400G}}",
      "topology: {kind: fat-tree, hosts: 432}",
      "topology: {kind: fat-tree, radix: 8, pods: 2, oversubscription: 3}",
      "topology: {kind: rail, hosts: 64, nics_per_server: 4, servers_per_group: 8}",
      "topology: {kind: single-switch, hosts: 7}",
      "topology: {kind: graph, hosts: [x], switches: [{name: s, hosts: 2, tier: 1}], links: [{a: x, b: s, rate: 10G}]}",
      "{fabric: {scheduler: rps, queue_limit: 1MB}, hosts: {out_of_order: go-back-n, entropy: none, window: 100kB}}",
      "hosts: {static_rate: 40G, burst: 64KiB, qps_per_connection: 4}",
      "fabric: {buffer: 9MB, lossless: [3, 6], pfc: {xoff: 200kB, xon_offset: 1kB, headroom: 50kB, quanta: 99}}",
      "fabric: {buffer: 32MB, lossless: [3], pfc: {alpha: 0.0625}, ecn: {kmin: 100kB, kmax: 400kB, pmax: 20%}}",
      "fabric: {buffer: 9MB, lossless: [3], watchdog: {detect: 1ms, restore: 2ms, action: forward}}",
      "fabric: {buffer: 1MB, lossless: [0], pfc: none, ecn: {kmin: 1, kmax: 2, classes: [0, 7]}}",
      "fabric: {port_buffer: 128KiB, lossless: [3]}",
      "fabric: {link_layer: infiniband, routing: up-down, lmc: 2}",
      "fabric: {link_layer: infiniband, partitions: [{name: red, key: 17, hosts: [0-3, 9]}, {limited: [4]}]}",
      "fabric: {link_layer: infiniband, scheduler: adaptive, adaptive_routing: {mode: bounded, ageing_time: 7us, "
      "service_levels: [0, 3-15]}, self_healing: failover, management_buffer: 1kB, notice_repeats: 0, notice_interval: "
      "5us}",
      "fabric: {link_layer: infiniband, scheduler: adaptive, credits: {buffer: 1MB, counter_bits: 20, block: 128, "
      "lanes: 2, "
      "period: 5us}}",
      "{fabric: {link_layer: infiniband, fecn: {threshold: 3, marking_rate: 0, packet_size: 64, victim_mask: all}}, "
      "hosts: {congestion_control: infiniband, static_rate: path}}",
      "{fabric: {link_layer: infiniband}, hosts: {static_rate: 25G, congestion_control: {kind: infiniband, "
      "ccti_increase: 2, ccti_limit: 2, ccti_min: 1, ccti_timer: 9us, cct: ['0:0', '3:7', '0:16383']}}}",
      "{fabric: {link_layer: infiniband}, hosts: {congestion_control: {kind: infiniband, per: service-level, "
      "notify_by: cnp, service_levels: [0, 3-5]}}}",
      "workload: [{name: a, kind: incast, hosts: [0-3, 9], victims: 1}, {name: b, kind: training, steps: 2, seed: 3}]",
      "workload: {kind: poisson, distribution: hadoop, load: 0.3, placement: random, ranks: 12}",
      "workload: {kind: poisson, distribution: {size: 64kB}}",
      "workload: {kind: all-to-all, algorithm: staggered, in_flight: 2, start: 1us}",
      "workload: {kind: pipeline, forward: 1ms, backward: true, backward_work: 2ms}",
      "workload: {kind: flows, flows: [{src: 0, dst: 1}, {src: 1, dst: 0, size: 1, start: 1ns}]}",
      "events: [{at: 0, link: leaf0-spine0, state: down}, {at: 1ms, link: leaf0-spine0, loss: 1e-06, direction: in}]",
      "{run: {seed: 18446744073709551615, until: 1ms, threads: 3, window: 1ns, trigger_delay: 9us, warm_up: 4us}}",
      "{fabric: {path_delay: {enabled: true, rate: 0.02%, base: 3us, trace: true}}}",
      "bench: {schemes: [ecmp, rps+gbn], workloads: {a: {kind: shift}, b: [{name: x}, {name: y, ranks: 2}]}}",
  };
  for (const std::string& yaml : scenarios) {
    SCOPED_TRACE(yaml);
    const Scenario scenario = load(yaml);
    const std::string once = to_json(scenario).dump(2);
    EXPECT_EQ(to_json(load(once)).dump(2), once);
    Scenario resolved = scenario;
    resolve(resolved);
    EXPECT_EQ(to_json(load(to_json(resolved).dump())).dump(), to_json(resolved).dump());
  }
}

TEST(Scenario, FilesAreFoundNextToTheScenario) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "scenario-files";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "two.flows") << "1\n0 1 3 100 5000 2.0\n";
  std::ofstream(folder / "sizes.txt") << "1000 0\n2000 100\n";
  std::ofstream(folder / "x.yaml") << "topology: {kind: single-switch, hosts: 3}\n"
                                      "workload: {kind: file, file: two.flows, format: hpcc}\n";
  const std::string path = (folder / "x.yaml").string();
  const Experiment imported = prepare(load_scenario(path));
  ASSERT_EQ(imported.workload.messages.size(), 1U);
  EXPECT_EQ(imported.workload.messages[0].bytes, 5'000U);
  const Experiment sized = prepare(load_scenario(
      path, {"workload.kind=poisson", "workload.distribution={file: " + (folder / "sizes.txt").string() + "}",
             "workload.max_flows=20"}));
  for (const Message& m : sized.workload.messages) EXPECT_TRUE(m.bytes > 1000 && m.bytes <= 2000) << m.bytes;
  // Its JSON names the file in full, so that it can be loaded from anywhere.
  EXPECT_EQ(prepare(load(to_json(load_scenario(path)).dump())).workload.messages.size(), 1U);
  std::filesystem::remove_all(folder);
}

TEST(Scenario, EndsAtFiftyTimesTheLowerBoundUnlessItSays) {
  const std::string yaml = "{topology: {kind: single-switch, hosts: 2}, workload: {kind: shift, size: 20MB}, ";
  const Experiment open = prepare(load(yaml + "run: {until: done}}"));
  EXPECT_GT(open.bound.makespan, 1600 * kMicrosecond);
  EXPECT_EQ(open.settings.run.until, 50 * open.bound.makespan);
  EXPECT_EQ(prepare(load(yaml + "run: {until: 5us}}")).settings.run.until, 5 * kMicrosecond);
  // A lost packet of a short message must have the time to be found missing.
  const Experiment brief =
      prepare(load("{topology: {kind: single-switch, hosts: 2}, workload: {kind: shift, size: 1kB}}"));
  EXPECT_EQ(brief.settings.run.until, brief.bound.makespan + 3 * 4 * kMillisecond);
}

}  // namespace
}  // namespace heddle::lab
