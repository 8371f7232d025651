// How the pieces of load_scenario share their work; nothing outside scenario*.cc includes this.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/yaml.h"
#include "lab/scenario/scenario.h"

namespace heddle::lab {

using Json = nlohmann::ordered_json;

// Words of a scenario and what they stand for; read with config::one_of, written by to_json.
template <typename T>
using Words = std::vector<std::pair<std::string_view, T>>;

const Words<OutOfOrder>& out_of_order_words();
const Words<OutOfOrder>& loss_recovery_words();
const Words<Entropy>& entropy_words();
const Words<PlacementOrder>& placement_words();
const Words<LinkDirection>& direction_words();
const Words<TopologyFormat>& topology_format_words();

template <typename T>
std::string_view word_for(const Words<T>& words, T meaning) {
  for (const auto& [word, value] : words) {
    if (value == meaning) return word;
  }
  return "";
}

// The kinds that a section without `kind:` stands for.
inline constexpr std::string_view kDefaultTopologyKind = "leaf-spine";
inline constexpr std::string_view kDefaultJobKind = "permutation";

// `topology:` (topology.cc).
TopologySpec read_topology(const config::Map& root);
Json topology_json(const TopologySpec& spec);

// A probability of loss: a share below 1.
double read_loss(const config::Value& value);

// What `fabric:` says about buffers, PFC and ECN (flow_control.cc).
void read_flow_control(const config::Map& section, FlowControlSettings& settings);
void put_flow_control(const FlowControlSettings& settings, Json& json);

// What `fabric:` says about InfiniBand links (infiniband.cc).
void read_infiniband(const config::Map& section, Scenario& scenario);
void put_infiniband(const Scenario& scenario, Json& json);
// … and about adaptive routing and self-healing (infiniband_routing.cc).
void read_infiniband_routing(const config::Map& section, InfinibandSettings& settings);
void put_infiniband_routing(const InfinibandSettings& settings, Json& json);

// Whole numbers up to `most` and ranges of them: `0`, `0-15`, `[0-7, 12, 32-39]` (workload.cc). `accepted`: what an
// error says would be right.
std::vector<uint32_t> read_numbers(const config::Value& value, uint32_t most, std::string_view accepted);
// As they are read; consecutive ones become ranges.
Json numbers_json(const std::vector<uint32_t>& numbers);
// A list of hosts, `[0-3, 9]`, each once (workload.cc).
std::vector<HostId> read_host_list(const config::Value& value);
// `service_levels` of a map, bit = level (infiniband_routing.cc).
uint16_t read_service_levels(const config::Map& map, uint16_t by_default);
Json service_levels_json(uint16_t levels);

// A workload: one job, a list of jobs, or a file (workload.cc, pattern.cc).
WorkloadSpec read_workload(const config::Value& value);
Json workload_json(const WorkloadSpec& spec);
void read_pattern(const config::Map& map, JobSpec& job);
std::vector<std::string_view> pattern_keys(std::string_view kind);
Json pattern_json(const JobSpec& job);

// `hosts.congestion_control` and `fabric.fecn` (congestion.cc).
void read_congestion_control(const config::Value& value, HostSettings& hosts);
Json congestion_control_json(const HostSettings& hosts);
flowctl::FecnSettings read_fecn(const config::Map& section);
Json fecn_json(const flowctl::FecnSettings& fecn);

// `hosts:` (hosts.cc).
void read_hosts(const config::Map& root, Scenario& scenario);
Json hosts_json(const Scenario& scenario);

// `events:` (events.cc).
std::vector<EventSpec> read_events(const config::List& items);
// Of `bench.conditions`: `at` may be a share of the workload's lower bound.
std::vector<EventSpec> read_condition(const config::List& items);
Json events_json(const std::vector<EventSpec>& events);

// A file's name in absolute form: relative to the folder of the file that names it.
std::string read_file_name(const config::Value& value);

}  // namespace heddle::lab
