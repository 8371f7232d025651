// `hosts:` of a scenario.
#include <fmt/format.h>

#include "lab/scenario/parts.h"

namespace heddle::lab {

using config::integer;
using config::Map;
using config::one_of;
using config::Value;

namespace {

const Words<Connections>& connections_words() {
  static const Words<Connections> words{{"per-pair", Connections::kPerPair}, {"per-message", Connections::kPerMessage}};
  return words;
}

void read_static_rate(const Value& value, HostSettings& hosts) {
  if (value.is_missing() || value.is_word("unlimited")) return;
  hosts.static_rate_of_path = value.is_word("path");
  if (hosts.static_rate_of_path) return;
  const std::string accepted = "unlimited, path, or a rate from 1M to 10T such as 25G";
  const auto rate = config::parse_rate(value.scalar(accepted));
  if (!rate || rate->bits_per_second() < 1'000'000 || rate->bits_per_second() > 10'000'000'000'000) {
    value.refuse(accepted);
  }
  hosts.static_rate = *rate;
}

// A size of at least a packet, beside a word that stands for none.
uint64_t read_bytes_from_mtu(const Value& value, std::string_view word, uint32_t mtu, uint64_t most) {
  const std::string accepted = fmt::format("{}, or a size such as 64KiB or 2MB, from {} (the mtu) to {}", word,
                                           config::print_bytes(mtu), config::print_bytes(most));
  const auto bytes = config::parse_bytes(value.scalar(accepted));
  if (!bytes || *bytes < mtu || *bytes > most) value.refuse(accepted);
  return *bytes;
}

Json static_rate_json(const HostSettings& hosts) {
  if (hosts.static_rate_of_path) return "path";
  return hosts.static_rate.is_unlimited() ? "unlimited" : config::print_rate(hosts.static_rate);
}

}  // namespace

const Words<OutOfOrder>& loss_recovery_words() {
  static const Words<OutOfOrder> words{{"go-back-n", OutOfOrder::kGoBackN},
                                       {"selective-repeat", OutOfOrder::kSelectiveRepeat}};
  return words;
}

const Words<OutOfOrder>& out_of_order_words() {
  static const Words<OutOfOrder> words{{"go-back-n", OutOfOrder::kGoBackN},
                                       {"selective-repeat", OutOfOrder::kSelectiveRepeat},
                                       {"in-order-placement", OutOfOrder::kInOrderPlacement},
                                       {"any-order-placement", OutOfOrder::kAnyOrderPlacement}};
  return words;
}

const Words<Entropy>& entropy_words() {
  static const Words<Entropy> words{
      {"per-qp", Entropy::kPerQp}, {"per-packet", Entropy::kPerPacket}, {"none", Entropy::kNone}};
  return words;
}

void read_hosts(const Map& root, Scenario& scenario) {
  const Map section =
      root.section("hosts", {"mtu", "congestion_control", "static_rate", "burst", "loss_recovery", "out_of_order",
                             "reorder_buffer", "connections", "qps_per_connection", "entropy", "spray_ports",
                             "ack_every", "ack_dscp", "window", "retransmit_timeout", "start_jitter"});
  HostSettings& hosts = scenario.hosts;
  hosts.mtu = section.optional("mtu", hosts.mtu, integer<uint32_t>(256, 4096));
  read_congestion_control(section.at("congestion_control"), hosts);
  read_static_rate(section.at("static_rate"), hosts);
  const Value burst = section.at("burst");
  if (!burst.is_missing() && !burst.is_word("packet")) {
    hosts.burst_bytes = read_bytes_from_mtu(burst, "packet", hosts.mtu, 1'000'000'000);
  }
  scenario.loss_recovery = section.optional("loss_recovery", OutOfOrder::kGoBackN, one_of(loss_recovery_words()));
  const Value order = section.at("out_of_order");
  if (!order.is_missing()) {
    Words<std::optional<OutOfOrder>> words{{"default", std::nullopt}};
    for (const auto& [word, meaning] : out_of_order_words()) words.emplace_back(word, meaning);
    scenario.out_of_order = one_of(words)(order);
  }
  hosts.reorder_bytes = section.optional("reorder_buffer", hosts.reorder_bytes, config::bytes(4096, 1'000'000'000'000));
  hosts.connections = section.optional("connections", hosts.connections, one_of(connections_words()));
  hosts.qps_per_connection = section.optional("qps_per_connection", 1, integer<uint32_t>(1, 256));
  hosts.entropy = section.optional("entropy", hosts.entropy, one_of(entropy_words()));
  hosts.spray_ports = section.optional("spray_ports", hosts.spray_ports, [](const Value& value) {
    const auto ports = config::parse_integer(value.scalar("a power of two from 2 to 16384"));
    if (!ports || *ports < 2 || *ports > 16'384 || (*ports & (*ports - 1)) != 0) {
      value.refuse("a power of two from 2 to 16384");
    }
    return static_cast<uint32_t>(*ports);
  });
  hosts.ack_every = section.optional("ack_every", hosts.ack_every, integer<uint32_t>(1, 1024));
  hosts.ack_dscp = section.optional("ack_dscp", hosts.ack_dscp, integer<uint8_t>(0, 63));
  const Value window = section.at("window");
  if (!window.is_missing() && !window.is_word("unlimited")) {
    hosts.window_bytes = read_bytes_from_mtu(window, "unlimited", hosts.mtu, 1'000'000'000'000);
  }
  hosts.retransmit_timeout =
      section.optional("retransmit_timeout", hosts.retransmit_timeout, config::duration(kMicrosecond, 1000 * kSecond));
  hosts.start_jitter = section.optional("start_jitter", hosts.start_jitter, config::boolean());
}

Json hosts_json(const Scenario& scenario) {
  const HostSettings& hosts = scenario.hosts;
  return {{"mtu", hosts.mtu},
          {"congestion_control", congestion_control_json(hosts)},
          {"static_rate", static_rate_json(hosts)},
          {"burst", hosts.burst_bytes == 0 ? "packet" : config::print_bytes(hosts.burst_bytes)},
          {"loss_recovery", word_for(loss_recovery_words(), scenario.loss_recovery)},
          {"out_of_order", scenario.out_of_order ? word_for(out_of_order_words(), *scenario.out_of_order)
                                                 : std::string_view("default")},
          {"reorder_buffer", config::print_bytes(hosts.reorder_bytes)},
          {"connections", word_for(connections_words(), hosts.connections)},
          {"qps_per_connection", hosts.qps_per_connection},
          {"entropy", word_for(entropy_words(), hosts.entropy)},
          {"spray_ports", hosts.spray_ports},
          {"ack_every", hosts.ack_every},
          {"ack_dscp", hosts.ack_dscp},
          {"window", hosts.window_bytes == 0 ? "unlimited" : config::print_bytes(hosts.window_bytes)},
          {"retransmit_timeout", config::print_duration(hosts.retransmit_timeout)},
          {"start_jitter", hosts.start_jitter}};
}

}  // namespace heddle::lab
