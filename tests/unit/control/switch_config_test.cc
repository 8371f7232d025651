// What a good configuration means: defaults, every key, cross references, warnings, overlays, the JSON form.
#include "control/switch_config.h"

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/yaml.h"
#include "net/error.h"
#include "tests/unit/control/switch_config_mistakes.h"

namespace heddle::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SwitchConfig load(const std::string& yaml, const std::vector<std::string>& overlays = {}) {
  return load_switch_config_text(yaml, "leaf.yaml", overlays);
}

// Everything that a configuration can say, each value other than the default.
constexpr const char* kEveryKey = R"(
switch:
  name: spine-7
  seed: 18446744073709551615
  memory: hugepages
  workers: [4, 6]
  idle: sleep
  control: none
  max_routes: 500
  buffer_packets: 32768
ports:
  - name: up.0
    device: net_af_packet0,iface=veth0,framesz=8192
    mac: [02:00:00:00:00:01, 02:00:00:00:00:02]
    rate: 25Gbps
    link_state: netlink
    mtu: 4200
    worker: 1
    trust: pcp
    default_class: 2
    rx_ring: 1024
    tx_ring: 128
    queue_limit: 2MiB
    untagged: false
    vlans: [{id: 100, mac: 02:00:00:00:00:03}, {id: 200}]
    netdev: other0
  - {name: down, device: 3B:00.1, mac: any, rate: unlimited}
groups:
  - name: both
    scheduler: round-robin
    members:
      - {port: up.0, mac: 02:00:00:00:01:01, vlan: 100, weight: 3}
      - {port: down, mac: 02:00:00:00:01:02, weight: 3}
routes:
  - {prefix: 0.0.0.0/0, via: both}
  - {prefix: 2001:db8:2::/64, via: {port: down, mac: 02-00-00-00-02-AB}}
  - {prefix: 10.0.0.0/8, via: {port: up.0, mac: 02:00:00:00:02:ab, vlan: 200}}
  - {prefix: 11.0.0.0/8, via: {port: down, mac: 02:00:00:00:02:ab}}
classes:
  dscp: {0: 1, 63: 7}
  pcp: {3: 4}
  queues:
    6: {priority: drr, weight: 5}
    0: {priority: strict}
    3: {weight: 4, limit: 3MB}
hash:
  roce: [src-ip, dest-qp]
  tcp-udp: [dst-port]
  ip: [dst-ip]
path_delay: {address: 10.255.0.1, targets: [{group: both, address: 10.255.0.2, name: leaf2}]}
)";

TEST(SwitchConfig, OnePortIsEnough) {
  const SwitchConfig config = load("ports: [{name: a, device: net_null0}]\n");
  EXPECT_EQ(config.name, "heddle");
  EXPECT_EQ(config.seed, seed_of_name("heddle"));
  EXPECT_EQ(config.memory, MemoryMode::kAnonymous);
  EXPECT_EQ(config.workers, 1U);
  EXPECT_THAT(config.worker_cpus, IsEmpty());
  EXPECT_EQ(config.idle, IdleMode::kPoll);
  EXPECT_EQ(config.control_socket, "/run/heddle/heddle.sock");
  EXPECT_EQ(config.max_routes, 16'384U);
  EXPECT_EQ(config.buffer_packets, 16'384U);
  EXPECT_THAT(config.groups, IsEmpty());
  EXPECT_THAT(config.routes, IsEmpty());
  EXPECT_THAT(config.warnings, IsEmpty());

  ASSERT_EQ(config.ports.size(), 1U);
  const PortConfig& port = config.ports[0];
  EXPECT_EQ(port.driver, "net_null");
  EXPECT_EQ(port.netdev, "");
  EXPECT_FALSE(port.any_mac);
  EXPECT_THAT(port.macs, IsEmpty());
  EXPECT_EQ(port.rate, std::nullopt);
  EXPECT_EQ(port.link_state, LinkStateSource::kAuto);
  EXPECT_EQ(port.mtu, 1500);
  EXPECT_EQ(port.frame_bytes(), 1522U);
  EXPECT_EQ(port.trust, dataplane::Trust::kDscp);
  EXPECT_EQ(port.rx_ring, 512);
  EXPECT_EQ(port.tx_ring, 64);
  EXPECT_TRUE(port.untagged);
  EXPECT_EQ(port.place, "leaf.yaml:1");
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) EXPECT_EQ(config.queue_limit(port, tc), 1'000'000U);
}

TEST(SwitchConfig, DefaultClassesAndHash) {
  const SwitchConfig config = load("ports: [{name: a, device: net_null0}]\n");
  for (size_t dscp = 0; dscp < 64; ++dscp) {
    EXPECT_EQ(config.class_of_dscp[dscp], dscp == 26 ? 3 : dscp == 48 ? 6 : 0) << "DSCP " << dscp;
  }
  for (size_t i = 0; i < kTrafficClasses; ++i) {
    EXPECT_EQ(config.class_of_pcp[i], i);
    EXPECT_EQ(config.queues[i].strict, i >= 6);
    EXPECT_EQ(config.queues[i].weight, 1);
  }
  EXPECT_EQ(config.hash.seed, config.seed);
  EXPECT_THAT(config.hash.fields, ElementsAre(lb::kIpFields, lb::kTcpUdpFields, lb::kRoceFields));
}

TEST(SwitchConfig, EveryKeyOfSwitchAndPorts) {
  const SwitchConfig config = load(kEveryKey);
  EXPECT_EQ(config.name, "spine-7");
  EXPECT_EQ(config.seed, UINT64_MAX);
  EXPECT_EQ(config.memory, MemoryMode::kHugepages);
  EXPECT_EQ(config.workers, 2U);
  EXPECT_THAT(config.worker_cpus, ElementsAre(4U, 6U));
  EXPECT_EQ(config.idle, IdleMode::kSleep);
  EXPECT_EQ(config.control_socket, "");
  EXPECT_EQ(config.max_routes, 500U);
  EXPECT_EQ(config.buffer_packets, 32'768U);

  ASSERT_EQ(config.ports.size(), 2U);
  const PortConfig& up = config.ports[0];
  EXPECT_EQ(up.name, "up.0");
  EXPECT_EQ(up.device, "net_af_packet0,iface=veth0,framesz=8192");
  EXPECT_EQ(up.driver, "net_af_packet");
  EXPECT_EQ(up.netdev, "other0");
  EXPECT_THAT(up.macs, ElementsAre(net::Mac{2, 0, 0, 0, 0, 1}, net::Mac{2, 0, 0, 0, 0, 2}));
  EXPECT_EQ(up.rate, Rate::gbps(25));
  EXPECT_EQ(up.link_state, LinkStateSource::kNetlink);
  EXPECT_EQ(up.mtu, 4200);
  EXPECT_EQ(up.worker, 1U);
  EXPECT_EQ(up.trust, dataplane::Trust::kPcp);
  EXPECT_EQ(up.default_class, 2);
  EXPECT_EQ(up.rx_ring, 1024);
  EXPECT_EQ(up.tx_ring, 128);
  EXPECT_FALSE(up.untagged);
  ASSERT_EQ(up.vlans.size(), 2U);
  EXPECT_EQ(up.vlans[0].id, 100);
  EXPECT_THAT(up.vlans[0].macs, ElementsAre(net::Mac{2, 0, 0, 0, 0, 3}));
  EXPECT_EQ(up.vlans[1].id, 200);
  EXPECT_THAT(up.vlans[1].macs, IsEmpty());
  EXPECT_EQ(up.place, "leaf.yaml:12");

  const PortConfig& down = config.ports[1];
  EXPECT_EQ(down.driver, "pci");
  EXPECT_TRUE(down.any_mac);
  EXPECT_EQ(down.rate, Rate::unlimited());
  EXPECT_EQ(down.worker, 1U) << "round robin: the second port belongs to the second worker";
}

TEST(SwitchConfig, SchedulersOfClassesAndOfControlPackets) {
  const SwitchConfig config = load(R"(
ports:
  - {name: up, device: net_null0, mac: "02:00:00:00:00:01"}
groups:
  - name: uplinks
    scheduler: wcmp
    class_schedulers: {3: adaptive, 5: default}
    control_scheduler: {granularity: packet, choice: random}
    members:
      - {port: up, mac: "02:00:00:00:01:01", weight: 7}
      - {port: up, mac: "02:00:00:00:01:02", alternate: true}
routes:
  - {prefix: 0.0.0.0/0, via: uplinks}
ars: {idle_time: 50us, quality_rule: power-of-two}
)");
  const GroupConfig& group = config.groups.at(0);
  EXPECT_EQ(group.scheduler, lb::scheduler_named("wcmp"));
  EXPECT_EQ(group.overrides.of_class[3], lb::scheduler_named("adaptive"));
  EXPECT_FALSE(group.overrides.of_class[5]);
  EXPECT_EQ(group.overrides.of_control, lb::scheduler_named("rps"));
  EXPECT_FALSE(group.members[0].alternate);
  EXPECT_TRUE(group.members[1].alternate);
  EXPECT_EQ(config.ars.idle_time, 50 * kMicrosecond);
  EXPECT_EQ(config.ars.quality_rule, lb::QualityRule::kPowerOfTwo);
  EXPECT_TRUE(config.warnings.empty());
  EXPECT_EQ(to_json(load(to_json(config).dump())), to_json(config));
}

TEST(SwitchConfig, EveryKeyOfGroupsAndRoutes) {
  const SwitchConfig config = load(kEveryKey);
  ASSERT_EQ(config.groups.size(), 3U) << "one named, and one for each distinct next hop in place";
  const GroupConfig& both = config.groups[0];
  EXPECT_EQ(both.name, "both");
  EXPECT_FALSE(both.in_place);
  EXPECT_EQ(both.scheduler, lb::scheduler_named("round-robin"));
  ASSERT_EQ(both.members.size(), 2U);
  EXPECT_EQ(both.members[0].port, 0);
  EXPECT_EQ(both.members[0].mac, (net::Mac{2, 0, 0, 0, 1, 1}));
  EXPECT_EQ(both.members[0].vlan, 100);
  EXPECT_EQ(both.members[0].weight, 3);
  EXPECT_EQ(both.members[1].port, 1);
  EXPECT_EQ(both.members[1].vlan, 0);

  EXPECT_EQ(config.groups[1].name, "down/02:00:00:00:02:ab");
  EXPECT_TRUE(config.groups[1].in_place);
  EXPECT_EQ(config.groups[2].name, "up.0@200/02:00:00:00:02:ab");

  ASSERT_EQ(config.routes.size(), 4U);
  EXPECT_EQ(config::print_prefix(config.routes[0].prefix), "0.0.0.0/0");
  EXPECT_EQ(config::print_prefix(config.routes[1].prefix), "2001:db8:2::/64");
  std::vector<uint32_t> groups;
  for (const RouteConfig& route : config.routes) groups.push_back(route.group);
  EXPECT_THAT(groups, ElementsAre(0U, 1U, 2U, 1U)) << "the same next hop twice is one group";
}

TEST(SwitchConfig, EveryKeyOfClassesAndHash) {
  const SwitchConfig config = load(kEveryKey);
  EXPECT_EQ(config.class_of_dscp[0], 1);
  EXPECT_EQ(config.class_of_dscp[63], 7);
  EXPECT_EQ(config.class_of_dscp[26], 3) << "what is not named keeps its default";
  EXPECT_THAT(config.class_of_pcp, ElementsAre(0, 1, 2, 4, 4, 5, 6, 7));
  EXPECT_TRUE(config.queues[0].strict);
  EXPECT_FALSE(config.queues[6].strict);
  EXPECT_EQ(config.queues[6].weight, 5);
  EXPECT_EQ(config.queues[3].weight, 4);
  EXPECT_EQ(config.queue_limit(config.ports[0], 3), 3'000'000U) << "the class's limit goes before the port's";
  EXPECT_EQ(config.queue_limit(config.ports[0], 2), uint64_t{2} << 20U);
  EXPECT_EQ(config.queue_limit(config.ports[1], 2), 1'000'000U);
  EXPECT_THAT(config.hash.fields, ElementsAre(lb::kDestinationIp, lb::kDestinationPort, lb::kSourceIp | lb::kDestQp));
}

TEST(SwitchConfig, AcceptedForms) {
  struct Case {
    std::string what;
    std::string yaml;
    std::function<bool(const SwitchConfig&)> holds;
  };
  const std::vector<Case> cases{
      {"one MAC without a list", port("mac: 02:00:00:00:00:01"),
       [](const auto& c) {
         return c.ports[0].macs == std::vector<net::Mac>{{2, 0, 0, 0, 0, 1}};
       }},
      {"auto stands for each default", port("mac: auto, rate: auto, link_state: auto"),
       [](const auto& c) { return c.ports[0].macs.empty() && !c.ports[0].rate; }},
      {"the interface of af_packet", "ports: [{name: a, device: 'net_af_packet0,iface=v0'}]",
       [](const auto& c) { return c.ports[0].netdev == "v0"; }},
      {"the interface of a tap", "ports: [{name: a, device: 'net_tap0,mac=fixed,iface=t0'}]",
       [](const auto& c) { return c.ports[0].netdev == "t0"; }},
      {"iface= of a driver that does not mean the kernel's", "ports: [{name: a, device: 'net_pcap0,iface=t0'}]",
       [](const auto& c) { return c.ports[0].netdev.empty() && c.ports[0].driver == "net_pcap"; }},
      {"netlink with the interface of af_packet",
       "ports: [{name: a, device: 'net_af_packet0,iface=v0', link_state: netlink}]",
       [](const auto& c) { return c.ports[0].link_state == LinkStateSource::kNetlink; }},
      {"a NIC with arguments", "ports: [{name: a, device: '0000:3b:00.0,mprq_en=1'}]",
       [](const auto& c) { return c.ports[0].driver == "pci"; }},
      {"a device of another bus", "ports: [{name: a, device: 'auxiliary:mlx5_core.sf.4'}]",
       [](const auto& c) { return c.ports[0].driver == "auxiliary"; }},
      {"a driver whose name holds digits", "ports: [{name: a, device: 'net_vhost12,iface=/tmp/x.sock'}]",
       [](const auto& c) { return c.ports[0].driver == "net_vhost" && c.ports[0].netdev.empty(); }},
      {"sections without a value", after_ports("switch:\ngroups:\nroutes:\nclasses:\nhash:"),
       [](const auto& c) { return c.ports.size() == 2 && c.name == "heddle"; }},
      {"the name in the socket's path", after_ports("switch: {name: x-1}"),
       [](const auto& c) { return c.control_socket == "/run/heddle/x-1.sock"; }},
      {"seed 0", after_ports("switch: {seed: 0}"), [](const auto& c) { return c.hash.seed == 0; }},
      {"ports owned in turn", after_ports("switch: {workers: 2}"),
       [](const auto& c) { return c.ports[0].worker == 0 && c.ports[1].worker == 1; }},
      {"the smallest queue holds one frame", port("mtu: 9600, queue_limit: 9622"),
       [](const auto& c) { return c.ports[0].queue_limit == 9622; }},
      {"the longest frame that may leave: a tag's four bytes are for ports with VLANs",
       "ports: [{name: a, device: net_null0, mtu: 1400}, {name: b, device: net_null1, vlans: [{id: 7}]}]",
       [](const auto& c) { return c.ports[0].sent_frame_bytes() == 1414 && c.ports[1].sent_frame_bytes() == 1518; }},
      {"ports that share an anchor",
       "ports:\n  - &p {name: a, device: net_null0, mtu: 9000}\n  - {<<: *p, name: b, device: net_null1}\n",
       [](const auto& c) { return c.ports[1].mtu == 9000 && c.ports[1].name == "b"; }},
      {"the same prefix in another length",
       after_ports("routes:\n  - {prefix: 10.0.0.0/8, via: {port: a, mac: 02:00:00:00:00:01}}\n"
                   "  - {prefix: 10.0.0.0/9, via: {port: a, mac: 02:00:00:00:00:01}}"),
       [](const auto& c) { return c.routes.size() == 2; }},
      {"a port that is named like another with a VLAN",
       "ports: [{name: e0, device: net_null0, vlans: [{id: 100}]}, {name: e0.100, device: net_null1}]\n"
       "routes:\n  - {prefix: 10.0.0.0/8, via: {port: e0, vlan: 100, mac: 02:00:00:00:00:01}}\n"
       "  - {prefix: 11.0.0.0/8, via: {port: e0.100, mac: 02:00:00:00:00:01}}\n",
       [](const auto& c) { return c.groups[c.routes[0].group].name != c.groups[c.routes[1].group].name; }},
      {"JSON is YAML", R"({"ports": [{"name": "a", "device": "net_null0", "mtu": 2000}]})",
       [](const auto& c) { return c.ports[0].mtu == 2000; }},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.what);
    const SwitchConfig config = load(test.yaml);
    EXPECT_TRUE(test.holds(config));
    EXPECT_THAT(config.warnings, IsEmpty());
  }
}

TEST(SwitchConfig, Warnings) {
  struct Case {
    std::string what;
    std::string yaml;
    std::string warning;
  };
  const std::string route = "routes: [{prefix: 10.0.0.0/8, via: g}]";
  const std::vector<Case> cases{
      {"PSN in the hash", after_ports("hash: {roce: [src-ip, psn]}"),
       "leaf.yaml:4: roce[1] 'psn' spreads the packets of one queue pair over all paths: they will arrive out of "
       "order"},
      {"opcode in the hash", after_ports("hash: {roce: [opcode]}"),
       "leaf.yaml:4: roce[0] 'opcode' spreads the packets of one queue pair over all paths: they will arrive out of "
       "order"},
      {"weights under ECMP",
       after_ports("groups:\n  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01, weight: 2}, {port: b, mac: "
                   "02:00:00:00:00:01}]}\n" +
                   route),
       "leaf.yaml:5: group g has different weights, which the scheduler ecmp does not use"},
      {"a group without a route", after_ports("groups: [{name: g, members: [{port: a, mac: 02:00:00:00:00:01}]}]"),
       "leaf.yaml:4: no route leads to group g"},
      {"a next hop that is the port itself",
       "ports: [{name: a, device: net_null0, mac: 02:00:00:00:00:01}]\n"
       "routes: [{prefix: 10.0.0.0/8, via: {port: a, mac: 02:00:00:00:00:01}}]",
       "leaf.yaml:2: next hop 02:00:00:00:00:01 is port a's own address"},
      {"IPv6 over a small MTU",
       "ports: [{name: a, device: net_null0, mtu: 1279}]\n"
       "routes: [{prefix: '2001:db8::/32', via: {port: a, mac: 02:00:00:00:00:01}}]",
       "leaf.yaml:2: route 2001:db8::/32 leaves by port a, whose mtu 1279 is below the 1280 that IPv6 needs "
       "(RFC 8200 5)"},
      {"a worker without a port", after_ports("switch: {workers: 3}"),
       "worker 2 owns no port: it will have nothing to do"},
      {"no way to any route", after_ports("switch: {control: none}"),
       "no routes and no control socket to add any: every packet will be dropped"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.what);
    EXPECT_THAT(load(test.yaml).warnings, ElementsAre(test.warning));
  }
}

TEST(SwitchConfig, Overlays) {
  const std::string yaml = after_ports("switch: {name: x}");
  EXPECT_EQ(load(yaml, {"ports.b.rate=25G"}).ports[1].rate, Rate::gbps(25));
  EXPECT_EQ(load(yaml, {"ports.1.mtu=4200", "ports[1].mtu=4300"}).ports[1].mtu, 4300) << "the later one holds";
  EXPECT_EQ(load(yaml, {"switch={name: y}"}).name, "y");
  EXPECT_EQ(load(yaml, {"switch.workers=[0, 1]"}).workers, 2U);
  EXPECT_EQ(load(yaml, {"classes.queues.3.limit=2MB"}).queues[3].limit, 2'000'000U);

  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"ports.b.mtu=99", "--set ports.b.mtu=99: found mtu '99'; accepted: a whole number from 576 to 9600"},
      {"switch.nam=y",
       "--set switch.nam=y: found unknown key 'nam' in switch (did you mean 'name'?); accepted: name, seed, memory, "
       "workers, idle, control, max_routes, buffer_packets"},
      {"ports.c.mtu=1500",
       "--set ports.c.mtu=1500: found no item 'c' in the list of 2; accepted: 0 to 1, or the name of an item"},
  };
  for (const auto& [overlay, message] : mistakes) {
    try {
      load(yaml, {overlay});
      ADD_FAILURE() << "accepted: " << overlay;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), message);
    }
  }
}

TEST(SwitchConfig, SeedsOfNamesDiffer) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 1000; ++i) seeds.insert(seed_of_name("leaf" + std::to_string(i)));
  EXPECT_EQ(seeds.size(), 1000U);
  EXPECT_EQ(seed_of_name("leaf0"), load(after_ports("switch: {name: leaf0}")).seed);
}

// What `heddle check` prints is a configuration, and means the same.
TEST(SwitchConfig, JsonLoadsToTheSameSwitch) {
  for (const std::string& yaml :
       {std::string(kEveryKey), after_ports(""), port("link_state: always-up, trust: none")}) {
    const nlohmann::ordered_json json = to_json(load(yaml));
    const SwitchConfig again = load(json.dump(2));
    EXPECT_EQ(to_json(again).dump(2), json.dump(2));
  }
}

TEST(SwitchConfig, JsonUsesTheWordsOfTheConfiguration) {
  const nlohmann::ordered_json json = to_json(load(kEveryKey));
  EXPECT_EQ(json["switch"]["workers"], nlohmann::ordered_json({4, 6}));
  EXPECT_EQ(json["switch"]["control"], "none");
  EXPECT_EQ(json["ports"][0]["rate"], "25G");
  EXPECT_EQ(json["ports"][0]["queue_limit"], "2MiB");
  EXPECT_EQ(json["ports"][1]["mac"], "any");
  EXPECT_EQ(json["ports"][1]["rate"], "unlimited");
  EXPECT_EQ(json["groups"].size(), 1U) << "next hops in place are written in place";
  EXPECT_EQ(json["routes"][1]["via"]["mac"], "02:00:00:00:02:ab");
  EXPECT_EQ(json["classes"]["queues"]["3"]["limit"], "3MB");
  EXPECT_EQ(json["hash"]["roce"], nlohmann::ordered_json({"src-ip", "dest-qp"}));
}

// Run from the project's root, as the build files do.
TEST(SwitchConfig, ExamplesLoadWithoutWarnings) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("examples/run")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    names.insert(entry.path().filename());
    const SwitchConfig config = load_switch_config(entry.path());
    EXPECT_THAT(config.warnings, IsEmpty());
    EXPECT_GE(config.routes.size(), 2U);
    EXPECT_EQ(config.name, config.name == "leaf0" ? "leaf0" : entry.path().stem().string())
        << "the instances can run side by side";
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"leaf-nic.yaml", "leaf-pcap.yaml", "leaf-tap.yaml", "leaf-veth.yaml"}));
  EXPECT_EQ(load_switch_config("examples/run/leaf-pcap.yaml").groups.at(0).members.size(), 4U);
}

TEST(SwitchConfig, FilesThatCannotBeRead) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"examples/run", "examples/run: found a directory; accepted: a YAML file"},
      {"no/such/file.yaml", "no/such/file.yaml: found no such file; accepted: a readable YAML file"},
      {"/dev/zero", "/dev/zero: found more than 67108864 bytes; accepted: at most that many"},
  };
  for (const auto& [path, message] : cases) {
    try {
      load_switch_config(path);
      ADD_FAILURE() << "accepted: " << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), message);
    }
  }
}

// The user's page names every key: a key that docs/configuration.md does not know is not documented.
TEST(SwitchConfig, EveryKeyIsDocumented) {
  const std::string page = config::read_text_file("docs/configuration.md");
  const nlohmann::ordered_json json = to_json(load(kEveryKey));
  std::set<std::string> keys;
  const std::function<void(const nlohmann::ordered_json&)> collect = [&](const nlohmann::ordered_json& value) {
    for (const auto& [key, inner] : value.items()) {
      if (value.is_object() && key.find_first_not_of("0123456789") != std::string::npos) keys.insert(key);
      if (inner.is_structured()) collect(inner);
    }
  };
  collect(json);
  EXPECT_GE(keys.size(), 40U);
  for (const std::string& key : keys) {
    if (key == "id") continue;  // of a VLAN, within its row
    EXPECT_THAT(page, HasSubstr("`" + key + "`"));
  }
}

}  // namespace
}  // namespace heddle::control
