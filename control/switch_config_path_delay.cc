// `path_delay:` of the switch configuration.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/path_selection.h"
#include "config/units.h"
#include "control/switch_config_parts.h"
#include "dataplane/route.h"

namespace heddle::control {
namespace {

using config::integer;
using config::Map;
using config::Value;
using Json = nlohmann::ordered_json;

// Room for more hops would not fit into an IP packet of the least MTU there is: 576 bytes of IPv4, 1,280 of IPv6.
constexpr unsigned kMostHops = 14;

// One that packets to it, and from it, cross routers with (dataplane/route.h).
bool is_routable(const net::IpAddress& address) {
  const auto& bytes = address.bytes;
  if (address.family == net::IpFamily::kIpv4) return dataplane::kIpv4Unicast[bytes[0]];
  return dataplane::is_ipv6_unicast(bytes.data());
}

net::IpAddress read_address(const Value& value) {
  constexpr std::string_view accepted = "an address of one switch such as 10.255.0.1 or 2001:db8:ff::1";
  const auto address = config::parse_address(value.scalar(accepted));
  if (!address || !is_routable(*address)) value.refuse(accepted);
  return *address;
}

std::vector<net::IpAddress> read_addresses(const Value& value) {
  if (!value.is_list()) return {read_address(value)};
  std::vector<net::IpAddress> addresses;
  for (const Value& item : value.list(1, 256)) {
    const net::IpAddress address = read_address(item);
    if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) {
      item.refuse("each address once", "a second time");
    }
    addresses.push_back(address);
  }
  return addresses;
}

uint32_t read_group(const Value& value, const SwitchConfig& config) {
  std::vector<std::string_view> names;
  for (const GroupConfig& group : config.groups) {
    if (!group.in_place && group.members.size() > 1 && names.size() < 16) names.push_back(group.name);
  }
  const std::string accepted = names.empty()
                                   ? "a group of two members and more, there is none"
                                   : fmt::format("a group of two members and more: {}", fmt::join(names, ", "));
  const std::string& name = value.scalar(accepted);
  const auto at = std::find_if(config.groups.begin(), config.groups.end(),
                               [&](const GroupConfig& group) { return !group.in_place && group.name == name; });
  if (at == config.groups.end() || at->members.size() < 2) value.refuse(accepted);
  return static_cast<uint32_t>(at - config.groups.begin());
}

// An address is one too: a destination without another name is called by it.
std::string read_name(const Value& value) {
  const bool is_address = value.is_scalar() && config::parse_address(value.scalar("")).has_value();
  return is_address ? value.scalar("") : config::name_text(32)(value);
}

void read_target(const Value& item, std::map<uint32_t, std::string>& places, SwitchConfig& config) {
  const Map map = item.map({"group", "address", "name"});
  PathTargetConfig target;
  target.place = item.place().text();
  target.group = map.required("group", [&](const Value& value) { return read_group(value, config); });
  if (const auto [first, fresh] = places.emplace(target.group, target.place); !fresh) {
    map.at("group").refuse(
        fmt::format("each group once (first in {}): its weights are for one destination", first->second));
  }
  target.addresses = map.required("address", read_addresses);
  const auto& own = config.path_delay.address;
  if (std::find(target.addresses.begin(), target.addresses.end(), own) != target.addresses.end()) {
    map.at("address").refuse("the address of another switch", "which is this switch's own");
  }
  if (std::any_of(target.addresses.begin(), target.addresses.end(),
                  [&](const net::IpAddress& address) { return address.family != own.family; })) {
    map.at("address").refuse("addresses of the family of this switch's own: probes and answers go between the two");
  }
  target.name = map.optional("name", config::print_address(target.addresses.front()), read_name);
  config.path_delay.targets.push_back(std::move(target));
}

}  // namespace

void read_path_delay(const Value& value, SwitchConfig& config) {
  if (value.is_missing() || value.is_null()) return;
  const Map map = value.map({"address", "rate", "base", "timeout", "dscp", "hops", "targets"});
  PathDelayConfig& probes = config.path_delay;
  probes.address = map.required("address", read_address);
  probes.rate = map.optional("rate", probes.rate, config::read_probe_rate);
  probes.base = map.optional("base", probes.base, config::duration(100 * kNanosecond, kSecond));
  probes.timeout = map.optional("timeout", probes.timeout, config::duration(kMillisecond, 10 * kSecond));
  probes.dscp = map.optional("dscp", probes.dscp, integer<uint8_t>(0, 63));
  probes.hops = map.optional("hops", probes.hops, integer<unsigned>(1, kMostHops));
  std::map<uint32_t, std::string> places;
  for (const Value& item : map.list("targets", 0, kMaxGroups)) read_target(item, places, config);
}

Json path_delay_json(const SwitchConfig& config) {
  const PathDelayConfig& probes = config.path_delay;
  Json targets = Json::array();
  for (const PathTargetConfig& target : probes.targets) {
    Json addresses = Json::array();
    for (const net::IpAddress& address : target.addresses) addresses.push_back(config::print_address(address));
    targets.push_back({{"group", config.groups[target.group].name}, {"address", addresses}, {"name", target.name}});
  }
  return {{"address", config::print_address(probes.address)},
          {"rate", config::print_share(probes.rate)},
          {"base", config::print_duration(probes.base)},
          {"timeout", config::print_duration(probes.timeout)},
          {"dscp", probes.dscp},
          {"hops", probes.hops},
          {"targets", std::move(targets)}};
}

}  // namespace heddle::control
