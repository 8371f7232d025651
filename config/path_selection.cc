#include "config/path_selection.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/units.h"
#include "config/words.h"
#include "lb/flowlet_table.h"

namespace heddle::config {
namespace {

template <typename T>
using Words = std::vector<std::pair<std::string_view, T>>;

const Words<lb::Granularity>& granularity_words() {
  static const Words<lb::Granularity> words{
      {"flow", lb::Granularity::kFlow}, {"flowlet", lb::Granularity::kFlowlet}, {"packet", lb::Granularity::kPacket}};
  return words;
}

const Words<lb::Choice>& choice_words() {
  static const Words<lb::Choice> words{{"hash", lb::Choice::kHash},
                                       {"random", lb::Choice::kRandom},
                                       {"round-robin", lb::Choice::kRoundRobin},
                                       {"weighted", lb::Choice::kWeighted},
                                       {"quality", lb::Choice::kQuality}};
  return words;
}

const Words<lb::QualityRule>& quality_rule_words() {
  static const Words<lb::QualityRule> words{{"default", lb::QualityRule::kDefault},
                                            {"power-of-two", lb::QualityRule::kPowerOfTwo},
                                            {"bands", lb::QualityRule::kBands},
                                            {"least-loaded", lb::QualityRule::kLeastLoaded}};
  return words;
}

template <typename T>
std::string_view word_for(const Words<T>& words, T meaning) {
  for (const auto& [word, value] : words) {
    if (value == meaning) return word;
  }
  return "";
}

std::string two_choices(const lb::Scheduler& scheduler) {
  return fmt::format("{} × {}", word_for(granularity_words(), scheduler.granularity),
                     word_for(choice_words(), scheduler.choice));
}

// Seven ascending ends; the eighth band has none.
void read_bands(const Value& value, lb::ArsSettings& ars) {
  const auto ends = list_of(duration(kNanosecond, kSecond), ars.quant_bands.size(), ars.quant_bands.size())(value);
  for (size_t i = 0; i < ends.size(); ++i) {
    if (i != 0 && ends[i] <= ends[i - 1]) value.refuse("seven durations, each longer than the one before");
    ars.quant_bands.at(i) = ends[i];
  }
}

}  // namespace

lb::Scheduler read_scheduler(const Value& value) {
  if (value.is_map()) {
    const Map map = value.map({"granularity", "choice"});
    const lb::Scheduler scheduler = {map.required("granularity", one_of(granularity_words())),
                                     map.required("choice", one_of(choice_words()))};
    if (lb::scheduler_named(lb::name_of(scheduler))) return scheduler;
    std::string accepted;
    for (const lb::SchedulerPreset& preset : lb::kSchedulerPresets) {
      accepted += (accepted.empty() ? "" : ", ") + two_choices(preset.scheduler);
    }
    value.refuse_found("scheduler " + two_choices(scheduler), accepted);
  }
  const std::string accepted = listed(lb::kSchedulerNames) + ", or {granularity: …, choice: …}";
  const auto scheduler = lb::scheduler_named(value.scalar(accepted));
  if (!scheduler) value.refuse(accepted);
  return *scheduler;
}

std::string_view scheduler_word(const lb::Scheduler& scheduler) { return lb::name_of(scheduler); }

const std::vector<std::string_view>& ars_keys() {
  static const std::vector<std::string_view> keys{"idle_time",
                                                  "max_flows",
                                                  "quality_rule",
                                                  "sampling_interval",
                                                  "ewma",
                                                  "port_load_exponent",
                                                  "port_load_past_weight",
                                                  "port_load_future_weight",
                                                  "quant_bands",
                                                  "primary_path_quality_threshold",
                                                  "alternate_path_cost"};
  return keys;
}

lb::ArsSettings read_ars(const Map& section) {
  lb::ArsSettings ars;
  ars.idle_time = section.optional("idle_time", ars.idle_time, duration(kMicrosecond, kSecond));
  ars.max_flows = section.optional("max_flows", ars.max_flows, integer<uint32_t>(64, lb::FlowletTable::kMostFlows));
  ars.quality_rule = section.optional("quality_rule", ars.quality_rule, one_of(quality_rule_words()));
  ars.sampling_interval = section.optional("sampling_interval", ars.sampling_interval, duration(kMicrosecond, kSecond));
  ars.ewma = section.optional("ewma", ars.ewma, boolean());
  ars.port_load_exponent = section.optional("port_load_exponent", ars.port_load_exponent, integer<uint16_t>(0, 8));
  ars.port_load_past_weight =
      section.optional("port_load_past_weight", ars.port_load_past_weight, integer<uint16_t>(0, 255));
  ars.port_load_future_weight =
      section.optional("port_load_future_weight", ars.port_load_future_weight, integer<uint16_t>(0, 255));
  if (const Value bands = section.at("quant_bands"); !bands.is_missing()) read_bands(bands, ars);
  ars.primary_path_quality_threshold =
      section.optional("primary_path_quality_threshold", ars.primary_path_quality_threshold, integer<unsigned>(0, 8));
  ars.alternate_path_cost = section.optional("alternate_path_cost", ars.alternate_path_cost, integer<unsigned>(0, 8));
  return ars;
}

nlohmann::ordered_json ars_json(const lb::ArsSettings& ars) {
  auto bands = nlohmann::ordered_json::array();
  for (const Duration end : ars.quant_bands) bands.push_back(print_duration(end));
  return {{"idle_time", print_duration(ars.idle_time)},
          {"max_flows", ars.max_flows},
          {"quality_rule", word_for(quality_rule_words(), ars.quality_rule)},
          {"sampling_interval", print_duration(ars.sampling_interval)},
          {"ewma", ars.ewma},
          {"port_load_exponent", ars.port_load_exponent},
          {"port_load_past_weight", ars.port_load_past_weight},
          {"port_load_future_weight", ars.port_load_future_weight},
          {"quant_bands", std::move(bands)},
          {"primary_path_quality_threshold", ars.primary_path_quality_threshold},
          {"alternate_path_cost", ars.alternate_path_cost}};
}

const std::vector<std::string_view>& resequencer_keys() {
  static const std::vector<std::string_view> keys{"hold_time", "max_flow_bytes", "max_bytes", "max_packets",
                                                  "max_flows"};
  return keys;
}

lb::ResequencerSettings read_resequencer(const Map& section) {
  lb::ResequencerSettings r;
  r.hold_time = section.optional("hold_time", r.hold_time, duration(kMicrosecond, kSecond));
  r.max_flow_bytes = section.optional("max_flow_bytes", r.max_flow_bytes, bytes(10'000, 1'000'000'000));
  r.max_bytes = section.optional("max_bytes", r.max_bytes, bytes(10'000, 16'000'000'000));
  r.max_packets = section.optional("max_packets", r.max_packets, integer<uint32_t>(16, 1U << 22U));
  r.max_flows = section.optional("max_flows", r.max_flows, integer<uint32_t>(64, 1U << 22U));
  return r;
}

nlohmann::ordered_json resequencer_json(const lb::ResequencerSettings& r) {
  return {{"hold_time", print_duration(r.hold_time)},
          {"max_flow_bytes", print_bytes(r.max_flow_bytes)},
          {"max_bytes", print_bytes(r.max_bytes)},
          {"max_packets", r.max_packets},
          {"max_flows", r.max_flows}};
}

double read_probe_rate(const Value& value) {
  constexpr std::string_view accepted = "a share of a link from 0.01% to 1% such as 0.1%";
  const auto share = parse_share(value.scalar(accepted));
  if (!share || *share < 0.9999e-4 || *share > 0.01) value.refuse(accepted);
  return *share;
}

}  // namespace heddle::config
