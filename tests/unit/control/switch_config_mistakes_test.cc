// What is refused in the document as a whole and in `switch`, `classes` and `hash`, and in which words.
#include "tests/unit/control/switch_config_mistakes.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace heddle::control {
namespace {

const std::string kSwitchKeys = "name, seed, memory, workers, idle, control, max_routes, buffer_packets";
const std::string kSections =
    "switch, ports, groups, routes, classes, buffer, watchdog, hash, ars, resequencer, "
    "path_delay";
const std::string kWorkerForms = "a number of workers from 1 to 64, or a list of CPU ids such as [1, 3]";
const std::string kYaml = "YAML (https://yaml.org)";
const std::string kKeyForms = "a plain word as the key, and a closing bracket for each opening one";
const std::string kEmptyForms = "a YAML map, {} for one with every default";

const std::vector<Mistake>& document_mistakes() {
  static const std::vector<Mistake> mistakes{
      {"an empty file", "", 1, "found an empty file; accepted: " + kEmptyForms},
      {"only a comment", "# nothing\n", 1, "found an empty file; accepted: " + kEmptyForms},
      {"a word", "switch\n", 1,
       "found 'switch'; accepted: a map of switch, ports, groups, routes, classes, buffer, watchdog, hash, ars, "
       "resequencer, path_delay"},
      {"a list", "- switch\n", 1,
       "found a list; accepted: a map of switch, ports, groups, routes, classes, buffer, watchdog, hash, ars, "
       "resequencer, path_delay"},
      {"an unknown section with a near name", "port: []\n", 1,
       "found unknown key 'port' (did you mean 'ports'?); accepted: " + kSections},
      {"an unknown section with no near name", after_ports("qos: {}"), 4,
       "found unknown key 'qos'; accepted: " + kSections},
      {"a section twice",
       after_ports("switch: {}\n"
                   "switch: {}"),
       5, "found key 'switch' a second time; accepted: each key once (first on line 4)"},
      {"a key twice in a flow map", "switch: {name: x, name: y}\n", 1,
       "found key 'name' a second time; accepted: each key once (first on line 1)"},
      {"a second document",
       after_ports("---\n"
                   "ports:\n"
                   "  - {name: a, device: net_null0}\n"
                   "  - {name: b, device: net_null1}"),
       4, "found a second document; accepted: one YAML document"},
      {"an unclosed bracket", "ports: [{name: a}\n", 2,
       "found a YAML syntax error in column 1: end of sequence flow not found; accepted: " + kYaml},
      {"an unclosed brace", "switch: {name: x\n", 2,
       "found a YAML syntax error in column 1: end of map flow not found; accepted: " + kYaml},
      {"an unclosed quote", "switch: {name: \"x}\n", 2,
       "found a YAML syntax error in column 1: end of map flow not found; accepted: " + kYaml},
      {"a tab as indentation",
       "switch:\n"
       "\tname: x\n",
       2, "found a tab in the indentation; accepted: spaces"},
      {"a colon too many", "switch: name: x\n", 1,
       "found a YAML syntax error in column 13: illegal map value; accepted: " + kYaml},
      {"an unknown alias", "switch: *nowhere\n", 1,
       "found a YAML syntax error in column 9: the referenced anchor is not defined; accepted: " + kYaml},
      {"an alias within its own anchor", "switch: &s {name: *s}\n", 1,
       "found an alias inside its own anchor; accepted: an alias after its anchor"},
      {"a tag", "switch: !!map {}\n", 1, "found tag 'tag:yaml.org,2002:map'; accepted: values without a tag"},
      {"a map as a key", "{a: b}: c\n", 1, "found a map as a key; accepted: " + kKeyForms},
      {"an empty key", "switch: {: x}\n", 1, "found an empty key; accepted: " + kKeyForms},
      {"a merge of something that is no map", "switch: {<<: [1], name: x}\n", 1,
       "found something else than maps to merge; accepted: <<: *ANCHOR_OF_A_MAP"},
      {"a NUL byte", std::string("switch: {name: \"a\0b\"}", 21), 1, "found byte 0x00; accepted: YAML in UTF-8 text"},
      {"a byte that is no UTF-8", after_ports("# caf\xe9"), 4, "found byte 0xe9; accepted: YAML in UTF-8 text"},
      {"ports that are missing", "switch: {name: x}\n", 1, "found no 'ports'; accepted: a list of 1 to 64 items"},
      {"ports without a value",
       "ports:\n"
       "switch: {}\n",
       1, "found no value for ports; accepted: a list of 1 to 64 items"},
      {"no ports", "ports: []\n", 1, "found 0 items in ports; accepted: a list of 1 to 64 items"},
      {"ports as a map", "ports: {a: b}\n", 1, "found a map as ports; accepted: a list of 1 to 64 items"},
  };
  return mistakes;
}

const std::vector<Mistake>& switch_mistakes() {
  static const std::vector<Mistake> mistakes{
      {"switch as a list", after_ports("switch: [x]"), 4,
       "found a list as switch; accepted: a map of name, seed, memory, workers, idle, control, max_routes, "
       "buffer_packets"},
      {"an unknown key with a near name", after_ports("switch: {memmory: hugepages}"), 4,
       "found unknown key 'memmory' in switch (did you mean 'memory'?); accepted: " + kSwitchKeys},
      {"a name in capitals", after_ports("switch: {name: Leaf0}"), 4,
       "found name 'Leaf0'; accepted: 1 to 32 of a-z, 0-9 and '-'"},
      {"a name of 33 characters", after_ports("switch: {name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}"), 4,
       "found name 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'; accepted: 1 to 32 of a-z, 0-9 and '-'"},
      {"an empty name", after_ports("switch: {name: \"\"}"), 4, "found name ''; accepted: 1 to 32 of a-z, 0-9 and '-'"},
      {"a name as a map", after_ports("switch: {name: {first: x}}"), 4,
       "found a map as name; accepted: 1 to 32 of a-z, 0-9 and '-'"},
      {"a negative seed", after_ports("switch: {seed: -1}"), 4,
       "found seed '-1'; accepted: a whole number from 0 to 18446744073709551615"},
      {"a seed beyond 64 bits", after_ports("switch: {seed: 18446744073709551616}"), 4,
       "found seed '18446744073709551616'; accepted: a whole number from 0 to 18446744073709551615"},
      {"a seed in hexadecimal", after_ports("switch: {seed: 0x10}"), 4,
       "found seed '0x10'; accepted: a whole number from 0 to 18446744073709551615"},
      {"memory of another kind", after_ports("switch: {memory: hugepage}"), 4,
       "found memory 'hugepage'; accepted: anonymous, hugepages"},
      {"no workers", after_ports("switch: {workers: 0}"), 4, "found workers '0'; accepted: " + kWorkerForms},
      {"65 workers", after_ports("switch: {workers: 65}"), 4, "found workers '65'; accepted: " + kWorkerForms},
      {"workers as a word", after_ports("switch: {workers: all}"), 4, "found workers 'all'; accepted: " + kWorkerForms},
      {"an empty list of CPUs", after_ports("switch: {workers: []}"), 4,
       "found 0 items in workers; accepted: a list of 1 to 64 items"},
      {"a CPU twice", after_ports("switch: {workers: [1, 3, 1]}"), 4,
       "found workers[2] '1' a second time; accepted: each CPU once"},
      {"a CPU id beyond the range", after_ports("switch: {workers: [1024]}"), 4,
       "found workers[0] '1024'; accepted: a whole number from 0 to 1023"},
      {"an idle mode that does not exist", after_ports("switch: {idle: spin}"), 4,
       "found idle 'spin'; accepted: poll, sleep"},
      {"a socket path longer than sun_path",
       after_ports("switch: {control: "
                   "/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                   "xxxxxxxxx}"),
       4,
       "found control '/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'; accepted: text of 1 to 107 "
       "characters"},
      {"room for no routes", after_ports("switch: {max_routes: 0}"), 4,
       "found max_routes '0'; accepted: a whole number from 1 to 1000000"},
      {"a fraction of routes", after_ports("switch: {max_routes: 1.5}"), 4,
       "found max_routes '1.5'; accepted: a whole number from 1 to 1000000"},
      {"room for too many routes", after_ports("switch: {max_routes: 1000001}"), 4,
       "found max_routes '1000001'; accepted: a whole number from 1 to 1000000"},
      {"a buffer that is too small", after_ports("switch: {buffer_packets: 255}"), 4,
       "found buffer_packets '255'; accepted: a whole number from 256 to 4194304"},
      {"a number with a leading zero", after_ports("switch: {buffer_packets: 01024}"), 4,
       "found buffer_packets '01024'; accepted: a whole number from 256 to 4194304"},
      {"a key without a value",
       after_ports("switch:\n"
                   "  idle:"),
       5, "found no value for idle; accepted: poll, sleep"},
  };
  return mistakes;
}

const std::vector<Mistake>& classes_mistakes() {
  static const std::vector<Mistake> mistakes{
      {"an unknown table", after_ports("classes: {tos: {}}"), 4,
       "found unknown key 'tos' in classes; accepted: dscp, pcp, queues"},
      {"a DSCP beyond 63", after_ports("classes: {dscp: {64: 0}}"), 4,
       "found dscp key '64'; accepted: a whole number from 0 to 63"},
      {"a DSCP by name", after_ports("classes: {dscp: {ef: 5}}"), 4,
       "found dscp key 'ef'; accepted: a whole number from 0 to 63"},
      {"a DSCP to a class beyond 7", after_ports("classes: {dscp: {26: 8}}"), 4,
       "found dscp 26 '8'; accepted: a whole number from 0 to 7"},
      {"a DSCP to no class", after_ports("classes: {dscp: {26: }}"), 4,
       "found no value for dscp 26; accepted: a whole number from 0 to 7"},
      {"a DSCP twice",
       after_ports("classes:\n"
                   "  dscp:\n"
                   "    26: 3\n"
                   "    26: 4"),
       7, "found key '26' a second time; accepted: each key once (first on line 6)"},
      {"the DSCP table as a list", after_ports("classes: {dscp: [0, 1]}"), 4, "found a list as dscp; accepted: a map"},
      {"a PCP beyond 7", after_ports("classes: {pcp: {8: 0}}"), 4,
       "found pcp key '8'; accepted: a whole number from 0 to 7"},
      {"a queue beyond 7", after_ports("classes: {queues: {8: {}}}"), 4,
       "found queues key '8'; accepted: a whole number from 0 to 7"},
      {"a priority that does not exist", after_ports("classes: {queues: {1: {priority: high}}}"), 4,
       "found priority 'high'; accepted: strict, drr"},
      {"a weight of zero", after_ports("classes: {queues: {1: {weight: 0}}}"), 4,
       "found weight '0'; accepted: a whole number from 1 to 100"},
      {"a weight above 100", after_ports("classes: {queues: {1: {weight: 101}}}"), 4,
       "found weight '101'; accepted: a whole number from 1 to 100"},
      {"a weight beside strict priority", after_ports("classes: {queues: {1: {priority: strict, weight: 2}}}"), 4,
       "found weight '2' for class 1, whose priority is strict; accepted: a weight beside priority: drr"},
      {"a weight on a class that is strict by default", after_ports("classes: {queues: {6: {weight: 2}}}"), 4,
       "found weight '2' for class 6, whose priority is strict by default; accepted: a weight beside priority: drr"},
      {"a limit below one frame", after_ports("classes: {queues: {3: {limit: 1kB}}}"), 4,
       "found limit '1kB'; accepted: at least one frame of port a, 1522 bytes"},
      {"an unknown key of a queue", after_ports("classes: {queues: {3: {limits: 1MB}}}"), 4,
       "found unknown key 'limits' in queues 3 (did you mean 'limit'?); accepted: priority, weight, limit, lossless, "
       "reserved, shared, alpha, xon_offset, "
       "headroom, force, ecn, wred"},
  };
  return mistakes;
}

const std::vector<Mistake>& hash_mistakes() {
  static const std::vector<Mistake> mistakes{
      {"a kind of packet that does not exist", after_ports("hash: {tcp: [src-ip]}"), 4,
       "found unknown key 'tcp' in hash; accepted: roce, tcp-udp, ip"},
      {"a field that does not exist", after_ports("hash: {roce: [src-ip, dst_ip]}"), 4,
       "found roce[1] 'dst_ip'; accepted: src-ip, dst-ip, protocol, src-port, dst-port, dest-qp, opcode, psn"},
      {"no fields", after_ports("hash: {ip: []}"), 4, "found 0 items in ip; accepted: a list of 1 to 3 items"},
      {"a field twice", after_ports("hash: {ip: [src-ip, src-ip]}"), 4,
       "found ip[1] 'src-ip' a second time; accepted: each field once"},
      {"a queue pair where there is none", after_ports("hash: {tcp-udp: [dest-qp]}"), 4,
       "found tcp-udp[0] 'dest-qp'; accepted: src-ip, dst-ip, protocol, src-port, dst-port"},
      {"ports in a packet without them", after_ports("hash: {ip: [src-port]}"), 4,
       "found ip[0] 'src-port'; accepted: src-ip, dst-ip, protocol"},
      {"fields as one word", after_ports("hash: {roce: src-ip}"), 4,
       "found roce 'src-ip'; accepted: a list of 1 to 8 items"},
  };
  return mistakes;
}

const std::vector<Mistake>& buffer_mistakes() {
  const auto with = [](const std::string& queue) {
    return "ports: [{name: a, device: net_null0, rate: 10G}]\nbuffer: {size: 2MB}\nclasses: {queues: {3: {" + queue +
           "}}}\n";
  };
  const std::string too_little =
      " for lossless class 3 of port a; accepted: at least 103424 bytes: 50000 (switch's reaction) + 49472 (burst in "
      "hand) + 1546 (frame of ours on the wire) + 84 (PFC frame) + 1546 (frame of the peer's on the wire) in whole "
      "KiB, "
      "where pfc_reaction is 40us at 10G; or force: true";
  static const std::vector<Mistake> mistakes{
      {"packets without a size", after_ports("buffer: {packets: 1000}"), 4,
       "found packets '1000' for a buffer without a size; accepted: size: beside it"},
      {"lossless without a buffer", after_ports("classes: {queues: {3: {lossless: true}}}"), 4,
       "found lossless 'true' without a shared buffer; accepted: buffer: {size: …}, which it is about"},
      {"two thresholds", with("alpha: 1, shared: 1MB"), 3,
       "found alpha '1' beside shared; accepted: shared or alpha, not both"},
      {"an alpha of zero", with("alpha: 0"), 3, "found alpha '0'; accepted: a factor from 1/256 to 64 such as 0.125"},
      {"headroom of a lossy class", with("headroom: 10kB"), 3,
       "found headroom '10kB' for class 3, which is lossy; accepted: lossless: true beside it"},
      {"early drops of a lossless class", with("lossless: true, wred: {kmin: 1kB, kmax: 2kB}"), 3,
       "found a map as wred for class 3, which is lossless; accepted: no early drops"},
      {"a queue limit on a lossless class", with("lossless: true, limit: 1MB"), 3,
       "found limit '1MB' for class 3, whose queue is lossless; accepted: shared or alpha: XOFF of its priority group"},
      {"a curve that falls", with("ecn: {kmin: 2kB, kmax: 1kB}"), 3,
       "found kmax '1kB'; accepted: a size such as 1500, 64KiB or 2MB, from 2kB to 4GB"},
      // 34 frames of 1522 + 24 bytes, 84 of the pause, and 40 us at 10G are 50,000 bytes: 102,648, in KiB
      {"no headroom", with("lossless: true, headroom: 0"), 1, "found headroom 0B" + too_little},
      {"a byte too little headroom", with("lossless: true, headroom: 103423"), 1,
       "found headroom 103423B" + too_little},
      {"headroom beyond the buffer", with("lossless: true, headroom: 2MB"), 2,
       "found a buffer of 2000000 bytes; accepted: more than 2000000, which reservations, headroom and one burst of "
       "each worker take"},
      {"PFC without lossless classes", port("pfc: frames"), 2,
       "found pfc 'frames' on a port without lossless classes; accepted: none, or a class with lossless: true"},
      {"one quantum, which cannot be repeated in time", port("pfc_quanta: 1"), 2,
       "found pfc_quanta '1'; accepted: a whole number from 2 to 65535"},
      {"a watchdog that would take congestion for a storm", after_ports("watchdog: {detect: 99ms}"), 4,
       "found detect '99ms'; accepted: a duration such as 250ns, 1.5ms or 1s, from 100ms to 5s"},
      {"one that never forgives", after_ports("watchdog: {restore: 61s}"), 4,
       "found restore '61s'; accepted: a duration such as 250ns, 1.5ms or 1s, from 100ms to 60s"},
      {"an action of no watchdog", after_ports("watchdog: {action: reboot}"), 4,
       "found action 'reboot'; accepted: drop, forward, alert"},
      {"a watchdog over nothing", port("watchdog: {}"), 2,
       "found a watchdog on a port that nobody can pause; accepted: none, or pfc: frames beside it"},
  };
  return mistakes;
}

// The NIC sorts into its queues by PCP; the switch must find each frame in the class of its queue.
const std::vector<Mistake>& nic_pfc_mistakes() {
  const auto with = [](const std::string& keys, const std::string& classes = "", const std::string& queue = "") {
    return "ports: [{name: a, device: net_null0, pfc: ethdev" + keys + "}]\nbuffer: {size: 2MB}\nclasses: {" + classes +
           "queues: {3: {lossless: true" + queue + "}}}\n";
  };
  static const std::vector<Mistake> mistakes{
      {"classes by DSCP", with(""), 1,
       "found pfc 'ethdev' on a port that does not trust PCP; accepted: frames, none, or trust: pcp beside it: the NIC "
       "sorts by PCP"},
      {"classes by nothing", with(", trust: none, default_class: 3"), 1,
       "found pfc 'ethdev' on a port that does not trust PCP; accepted: frames, none, or trust: pcp beside it: the NIC "
       "sorts by PCP"},
      {"untagged frames in a class of their own", with(", trust: pcp, default_class: 3"), 1,
       "found pfc 'ethdev' beside default_class 3; accepted: frames, none, or default_class: 0: the NIC takes an "
       "untagged frame for PCP 0"},
      {"a PCP map of its own", with(", trust: pcp", "pcp: {2: 3}, "), 1,
       "found pfc 'ethdev' while PCP 2 is class 3; accepted: frames, none, or classes.pcp as it is by default: each "
       "PCP "
       "has the NIC's queue of its number"},
      {"less headroom than the burst that crosses XOFF", with(", trust: pcp", "", ", headroom: 49151"), 1,
       "found headroom 49151B for lossless class 3 of port a; accepted: at least 49152 bytes: 48704 (burst in hand) in "
       "whole KiB; or force: true"},
      {"a watchdog over pauses that it does not see", with(", trust: pcp, watchdog: {}"), 1,
       "found a watchdog on a port that nobody can pause; accepted: none, or pfc: frames beside it"},
      {"PFC by the NIC without lossless classes", port("pfc: ethdev, trust: pcp"), 2,
       "found pfc 'ethdev' on a port without lossless classes; accepted: none, or a class with lossless: true"},
  };
  return mistakes;
}

TEST(SwitchConfigMistakes, NicPfc) { expect_messages(nic_pfc_mistakes()); }
TEST(SwitchConfigMistakes, Buffer) { expect_messages(buffer_mistakes()); }
TEST(SwitchConfigMistakes, Document) { expect_messages(document_mistakes()); }
TEST(SwitchConfigMistakes, Switch) { expect_messages(switch_mistakes()); }
TEST(SwitchConfigMistakes, Classes) { expect_messages(classes_mistakes()); }
TEST(SwitchConfigMistakes, Hash) { expect_messages(hash_mistakes()); }

}  // namespace
}  // namespace heddle::control
