// The effective configuration as JSON, in the words of the configuration itself.
#include <nlohmann/json.hpp>

#include "config/units.h"
#include "control/switch_config_parts.h"

namespace heddle::control {
namespace {

using Json = nlohmann::ordered_json;

Json switch_json(const SwitchConfig& config);
Json port_json(const PortConfig& port);
Json next_hop_json(const NextHopConfig& hop, const SwitchConfig& config, bool weighted);
Json classes_json(const SwitchConfig& config);
Json hash_json(const SwitchConfig& config);

}  // namespace

Json to_json(const SwitchConfig& config) {
  Json json;
  json["switch"] = switch_json(config);
  json["ports"] = Json::array();
  for (const PortConfig& port : config.ports) json["ports"].push_back(port_json(port));
  Json groups = Json::array();
  for (const GroupConfig& group : config.groups) {
    if (group.in_place) continue;
    Json members = Json::array();
    for (const NextHopConfig& hop : group.members) members.push_back(next_hop_json(hop, config, true));
    groups.push_back({{"name", group.name}, {"scheduler", lb::name_of(group.scheduler)}, {"members", members}});
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
  json["hash"] = hash_json(config);
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

Json port_json(const PortConfig& port) {
  Json json;
  json["name"] = port.name;
  json["device"] = port.device;
  json["mac"] = port.any_mac ? Json("any") : port.macs.empty() ? Json("auto") : macs_json(port.macs);
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
  json["vlans"] = Json::array();
  for (const VlanConfig& vlan : port.vlans) {
    Json item{{"id", vlan.id}};
    if (!vlan.macs.empty()) item["mac"] = macs_json(vlan.macs);
    json["vlans"].push_back(std::move(item));
  }
  if (!port.netdev.empty()) json["netdev"] = port.netdev;
  return json;
}

Json next_hop_json(const NextHopConfig& hop, const SwitchConfig& config, bool weighted) {
  Json json{{"port", config.ports[hop.port].name}, {"mac", config::print_mac(hop.mac)}, {"vlan", hop.vlan}};
  if (weighted) json["weight"] = hop.weight;
  return json;
}

// The maps whole, not only what differs from the defaults: this is what a reader looks up.
Json classes_json(const SwitchConfig& config) {
  Json json;
  json["dscp"] = json["pcp"] = json["queues"] = Json::object();
  for (size_t i = 0; i < config.class_of_dscp.size(); ++i) json["dscp"][std::to_string(i)] = config.class_of_dscp[i];
  for (size_t i = 0; i < config.class_of_pcp.size(); ++i) json["pcp"][std::to_string(i)] = config.class_of_pcp[i];
  for (size_t i = 0; i < config.queues.size(); ++i) {
    const QueueConfig& queue = config.queues[i];
    Json item{{"priority", queue.strict ? "strict" : "drr"}};
    if (!queue.strict) item["weight"] = queue.weight;
    if (queue.limit) item["limit"] = config::print_bytes(*queue.limit);
    json["queues"][std::to_string(i)] = std::move(item);
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
