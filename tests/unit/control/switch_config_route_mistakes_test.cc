// What is refused in `groups` and `routes`, and in which words.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/control/switch_config_mistakes.h"

namespace heddle::control {
namespace {

const std::string kMacForms = "a MAC address of one station such as 02:00:00:00:00:01";
const std::string kPrefixForms = "a unicast prefix such as 198.51.100.0/24 or 2001:db8::/64";

const std::vector<Mistake>& groups_mistakes() {
  static const std::vector<Mistake> mistakes{
      {"groups as a map", after_ports("groups: {up: []}"), 4,
       "found a map as groups; accepted: a list of up to 16384 items"},
      {"a group without a name",
       after_ports("groups:\n"
                   "  - members: [{port: a, mac: 02:00:00:00:00:01}]"),
       5, "found no 'name' in groups[0]; accepted: a name of 1 to 32 letters, digits, '_', '-' or '.'"},
      {"two groups of one name",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01}]}\n"
                   "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01}]}"),
       6, "found name 'g'; accepted: a name of its own for each group (used in leaf.yaml:5)"},
      {"a group without members",
       after_ports("groups:\n"
                   "  - {name: g}"),
       5, "found no 'members' in groups[0]; accepted: a list of 1 to 64 items"},
      {"a group with no members",
       after_ports("groups:\n"
                   "  - {name: g, members: []}"),
       5, "found 0 items in members; accepted: a list of 1 to 64 items"},
      {"a group of 65",
       after_ports(
           "groups:\n"
           "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:00}, {port: a, mac: 02:00:00:00:00:01}, {port: a, "
           "mac: 02:00:00:00:00:02}, {port: a, mac: 02:00:00:00:00:03}, {port: a, mac: 02:00:00:00:00:04}, {port: a, "
           "mac: 02:00:00:00:00:05}, {port: a, mac: 02:00:00:00:00:06}, {port: a, mac: 02:00:00:00:00:07}, {port: a, "
           "mac: 02:00:00:00:00:08}, {port: a, mac: 02:00:00:00:00:09}, {port: a, mac: 02:00:00:00:00:0a}, {port: a, "
           "mac: 02:00:00:00:00:0b}, {port: a, mac: 02:00:00:00:00:0c}, {port: a, mac: 02:00:00:00:00:0d}, {port: a, "
           "mac: 02:00:00:00:00:0e}, {port: a, mac: 02:00:00:00:00:0f}, {port: a, mac: 02:00:00:00:00:10}, {port: a, "
           "mac: 02:00:00:00:00:11}, {port: a, mac: 02:00:00:00:00:12}, {port: a, mac: 02:00:00:00:00:13}, {port: a, "
           "mac: 02:00:00:00:00:14}, {port: a, mac: 02:00:00:00:00:15}, {port: a, mac: 02:00:00:00:00:16}, {port: a, "
           "mac: 02:00:00:00:00:17}, {port: a, mac: 02:00:00:00:00:18}, {port: a, mac: 02:00:00:00:00:19}, {port: a, "
           "mac: 02:00:00:00:00:1a}, {port: a, mac: 02:00:00:00:00:1b}, {port: a, mac: 02:00:00:00:00:1c}, {port: a, "
           "mac: 02:00:00:00:00:1d}, {port: a, mac: 02:00:00:00:00:1e}, {port: a, mac: 02:00:00:00:00:1f}, {port: a, "
           "mac: 02:00:00:00:00:20}, {port: a, mac: 02:00:00:00:00:21}, {port: a, mac: 02:00:00:00:00:22}, {port: a, "
           "mac: 02:00:00:00:00:23}, {port: a, mac: 02:00:00:00:00:24}, {port: a, mac: 02:00:00:00:00:25}, {port: a, "
           "mac: 02:00:00:00:00:26}, {port: a, mac: 02:00:00:00:00:27}, {port: a, mac: 02:00:00:00:00:28}, {port: a, "
           "mac: 02:00:00:00:00:29}, {port: a, mac: 02:00:00:00:00:2a}, {port: a, mac: 02:00:00:00:00:2b}, {port: a, "
           "mac: 02:00:00:00:00:2c}, {port: a, mac: 02:00:00:00:00:2d}, {port: a, mac: 02:00:00:00:00:2e}, {port: a, "
           "mac: 02:00:00:00:00:2f}, {port: a, mac: 02:00:00:00:00:30}, {port: a, mac: 02:00:00:00:00:31}, {port: a, "
           "mac: 02:00:00:00:00:32}, {port: a, mac: 02:00:00:00:00:33}, {port: a, mac: 02:00:00:00:00:34}, {port: a, "
           "mac: 02:00:00:00:00:35}, {port: a, mac: 02:00:00:00:00:36}, {port: a, mac: 02:00:00:00:00:37}, {port: a, "
           "mac: 02:00:00:00:00:38}, {port: a, mac: 02:00:00:00:00:39}, {port: a, mac: 02:00:00:00:00:3a}, {port: a, "
           "mac: 02:00:00:00:00:3b}, {port: a, mac: 02:00:00:00:00:3c}, {port: a, mac: 02:00:00:00:00:3d}, {port: a, "
           "mac: 02:00:00:00:00:3e}, {port: a, mac: 02:00:00:00:00:3f}, {port: a, mac: 02:00:00:00:00:40}]}"),
       5, "found 65 items in members; accepted: a list of 1 to 64 items"},
      {"a scheduler that does not exist",
       after_ports("groups:\n"
                   "  - {name: g, scheduler: ecpm, members: [{port: a, mac: 02:00:00:00:00:01}]}"),
       5,
       "found scheduler 'ecpm'; accepted: ecmp, wcmp, rps, round-robin, spray-wcmp, flowlet, flowlet-wcmp, "
       "flowlet-quality, adaptive, or {granularity: …, choice: …}"},
      {"a member as a word",
       after_ports("groups:\n"
                   "  - {name: g, members: [a]}"),
       5, "found members[0] 'a'; accepted: a map of port, mac, vlan, weight, alternate"},
      {"a member without a port",
       after_ports("groups:\n"
                   "  - {name: g, members: [{mac: 02:00:00:00:00:01}]}"),
       5, "found no 'port' in members[0]; accepted: a port: a, b"},
      {"a member on an unknown port",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: c, mac: 02:00:00:00:00:01}]}"),
       5, "found port 'c'; accepted: a port: a, b"},
      {"a member without a MAC",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a}]}"),
       5, "found no 'mac' in members[0]; accepted: " + kMacForms},
      {"a broadcast next hop",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a, mac: ff:ff:ff:ff:ff:ff}]}"),
       5, "found mac 'ff:ff:ff:ff:ff:ff' (multicast); accepted: " + kMacForms},
      {"any as a next hop",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a, mac: any}]}"),
       5, "found mac 'any'; accepted: " + kMacForms},
      {"a weight of zero",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01, weight: 0}]}"),
       5, "found weight '0'; accepted: a whole number from 1 to 1000"},
      {"a weight above 1000",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01, weight: 1001}]}"),
       5, "found weight '1001'; accepted: a whole number from 1 to 1000"},
      {"a member twice",
       after_ports(
           "groups:\n"
           "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01}, {port: a, mac: 02:00:00:00:00:01, weight: 2}]}"),
       5,
       "found 02:00:00:00:00:01 on port a a second time; accepted: each next hop of a group once (weight: gives it "
       "more)"},
      {"a VLAN that its port does not have",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01, vlan: 7}]}"),
       5, "found vlan '7' on port a, which does not accept such frames; accepted: vlan: 0"},
      {"an untagged next hop on a port without untagged frames",
       "ports: [{name: a, device: net_null0, untagged: false, vlans: [{id: 7}]}]\n"
       "groups:\n"
       "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01}]}\n",
       3, "found a next hop without vlan: on port a, which does not accept untagged frames; accepted: vlan: 7"},
      {"an unknown key in a member",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01, wieght: 2}]}"),
       5,
       "found unknown key 'wieght' in members[0] (did you mean 'weight'?); accepted: port, mac, vlan, weight, "
       "alternate"},
  };
  return mistakes;
}

const std::vector<Mistake>& routes_mistakes() {
  static const std::vector<Mistake> mistakes{
      {"a route without a prefix",
       after_ports("routes:\n"
                   "  - {via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found no 'prefix' in routes[0]; accepted: " + kPrefixForms},
      {"a route to nowhere",
       after_ports("routes:\n"
                   "  - {prefix: 10.0.0.0/8}"),
       5, "found no 'via' in routes[0]; accepted: the name of a group, or {port: NAME, mac: MAC}"},
      {"an address without a length",
       after_ports("routes:\n"
                   "  - {prefix: 10.0.0.1, via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found prefix '10.0.0.1'; accepted: " + kPrefixForms},
      {"a length beyond the address",
       after_ports("routes:\n"
                   "  - {prefix: 10.0.0.0/33, via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found prefix '10.0.0.0/33'; accepted: " + kPrefixForms},
      {"an IPv6 length beyond the address",
       after_ports("routes:\n"
                   "  - {prefix: \"2001:db8::/129\", via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found prefix '2001:db8::/129'; accepted: " + kPrefixForms},
      {"an octet beyond 255",
       after_ports("routes:\n"
                   "  - {prefix: 10.0.256.0/24, via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found prefix '10.0.256.0/24'; accepted: " + kPrefixForms},
      {"IPv4 host bits",
       after_ports("routes:\n"
                   "  - {prefix: 198.51.100.7/24, via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found prefix '198.51.100.7/24' with host bits set; accepted: 198.51.100.0/24"},
      {"IPv4 host bits in the middle of a byte",
       after_ports("routes:\n"
                   "  - {prefix: 10.1.130.0/17, via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found prefix '10.1.130.0/17' with host bits set; accepted: 10.1.128.0/17"},
      {"IPv6 host bits",
       after_ports("routes:\n"
                   "  - {prefix: \"2001:db8::1/64\", via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found prefix '2001:db8::1/64' with host bits set; accepted: 2001:db8::/64"},
      {"an IPv4 multicast prefix",
       after_ports("routes:\n"
                   "  - {prefix: 239.0.0.0/8, via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found prefix '239.0.0.0/8' (multicast); accepted: " + kPrefixForms},
      {"an IPv6 multicast prefix",
       after_ports("routes:\n"
                   "  - {prefix: \"ff02::/16\", via: {port: a, mac: 02:00:00:00:00:01}}"),
       5, "found prefix 'ff02::/16' (multicast); accepted: " + kPrefixForms},
      {"a prefix twice",
       after_ports("routes:\n"
                   "  - {prefix: \"2001:db8::/32\", via: {port: a, mac: 02:00:00:00:00:01}}\n"
                   "  - {prefix: \"2001:0db8:0::/32\", via: {port: b, mac: 02:00:00:00:00:01}}"),
       6, "found prefix '2001:0db8:0::/32'; accepted: each prefix once (first in leaf.yaml:5)"},
      {"a group where there is none",
       after_ports("routes:\n"
                   "  - {prefix: 10.0.0.0/8, via: up}"),
       5, "found via 'up'; accepted: {port: NAME, mac: MAC}, there is no group"},
      {"an unknown group",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01}]}\n"
                   "routes:\n"
                   "  - {prefix: 10.0.0.0/8, via: h}"),
       7, "found via 'h'; accepted: a group (g), or {port: NAME, mac: MAC}"},
      {"a group without a name",
       after_ports("groups:\n"
                   "  - {name: g, members: [{port: a, mac: 02:00:00:00:00:01}]}\n"
                   "routes:\n"
                   "  - {prefix: 10.0.0.0/8, via: \"\"}"),
       7, "found via ''; accepted: a group (g), or {port: NAME, mac: MAC}"},
      {"a next hop in place under its internal name",
       after_ports("routes:\n"
                   "  - {prefix: 10.0.0.0/8, via: {port: a, mac: 02:00:00:00:00:01}}\n"
                   "  - {prefix: 11.0.0.0/8, via: a/02:00:00:00:00:01}"),
       6, "found via 'a/02:00:00:00:00:01'; accepted: {port: NAME, mac: MAC}, there is no group"},
      {"a list of next hops in place",
       after_ports("routes:\n"
                   "  - {prefix: 10.0.0.0/8, via: [a]}"),
       5, "found a list as via; accepted: the name of a group, or {port: NAME, mac: MAC}"},
      {"a weight on a next hop in place",
       after_ports("routes:\n"
                   "  - {prefix: 10.0.0.0/8, via: {port: a, mac: 02:00:00:00:00:01, weight: 1}}"),
       5, "found unknown key 'weight' in via; accepted: port, mac, vlan"},
      {"VLAN 4095 in place",
       after_ports("routes:\n"
                   "  - {prefix: 10.0.0.0/8, via: {port: a, mac: 02:00:00:00:00:01, vlan: 4095}}"),
       5, "found vlan '4095'; accepted: a whole number from 0 to 4094"},
      {"more routes than the tables hold",
       after_ports("switch: {max_routes: 1}\n"
                   "routes:\n"
                   "  - {prefix: 10.0.0.0/8, via: {port: a, mac: 02:00:00:00:00:01}}\n"
                   "  - {prefix: \"2001:db8::/32\", via: {port: a, mac: 02:00:00:00:00:01}}\n"
                   "  - {prefix: 11.0.0.0/8, via: {port: a, mac: 02:00:00:00:00:01}}"),
       8, "found one route too many; accepted: 1 of a family (switch.max_routes)"},
  };
  return mistakes;
}

TEST(SwitchConfigMistakes, Groups) { expect_messages(groups_mistakes()); }
TEST(SwitchConfigMistakes, Routes) { expect_messages(routes_mistakes()); }

}  // namespace
}  // namespace heddle::control
