#include "control/switch_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/flow_control.h"
#include "config/path_selection.h"
#include "control/switch_config_parts.h"
#include "net/random.h"

namespace heddle::control {
namespace {

using config::Document;
using config::integer;
using config::List;
using config::Map;
using config::one_of;
using config::Value;

SwitchConfig read(const Document& document);
void read_switch(const Map& section, SwitchConfig& config);
void read_workers(const Value& value, SwitchConfig& config);
void read_classes(const Map& section, SwitchConfig& config);
void read_hash(const Map& section, SwitchConfig& config);
void warn_of_oddities(SwitchConfig& config);

}  // namespace

SwitchConfig load_switch_config(const std::string& path, const std::vector<std::string>& overlays) {
  return read(config::load_file(path, overlays));
}

SwitchConfig load_switch_config_text(std::string_view text, const std::string& name,
                                     const std::vector<std::string>& overlays) {
  return read(config::load_text(text, name, overlays));
}

uint64_t seed_of_name(std::string_view name) {
  uint64_t seed = name.size();
  for (const char c : name) seed = mix64(seed ^ static_cast<uint8_t>(c));
  return seed;
}

const Words<MemoryMode>& memory_words() {
  static const Words<MemoryMode> words{{"anonymous", MemoryMode::kAnonymous}, {"hugepages", MemoryMode::kHugepages}};
  return words;
}

const Words<IdleMode>& idle_words() {
  static const Words<IdleMode> words{{"poll", IdleMode::kPoll}, {"sleep", IdleMode::kSleep}};
  return words;
}

const Words<uint16_t>& hash_field_words() {
  static const Words<uint16_t> words{
      {"src-ip", lb::kSourceIp},
      {"dst-ip", lb::kDestinationIp},
      {"protocol", lb::kProtocol},
      {"src-port", lb::kSourcePort},
      {"dst-port", lb::kDestinationPort},
      {"dest-qp", lb::kDestQp},
      {"opcode", lb::kOpcode},
      {"psn", lb::kPsn},
  };
  return words;
}

namespace {

SwitchConfig read(const Document& document) {
  SwitchConfig config;
  const Map root = document.root().map({"switch", "ports", "groups", "routes", "classes", "buffer", "watchdog", "hash",
                                        "ars", "resequencer", "path_delay"});
  read_switch(
      root.section("switch", {"name", "seed", "memory", "workers", "idle", "control", "max_routes", "buffer_packets"}),
      config);
  read_ports(root.list("ports", 1, kMaxPorts), config);
  read_groups(root.list("groups", 0, kMaxGroups), config);
  read_routes(root.list("routes", 0, 2 * kMaxRoutes), config);
  const Map classes = root.section("classes", {"dscp", "pcp", "queues"});
  read_classes(classes, config);
  config.watchdog = config::read_watchdog(root.at("watchdog"), config::ClockKind::kReal);
  read_flow_control(root.section("buffer", {"size", "packets"}), classes, root.list("ports", 1, kMaxPorts), config);
  read_hash(root.section("hash", {"roce", "tcp-udp", "ip"}), config);
  config.resequencer = config::read_resequencer(root.section("resequencer", config::resequencer_keys()));
  for (const PortConfig& port : config.ports) config.resequencer.enabled |= port.resequence;
  config.ars = config::read_ars(root.section("ars", config::ars_keys()));
  read_path_delay(root.at("path_delay"), config);
  warn_of_oddities(config);
  return config;
}

// The name is also a file prefix of DPDK and part of the socket's path.
std::string read_switch_name(const Value& value) {
  constexpr std::string_view accepted = "1 to 32 of a-z, 0-9 and '-'";
  const std::string& name = value.scalar(accepted);
  const bool clean = std::all_of(name.begin(), name.end(),
                                 [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  if (name.empty() || name.size() > 32 || !clean) value.refuse(accepted);
  return name;
}

void read_switch(const Map& section, SwitchConfig& config) {
  config.name = section.optional("name", "heddle", read_switch_name);
  config.seed = section.optional("seed", seed_of_name(config.name), integer<uint64_t>(0, UINT64_MAX));
  config.memory = section.optional("memory", MemoryMode::kAnonymous, one_of(memory_words()));
  if (const Value workers = section.at("workers"); !workers.is_missing()) read_workers(workers, config);
  config.idle = section.optional("idle", IdleMode::kPoll, one_of(idle_words()));
  config.max_routes = section.optional("max_routes", 16'384, integer<uint32_t>(1, kMaxRoutes));
  config.buffer_packets = section.optional("buffer_packets", 16'384, integer<uint32_t>(256, 4'194'304));

  // sun_path holds 108 bytes with its NUL (unix(7)).
  config.control_socket =
      section.optional("control", fmt::format("/run/heddle/{}.sock", config.name), config::text(107));
  if (config.control_socket == "none") config.control_socket.clear();
}

// A number of workers, or the CPU of each.
void read_workers(const Value& value, SwitchConfig& config) {
  if (!value.is_list()) {
    constexpr std::string_view accepted = "a number of workers from 1 to 64, or a list of CPU ids such as [1, 3]";
    const auto workers = config::parse_integer(value.scalar(accepted));
    if (!workers || *workers < 1 || *workers > kMaxWorkers) value.refuse(accepted);
    config.workers = static_cast<unsigned>(*workers);
    return;
  }
  for (const Value& item : value.list(1, kMaxWorkers)) {
    const auto cpu = integer<unsigned>(0, 1023)(item);
    const auto& cpus = config.worker_cpus;
    if (std::find(cpus.begin(), cpus.end(), cpu) != cpus.end()) item.refuse("each CPU once", "a second time");
    config.worker_cpus.push_back(cpu);
  }
  config.workers = static_cast<unsigned>(config.worker_cpus.size());
}

void read_classes(const Map& section, SwitchConfig& config) {
  const auto traffic_class = integer<uint8_t>(0, kTrafficClasses - 1);
  for (const auto& [dscp, value] : section.at("dscp").entries()) {
    config.class_of_dscp[integer<size_t>(0, 63)(dscp)] = traffic_class(value);
  }
  for (const auto& [pcp, value] : section.at("pcp").entries()) {
    config.class_of_pcp[integer<size_t>(0, 7)(pcp)] = traffic_class(value);
  }
}

void read_hash(const Map& section, SwitchConfig& config) {
  config.hash.seed = config.seed;
  for (const HashClass& hash_class : kHashClasses) {
    const Value list = section.at(hash_class.name);
    if (list.is_missing()) continue;
    Words<uint16_t> words = hash_field_words();
    std::erase_if(words, [&](const auto& word) { return (word.second & hash_class.allowed) == 0; });
    uint16_t fields = 0;
    for (const Value& item : list.list(1, words.size())) {
      const uint16_t field = one_of(words)(item);
      if ((fields & field) != 0) item.refuse("each field once", "a second time");
      fields |= field;
      if (field == lb::kOpcode || field == lb::kPsn) {
        config.warnings.push_back(
            fmt::format("{}: {} '{}' spreads the packets of one queue pair over all paths: "
                        "they will arrive out of order",
                        item.place().text(), item.label(), word_for(hash_field_words(), field)));
      }
    }
    config.hash.fields[static_cast<size_t>(hash_class.kind)] = fields;
  }
}

void warn_of_oddities(SwitchConfig& config) {
  std::vector<bool> used(config.groups.size());
  for (const RouteConfig& route : config.routes) {
    used[route.group] = true;
    if (route.prefix.family != config::IpFamily::kIpv6) continue;
    for (const NextHopConfig& hop : config.groups[route.group].members) {
      const PortConfig& port = config.ports[hop.port];
      if (port.mtu >= 1280) continue;
      config.warnings.push_back(
          fmt::format("{}: route {} leaves by port {}, whose mtu {} is below the 1280 that IPv6 "
                      "needs (RFC 8200 5)",
                      route.place, config::print_prefix(route.prefix), port.name, port.mtu));
      break;
    }
  }
  for (size_t i = 0; i < config.groups.size(); ++i) {
    const GroupConfig& group = config.groups[i];
    if (!used[i]) config.warnings.push_back(fmt::format("{}: no route leads to group {}", group.place, group.name));
  }
  for (unsigned worker = 0; worker < config.workers; ++worker) {
    const bool busy = std::any_of(config.ports.begin(), config.ports.end(),
                                  [&](const PortConfig& port) { return port.worker == worker; });
    if (!busy) config.warnings.push_back(fmt::format("worker {} owns no port: it will have nothing to do", worker));
  }
  if (config.routes.empty() && config.control_socket.empty()) {
    config.warnings.push_back("no routes and no control socket to add any: every packet will be dropped");
  }
}

}  // namespace
}  // namespace heddle::control
