// The effective configuration as JSON, in the words of the configuration itself.
#include <nlohmann/json.hpp>

#include "config/flow_control.h"
#include "config/path_selection.h"
#include "config/units.h"
#include "control/switch_config_parts.h"

namespace heddle::control {
namespace {

using Json = nlohmann::ordered_json;

Json switch_json(const SwitchConfig& config);
Json port_json(const PortConfig& port, const SwitchConfig& config);
Json queue_json(const QueueConfig& queue, bool buffered);
Json next_hop_json(const NextHopConfig& hop, const SwitchConfig& config, bool weighted);
Json group_json(const GroupConfig& group, Json members);
Json classes_json(const SwitchConfig& config);
Json hash_json(const SwitchConfig& config);

}  // namespace

Json to_json(const SwitchConfig& config) {
  Json json;
  json["switch"] = switch_json(config);
  json["ports"] = Json::array();
  for (const PortConfig& port : config.ports) json["ports"].push_back(port_json(port, config));
  Json groups = Json::array();
  for (const GroupConfig& group : config.groups) {
    if (group.in_place) continue;
    Json members = Json::array();
    for (const NextHopConfig& hop : group.members) members.push_back(next_hop_json(hop, config, true));
    groups.push_back(group_json(group, members));
  }
  json["groups"] = std::move(groups);
  Json routes = Json::array();
  for (const RouteConfig& route : config.routes) {
    const GroupConfig& group = config.groups[route.group];
    routes.push_back({{"prefix", config::print_prefix(route.prefix)},
                      {"via", group.in_place ? next_hop_json(group.members[0], config, false) : Json(group.name)}});
  }
  json["routes"] = std::move(routes);
  json["classes"] = classes_json(config);
  if (config.buffer.on) {
    json["buffer"] = {{"size", config::print_bytes(config.buffer.bytes)}, {"packets", config.buffer.packets}};
  }
  json["watchdog"] = config::watchdog_json(config.watchdog);
  json["hash"] = hash_json(config);
  json["ars"] = config::ars_json(config.ars);
  json["resequencer"] = config::resequencer_json(config.resequencer);
  if (config.path_delay.is_on()) json["path_delay"] = path_delay_json(config);
  return json;
}

namespace {

Json switch_json(const SwitchConfig& config) {
  Json json;
  json["name"] = config.name;
  json["seed"] = config.seed;
  json["memory"] = word_for(memory_words(), config.memory);
  json["workers"] = config.worker_cpus.empty() ? Json(config.workers) : Json(config.worker_cpus);
  json["idle"] = word_for(idle_words(), config.idle);
  json["control"] = config.control_socket.empty() ? "none" : config.control_socket;
  json["max_routes"] = config.max_routes;
  json["buffer_packets"] = config.buffer_packets;
  return json;
}

Json macs_json(const std::vector<net::Mac>& macs) {
  Json json = Json::array();
  for (const net::Mac& mac : macs) json.push_back(config::print_mac(mac));
  return json;
}

Json port_json(const PortConfig& port, const SwitchConfig& config) {
  Json json;
  json["name"] = port.name;
  json["device"] = port.device;
  json["mac"] = port.any_mac ? Json("any") : port.macs.empty() ? Json("auto") : macs_json(port.macs);
  json["addresses"] = Json::array();
  for (const net::IpAddress& address : port.addresses) json["addresses"].push_back(config::print_address(address));
  json["rate"] = port.rate ? config::print_rate(*port.rate) : "auto";
  json["link_state"] = word_for(link_state_words(), port.link_state);
  json["mtu"] = port.mtu;
  json["worker"] = port.worker;
  json["trust"] = word_for(trust_words(), port.trust);
  json["default_class"] = port.default_class;
  json["rx_ring"] = port.rx_ring;
  json["tx_ring"] = port.tx_ring;
  json["queue_limit"] = config::print_bytes(port.queue_limit);
  json["untagged"] = port.untagged;
  json["resequence"] = port.resequence;
  json["vlans"] = Json::array();
  for (const VlanConfig& vlan : port.vlans) {
    Json item{{"id", vlan.id}};
    if (!vlan.macs.empty()) item["mac"] = macs_json(vlan.macs);
    json["vlans"].push_back(std::move(item));
  }
  if (!port.netdev.empty()) json["netdev"] = port.netdev;
  json["queues"] = Json::object();
  for (size_t i = 0; i < port.queues.size(); ++i) {
    if (port.queues[i] == config.queues[i]) continue;
    json["queues"][std::to_string(i)] = queue_json(port.queues[i], config.buffer.on);
  }
  json["pfc"] = word_for(pfc_words(), port.pfc);
  json["pfc_quanta"] = port.pfc_quanta;
  json["pfc_reaction"] = config::print_duration(port.pfc_reaction);
  if (port.watchdog != (port.pfc == PfcBackend::kFrames ? config.watchdog : std::nullopt)) {
    json["watchdog"] = config::watchdog_json(port.watchdog);
  }
  return json;
}

Json curve_json(const flowctl::WredCurve& curve) {
  return {{"kmin", config::print_bytes(curve.min_bytes)},
          {"kmax", config::print_bytes(curve.max_bytes)},
          {"pmax", config::print_share(curve.max_probability)}};
}

Json queue_json(const QueueConfig& queue, bool buffered) {
  Json json{{"priority", queue.strict ? "strict" : "drr"}};
  if (!queue.strict) json["weight"] = queue.weight;
  if (queue.limit) json["limit"] = config::print_bytes(*queue.limit);
  if (queue.ecn.is_on()) json["ecn"] = curve_json(queue.ecn);
  if (queue.wred.is_on()) json["wred"] = curve_json(queue.wred);
  if (!buffered) return json;
  json["lossless"] = queue.lossless;
  json["reserved"] = config::print_bytes(queue.reserved);
  if (queue.shared.is_dynamic()) {
    json["alpha"] = queue.shared.alpha_256ths / 256.0;
  } else {
    json["shared"] = config::print_bytes(queue.shared.bytes);
  }
  if (queue.lossless) {
    json["xon_offset"] = config::print_bytes(queue.xon_offset);
    if (queue.headroom) json["headroom"] = config::print_bytes(*queue.headroom);
    json["force"] = queue.force;
  }
  return json;
}

Json next_hop_json(const NextHopConfig& hop, const SwitchConfig& config, bool weighted) {
  Json json{{"port", config.ports[hop.port].name}, {"mac", config::print_mac(hop.mac)}, {"vlan", hop.vlan}};
  if (weighted) json["weight"] = hop.weight;
  if (hop.alternate) json["alternate"] = true;
  return json;
}

Json group_json(const GroupConfig& group, Json members) {
  Json json{{"name", group.name}, {"scheduler", config::scheduler_word(group.scheduler)}};
  for (size_t tc = 0; tc < kTrafficClasses; ++tc) {
    if (const auto& of = group.overrides.of_class[tc]) {
      json["class_schedulers"][std::to_string(tc)] = config::scheduler_word(*of);
    }
  }
  if (group.overrides.of_control) json["control_scheduler"] = config::scheduler_word(*group.overrides.of_control);
  json["members"] = std::move(members);
  return json;
}

// The maps whole, not only what differs from the defaults: this is what a reader looks up.
Json classes_json(const SwitchConfig& config) {
  Json json;
  json["dscp"] = json["pcp"] = json["queues"] = Json::object();
  for (size_t i = 0; i < config.class_of_dscp.size(); ++i) json["dscp"][std::to_string(i)] = config.class_of_dscp[i];
  for (size_t i = 0; i < config.class_of_pcp.size(); ++i) json["pcp"][std::to_string(i)] = config.class_of_pcp[i];
  for (size_t i = 0; i < config.queues.size(); ++i) {
    json["queues"][std::to_string(i)] = queue_json(config.queues[i], config.buffer.on);
  }
  return json;
}

Json hash_json(const SwitchConfig& config) {
  Json json;
  for (const HashClass& hash_class : kHashClasses) {
    Json fields = Json::array();
    for (const auto& [word, bit] : hash_field_words()) {
      if ((config.hash.fields[static_cast<size_t>(hash_class.kind)] & bit) != 0) fields.push_back(word);
    }
    json[std::string(hash_class.name)] = std::move(fields);
  }
  return json;
}

}  // namespace
}  // namespace heddle::control
