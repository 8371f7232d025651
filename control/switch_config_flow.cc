// `buffer:`, the queues of classes and ports, PFC and ECN of the switch configuration.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "config/flow_control.h"
#include "config/units.h"
#include "control/switch_config_parts.h"
#include "flowctl/headroom.h"
#include "net/error.h"

namespace heddle::control {
namespace {

using config::integer;
using config::kMaxBuffer;
using config::List;
using config::Map;
using config::one_of;
using config::Value;

void read_buffer(const Map& section, SwitchConfig& config);
// `largest` is the port with the longest frames that the queues must hold.
void read_queues(const Value& queues, const SwitchConfig& config, const PortConfig& largest, QueueConfigs& into);
void read_queue(const Value& value, unsigned traffic_class, bool buffered, const PortConfig& largest,
                QueueConfig& queue);
void read_port(const Map& map, const SwitchConfig& config, PortConfig& port);

}  // namespace

const Words<PfcBackend>& pfc_words() {
  static const Words<PfcBackend> words{
      {"none", PfcBackend::kNone}, {"frames", PfcBackend::kFrames}, {"ethdev", PfcBackend::kEthdev}};
  return words;
}

void read_flow_control(const Map& buffer, const Map& classes, const List& ports, SwitchConfig& config) {
  read_buffer(buffer, config);
  // Classes 6 and 7 carry CNPs and network control: late, they make congestion worse.
  config.queues[6].strict = config.queues[7].strict = true;
  // A lossy queue may take as much as is free, as SONiC's egress profiles have it.
  for (QueueConfig& queue : config.queues) queue.shared = dataplane::Threshold::dynamic(1);
  const auto largest = std::max_element(config.ports.begin(), config.ports.end(),
                                        [](const auto& a, const auto& b) { return a.frame_bytes() < b.frame_bytes(); });
  read_queues(classes.at("queues"), config, *largest, config.queues);
  std::vector<Rate> rates;
  for (size_t i = 0; i < ports.size(); ++i) {
    PortConfig& port = config.ports[i];
    port.queues = config.queues;
    read_port(ports[i].map(kPortKeys), config, port);
    rates.push_back(port.rate.value_or(Rate::unlimited()));
  }
  check_buffer(config, rates);
}

uint8_t lossless_classes(const PortConfig& port) {
  unsigned classes = 0;
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) classes |= port.queues[tc].lossless ? 1U << tc : 0U;
  return static_cast<uint8_t>(classes);
}

namespace {

// The burst that crosses XOFF has been received whole. What is with the device is as long as the scheduler may make up
// for, hence part of the reaction. Where the NIC does PFC, what comes after that burst stays in the NIC.
flowctl::Headroom headroom_of(const PortConfig& port, Rate rate) {
  if (port.pfc == PfcBackend::kEthdev) {
    constexpr uint64_t kKibibyte = 1024;
    const uint64_t bytes = uint64_t{kBurst} * port.frame_bytes();
    return {.steps = {{"burst in hand", fmt::format("{} frames × {} bytes", kBurst, port.frame_bytes()), bytes}},
            .bytes = (bytes + kKibibyte - 1) / kKibibyte * kKibibyte};
  }
  return flowctl::required_headroom({.rate = rate,
                                     .frame_bytes = port.frame_bytes(),
                                     .peer_reaction = Duration{0},
                                     .reaction = port.pfc_reaction,
                                     .burst = kBurst});
}

}  // namespace

uint64_t needed_headroom(const PortConfig& port, Rate rate) { return headroom_of(port, rate).bytes; }

namespace {

bool is_headroom_known(const PortConfig& port, Rate rate) {
  return !rate.is_unlimited() || port.pfc == PfcBackend::kEthdev;
}

}  // namespace

void check_buffer(const SwitchConfig& config, const std::vector<Rate>& rates) {
  if (!config.buffer.on) return;
  for (size_t i = 0; i < config.ports.size(); ++i) {
    const PortConfig& port = config.ports[i];
    if (!is_headroom_known(port, rates[i])) continue;
    const uint64_t needed = needed_headroom(port, rates[i]);
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      const QueueConfig& queue = port.queues[tc];
      if (!queue.lossless || queue.force || queue.headroom.value_or(needed) >= needed) continue;
      std::string sum;
      for (const flowctl::HeadroomStep& step : headroom_of(port, rates[i]).steps) {
        sum += fmt::format("{}{} ({})", sum.empty() ? "" : " + ", step.bytes, step.what);
      }
      throw_bad_input(
          "{}: found headroom {} for lossless class {} of port {}; accepted: at least {} bytes: {} in whole KiB{}; or "
          "force: true",
          port.place, config::print_bytes(*queue.headroom), tc, port.name, needed, sum,
          port.pfc == PfcBackend::kEthdev
              ? ""
              : fmt::format(", where pfc_reaction is {} at {}", config::print_duration(port.pfc_reaction),
                            config::print_rate(rates[i])));
    }
  }
  const dataplane::BufferSettings settings = buffer_settings(config, rates);
  if (settings.shared_bytes() > 0) return;
  throw_bad_input(
      "{}: found a buffer of {} bytes; accepted: more than {}, which reservations, headroom and one burst of each "
      "worker "
      "take",
      config.buffer.place, settings.bytes, static_cast<int64_t>(settings.bytes) - settings.shared_bytes());
}

dataplane::BufferSettings buffer_settings(const SwitchConfig& config, const std::vector<Rate>& rates) {
  dataplane::BufferSettings settings;
  if (!config.buffer.on) return settings;
  settings.bytes = config.buffer.bytes;
  settings.packets = config.buffer.packets;
  uint64_t longest = 0;
  for (size_t i = 0; i < config.ports.size(); ++i) {
    const PortConfig& port = config.ports[i];
    longest = std::max<uint64_t>(longest, port.frame_bytes());
    auto& groups = settings.groups.emplace_back();
    auto& queues = settings.queues.emplace_back();
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      const QueueConfig& queue = port.queues[tc];
      groups[tc].reserved = queue.reserved;
      if (!queue.lossless) {
        queues[tc].shared = queue.shared;
        continue;
      }
      groups[tc].lossless = true;
      groups[tc].shared = queue.shared;
      groups[tc].xon_offset = queue.xon_offset;
      groups[tc].headroom =
          queue.headroom.value_or(is_headroom_known(port, rates[i]) ? needed_headroom(port, rates[i]) : 0);
    }
  }
  // Workers learn of each other's charges a burst late.
  settings.kept_aside = config.workers > 1 ? config.workers * kBurst * longest : 0;
  return settings;
}

namespace {

void read_buffer(const Map& section, SwitchConfig& config) {
  const Value size = section.at("size");
  if (size.is_missing()) {
    if (section.has("packets")) section.at("packets").refuse("size: beside it", "for a buffer without a size");
    return;
  }
  config.buffer.on = true;
  config.buffer.place = size.place().text();
  config.buffer.bytes = config::bytes(100'000, kMaxBuffer)(size);
  config.buffer.packets = section.optional("packets", config.buffer_packets, integer<uint32_t>(256, 4'194'304));
  config.buffer_packets = config.buffer.packets;
}

void read_queues(const Value& queues, const SwitchConfig& config, const PortConfig& largest, QueueConfigs& into) {
  for (const auto& [key, value] : queues.entries()) {
    const auto index = integer<unsigned>(0, kTrafficClasses - 1)(key);
    read_queue(value, index, config.buffer.on, largest, into[index]);
  }
}

flowctl::WredCurve read_curve(const Value& value) { return config::read_curve(value.map({"kmin", "kmax", "pmax"})); }

void read_lossless(const Map& map, unsigned traffic_class, bool was_lossless, QueueConfig& queue) {
  if (!was_lossless) {  // HPCC's 1/8, and 3 kB below XOFF
    if (!map.has("shared") && !map.has("alpha")) queue.shared = dataplane::Threshold::dynamic(0.125);
    queue.xon_offset = 3000;
    queue.limit.reset();  // what the class says of other ports would drop here
    queue.wred = {};
  }
  queue.xon_offset = map.optional("xon_offset", queue.xon_offset, config::bytes(0, 100'000'000));
  if (map.has("headroom")) queue.headroom = config::bytes(0, 1'000'000'000)(map.at("headroom"));
  queue.force = map.optional("force", queue.force, config::boolean());
  if (map.has("limit")) {
    map.at("limit").refuse("shared or alpha: XOFF of its priority group",
                           fmt::format("for class {}, whose queue is lossless", traffic_class));
  }
  if (map.has("wred")) {
    map.at("wred").refuse("no early drops", fmt::format("for class {}, which is lossless", traffic_class));
  }
}

void read_queue(const Value& value, unsigned traffic_class, bool buffered, const PortConfig& largest,
                QueueConfig& queue) {
  const Map map = value.map({"priority", "weight", "limit", "lossless", "reserved", "shared", "alpha", "xon_offset",
                             "headroom", "force", "ecn", "wred"});
  queue.strict = map.optional("priority", queue.strict, one_of<bool>({{"strict", true}, {"drr", false}}));
  if (map.has("ecn")) queue.ecn = read_curve(map.at("ecn"));
  if (map.has("wred")) queue.wred = read_curve(map.at("wred"));
  if (!buffered) {
    for (const std::string_view key : {"lossless", "reserved", "shared", "alpha", "xon_offset", "headroom", "force"}) {
      if (map.has(key)) map.at(key).refuse("buffer: {size: …}, which it is about", "without a shared buffer");
    }
  }
  const bool was_lossless = queue.lossless;
  queue.lossless = map.optional("lossless", queue.lossless, config::boolean());
  queue.reserved = map.optional("reserved", queue.reserved, config::bytes(0, 100'000'000));
  if (map.has("shared") && map.has("alpha")) map.at("alpha").refuse("shared or alpha, not both", "beside shared");
  if (map.has("shared")) queue.shared = dataplane::Threshold::fixed(config::bytes(0, kMaxBuffer)(map.at("shared")));
  if (map.has("alpha")) queue.shared = dataplane::Threshold::dynamic(config::read_alpha(map.at("alpha")));
  if (queue.lossless) {
    read_lossless(map, traffic_class, was_lossless, queue);
  } else {
    for (const std::string_view key : {"xon_offset", "headroom", "force"}) {
      if (map.has(key)) {
        map.at(key).refuse("lossless: true beside it", fmt::format("for class {}, which is lossy", traffic_class));
      }
    }
    // A queue that cannot hold one frame would drop everything of its class.
    queue.limit = map.has("limit") ? config::bytes(1, 1'000'000'000)(map.at("limit")) : queue.limit;
    if (map.has("limit") && *queue.limit < largest.frame_bytes()) {
      map.at("limit").refuse(
          fmt::format("at least one frame of port {}, {} bytes", largest.name, largest.frame_bytes()));
    }
  }
  const Value weight = map.at("weight");
  if (weight.is_missing()) return;
  queue.weight = integer<uint16_t>(1, 100)(weight);
  if (queue.strict) {
    weight.refuse("a weight beside priority: drr",
                  fmt::format("for class {}, whose priority is strict{}", traffic_class,
                              map.has("priority") ? "" : " by default"));
  }
}

// A NIC sorts frames into its queues by PCP, and takes an untagged one for PCP 0. A class must be what its queue is, or
// a queue that is closed would not stop it.
void check_nic_classes(const Map& map, const SwitchConfig& config, const PortConfig& port) {
  const Value pfc = map.at("pfc");
  if (port.trust != dataplane::Trust::kPcp) {
    pfc.refuse("frames, none, or trust: pcp beside it: the NIC sorts by PCP", "on a port that does not trust PCP");
  }
  if (port.default_class != 0) {
    pfc.refuse("frames, none, or default_class: 0: the NIC takes an untagged frame for PCP 0",
               fmt::format("beside default_class {}", port.default_class));
  }
  for (unsigned pcp = 0; pcp < kTrafficClasses; ++pcp) {
    if (config.class_of_pcp[pcp] == pcp) continue;
    pfc.refuse("frames, none, or classes.pcp as it is by default: each PCP has the NIC's queue of its number",
               fmt::format("while PCP {} is class {}", pcp, config.class_of_pcp[pcp]));
  }
}

void read_port(const Map& map, const SwitchConfig& config, PortConfig& port) {
  read_queues(map.at("queues"), config, port, port.queues);
  const bool lossless = lossless_classes(port) != 0;
  port.pfc = map.optional("pfc", lossless ? PfcBackend::kFrames : PfcBackend::kNone, one_of(pfc_words()));
  port.pfc_quanta = map.optional("pfc_quanta", port.pfc_quanta, integer<uint16_t>(2, 0xffff));
  // Each end looks once per round, asleep every 50 us and what the kernel's timer adds.
  const Duration round = config.idle == IdleMode::kSleep ? 500 * kMicrosecond : 20 * kMicrosecond;
  port.pfc_reaction = map.optional("pfc_reaction", 2 * round, config::duration(0, kSecond));
  if (port.pfc != PfcBackend::kNone && !lossless) {
    map.at("pfc").refuse("none, or a class with lossless: true", "on a port without lossless classes");
  }
  if (port.pfc == PfcBackend::kEthdev) check_nic_classes(map, config, port);
  if (port.pfc == PfcBackend::kFrames) port.watchdog = config.watchdog;
  const Value watchdog = map.at("watchdog");
  if (watchdog.is_missing()) return;
  port.watchdog = config::read_watchdog(watchdog, config::ClockKind::kReal);
  if (port.watchdog && port.pfc != PfcBackend::kFrames) {
    watchdog.refuse_found("a watchdog on a port that nobody can pause", "none, or pfc: frames beside it");
  }
}

}  // namespace
}  // namespace heddle::control
