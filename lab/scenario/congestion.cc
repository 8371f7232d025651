// `hosts.congestion_control` of a scenario, and `fabric.fecn`, what InfiniBand's switches do for it.
#include <string>

#include <fmt/format.h>

#include "lab/scenario/parts.h"

namespace heddle::lab {
namespace {

using config::integer;
using config::Map;
using config::one_of;
using config::Value;

constexpr uint16_t kMaxCcti = 1023;

const Words<flowctl::CctiScope>& scope_words() {
  static const Words<flowctl::CctiScope> words{{"queue-pair", flowctl::CctiScope::kQueuePair},
                                               {"service-level", flowctl::CctiScope::kServiceLevel}};
  return words;
}

const Words<flowctl::BecnCarrier>& carrier_words() {
  static const Words<flowctl::BecnCarrier> words{{"ack", flowctl::BecnCarrier::kAck},
                                                 {"cnp", flowctl::BecnCarrier::kCnp}};
  return words;
}

const Words<flowctl::VictimMask>& victim_mask_words() {
  static const Words<flowctl::VictimMask> words{
      {"none", flowctl::VictimMask::kNone}, {"hosts", flowctl::VictimMask::kHosts}, {"all", flowctl::VictimMask::kAll}};
  return words;
}

// A set by name with what differs from it.
flowctl::DcqcnSet read_dcqcn(const Value& value) {
  const flowctl::DcqcnSet& first = flowctl::dcqcn_sets().front();
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

// `auto`, or entries as OpenSM's `cc_cct` has them.
std::vector<flowctl::CctEntry> read_table(const Value& value) {
  std::vector<flowctl::CctEntry> table;
  if (value.is_missing() || value.is_word("auto")) return table;
  const std::string accepted = "auto, or entries shift:multiplier, of 0–3 and 0–16383";
  if (!value.is_list()) value.refuse(accepted);
  for (const Value& item : value.list(1, kMaxCcti + 1)) {
    const std::string_view text = item.scalar(accepted);
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) item.refuse(accepted);
    const auto shift = config::parse_integer(text.substr(0, colon));
    const auto multiplier = config::parse_integer(text.substr(colon + 1));
    if (!shift || !multiplier || *shift > flowctl::CctEntry::kMaxShift ||
        *multiplier > flowctl::CctEntry::kMaxMultiplier) {
      item.refuse(accepted);
    }
    table.push_back({static_cast<uint8_t>(*shift), static_cast<uint16_t>(*multiplier)});
  }
  return table;
}

flowctl::CctiSettings read_ccti(const Map& map) {
  flowctl::CctiSettings ccti;
  ccti.table = read_table(map.at("cct"));
  const auto most = static_cast<uint16_t>(ccti.table.empty() ? kMaxCcti : ccti.table.size() - 1);
  ccti.limit = map.optional("ccti_limit", ccti.table.empty() ? ccti.limit : most, integer<uint16_t>(0, most));
  ccti.min = map.optional("ccti_min", ccti.min, integer<uint16_t>(0, ccti.limit));
  ccti.increase = map.optional("ccti_increase", ccti.increase, integer<uint8_t>(1, 255));
  ccti.timer = map.optional("ccti_timer", ccti.timer, config::duration(100 * kNanosecond, kSecond));
  ccti.scope = map.optional("per", ccti.scope, one_of(scope_words()));
  ccti.carrier = map.optional("notify_by", ccti.carrier, one_of(carrier_words()));
  ccti.levels = read_service_levels(map, ccti.levels);
  return ccti;
}

Json ccti_json(const flowctl::CctiSettings& ccti) {
  Json table = "auto";
  if (!ccti.table.empty()) {
    table = Json::array();
    for (const flowctl::CctEntry& entry : ccti.table) {
      table.push_back(fmt::format("{}:{}", entry.shift, entry.multiplier));
    }
  }
  return {{"kind", "infiniband"},
          {"ccti_increase", ccti.increase},
          {"ccti_limit", ccti.limit},
          {"ccti_min", ccti.min},
          {"ccti_timer", config::print_duration(ccti.timer)},
          {"cct", std::move(table)},
          {"per", word_for(scope_words(), ccti.scope)},
          {"notify_by", word_for(carrier_words(), ccti.carrier)},
          {"service_levels", service_levels_json(ccti.levels)}};
}

}  // namespace

// `none`, `dcqcn` (its first set), `infiniband`, or one of them with parameters.
void read_congestion_control(const Value& value, HostSettings& hosts) {
  if (value.is_missing() || value.is_word("none")) return;
  if (value.is_word("dcqcn")) {
    hosts.dcqcn = flowctl::dcqcn_sets().front();
    return;
  }
  if (value.is_word("infiniband")) {
    hosts.ccti.emplace();
    return;
  }
  if (!value.is_map()) value.refuse("none, dcqcn, infiniband, or {kind: dcqcn, set: …}");
  const std::string kind = value.kind({"none", "dcqcn", "infiniband"}, "dcqcn");
  if (kind == "none") {
    value.map({"kind"});
  } else if (kind == "dcqcn") {
    hosts.dcqcn = read_dcqcn(value);
  } else {
    hosts.ccti = read_ccti(value.map({"kind", "ccti_increase", "ccti_limit", "ccti_min", "ccti_timer", "cct", "per",
                                      "notify_by", "service_levels"}));
  }
}

Json congestion_control_json(const HostSettings& hosts) {
  if (hosts.dcqcn) return dcqcn_json(*hosts.dcqcn);
  if (hosts.ccti) return ccti_json(*hosts.ccti);
  return "none";
}

flowctl::FecnSettings read_fecn(const Map& section) {
  flowctl::FecnSettings fecn;
  const Map map = section.section("fecn", {"threshold", "marking_rate", "packet_size", "victim_mask"});
  fecn.threshold = map.optional("threshold", fecn.threshold, integer<uint8_t>(0, flowctl::FecnSettings::kMaxThreshold));
  fecn.marking_rate = map.optional("marking_rate", fecn.marking_rate, integer<uint16_t>(0, 0xffff));
  fecn.packet_size = map.optional("packet_size", fecn.packet_size, integer<uint32_t>(0, 0x3fc0));
  fecn.victim_mask = map.optional("victim_mask", fecn.victim_mask, one_of(victim_mask_words()));
  return fecn;
}

Json fecn_json(const flowctl::FecnSettings& fecn) {
  return {{"threshold", fecn.threshold},
          {"marking_rate", fecn.marking_rate},
          {"packet_size", fecn.packet_size},
          {"victim_mask", word_for(victim_mask_words(), fecn.victim_mask)}};
}

}  // namespace heddle::lab
