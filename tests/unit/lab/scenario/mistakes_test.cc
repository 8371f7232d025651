// What is refused in a scenario, and in which words.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/scenario/experiment.h"
#include "lab/scenario/scenario.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

struct Mistake {
  std::string what;
  std::string yaml;
  int line;             // that the message must name
  std::string message;  // all that follows "x.yaml:LINE: "
};

void expect_messages(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.what);
    try {
      prepare(load_scenario_text(mistake.yaml, "x.yaml"));
      ADD_FAILURE() << "accepted:\n" << mistake.yaml;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
      EXPECT_EQ(error.what(), "x.yaml:" + std::to_string(mistake.line) + ": " + mistake.message);
    }
  }
}

TEST(ScenarioMistakes, Sections) {
  const std::string sections = "topology, fabric, hosts, workload, events, run, bench";
  expect_messages({
      {"an empty file", "", 1, "found an empty file; accepted: a YAML map, {} for one with every default"},
      {"a list", "- topology\n", 1, "found a list; accepted: a map of " + sections},
      {"a section with a typing error", "fabirc: {}\n", 1,
       "found unknown key 'fabirc' (did you mean 'fabric'?); accepted: " + sections},
      {"a section of a switch", "ports: []\n", 1, "found unknown key 'ports'; accepted: " + sections},
  });
}

TEST(ScenarioMistakes, Partitions) {
  const std::string keys = "; accepted: a whole number from 1 to 32766";
  expect_messages({
      {"a key of two", "fabric:\n  partitions:\n    - {key: 5, hosts: [0]}\n    - {key: 5, hosts: [1]}\n", 4,
       "found key '5'; accepted: a key that no partition before it has"},
      {"a key by default that another has", "fabric: {partitions: [{key: 2}, {hosts: [0]}]}\n", 1,
       "found no 'key' in partitions[1]; accepted: a key that no partition before it has"},
      {"the default partition's key", "fabric: {partitions: [{key: 32767}]}\n", 1, "found key '32767'" + keys},
      {"a host that is no number", "fabric: {partitions: [{hosts: [red]}]}\n", 1,
       "found hosts[0] 'red'; accepted: host numbers and ranges such as 7, 0-15 or [0-7, 32-39]"},
      {"auto, which is no list", "fabric: {partitions: [{hosts: auto}]}\n", 1,
       "found hosts 'auto'; accepted: host numbers and ranges such as 7, 0-15 or [0-7, 32-39]"},
  });
}

TEST(ScenarioMistakes, AdaptiveRouting) {
  expect_messages({
      {"a mode there is not", "fabric: {adaptive_routing: {mode: oracle}}\n", 1,
       "found mode 'oracle'; accepted: free, bounded"},
      {"a level beyond 15", "fabric:\n  adaptive_routing:\n    service_levels: [0, 14-16]\n", 3,
       "found service_levels[1] '14-16'; accepted: service levels from 0 to 15, such as [0, 4-7]"},
      {"healing by words of its own", "fabric: {self_healing: shield}\n", 1,
       "found self_healing 'shield'; accepted: none, failover, notify"},
      {"no room for one packet", "fabric: {management_buffer: 289}\n", 1,
       "found management_buffer '289'; accepted: a size such as 1500, 64KiB or 2MB, from 290B to 1MB"},
      {"no end of notices", "fabric: {notice_repeats: 17}\n", 1,
       "found notice_repeats '17'; accepted: a whole number from 0 to 16"},
  });
}

TEST(ScenarioMistakes, Topology) {
  const std::string kinds = "leaf-spine, fat-tree, rail, single-switch, graph, file";
  expect_messages({
      {"a kind that does not exist", "topology: {kind: torus}\n", 1, "found kind 'torus'; accepted: " + kinds},
      {"a list", "topology: [x]\n", 1, "found a list as topology; accepted: a map with a kind of " + kinds},
      {"a key of another kind", "topology:\n  kind: fat-tree\n  leaves: 4\n", 3,
       "found unknown key 'leaves' in topology; accepted: kind, hosts, k, radix, pods, oversubscription, link, "
       "host_link, "
       "aggregation_link, core_link"},
      {"no hosts", "topology: {hosts: 0}\n", 1, "found hosts '0'; accepted: a whole number from 1 to 65536"},
      {"a rate beyond what there is", "topology: {link: {rate: 2T}}\n", 1,
       "found rate '2T'; accepted: a rate from 1M to 1600G such as 100G or 25Gbps"},
      {"a rate without a unit", "topology: {link: {rate: 100}}\n", 1,
       "found rate '100'; accepted: a rate from 1M to 1600G such as 100G or 25Gbps"},
      {"no delay at all", "topology: {link: {delay: 0ns}}\n", 1,
       "found delay '0ns'; accepted: a duration such as 250ns, 1.5ms or 1s, from 1ns to 1s"},
      {"a link that loses all", "topology: {link: {loss: 100%}}\n", 1,
       "found loss '100%'; accepted: a share from 0 to below 1 such as 0.1% or 0.001"},
      {"hosts that do not fit the leaves", "topology:\n  hosts: 100\n", 2,
       "leaf-spine: 100 hosts do not spread evenly over 8 leaves; accepted: a multiple of 8"},
      {"three that contradict each other",
       "fabric: {}\ntopology: {spines: 4, uplink: {rate: 100G}, oversubscription: 1}\n", 2,
       "leaf-spine: oversubscription is 1, but 16 hosts a leaf, 4 spines and uplinks of 100 Gb/s make 4.000; leave one "
       "of "
       "the three out"},
      {"a file without a format", "topology: {kind: file, file: x.topo}\n", 1,
       "found no 'format' in topology; accepted: htsim, hpcc, conweave, simai, ibnetdiscover"},
      {"a graph without switches", "topology: {kind: graph}\n", 1,
       "found no 'switches' in topology; accepted: a list of 1 to 16384 items"},
  });
}

TEST(ScenarioMistakes, FabricHostsAndRun) {
  const std::string schedulers =
      "ecmp, wcmp, rps, round-robin, spray-wcmp, flowlet, flowlet-wcmp, flowlet-quality, adaptive, or {granularity: …, "
      "choice: …}";
  expect_messages({
      {"a scheduler that does not exist", "fabric: {scheduler: ecpm}\n", 1,
       "found scheduler 'ecpm'; accepted: " + schedulers},
      {"two choices that nothing does", "fabric: {scheduler: {granularity: flow, choice: random}}\n", 1,
       "found scheduler flow × random; accepted: flow × hash, flow × weighted, packet × random, packet × round-robin, "
       "packet × weighted, flowlet × random, flowlet × weighted, flowlet × quality, packet × quality"},
      {"bands that do not ascend", "fabric: {ars: {quant_bands: [1us, 2us, 3us, 3us, 4us, 5us, 6us]}}\n", 1,
       "found a list as quant_bands; accepted: seven durations, each longer than the one before"},
      {"a band too few", "fabric: {ars: {quant_bands: [1us, 2us, 3us, 4us, 5us, 6us]}}\n", 1,
       "found 6 items in quant_bands; accepted: a list of 7 to 7 items"},
      {"a buffer without a unit that could be meant", "fabric: {buffer: 32}\n", 1,
       "found buffer '32'; accepted: unlimited, or a size such as 9MB, from 100kB to 4GB"},
      {"lossless classes without a buffer", "fabric: {lossless: [3]}\n", 1,
       "found a list as lossless without a limited buffer; accepted: buffer: SIZE beside it"},
      {"a class beyond 7", "fabric: {buffer: 9MB, lossless: [8]}\n", 1,
       "found lossless[0] '8'; accepted: a whole number from 0 to 7"},
      {"a class twice", "fabric: {buffer: 9MB, lossless: [3, 3]}\n", 1,
       "found lossless[1] '3' a second time; accepted: each class once"},
      {"two thresholds", "fabric: {buffer: 9MB, pfc: {alpha: 1, xoff: 1MB}}\n", 1,
       "found alpha '1' beside xoff; accepted: alpha or xoff, not both"},
      {"an alpha of zero", "fabric: {buffer: 9MB, pfc: {alpha: 0}}\n", 1,
       "found alpha '0'; accepted: a factor from 1/256 to 64 such as 0.125"},
      {"a watchdog where nothing is paused", "fabric: {buffer: 9MB, watchdog: {}}\n", 1,
       "found a map as watchdog where nothing is ever paused; accepted: none, or lossless classes with pfc beside it"},
      {"a watchdog that looks all the time", "fabric: {buffer: 9MB, lossless: [3], watchdog: {detect: 1us}}\n", 1,
       "found detect '1us'; accepted: a duration such as 250ns, 1.5ms or 1s, from 10us to 5s"},
      {"a curve that falls", "fabric: {ecn: {kmin: 2kB, kmax: 1kB}}\n", 1,
       "found kmax '1kB'; accepted: a size such as 1500, 64KiB or 2MB, from 2kB to 4GB"},
      {"marking without thresholds", "fabric: {ecn: {pmax: 10%}}\n", 1,
       "found no 'kmin' in ecn; accepted: a size such as 1500, 64KiB or 2MB, from 0B to 4GB"},
      {"a queue that cannot hold two packets", "fabric: {queue_limit: 5kB}\n", 1,
       "found queue_limit '5kB'; accepted: unlimited, or a size such as 64KiB or 2MB, from 10kB to 1GB"},
      {"a key with a typing error", "hosts: {mtuu: 1024}\n", 1,
       "found unknown key 'mtuu' in hosts (did you mean 'mtu'?); accepted: mtu, congestion_control, static_rate, "
       "burst, loss_recovery, "
       "out_of_order, reorder_buffer, connections, qps_per_connection, entropy, spray_ports, ack_every, ack_dscp, "
       "window, retransmit_timeout, start_jitter"},
      {"an MTU beyond InfiniBand's", "hosts: {mtu: 9000}\n", 1,
       "found mtu '9000'; accepted: a whole number from 256 to 4096"},
      {"order as something else", "hosts: {out_of_order: any}\n", 1,
       "found out_of_order 'any'; accepted: default, go-back-n, selective-repeat, in-order-placement, "
       "any-order-placement"},
      {"ports that are no power of two", "hosts: {spray_ports: 48}\n", 1,
       "found spray_ports '48'; accepted: a power of two from 2 to 16384"},
      {"a window below the MTU", "hosts: {mtu: 4096, window: 1kB}\n", 1,
       "found window '1kB'; accepted: unlimited, or a size such as 64KiB or 2MB, from 4KiB (the mtu) to 1TB"},
      {"a burst of less than a packet", "hosts: {burst: 4kB}\n", 1,
       "found burst '4kB'; accepted: packet, or a size such as 64KiB or 2MB, from 4KiB (the mtu) to 1GB"},
      {"a congestion control that is not there", "hosts: {congestion_control: timely}\n", 1,
       "found congestion_control 'timely'; accepted: none, dcqcn, infiniband, or {kind: dcqcn, set: …}"},
      {"a set of DCQCN that is not there", "hosts: {congestion_control: {set: intel}}\n", 1,
       "found set 'intel'; accepted: hpcc, conweave, paper, nvidia"},
      {"no congestion control with parameters", "hosts: {congestion_control: {kind: none, g: 0.5}}\n", 1,
       "found unknown key 'g' in congestion_control; accepted: kind"},
      {"a third way to say it", "hosts: {congestion_control: {kind: infiniband, notify_by: mad}}\n", 1,
       "found notify_by 'mad'; accepted: ack, cnp"},
      {"a table's entry without a shift", "hosts: {congestion_control: {kind: infiniband, cct: ['0:1', '5']}}\n", 1,
       "found cct[1] '5'; accepted: auto, or entries shift:multiplier, of 0–3 and 0–16383"},
      {"a limit beyond the table",
       "hosts: {congestion_control: {kind: infiniband, cct: ['0:0', '0:1'], ccti_limit: 2}}\n", 1,
       "found ccti_limit '2'; accepted: a whole number from 0 to 1"},
      {"a lowest index above the limit",
       "hosts: {congestion_control: {kind: infiniband, ccti_limit: 9, ccti_min: 10}}\n", 1,
       "found ccti_min '10'; accepted: a whole number from 0 to 9"},
      {"a rate of nothing", "hosts: {static_rate: 0G}\n", 1,
       "found static_rate '0G'; accepted: unlimited, path, or a rate from 1M to 10T such as 25G"},
      {"a threshold of five bits", "fabric: {fecn: {threshold: 16}}\n", 1,
       "found threshold '16'; accepted: a whole number from 0 to 15"},
      {"an overhead that eats the frame", "topology: {link: {overhead: -33}}\n", 1,
       "found overhead '-33'; accepted: a whole number from -32 to 256"},
      {"an end that is no time", "run: {until: later}\n", 1,
       "found until 'later'; accepted: done, or a duration such as 250ns, 1.5ms or 1s, up to 1000s"},
      {"no threads", "run: {threads: 0}\n", 1, "found threads '0'; accepted: auto, or a whole number from 1 to 1024"},
      {"a negative seed", "run: {seed: -1}\n", 1,
       "found seed '-1'; accepted: a whole number from 0 to 18446744073709551615"},
  });
}

TEST(ScenarioMistakes, Workload) {
  const std::string kinds =
      "permutation, shift, incast, all-to-all, all-reduce, all-gather, pipeline, reduce-scatter, poisson, training, "
      "flows";
  expect_messages({
      {"a kind that does not exist", "workload: {kind: broadcast}\n", 1,
       "found kind 'broadcast'; accepted: " + kinds + ", file"},
      {"a file among jobs", "workload: [{kind: file, file: x, format: hpcc}]\n", 1,
       "found kind 'file'; accepted: " + kinds},
      {"a key of another kind", "workload: {kind: incast, algorithm: ring}\n", 1,
       "found unknown key 'algorithm' in workload; accepted: kind, name, hosts, ranks, placement, seed, start, size, "
       "fan_in, "
       "victims, victim_size"},
      {"two jobs of one name", "workload:\n  - {kind: shift}\n  - {kind: shift}\n", 3,
       "found a second job called 'shift'; accepted: a name of its own for each job"},
      {"hosts beside ranks", "workload: {hosts: 0-3, ranks: 4}\n", 1,
       "found ranks '4' beside hosts; accepted: hosts or ranks"},
      {"a range backwards", "workload: {hosts: [7-3]}\n", 1,
       "found hosts[0] '7-3'; accepted: auto, or host numbers and ranges such as 7, 0-15 or [0-7, 32-39]"},
      {"a host that does not exist", "topology: {kind: single-switch, hosts: 4}\nworkload: {hosts: 2-4}\n", 2,
       "job permutation on host 4; accepted: hosts 0 to 3"},
      {"more ranks than hosts", "topology: {kind: single-switch, hosts: 4}\nworkload:\n  - {name: a, ranks: 5}\n", 3,
       "job a needs 5 hosts and 4 are left; accepted: fewer ranks, or hosts to share"},
      {"no hosts left", "topology: {kind: single-switch, hosts: 4}\nworkload:\n  - {name: a}\n  - {name: b}\n", 4,
       "job b needs 2 hosts and 0 are left; accepted: fewer ranks, or hosts to share"},
      {"steps under way in a naive all-to-all", "workload: {kind: all-to-all, in_flight: 2}\n", 1,
       "found in_flight '2'; accepted: in_flight beside algorithm: staggered"},
      {"an algorithm where there is one only", "workload: {kind: training, collective: all-gather, algorithm: ring}\n",
       1, "found algorithm 'ring'; accepted: none, with collective: all-gather"},
      {"no load", "workload: {kind: poisson, load: 0}\n", 1,
       "found load '0'; accepted: a share above 0, up to 1, such as 50% or 0.5"},
      {"a distribution that does not exist", "workload: {kind: poisson, distribution: google}\n", 1,
       "found distribution 'google'; accepted: websearch, hadoop, ali-storage, solar, or {file: …} or {size: …}"},
      {"sizes from a file and fixed", "workload: {kind: poisson, distribution: {file: x, size: 1kB}}\n", 1,
       "found a map as distribution; accepted: a name, {file: …} or {size: …}"},
      {"a flow to itself",
       "topology: {kind: single-switch, hosts: 4}\nworkload: {kind: flows, flows: [{src: 1, dst: 1}]}\n", 2,
       "job flows: a flow from rank 1 to rank 1: it needs two different ranks from 0 to 3"},
      {"an incast of too many", "topology: {kind: single-switch, hosts: 4}\nworkload: {kind: incast, fan_in: 4}\n", 2,
       "job incast: an incast of 4 senders needs 5 ranks; there are 4"},
  });
}

TEST(ScenarioMistakes, EventsAndBench) {
  const std::string small = "topology: {kind: leaf-spine, hosts: 4, leaves: 2, spines: 1}\n";
  const std::string names = "host0…host3, leaf0…leaf1, spine0";
  expect_messages({
      {"a link that does not exist", small + "events:\n  - {at: 0, link: leaf0-spine7, state: down}\n", 3,
       "found link 'leaf0-spine7'; accepted: two neighbours such as leaf0-spine1 or a port such as leaf0:3, with the "
       "names " +
           names},
      {"nodes that are no neighbours", small + "events:\n  - {at: 0, link: leaf0-leaf1, state: down}\n", 3,
       "found link 'leaf0-leaf1', but no link between leaf0 and leaf1; accepted: the names of two neighbours"},
      {"a port that does not exist", small + "events:\n  - {at: 0, link: \"leaf0:3\", state: down}\n", 3,
       "'leaf0:3' is no port; accepted: leaf0:0 to leaf0:2"},
      {"nothing that happens", "events: [{at: 0, link: a}]\n", 1,
       "found an event without one change; accepted: one of state, rate and loss"},
      {"a direction of down", "events: [{at: 0, link: a, state: down, direction: out}]\n", 1,
       "found direction 'out'; accepted: direction beside rate or loss; a link is down or up in both"},
      {"a time missing", "events: [{link: a, state: down}]\n", 1,
       "found no 'at' in events[0]; accepted: a duration such as 250ns, 1.5ms or 1s, from 0s to 1000s"},
      {"an unknown key of bench", "bench: {scheme: ecmp}\n", 1,
       "found unknown key 'scheme' in bench (did you mean 'schemes'?); accepted: schemes, workloads, further, "
       "conditions, compare"},
      {"a workload of bench that is none", "bench: {workloads: {a: {kind: x}}}\n", 1,
       "found kind 'x'; accepted: permutation, shift, incast, all-to-all, all-reduce, all-gather, pipeline, "
       "reduce-scatter, poisson, training, flows, file"},
  });
}

TEST(ScenarioMistakes, OverlaysAreNamedAsSuch) {
  try {
    load_scenario_text("{}", "x.yaml", {"hosts.mtu=1"});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "--set hosts.mtu=1: found mtu '1'; accepted: a whole number from 256 to 4096");
  }
}

TEST(ScenarioMistakes, CapturesNameAPortAndAFile) {
  const Topology topology = prepare(load_scenario_text("topology: {kind: single-switch, hosts: 2}", "x.yaml")).topology;
  const CaptureSettings capture = parse_capture(topology, "switch0:1=a=b.pcapng");
  EXPECT_EQ(capture.port.node, 2U);
  EXPECT_EQ(capture.port.port, 1U);
  EXPECT_EQ(capture.file, "a=b.pcapng");
  const auto message = [&](const std::string& text) -> std::string {
    try {
      parse_capture(topology, text);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message("switch0:1"),
            "--capture: found 'switch0:1'; accepted: a port and a file, such as leaf0:3=leaf0.pcapng");
  EXPECT_EQ(message("switch0:2=x"), "--capture: 'switch0:2' is no port; accepted: switch0:0 to switch0:1");
}

}  // namespace
}  // namespace heddle::lab
