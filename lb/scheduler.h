// A scheduler decides which member of a next-hop group a packet takes. It is two independent choices, so that nothing
// is written twice: granularity (when may the path change) × choice (which member). The names people know are presets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::lb {

enum class Granularity : uint8_t { kFlow, kFlowlet, kPacket };
enum class Choice : uint8_t { kHash, kRandom, kRoundRobin, kWeighted, kQuality };

struct Scheduler {
  Granularity granularity = Granularity::kFlow;
  Choice choice = Choice::kHash;

  friend constexpr bool operator==(const Scheduler&, const Scheduler&) = default;
};

struct SchedulerPreset {
  std::string_view name;
  Scheduler scheduler;
  std::string_view meaning;
};

inline constexpr std::array<SchedulerPreset, 9> kSchedulerPresets{{
    {"ecmp", {Granularity::kFlow, Choice::kHash}, "every flow keeps the member its hash names"},
    {"wcmp", {Granularity::kFlow, Choice::kWeighted}, "as ecmp, members in proportion to their weights"},
    {"rps", {Granularity::kPacket, Choice::kRandom}, "random packet spraying: each packet a random member"},
    {"round-robin",
     {Granularity::kPacket, Choice::kRoundRobin},
     "each packet the next member of a set that is re-permuted after every round"},
    {"spray-wcmp",
     {Granularity::kPacket, Choice::kWeighted},
     "each packet a random member, in proportion to their weights"},
    {"flowlet",
     {Granularity::kFlowlet, Choice::kRandom},
     "after a pause a flow takes a random member (LetFlow; SAI ARS flowlet-random)"},
    {"flowlet-wcmp",
     {Granularity::kFlowlet, Choice::kWeighted},
     "after a pause a flow takes a random member, in proportion to their weights"},
    {"flowlet-quality",
     {Granularity::kFlowlet, Choice::kQuality},
     "after a pause a flow leaves its member for one that is less loaded (SAI ARS flowlet-quality)"},
    {"adaptive",
     {Granularity::kPacket, Choice::kQuality},
     "each packet the less loaded of two random members (SAI ARS per-packet-quality)"},
}};

// Their names, in the same order.
inline constexpr std::array<std::string_view, kSchedulerPresets.size()> kSchedulerNames = [] {
  std::array<std::string_view, kSchedulerPresets.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = kSchedulerPresets[i].name;
  return names;
}();

// The preset of that name; nullopt if there is none.
constexpr std::optional<Scheduler> scheduler_named(std::string_view name) {
  for (const SchedulerPreset& preset : kSchedulerPresets) {
    if (preset.name == name) return preset.scheduler;
  }
  return std::nullopt;
}

// The preset's name, or "custom".
constexpr std::string_view name_of(const Scheduler& scheduler) {
  for (const SchedulerPreset& preset : kSchedulerPresets) {
    if (preset.scheduler == scheduler) return preset.name;
  }
  return "custom";
}

}  // namespace heddle::lb
