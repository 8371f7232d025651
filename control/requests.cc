#include "control/requests.h"

#include <algorithm>

#include "config/address.h"
#include "net/error.h"

namespace heddle::control {

namespace {

// A list of routes whose `via` is an object needs three.
constexpr int kDeepest = 16;

// As little of a value as a line of text bears.
std::string shown(const Json& value) {
  constexpr size_t kLongest = 60;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "…";
}

std::string text_field(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) {
    throw_bad_input("'{}' is missing; accepted: a string", key);
  }
  return object[key].get<std::string>();
}

uint64_t number_field(const Json& object, const char* key, uint64_t otherwise, uint64_t least, uint64_t most) {
  if (!object.contains(key)) return otherwise;
  const Json& value = object[key];
  if (!value.is_number_unsigned() || value.get<uint64_t>() < least || value.get<uint64_t>() > most) {
    throw_bad_input("{}: found {}; accepted: {}–{}", key, shown(value), least, most);
  }
  return value.get<uint64_t>();
}

lb::Scheduler scheduler_named(const Json& name, const std::string& key) {
  const auto found = name.is_string() ? lb::scheduler_named(name.get<std::string>()) : std::nullopt;
  if (found) return *found;
  throw_bad_input("{}: found {}; accepted: {}", key, shown(name), fmt::join(lb::kSchedulerNames, ", "));
}

}  // namespace

Json parse_body(const std::string& body) {
  const auto check_depth = [](int around, Json::parse_event_t event, Json&) {
    const bool begins = event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (begins && around == kDeepest) {
      throw_bad_input("the body is nested too deeply; accepted: up to {} levels", kDeepest);
    }
    return true;
  };
  Json json = Json::parse(body, check_depth, false);
  if (json.is_discarded()) throw_bad_input("the body is not JSON");
  return json;
}

std::string answer_text(const Json& answer) {
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string error_text(const std::string& what) { return answer_text({{"error", what}}); }

net::IpPrefix prefix_field(const Json& object) {
  const std::string text = text_field(object, "prefix");
  const auto prefix = config::parse_prefix(text);
  if (!prefix) throw_bad_input("prefix: found {}; accepted: ADDRESS/LENGTH", shown(text));
  if (const auto clean = config::without_host_bits(*prefix); clean != *prefix) {
    throw_bad_input("prefix: found '{}' with host bits; accepted: {}", text, config::print_prefix(clean));
  }
  return *prefix;
}

NextHopConfig read_next_hop(const Json& object, const SwitchConfig& config) {
  NextHopConfig hop;
  const std::string name = text_field(object, "port");
  const auto port =
      std::find_if(config.ports.begin(), config.ports.end(), [&](const PortConfig& p) { return p.name == name; });
  if (port == config.ports.end()) throw_bad_input("no port {}", shown(name));
  hop.port = static_cast<PortId>(port - config.ports.begin());
  const std::string mac = text_field(object, "mac");
  const auto parsed = config::parse_mac(mac);
  if (!parsed || config::is_group(*parsed) || config::is_zero(*parsed)) {
    throw_bad_input("mac: found {}; accepted: the address of one station", shown(mac));
  }
  hop.mac = *parsed;
  hop.vlan = static_cast<uint16_t>(number_field(object, "vlan", 0, 0, 4094));
  if (const auto refusal = refused_vlan(hop, *port)) {
    throw_bad_input("found {}; accepted: {}", refusal->found, refusal->accepted);
  }
  hop.weight = static_cast<uint16_t>(number_field(object, "weight", 1, 1, 1000));
  if (object.contains("alternate")) {
    if (!object["alternate"].is_boolean()) throw_bad_input("alternate: accepted: true, false");
    hop.alternate = object["alternate"].get<bool>();
  }
  return hop;
}

Schedulers read_schedulers(const Json& object) {
  if (!object.is_object() || !object.contains("scheduler")) {
    throw_bad_input("'scheduler' is missing; accepted: its name");
  }
  Schedulers read;
  if (object.contains("class_schedulers")) {
    for (const auto& [key, name] : object["class_schedulers"].items()) {
      if (key.size() != 1 || key[0] < '0' || key[0] > '7') {
        throw_bad_input("class_schedulers: found class {}; accepted: 0–7", shown(key));
      }
      read.overrides.of_class.at(static_cast<size_t>(key[0] - '0')) = scheduler_named(name, "class_schedulers." + key);
    }
  }
  if (object.contains("control_scheduler") && object["control_scheduler"] != "default") {
    read.overrides.of_control = scheduler_named(object["control_scheduler"], "control_scheduler");
  }
  read.all = scheduler_named(object["scheduler"], "scheduler");
  return read;
}

}  // namespace heddle::control
