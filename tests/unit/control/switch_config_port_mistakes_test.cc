// What is refused in `ports`, and in which words.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/control/switch_config_mistakes.h"

namespace heddle::control {
namespace {

const std::string kPortKeys =
    "name, device, mac, addresses, rate, link_state, mtu, worker, trust, default_class, rx_ring, tx_ring, queue_limit, "
    "untagged, "
    "vlans, netdev, queues, pfc, pfc_quanta, pfc_reaction, resequence, watchdog";
const std::string kDeviceForms =
    "a PCI address such as 0000:3b:00.0, or a DPDK vdev with its arguments such as net_af_packet0,iface=eth0";
const std::string kRateForms = "a rate from 1M to 10T such as 100G or 25Gbps, or unlimited";
const std::string kSizeForms = "a size such as 1500, 64KiB or 2MB, from 1522B to 1GB";
const std::string kAddressForms = "addresses of the port such as 192.0.2.1 or 2001:db8::1, without a length";
const std::string kMacForms = "a MAC address of one station such as 02:00:00:00:00:01";

const std::vector<Mistake>& ports_mistakes() {
  static const std::vector<Mistake> mistakes{
      {"a port as a word", "ports: [a]\n", 1,
       "found ports[0] 'a'; accepted: a map of name, device, mac, addresses, rate, link_state, mtu, worker, trust, "
       "default_class, rx_ring, tx_ring, queue_limit, untagged, vlans, netdev, queues, pfc, pfc_quanta, pfc_reaction, "
       "resequence, "
       "watchdog"},
      {"a port without a name",
       "ports:\n"
       "  - device: net_null0\n",
       2, "found no 'name' in ports[0]; accepted: a name of 1 to 31 letters, digits, '_', '-' or '.'"},
      {"a port without a device",
       "ports:\n"
       "  - name: a\n",
       2, "found no 'device' in ports[0]; accepted: " + kDeviceForms},
      {"an address with a length", port("addresses: 192.0.2.1/24"), 2,
       "found addresses '192.0.2.1/24'; accepted: " + kAddressForms},
      {"an address of a group", port("addresses: [192.0.2.1, ff02::1]"), 2,
       "found addresses[1] 'ff02::1'; accepted: " + kAddressForms},
      {"an address that nobody has", port("addresses: '::'"), 2, "found addresses '::'; accepted: " + kAddressForms},
      {"an address twice", port("addresses: [2001:db8::1, 192.0.2.1, '2001:DB8:0::1']"), 2,
       "found 2001:db8::1 a second time; accepted: each address once"},
      {"addresses where every frame is ours", port("mac: any, addresses: 192.0.2.1"), 2,
       "found addresses '192.0.2.1'; accepted: no addresses on a port with mac: any, which has no MAC address to "
       "answer "
       "with"},
      {"an unknown key with a near name", port("queue-limits: 1MB"), 2,
       "found unknown key 'queue-limits' in ports[0] (did you mean 'queue_limit'?); accepted: " + kPortKeys},
      {"a name with a space",
       "ports:\n"
       "  - {name: up 0, device: net_null0}\n",
       2, "found name 'up 0'; accepted: a name of 1 to 31 letters, digits, '_', '-' or '.'"},
      {"a name of 32 characters",
       "ports:\n"
       "  - {name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, device: net_null0}\n",
       2,
       "found name 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'; accepted: a name of 1 to 31 letters, digits, '_', '-' or '.'"},
      {"two ports of one name",
       "ports:\n"
       "  - {name: a, device: net_null0}\n"
       "  - {name: a, device: net_null1}\n",
       3, "found name 'a'; accepted: a name of its own for each port (used in leaf.yaml:2)"},
      {"a kernel interface as the device",
       "ports:\n"
       "  - {name: a, device: eth0}\n",
       2, "found device 'eth0'; accepted: " + kDeviceForms},
      {"a PCI address with a function beyond 7",
       "ports:\n"
       "  - {name: a, device: \"0000:3b:00.8\"}\n",
       2, "found device '0000:3b:00.8'; accepted: " + kDeviceForms},
      {"a device of an unknown bus",
       "ports:\n"
       "  - {name: a, device: \"usb:1-1\"}\n",
       2, "found device 'usb:1-1'; accepted: " + kDeviceForms},
      {"a bus without a device",
       "ports:\n"
       "  - {name: a, device: \"auxiliary:\"}\n",
       2, "found device 'auxiliary:'; accepted: " + kDeviceForms},
      {"a device name of 64 characters",
       "ports:\n"
       "  - {name: a, device: net_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}\n",
       2, "found device 'net_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'; accepted: " + kDeviceForms},
      {"a device with a line break",
       "ports:\n"
       "  - {name: a, device: \"net_null0\\n\"}\n",
       2, "found device 'net_null0\\n'; accepted: text of 1 to 1024 characters"},
      {"an interface name of 16 characters",
       "ports:\n"
       "  - {name: a, device: \"net_tap0,iface=abcdefghijklmnop\"}\n",
       2,
       "found device 'net_tap0,iface=abcdefghijklmnop'; accepted: iface= with the name of a kernel interface, 1 to 15 "
       "characters"},
      {"one vdev twice",
       "ports:\n"
       "  - {name: a, device: net_null0}\n"
       "  - {name: b, device: \"net_null0,size=64\"}\n",
       3, "found device 'net_null0,size=64'; accepted: a device of its own for each port (port a has it)"},
      {"one NIC twice, written differently",
       "ports:\n"
       "  - {name: a, device: 3B:00.0}\n"
       "  - {name: b, device: \"0000:3b:00.0\"}\n",
       3, "found device '0000:3b:00.0'; accepted: a device of its own for each port (port a has it)"},
      {"one interface twice",
       "ports:\n"
       "  - {name: a, device: \"net_af_packet0,iface=v\"}\n"
       "  - {name: b, device: \"net_af_packet1,iface=v\"}\n",
       3,
       "found device 'net_af_packet1,iface=v'; accepted: an interface of its own for each port (port a has iface=v)"},
      {"one output file twice",
       "ports:\n"
       "  - {name: a, device: \"net_pcap0,tx_pcap=o\"}\n"
       "  - {name: b, device: \"net_pcap1,tx_pcap=o\"}\n",
       3,
       "found device 'net_pcap1,tx_pcap=o'; accepted: an output file of its own for each port (port a has tx_pcap=o)"},
      {"a MAC with a byte missing", port("mac: 02:00:00:00:01"), 2,
       "found mac '02:00:00:00:01'; accepted: a MAC address such as 02:00:00:00:00:01, a list of them, any or auto "
       "(the device's own)"},
      {"a multicast MAC", port("mac: 01:00:5e:00:00:01"), 2,
       "found mac '01:00:5e:00:00:01' (multicast); accepted: " + kMacForms},
      {"a MAC of zeros", port("mac: 00:00:00:00:00:00"), 2, "found mac '00:00:00:00:00:00'; accepted: " + kMacForms},
      {"a multicast MAC in a list", port("mac: [02:00:00:00:00:01, ff:ff:ff:ff:ff:ff]"), 2,
       "found mac[1] 'ff:ff:ff:ff:ff:ff' (multicast); accepted: " + kMacForms},
      {"a MAC twice", port("mac: [02:00:00:00:00:01, 02-00-00-00-00-01]"), 2,
       "found 02:00:00:00:00:01 a second time; accepted: each MAC once"},
      {"no MAC at all", port("mac: []"), 2, "found 0 items in mac; accepted: a list of 1 to 16 items"},
      {"17 MACs",
       port("mac: [02:00:00:00:00:00, 02:00:00:00:00:01, 02:00:00:00:00:02, 02:00:00:00:00:03, 02:00:00:00:00:04, "
            "02:00:00:00:00:05, 02:00:00:00:00:06, 02:00:00:00:00:07, 02:00:00:00:00:08, 02:00:00:00:00:09, "
            "02:00:00:00:00:0a, 02:00:00:00:00:0b, 02:00:00:00:00:0c, 02:00:00:00:00:0d, 02:00:00:00:00:0e, "
            "02:00:00:00:00:0f, 02:00:00:00:00:10]"),
       2, "found 17 items in mac; accepted: a list of 1 to 16 items"},
      {"a rate without a unit", port("rate: 100"), 2, "found rate '100'; accepted: " + kRateForms},
      {"a rate of zero", port("rate: 0G"), 2, "found rate '0G'; accepted: " + kRateForms},
      {"a rate with a mistyped unit", port("rate: 100X"), 2, "found rate '100X'; accepted: " + kRateForms},
      {"a rate in bytes", port("rate: 100GB"), 2, "found rate '100GB'; accepted: " + kRateForms},
      {"a rate below 1M", port("rate: 999k"), 2, "found rate '999k'; accepted: " + kRateForms},
      {"a rate above 10T", port("rate: 10.1T"), 2, "found rate '10.1T'; accepted: " + kRateForms},
      {"a rate finer than a bit per second", port("rate: 1.0000001M"), 2,
       "found rate '1.0000001M'; accepted: " + kRateForms},
      {"a link state that does not exist", port("link_state: up"), 2,
       "found link_state 'up'; accepted: auto, ethdev, netlink, always-up"},
      {"netlink without an interface", port("link_state: netlink"), 2,
       "found link_state 'netlink' without an interface to follow; accepted: netlink beside netdev: INTERFACE, or "
       "auto, ethdev, always-up"},
      {"an interface name with a slash", port("netdev: a/b"), 2,
       "found netdev 'a/b'; accepted: the name of a kernel interface, 1 to 15 characters"},
      {"an MTU that is too small", port("mtu: 575"), 2, "found mtu '575'; accepted: a whole number from 576 to 9600"},
      {"an MTU that is too large", port("mtu: 9601"), 2, "found mtu '9601'; accepted: a whole number from 576 to 9600"},
      {"an MTU with a unit", port("mtu: 1500B"), 2, "found mtu '1500B'; accepted: a whole number from 576 to 9600"},
      {"a worker that does not exist", port("worker: 1"), 2, "found worker '1'; accepted: 0 (switch.workers is 1)"},
      {"trust in nothing we know", port("trust: cos"), 2, "found trust 'cos'; accepted: dscp, pcp, none"},
      {"a class beyond 7", port("default_class: 8"), 2,
       "found default_class '8'; accepted: a whole number from 0 to 7"},
      {"a receive ring that is no power of two", port("rx_ring: 1000"), 2,
       "found rx_ring '1000'; accepted: a power of two from 32 to 32768"},
      {"a receive ring that is too large", port("rx_ring: 65536"), 2,
       "found rx_ring '65536'; accepted: a whole number from 32 to 32768"},
      {"a transmit ring that is too small", port("tx_ring: 16"), 2,
       "found tx_ring '16'; accepted: a whole number from 32 to 4096"},
      {"a queue smaller than a frame", port("queue_limit: 1521"), 2,
       "found queue_limit '1521'; accepted: " + kSizeForms},
      {"a queue larger than 1GB", port("queue_limit: 2GB"), 2, "found queue_limit '2GB'; accepted: " + kSizeForms},
      {"a queue limit with a mistyped unit", port("queue_limit: 1mb"), 2,
       "found queue_limit '1mb'; accepted: " + kSizeForms},
      {"a VLAN without an id", port("vlans: [{mac: 02:00:00:00:00:01}]"), 2,
       "found no 'id' in vlans[0]; accepted: a whole number from 1 to 4094"},
      {"VLAN 0", port("vlans: [{id: 0}]"), 2, "found id '0'; accepted: a whole number from 1 to 4094"},
      {"VLAN 4095", port("vlans: [{id: 4095}]"), 2, "found id '4095'; accepted: a whole number from 1 to 4094"},
      {"a VLAN twice", port("vlans: [{id: 5}, {id: 5}]"), 2,
       "found id '5' a second time; accepted: each VLAN of a port once"},
      {"too many MACs with those of VLANs",
       port("mac: [02:00:00:00:00:00, 02:00:00:00:00:01, 02:00:00:00:00:02, 02:00:00:00:00:03, 02:00:00:00:00:04, "
            "02:00:00:00:00:05, 02:00:00:00:00:06, 02:00:00:00:00:07, 02:00:00:00:00:08, 02:00:00:00:00:09, "
            "02:00:00:00:00:0a, 02:00:00:00:00:0b, 02:00:00:00:00:0c, 02:00:00:00:00:0d, 02:00:00:00:00:0e, "
            "02:00:00:00:00:0f], vlans: [{id: 1, mac: 02:00:00:00:00:ff}]"),
       2, "found 17 router MACs on port a; accepted: at most 16, those of its vlans included"},
      {"a boolean in other words", port("untagged: no"), 2, "found untagged 'no'; accepted: true, false"},
      {"neither untagged nor tagged frames", port("untagged: false"), 2,
       "found untagged 'false' on a port without vlans; accepted: true, or vlans: beside it"},
  };
  return mistakes;
}

TEST(SwitchConfigMistakes, Ports) { expect_messages(ports_mistakes()); }

}  // namespace
}  // namespace heddle::control
