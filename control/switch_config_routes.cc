// `groups:` and `routes:` of the switch configuration.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "config/path_selection.h"
#include "control/switch_config_parts.h"
#include "lb/next_hop_group.h"

namespace heddle::control {
namespace {

using config::integer;
using config::List;
using config::Map;
using config::Value;

NextHopConfig read_next_hop(const Value& value, bool weighted, SwitchConfig& config);
void read_schedulers(const Map& map, GroupConfig& group);
void warn_of_weights(const GroupConfig& group, SwitchConfig& config);
uint32_t group_of_route(const Value& via, std::unordered_map<std::string, uint32_t>& by_name, SwitchConfig& config);

bool same_hop(const NextHopConfig& a, const NextHopConfig& b) {
  return a.port == b.port && a.mac == b.mac && a.vlan == b.vlan;
}

}  // namespace

void read_groups(const List& items, SwitchConfig& config) {
  std::map<std::string, std::string> places;
  for (const Value& item : items) {
    const Map map = item.map({"name", "scheduler", "class_schedulers", "control_scheduler", "members"});
    GroupConfig group;
    group.place = item.place().text();
    group.name = map.required("name", config::name_text(32));
    if (const auto [first, fresh] = places.emplace(group.name, group.place); !fresh) {
      map.at("name").refuse(fmt::format("a name of its own for each group (used in {})", first->second));
    }
    read_schedulers(map, group);
    for (const Value& member : map.list("members", 1, lb::kMaxMembers)) {
      const NextHopConfig hop = read_next_hop(member, true, config);
      for (const NextHopConfig& other : group.members) {
        if (!same_hop(hop, other)) continue;
        member.refuse_found(
            fmt::format("{} on port {} a second time", config::print_mac(hop.mac), config.ports[hop.port].name),
            "each next hop of a group once (weight: gives it more)");
      }
      group.members.push_back(hop);
    }
    warn_of_weights(group, config);
    config.groups.push_back(std::move(group));
  }
}

void read_routes(const List& items, SwitchConfig& config) {
  std::unordered_map<std::string, uint32_t> by_name;
  for (size_t i = 0; i < config.groups.size(); ++i) by_name.emplace(config.groups[i].name, static_cast<uint32_t>(i));
  std::map<config::IpPrefix, std::string> places;
  std::array<uint32_t, 2> count{};
  for (const Value& item : items) {
    const Map map = item.map({"prefix", "via"});
    RouteConfig route;
    route.place = item.place().text();
    route.prefix = map.required("prefix", config::unicast_prefix());
    if (const auto [first, fresh] = places.emplace(route.prefix, route.place); !fresh) {
      map.at("prefix").refuse(fmt::format("each prefix once (first in {})", first->second));
    }
    if (++count[static_cast<size_t>(route.prefix.family)] > config.max_routes) {
      item.refuse_found("one route too many", fmt::format("{} of a family (switch.max_routes)", config.max_routes));
    }
    route.group = group_of_route(map.at("via"), by_name, config);
    config.routes.push_back(std::move(route));
  }
}

std::string name_in_place(const PortConfig& port, const net::Mac& mac, uint16_t vlan) {
  return vlan == 0 ? fmt::format("{}/{}", port.name, config::print_mac(mac))
                   : fmt::format("{}@{}/{}", port.name, vlan, config::print_mac(mac));
}

namespace {

constexpr std::string_view kViaForms = "the name of a group, or {port: NAME, mac: MAC}";

std::string names_of(const auto& named) {
  std::vector<std::string_view> names;
  for (const auto& item : named) {
    if (names.size() == 16) {
      names.emplace_back("…");
      break;
    }
    names.push_back(item.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

NextHopConfig read_next_hop(const Value& value, bool weighted, SwitchConfig& config) {
  const Map map =
      weighted ? value.map({"port", "mac", "vlan", "weight", "alternate"}) : value.map({"port", "mac", "vlan"});
  NextHopConfig hop;
  const std::string port_names = "a port: " + names_of(config.ports);
  const std::string name = map.required("port", [&](const Value& v) { return v.scalar(port_names); });
  const auto port =
      std::find_if(config.ports.begin(), config.ports.end(), [&](const PortConfig& p) { return p.name == name; });
  if (port == config.ports.end()) map.at("port").refuse(port_names);
  hop.port = static_cast<PortId>(port - config.ports.begin());
  hop.mac = map.required("mac", config::station_mac());
  hop.vlan = map.optional("vlan", 0, integer<uint16_t>(0, 4094));
  if (const auto refusal = refused_vlan(hop, *port)) {
    (map.has("vlan") ? map.at("vlan") : value).refuse_found(refusal->found, refusal->accepted);
  }
  if (weighted) {
    hop.weight = map.optional("weight", 1, integer<uint16_t>(1, 1000));
    hop.alternate = map.optional("alternate", false, config::boolean());
  }
  if (std::find(port->macs.begin(), port->macs.end(), hop.mac) != port->macs.end()) {
    config.warnings.push_back(fmt::format("{}: next hop {} is port {}'s own address", value.place().text(),
                                          config::print_mac(hop.mac), port->name));
  }
  return hop;
}

void read_schedulers(const Map& map, GroupConfig& group) {
  group.scheduler = map.optional("scheduler", group.scheduler, config::read_scheduler);
  for (const auto& [key, value] : map.at("class_schedulers").entries()) {
    const auto traffic_class = integer<unsigned>(0, kTrafficClasses - 1)(key);
    if (!value.is_word("default")) group.overrides.of_class.at(traffic_class) = config::read_scheduler(value);
  }
  if (const Value control = map.at("control_scheduler"); !control.is_missing() && !control.is_word("default")) {
    group.overrides.of_control = config::read_scheduler(control);
  }
}

// What was said of a member and nobody listens to.
void warn_of_weights(const GroupConfig& group, SwitchConfig& config) {
  const auto any = [&](lb::Choice choice) {
    const auto is = [choice](const auto& scheduler) { return scheduler && scheduler->choice == choice; };
    const auto& of_class = group.overrides.of_class;
    return group.scheduler.choice == choice || is(group.overrides.of_control) ||
           std::any_of(of_class.begin(), of_class.end(), is);
  };
  const auto& members = group.members;
  const auto differ = [&](const auto& m) { return m.weight != members[0].weight; };
  if (!any(lb::Choice::kWeighted) && std::any_of(members.begin(), members.end(), differ)) {
    config.warnings.push_back(fmt::format("{}: group {} has different weights, which the scheduler {} does not use",
                                          group.place, group.name, lb::name_of(group.scheduler)));
  }
  const auto alternate = [](const auto& m) { return m.alternate; };
  if (!any(lb::Choice::kQuality) && std::any_of(members.begin(), members.end(), alternate)) {
    config.warnings.push_back(
        fmt::format("{}: group {} has alternate members, which the scheduler {} takes like others", group.place,
                    group.name, lb::name_of(group.scheduler)));
  }
}

// Routes that name the same next hop in place share one group.
uint32_t group_of_route(const Value& via, std::unordered_map<std::string, uint32_t>& by_name, SwitchConfig& config) {
  if (!via.is_map()) {
    const auto group = by_name.find(via.scalar(kViaForms));
    if (group == by_name.end() || config.groups[group->second].in_place) {
      std::vector<GroupConfig> named;
      std::copy_if(config.groups.begin(), config.groups.end(), std::back_inserter(named),
                   [](const GroupConfig& g) { return !g.in_place; });
      via.refuse(named.empty() ? "{port: NAME, mac: MAC}, there is no group"
                               : fmt::format("a group ({}), or {{port: NAME, mac: MAC}}", names_of(named)));
    }
    return group->second;
  }
  const NextHopConfig hop = read_next_hop(via, false, config);
  GroupConfig group;
  group.name = name_in_place(config.ports[hop.port], hop.mac, hop.vlan);
  const auto [known, fresh] = by_name.emplace(group.name, static_cast<uint32_t>(config.groups.size()));
  if (!fresh) return known->second;
  if (config.groups.size() == kMaxGroups)
    via.refuse_found("one next hop too many", fmt::format("{} groups and next hops", kMaxGroups));
  group.in_place = true;
  group.members.push_back(hop);
  group.place = via.place().text();
  config.groups.push_back(std::move(group));
  return known->second;
}

}  // namespace

std::optional<Refusal> refused_vlan(const NextHopConfig& hop, const PortConfig& port) {
  std::vector<unsigned> ids;
  if (port.untagged) ids.push_back(0);
  for (const VlanConfig& vlan : port.vlans) ids.push_back(vlan.id);
  if (std::find(ids.begin(), ids.end(), hop.vlan) != ids.end()) return std::nullopt;
  const std::string found = hop.vlan == 0 ? "a next hop without vlan:" : fmt::format("vlan '{}'", hop.vlan);
  return Refusal{fmt::format("{} on port {}, which does not accept {} frames", found, port.name,
                             hop.vlan == 0 ? "untagged" : "such"),
                 fmt::format("vlan: {}", fmt::join(ids, ", "))};
}

}  // namespace heddle::control
