// How the pieces of load_switch_config share their work; nothing outside switch_config*.cc includes this.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/yaml.h"
#include "control/switch_config.h"

namespace heddle::control {

// Words of the configuration and what they stand for; read with config::one_of, written by to_json.
template <typename T>
using Words = std::vector<std::pair<std::string_view, T>>;

const Words<MemoryMode>& memory_words();
const Words<IdleMode>& idle_words();
const Words<LinkStateSource>& link_state_words();
const Words<dataplane::Trust>& trust_words();
const Words<PfcBackend>& pfc_words();
const Words<uint16_t>& hash_field_words();  // all of them, in header order

// The sections of `hash:`, by PacketKind, with the fields each may hold.
struct HashClass {
  std::string_view name;
  PacketKind kind;
  uint16_t allowed;
};
inline constexpr std::array<HashClass, 3> kHashClasses{{
    {"roce", PacketKind::kRoce, lb::kRoceFields | lb::kOpcode | lb::kPsn},
    {"tcp-udp", PacketKind::kTcpUdp, lb::kTcpUdpFields},
    {"ip", PacketKind::kIp, lb::kIpFields},
}};

template <typename T>
std::string_view word_for(const Words<T>& words, T meaning) {
  for (const auto& [word, value] : words) {
    if (value == meaning) return word;
  }
  return "";
}

// Of an item of `ports:`, whoever reads it.
inline const std::vector<std::string_view> kPortKeys{
    "name",   "device",        "mac",        "addresses",    "rate",        "link_state", "mtu",   "worker",
    "trust",  "default_class", "rx_ring",    "tx_ring",      "queue_limit", "untagged",   "vlans", "netdev",
    "queues", "pfc",           "pfc_quanta", "pfc_reaction", "resequence",  "watchdog"};

// `ports:` → config.ports. Needs config.workers.
void read_ports(const config::List& items, SwitchConfig& config);

// `buffer:`, `classes.queues:` and what ports say about queues and PFC. Needs config.ports.
void read_flow_control(const config::Map& buffer, const config::Map& classes, const config::List& ports,
                       SwitchConfig& config);

// `groups:` and `routes:`. Need config.ports and config.max_routes.
void read_groups(const config::List& items, SwitchConfig& config);
void read_routes(const config::List& items, SwitchConfig& config);

// `path_delay:`. Needs config.groups.
void read_path_delay(const config::Value& value, SwitchConfig& config);
nlohmann::ordered_json path_delay_json(const SwitchConfig& config);

}  // namespace heddle::control
