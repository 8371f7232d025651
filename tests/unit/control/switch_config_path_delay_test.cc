// `path_delay:` of a switch configuration: what it means, and in which words mistakes are refused.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/control/switch_config_mistakes.h"

namespace heddle::control {
namespace {

const std::string kGroups =
    "groups:\n"
    "  - {name: up, members: [{port: a, mac: 02:00:00:00:00:01}, {port: b, mac: 02:00:00:00:00:02}]}\n"
    "  - {name: one, members: [{port: a, mac: 02:00:00:00:00:01}]}\n";

// `text` is line 7.
std::string with_groups(const std::string& text) { return after_ports(kGroups + text); }

TEST(SwitchConfigPathDelay, IsOffByDefault) {
  EXPECT_FALSE(load_switch_config_text(with_groups(""), "leaf.yaml").path_delay.is_on());
  EXPECT_FALSE(load_switch_config_text(with_groups("path_delay:"), "leaf.yaml").path_delay.is_on());
}

TEST(SwitchConfigPathDelay, AnAddressAloneAnswersProbes) {
  const PathDelayConfig probes =
      load_switch_config_text(with_groups("path_delay: {address: 10.255.0.1}"), "leaf.yaml").path_delay;
  EXPECT_TRUE(probes.is_on());
  EXPECT_EQ(probes.address, 0x0aff0001U);
  EXPECT_TRUE(probes.targets.empty());
  EXPECT_EQ(probes.rate, 0.001);
  EXPECT_EQ(probes.base, 10 * kMicrosecond);
  EXPECT_EQ(probes.timeout, 100 * kMillisecond);
  EXPECT_EQ(probes.dscp, 26);
  EXPECT_EQ(probes.hops, 4U);
}

TEST(SwitchConfigPathDelay, EveryKey) {
  const SwitchConfig config = load_switch_config_text(
      with_groups("path_delay: {address: 10.255.0.1, rate: 0.5%, base: 20us, timeout: 1s, dscp: 0, hops: 2, "
                  "targets: [{group: up, address: [10.255.0.2, 10.255.0.3], name: pod2}]}"),
      "leaf.yaml");
  const PathDelayConfig& probes = config.path_delay;
  EXPECT_EQ(probes.rate, 0.005);
  EXPECT_EQ(probes.base, 20 * kMicrosecond);
  EXPECT_EQ(probes.timeout, kSecond);
  EXPECT_EQ(probes.dscp, 0);
  EXPECT_EQ(probes.hops, 2U);
  ASSERT_EQ(probes.targets.size(), 1U);
  EXPECT_EQ(probes.targets[0].name, "pod2");
  EXPECT_EQ(config.groups[probes.targets[0].group].name, "up");
  EXPECT_EQ(probes.targets[0].addresses, (std::vector<net::IpAddress>{0x0aff0002, 0x0aff0003}));
  const SwitchConfig again = load_switch_config_text(to_json(config).dump(), "again.yaml");
  EXPECT_EQ(to_json(again), to_json(config));
  EXPECT_EQ(to_json(config)["path_delay"]["rate"], "0.005");
}

TEST(SwitchConfigPathDelay, ATargetIsCalledByItsAddress) {
  const SwitchConfig config = load_switch_config_text(
      with_groups("path_delay: {address: 10.255.0.1, targets: [{group: up, address: 10.255.0.2}]}"), "leaf.yaml");
  EXPECT_EQ(config.path_delay.targets.at(0).name, "10.255.0.2");
}

TEST(SwitchConfigPathDelay, ProbesMayBeIpv6) {
  const SwitchConfig config = load_switch_config_text(
      with_groups("path_delay: {address: \"2001:db8:ff::1\", targets: [{group: up, address: [\"2001:db8:ff::2\", "
                  "\"2001:db8:ff:0:0::3\"]}]}"),
      "leaf.yaml");
  EXPECT_TRUE(config.path_delay.is_on());
  EXPECT_EQ(config.path_delay.address, *config::parse_address("2001:db8:ff::1"));
  const PathTargetConfig& target = config.path_delay.targets.at(0);
  EXPECT_EQ(target.addresses.at(1), *config::parse_address("2001:db8:ff::3"));
  EXPECT_EQ(target.name, "2001:db8:ff::2");
  const auto json = to_json(config)["path_delay"];
  EXPECT_EQ(json["address"], "2001:db8:ff::1");
  EXPECT_EQ(json["targets"][0]["address"][1], "2001:db8:ff::3");
  EXPECT_EQ(json["targets"][0]["name"], "2001:db8:ff::2");
}

TEST(SwitchConfigPathDelay, SiteLocalAddressesAreGlobalToRouters) {
  for (const char* address : {"fec0::1", "feff:ffff::1", "fe7f::1"}) {
    const SwitchConfig config =
        load_switch_config_text(with_groups(fmt::format("path_delay: {{address: \"{}\"}}", address)), "leaf.yaml");
    EXPECT_EQ(config.path_delay.address, *config::parse_address(address));
  }
}

TEST(SwitchConfigPathDelay, Mistakes) {
  const std::string address = "an address of one switch such as 10.255.0.1 or 2001:db8:ff::1";
  const std::string group = "a group of two members and more: up";
  const auto probes = [](const std::string& keys) { return with_groups("path_delay: {" + keys + "}"); };
  const auto target = [&](const std::string& keys) { return probes("address: 10.255.0.1, targets: [{" + keys + "}]"); };
  expect_messages({
      {"no address", probes("rate: 0.1%"), 7, "found no 'address' in path_delay; accepted: " + address},
      {"a prefix", probes("address: 10.255.0.1/32"), 7, "found address '10.255.0.1/32'; accepted: " + address},
      {"an IPv6 prefix", probes("address: \"2001:db8::1/128\""), 7,
       "found address '2001:db8::1/128'; accepted: " + address},
      {"IPv6 multicast", probes("address: \"ff02::1\""), 7, "found address 'ff02::1'; accepted: " + address},
      {"IPv6 link-local", probes("address: \"fe80::1\""), 7, "found address 'fe80::1'; accepted: " + address},
      {"the end of IPv6 link-local", probes("address: \"febf::1\""), 7,
       "found address 'febf::1'; accepted: " + address},
      {"IPv6 loopback", probes("address: \"::1\""), 7, "found address '::1'; accepted: " + address},
      {"no address at all", probes("address: 0.0.0.0"), 7, "found address '0.0.0.0'; accepted: " + address},
      {"multicast", probes("address: 224.0.0.1"), 7, "found address '224.0.0.1'; accepted: " + address},
      {"loopback", probes("address: 127.0.0.1"), 7, "found address '127.0.0.1'; accepted: " + address},
      {"a near key", probes("adress: 10.255.0.1"), 7,
       "found unknown key 'adress' in path_delay (did you mean 'address'?); accepted: address, rate, base, timeout, "
       "dscp, hops, targets"},
      {"too much of a link", probes("address: 10.255.0.1, rate: 2%"), 7,
       "found rate '2%'; accepted: a share of a link from 0.01% to 1% such as 0.1%"},
      {"more hops than the least MTU has room for", probes("address: 10.255.0.1, hops: 15"), 7,
       "found hops '15'; accepted: a whole number from 1 to 14"},
      {"a group of one", target("group: one, address: 10.255.0.2"), 7, "found group 'one'; accepted: " + group},
      {"an unknown group", target("group: down, address: 10.255.0.2"), 7, "found group 'down'; accepted: " + group},
      {"no group at all", after_ports("path_delay: {address: 10.255.0.1, targets: [{group: up, address: 10.255.0.2}]}"),
       4, "found group 'up'; accepted: a group of two members and more, there is none"},
      {"its own address", target("group: up, address: 10.255.0.1"), 7,
       "found address '10.255.0.1' which is this switch's own; accepted: the address of another switch"},
      {"another family than its own", target("group: up, address: \"2001:db8::2\""), 7,
       "found address '2001:db8::2'; accepted: addresses of the family of this switch's own: probes and answers go "
       "between the two"},
      {"an address twice", target("group: up, address: [10.255.0.2, 10.255.0.2]"), 7,
       "found address[1] '10.255.0.2' a second time; accepted: each address once"},
      {"a group twice",
       with_groups("path_delay:\n  address: 10.255.0.1\n  targets:\n    - {group: up, address: 10.255.0.2}\n"
                   "    - {group: up, address: 10.255.0.3}"),
       11, "found group 'up'; accepted: each group once (first in leaf.yaml:10): its weights are for one destination"},
  });
}

}  // namespace
}  // namespace heddle::control
