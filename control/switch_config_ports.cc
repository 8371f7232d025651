// `ports:` of the switch configuration.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "control/switch_config_parts.h"
#include "dataplane/device_traits.h"
#include "dataplane/route.h"

namespace heddle::control {
namespace {

using config::integer;
using config::List;
using config::Map;
using config::one_of;
using config::Value;

// What can be told from the text DPDK will be given.
struct Device {
  std::string name;    // up to the first comma: what must be unique
  std::string driver;  // "pci" or "net_af_packet"
  std::string iface;   // kernel interface it opens or makes; empty: none, or not said
  std::string writes;  // file that net_pcap writes to
};

Device read_device(const Value& value, std::string& text);
void read_macs(const Value& value, PortConfig& port);
void read_addresses(const Value& value, PortConfig& port);
void read_vlans(const Map& map, PortConfig& port);
void read_link(const Map& map, const Device& device, PortConfig& port);
void check_unique(const Map& map, const Device& device, const std::vector<Device>& others, const SwitchConfig& config);
unsigned read_worker(const Value& value, unsigned workers);

// Drivers that open or make the kernel interface named by `iface=`.
bool has_netdev(std::string_view driver) {
  return driver == "net_af_packet" || driver == "net_tap" || driver == "net_af_xdp";
}

}  // namespace

const Words<LinkStateSource>& link_state_words() {
  static const Words<LinkStateSource> words{{"auto", LinkStateSource::kAuto},
                                            {"ethdev", LinkStateSource::kEthdev},
                                            {"netlink", LinkStateSource::kNetlink},
                                            {"always-up", LinkStateSource::kAlwaysUp}};
  return words;
}

const Words<dataplane::Trust>& trust_words() {
  static const Words<dataplane::Trust> words{
      {"dscp", dataplane::Trust::kDscp}, {"pcp", dataplane::Trust::kPcp}, {"none", dataplane::Trust::kNone}};
  return words;
}

void read_ports(const List& items, SwitchConfig& config) {
  std::vector<Device> devices;
  for (const Value& item : items) {
    const Map map = item.map(kPortKeys);
    PortConfig port;
    port.place = item.place().text();
    port.name = map.required("name", config::name_text(31));
    const Device device = read_device(map.at("device"), port.device);
    check_unique(map, device, devices, config);
    read_link(map, device, port);
    if (const Value mac = map.at("mac"); !mac.is_missing()) read_macs(mac, port);
    read_vlans(map, port);
    if (const Value addresses = map.at("addresses"); !addresses.is_missing()) read_addresses(addresses, port);
    const auto index = static_cast<unsigned>(config.ports.size());
    port.worker = map.optional("worker", index % config.workers,
                               [&](const Value& value) { return read_worker(value, config.workers); });
    port.trust = map.optional("trust", port.trust, one_of(trust_words()));
    port.default_class = map.optional("default_class", 0, integer<uint8_t>(0, kTrafficClasses - 1));
    port.queue_limit = map.optional("queue_limit", port.queue_limit, config::bytes(port.frame_bytes(), 1'000'000'000));
    devices.push_back(device);
    config.ports.push_back(std::move(port));
  }
}

namespace {

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
           c == '.' || c == ':';
  });
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// `3b:00.0` or `0000:3b:00.0` as `0000:3b:00.0`; empty if it is not a PCI address.
std::string pci_address(std::string_view text) {
  std::string full(text);
  if (full.size() == 7) full = "0000:" + full;
  const std::string_view view = full;
  const bool fits = view.size() == 12 && is_hex(view.substr(0, 4), 4) && view[4] == ':' &&
                    is_hex(view.substr(5, 2), 2) && view[7] == ':' && is_hex(view.substr(8, 2), 2) && view[10] == '.' &&
                    view[11] >= '0' && view[11] <= '7';
  if (!fits) return "";
  for (char& c : full) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  return full;
}

// Buses whose devices are named BUS:NAME, as in auxiliary:mlx5_core.sf.4.
constexpr std::array<std::string_view, 5> kOtherBuses{"auxiliary", "vmbus", "fslmc", "dpaa", "platform"};

// What the kernel takes as an interface's name (dev_valid_name, IFNAMSIZ).
bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() <= 15 && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), [](char c) { return c == '/' || c == ':' || (c >= 0 && c <= ' '); });
}
constexpr std::string_view kInterfaceForms = "the name of a kernel interface, 1 to 15 characters";

std::string read_netdev(const Value& value) {
  const std::string& name = value.scalar(kInterfaceForms);
  if (!is_interface_name(name)) value.refuse(kInterfaceForms);
  return name;
}

Device read_device(const Value& value, std::string& text) {
  constexpr std::string_view accepted =
      "a PCI address such as 0000:3b:00.0, or a DPDK vdev with its arguments such as net_af_packet0,iface=eth0";
  constexpr size_t longest_name = 63;  // RTE_ETH_NAME_MAX_LEN
  value.scalar(accepted);
  text = config::text(1024)(value);
  Device device;
  device.name = dataplane::device_name(text);
  if (const std::string pci = pci_address(device.name); !pci.empty()) {
    device.name = pci;
    device.driver = "pci";
  } else {
    const bool vdev = device.name.starts_with("net_") || device.name.starts_with("virtio_user");
    const std::string bus = device.name.substr(0, device.name.find(':'));
    const bool other_bus = std::find(kOtherBuses.begin(), kOtherBuses.end(), bus) != kOtherBuses.end() &&
                           device.name.size() > bus.size() + 1;
    if (!is_name(device.name) || device.name.size() > longest_name || !(vdev || other_bus)) value.refuse(accepted);
    device.driver = vdev ? device.name.substr(0, device.name.find_last_not_of("0123456789") + 1) : bus;
  }
  if (has_netdev(device.driver)) device.iface = dataplane::devarg(text, "iface");
  if (!device.iface.empty() && !is_interface_name(device.iface))
    value.refuse(fmt::format("iface= with {}", kInterfaceForms));
  device.writes = dataplane::devarg(text, "tx_pcap");
  return device;
}

// Two ports on one device cannot both start; on one interface they would both receive every frame; into one file they
// would overwrite each other.
void check_unique(const Map& map, const Device& device, const std::vector<Device>& others, const SwitchConfig& config) {
  for (size_t i = 0; i < others.size(); ++i) {
    const PortConfig& other = config.ports[i];
    const Value value = map.at("device");
    if (map.at("name").is_word(other.name)) {
      map.at("name").refuse(fmt::format("a name of its own for each port (used in {})", other.place));
    }
    if (device.name == others[i].name) {
      value.refuse(fmt::format("a device of its own for each port (port {} has it)", other.name));
    }
    if (!device.iface.empty() && device.iface == others[i].iface) {
      value.refuse(
          fmt::format("an interface of its own for each port (port {} has iface={})", other.name, device.iface));
    }
    if (!device.writes.empty() && device.writes == others[i].writes) {
      value.refuse(
          fmt::format("an output file of its own for each port (port {} has tx_pcap={})", other.name, device.writes));
    }
  }
}

unsigned read_worker(const Value& value, unsigned workers) {
  const std::string accepted =
      workers == 1 ? "0 (switch.workers is 1)" : fmt::format("0 to {} (switch.workers is {})", workers - 1, workers);
  const auto worker = config::parse_integer(value.scalar(accepted));
  if (!worker || *worker >= workers) value.refuse(accepted);
  return static_cast<unsigned>(*worker);
}

std::optional<Rate> read_rate(const Value& value) {
  if (value.is_word("auto")) return std::nullopt;
  return config::rate()(value);
}

uint16_t read_ring(const Value& value, uint16_t min, uint16_t max) {
  const auto descriptors = integer<uint16_t>(min, max)(value);
  if ((descriptors & (descriptors - 1U)) != 0) value.refuse(fmt::format("a power of two from {} to {}", min, max));
  return descriptors;
}

void read_link(const Map& map, const Device& device, PortConfig& port) {
  port.driver = device.driver;
  port.netdev = map.optional("netdev", device.iface, read_netdev);
  port.rate = map.optional("rate", std::nullopt, read_rate);
  port.link_state = map.optional("link_state", port.link_state, one_of(link_state_words()));
  if (port.link_state == LinkStateSource::kNetlink && port.netdev.empty()) {
    map.at("link_state")
        .refuse("netlink beside netdev: INTERFACE, or auto, ethdev, always-up", "without an interface to follow");
  }
  port.mtu = map.optional("mtu", port.mtu, integer<uint16_t>(576, 9600));
  port.rx_ring = map.optional("rx_ring", port.rx_ring, [](const Value& v) { return read_ring(v, 32, 32768); });
  port.tx_ring = map.optional("tx_ring", port.tx_ring, [](const Value& v) { return read_ring(v, 32, 4096); });
}

template <typename T, typename Print>
void refuse_repeated(const Value& value, const std::vector<T>& items, const Print& print, std::string_view accepted) {
  for (auto item = items.begin(); item != items.end(); ++item) {
    if (std::find(items.begin(), item, *item) != item) value.refuse_found(print(*item) + " a second time", accepted);
  }
}

std::vector<net::Mac> read_mac_list(const Value& value) {
  std::vector<net::Mac> macs = config::list_of(config::station_mac(), 1, kMaxMacsOfPort)(value);
  refuse_repeated(value, macs, config::print_mac, "each MAC once");
  return macs;
}

void read_macs(const Value& value, PortConfig& port) {
  if (value.is_word("auto")) return;
  if (value.is_word("any")) {
    port.any_mac = true;
    return;
  }
  if (value.is_scalar() && !config::parse_mac(value.scalar(""))) {
    value.refuse("a MAC address such as 02:00:00:00:00:01, a list of them, any or auto (the device's own)");
  }
  port.macs = read_mac_list(value);
}

// What a station on the link can have. Link-local IPv6 addresses are what hosts call their router by.
net::IpAddress read_own_address(const Value& value) {
  constexpr std::string_view accepted = "addresses of the port such as 192.0.2.1 or 2001:db8::1, without a length";
  const auto address = config::parse_address(value.scalar(accepted));
  if (!address) value.refuse(accepted);
  const auto& bytes = address->bytes;
  const bool is_station = address->family == net::IpFamily::kIpv4
                              ? dataplane::kIpv4Unicast[bytes[0]]
                              : dataplane::is_ipv6_link_local(bytes.data()) || dataplane::is_ipv6_unicast(bytes.data());
  if (!is_station) value.refuse(accepted);
  return *address;
}

void read_addresses(const Value& value, PortConfig& port) {
  port.addresses = config::list_of(read_own_address, 0, kMaxMacsOfPort)(value);
  if (port.any_mac && !port.addresses.empty()) {
    value.refuse("no addresses on a port with mac: any, which has no MAC address to answer with");
  }
  refuse_repeated(value, port.addresses, config::print_address, "each address once");
}

void read_vlans(const Map& map, PortConfig& port) {
  port.untagged = map.optional("untagged", true, config::boolean());
  port.resequence = map.optional("resequence", false, config::boolean());
  std::set<net::Mac> all(port.macs.begin(), port.macs.end());
  for (const Value& item : map.list("vlans", 0, 4094)) {
    const Map sub = item.map({"id", "mac"});
    VlanConfig vlan;
    vlan.id = sub.required("id", integer<uint16_t>(1, 4094));
    for (const VlanConfig& other : port.vlans) {
      if (other.id == vlan.id) sub.at("id").refuse("each VLAN of a port once", "a second time");
    }
    vlan.macs = sub.optional("mac", {}, read_mac_list);
    all.insert(vlan.macs.begin(), vlan.macs.end());
    if (all.size() > kMaxMacsOfPort) {
      sub.at("mac").refuse_found(fmt::format("{} router MACs on port {}", all.size(), port.name),
                                 fmt::format("at most {}, those of its vlans included", kMaxMacsOfPort));
    }
    port.vlans.push_back(std::move(vlan));
  }
  if (!port.untagged && port.vlans.empty()) {
    map.at("untagged").refuse("true, or vlans: beside it", "on a port without vlans");
  }
}

}  // namespace
}  // namespace heddle::control
