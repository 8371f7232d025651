// Schedulers and the `ars:` section, which switch configurations and scenarios have in common.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/yaml.h"
#include "lb/ars.h"
#include "lb/resequencer.h"
#include "lb/scheduler.h"

namespace heddle::config {

// A preset's name, or its two choices: {granularity: flow, choice: weighted}.
lb::Scheduler read_scheduler(const Value& value);
// What read_scheduler reads back: the name of one of the presets, which are all there are.
std::string_view scheduler_word(const lb::Scheduler& scheduler);

// The keys of `ars:`, as Map::section takes them.
const std::vector<std::string_view>& ars_keys();
lb::ArsSettings read_ars(const Map& section);
nlohmann::ordered_json ars_json(const lb::ArsSettings& ars);

// The keys of `resequencer:` that both have, and their values; whether it is enabled is read elsewhere.
const std::vector<std::string_view>& resequencer_keys();
lb::ResequencerSettings read_resequencer(const Map& section);
nlohmann::ordered_json resequencer_json(const lb::ResequencerSettings& resequencer);

// What path probes may take of a link: 0.01–1 %.
double read_probe_rate(const Value& value);

}  // namespace heddle::config
