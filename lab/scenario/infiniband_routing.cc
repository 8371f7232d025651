// `fabric.adaptive_routing`, `self_healing`, `management_buffer`, `notice_repeats` and `notice_interval` of a scenario.
#include "config/units.h"
#include "lab/scenario/parts.h"
#include "lab/subnet/tables.h"
#include "net/management.h"

namespace heddle::lab {
namespace {

using config::Map;
using config::one_of;

const Words<AdaptiveMode>& mode_words() {
  static const Words<AdaptiveMode> words{{"free", AdaptiveMode::kFree}, {"bounded", AdaptiveMode::kBounded}};
  return words;
}

const Words<SelfHealing>& self_healing_words() {
  static const Words<SelfHealing> words{
      {"none", SelfHealing::kNone}, {"failover", SelfHealing::kFailover}, {"notify", SelfHealing::kNotify}};
  return words;
}

}  // namespace

uint16_t read_service_levels(const Map& map, uint16_t by_default) {
  if (!map.has("service_levels")) return by_default;
  uint16_t levels = 0;
  for (const uint32_t level :
       read_numbers(map.at("service_levels"), kServiceLevels - 1, "service levels from 0 to 15, such as [0, 4-7]")) {
    levels = static_cast<uint16_t>(levels | 1U << level);
  }
  return levels;
}

Json service_levels_json(uint16_t levels) {
  std::vector<uint32_t> numbers;
  numbers.reserve(kServiceLevels);
  for (uint32_t level = 0; level < kServiceLevels; ++level) {
    if (((levels >> level) & 1U) != 0) numbers.push_back(level);
  }
  return numbers_json(numbers);
}

void read_infiniband_routing(const Map& section, InfinibandSettings& settings) {
  AdaptiveRouting& adaptive = settings.adaptive;
  const Map map = section.section("adaptive_routing", {"mode", "ageing_time", "service_levels"});
  adaptive.mode = map.optional("mode", adaptive.mode, one_of(mode_words()));
  adaptive.ageing_time = map.optional("ageing_time", adaptive.ageing_time, config::duration(kMicrosecond, kSecond));
  adaptive.levels = read_service_levels(map, adaptive.levels);
  settings.self_healing = section.optional("self_healing", settings.self_healing, one_of(self_healing_words()));
  const uint64_t buffer = section.optional("management_buffer", uint64_t{settings.management_buffer},
                                           config::bytes(net::kManagementFrame, 1'000'000));
  settings.management_buffer = static_cast<uint32_t>(buffer);
  settings.notice_repeats =
      section.optional("notice_repeats", settings.notice_repeats, config::integer<uint8_t>(0, 16));
  settings.notice_interval =
      section.optional("notice_interval", settings.notice_interval, config::duration(kMicrosecond, kSecond));
}

void put_infiniband_routing(const InfinibandSettings& settings, Json& json) {
  json["adaptive_routing"] = {{"mode", word_for(mode_words(), settings.adaptive.mode)},
                              {"ageing_time", config::print_duration(settings.adaptive.ageing_time)},
                              {"service_levels", service_levels_json(settings.adaptive.levels)}};
  json["self_healing"] = word_for(self_healing_words(), settings.self_healing);
  json["management_buffer"] = config::print_bytes(settings.management_buffer);
  json["notice_repeats"] = settings.notice_repeats;
  json["notice_interval"] = config::print_duration(settings.notice_interval);
}

}  // namespace heddle::lab
