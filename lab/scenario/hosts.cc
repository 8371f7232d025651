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

std::optional<flowctl::DcqcnSet> read_congestion_control(const Value& value);
Json dcqcn_json(const flowctl::DcqcnSet& set);

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
      root.section("hosts", {"mtu", "congestion_control", "loss_recovery", "out_of_order", "reorder_buffer",
                             "connections", "qps_per_connection", "entropy", "spray_ports", "ack_every", "ack_dscp",
                             "window", "retransmit_timeout", "start_jitter"});
  HostSettings& hosts = scenario.hosts;
  hosts.mtu = section.optional("mtu", hosts.mtu, integer<uint32_t>(256, 4096));
  hosts.dcqcn = read_congestion_control(section.at("congestion_control"));
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
    const std::string accepted = fmt::format("unlimited, or a size such as 64KiB or 2MB, from {} (the mtu) to 1TB",
                                             config::print_bytes(hosts.mtu));
    const auto bytes = config::parse_bytes(window.scalar(accepted));
    if (!bytes || *bytes < hosts.mtu || *bytes > 1'000'000'000'000) window.refuse(accepted);
    hosts.window_bytes = *bytes;
  }
  hosts.retransmit_timeout =
      section.optional("retransmit_timeout", hosts.retransmit_timeout, config::duration(kMicrosecond, 1000 * kSecond));
  hosts.start_jitter = section.optional("start_jitter", hosts.start_jitter, config::boolean());
}

Json hosts_json(const Scenario& scenario) {
  const HostSettings& hosts = scenario.hosts;
  return {{"mtu", hosts.mtu},
          {"congestion_control", hosts.dcqcn ? dcqcn_json(*hosts.dcqcn) : Json("none")},
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

namespace {

// `none`, `dcqcn` (its first set), or a set by name with what differs from it.
std::optional<flowctl::DcqcnSet> read_congestion_control(const Value& value) {
  if (value.is_missing() || value.is_word("none")) return std::nullopt;
  const flowctl::DcqcnSet& first = flowctl::dcqcn_sets().front();
  if (value.is_word("dcqcn")) return first;
  if (!value.is_map()) value.refuse("none, dcqcn, or {kind: dcqcn, set: …}");
  if (value.kind({"none", "dcqcn"}, "dcqcn") == "none") {
    value.map({"kind"});
    return std::nullopt;
  }
  const Map map =
      value.map({"kind", "set", "initial_alpha", "g", "alpha_interval", "cut_interval", "clamp_target", "min_rate",
                 "increase_interval", "byte_counter", "fast_recovery_steps", "additive", "hyper", "cnp_interval"});
  flowctl::DcqcnSet set = map.optional("set", first, [](const Value& name) {
    std::vector<std::string_view> names;
    for (const flowctl::DcqcnSet& of : flowctl::dcqcn_sets()) names.push_back(of.name);
    return flowctl::dcqcn_sets()[config::read_word(name, names)];
  });
  flowctl::DcqcnSettings& its = set.at_100g;
  const auto interval = config::duration(100 * kNanosecond, kSecond);
  its.initial_alpha = map.optional("initial_alpha", its.initial_alpha, config::number(0, 1));
  its.g = map.optional("g", its.g, config::number(1e-6, 1));
  its.alpha_interval = map.optional("alpha_interval", its.alpha_interval, interval);
  its.cut_interval = map.optional("cut_interval", its.cut_interval, interval);
  its.clamp_target = map.optional("clamp_target", its.clamp_target, config::boolean());
  its.min_rate = map.optional("min_rate", its.min_rate, config::rate(false));
  its.increase_interval = map.optional("increase_interval", its.increase_interval, interval);
  its.byte_counter = map.optional("byte_counter", its.byte_counter, [](const Value& bytes) {
    return bytes.is_word("none") ? 0 : config::bytes(1000, 1'000'000'000'000)(bytes);
  });
  its.fast_recovery_steps = map.optional("fast_recovery_steps", its.fast_recovery_steps, integer<uint32_t>(0, 1000));
  its.additive = map.optional("additive", its.additive, config::rate(false));
  its.hyper = map.optional("hyper", its.hyper, config::rate(false));
  its.cnp_interval = map.optional("cnp_interval", its.cnp_interval, config::duration(0, kSecond));
  return set;
}

Json dcqcn_json(const flowctl::DcqcnSet& set) {
  const flowctl::DcqcnSettings& its = set.at_100g;
  return {{"kind", "dcqcn"},
          {"set", set.name},
          {"initial_alpha", its.initial_alpha},
          {"g", its.g},
          {"alpha_interval", config::print_duration(its.alpha_interval)},
          {"cut_interval", config::print_duration(its.cut_interval)},
          {"clamp_target", its.clamp_target},
          {"min_rate", config::print_rate(its.min_rate)},
          {"increase_interval", config::print_duration(its.increase_interval)},
          {"byte_counter", its.byte_counter == 0 ? "none" : config::print_bytes(its.byte_counter)},
          {"fast_recovery_steps", its.fast_recovery_steps},
          {"additive", config::print_rate(its.additive)},
          {"hyper", config::print_rate(its.hyper)},
          {"cnp_interval", config::print_duration(its.cnp_interval)}};
}

}  // namespace
}  // namespace heddle::lab
