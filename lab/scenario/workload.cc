// The `workload` section of a scenario: one job, a list of jobs, or a file; and where jobs run.
#include <algorithm>

#include <fmt/format.h>

#include "config/words.h"
#include "lab/scenario/parts.h"

namespace heddle::lab {
namespace {

using config::integer;
using config::List;
using config::Map;
using config::one_of;
using config::Value;

constexpr size_t kMaxJobs = 4096;
const std::vector<std::string_view> kJobKinds{"permutation", "shift",      "incast",   "all-to-all",
                                              "all-reduce",  "all-gather", "pipeline", "reduce-scatter",
                                              "poisson",     "training",   "flows"};

WorkloadFile read_workload_file(const Value& value);
JobSpec read_job(const Value& value, std::vector<std::string>& names);
std::optional<std::vector<HostId>> read_hosts_of(const Value& value);
Json job_json(const JobSpec& job);

}  // namespace

const Words<PlacementOrder>& placement_words() {
  static const Words<PlacementOrder> words{{"in-order", PlacementOrder::kInOrder}, {"random", PlacementOrder::kRandom}};
  return words;
}

WorkloadSpec read_workload(const Value& value) {
  WorkloadSpec spec;
  spec.place = value.place().text();
  std::vector<std::string> names;
  if (value.is_list()) {
    spec.is_list = true;
    for (const Value& item : value.list(1, kMaxJobs)) spec.jobs.push_back(read_job(item, names));
    return spec;
  }
  std::vector<std::string_view> kinds = kJobKinds;
  kinds.push_back("file");
  if (value.kind(kinds, kDefaultJobKind) == "file") {
    spec.file = read_workload_file(value);
  } else {
    spec.jobs.push_back(read_job(value, names));
  }
  return spec;
}

Json workload_json(const WorkloadSpec& spec) {
  if (spec.file) {
    Json json{{"kind", "file"}, {"file", spec.file->file}, {"format", spec.file->format}};
    if (spec.file->subtract_start) json["subtract_start"] = config::print_duration(*spec.file->subtract_start);
    return json;
  }
  if (!spec.is_list) return job_json(spec.jobs.front());
  Json json = Json::array();
  for (const JobSpec& job : spec.jobs) json.push_back(job_json(job));
  return json;
}

namespace {

WorkloadFile read_workload_file(const Value& value) {
  const Map map = value.map({"kind", "file", "format", "subtract_start"});
  constexpr std::string_view htsim = "htsim";
  constexpr std::string_view hpcc = "hpcc";
  constexpr std::string_view conweave = "conweave";
  return {map.required("file", read_file_name),
          std::string(
              map.required("format", one_of<std::string_view>({{htsim, htsim}, {hpcc, hpcc}, {conweave, conweave}}))),
          map.maybe("subtract_start", config::duration(0, kMaxDelay))};
}

JobSpec read_job(const Value& value, std::vector<std::string>& names) {
  JobSpec job;
  job.place = value.place().text();
  job.kind = value.kind(kJobKinds, kDefaultJobKind);
  std::vector<std::string_view> keys{"kind", "name", "hosts", "ranks", "placement", "seed", "start"};
  for (const std::string_view key : pattern_keys(job.kind)) keys.push_back(key);
  const bool absent = value.is_missing() || value.is_null();
  const Map map = absent ? Map(value, nullptr, keys) : value.map(keys);
  job.name = map.optional("name", job.kind, config::name_text(64));
  if (std::find(names.begin(), names.end(), job.name) != names.end()) {
    (map.has("name") ? map.at("name") : value)
        .refuse_found(fmt::format("a second job called {}", config::quote(job.name)), "a name of its own for each job");
  }
  names.push_back(job.name);
  job.hosts = map.optional("hosts", std::nullopt, read_hosts_of);
  job.ranks = map.optional("ranks", 0, integer<uint32_t>(2, kMaxHosts));
  if (job.hosts && job.ranks != 0) map.at("ranks").refuse("hosts or ranks", "beside hosts");
  job.placement = map.optional("placement", PlacementOrder::kInOrder, one_of(placement_words()));
  job.seed = map.maybe("seed", integer<uint64_t>(0, UINT64_MAX));
  job.start = map.optional("start", 0, config::duration(0, kMaxDelay));
  read_pattern(map, job);
  return job;
}

// Nothing for `auto`.
std::optional<std::vector<HostId>> read_hosts_of(const Value& value) {
  if (value.is_word("auto")) return std::nullopt;
  return read_numbers(value, kMaxHosts - 1, "auto, or host numbers and ranges such as 7, 0-15 or [0-7, 32-39]");
}

Json job_json(const JobSpec& job) {
  Json json{{"kind", job.kind}, {"name", job.name}};
  json.update(pattern_json(job));
  if (job.hosts) {
    json["hosts"] = numbers_json(*job.hosts);
  } else if (job.ranks != 0) {
    json["ranks"] = job.ranks;
  }
  json["placement"] = word_for(placement_words(), job.placement);
  if (job.seed) json["seed"] = *job.seed;
  json["start"] = config::print_duration(job.start);
  return json;
}

}  // namespace

std::vector<uint32_t> read_numbers(const Value& value, uint32_t most, std::string_view accepted) {
  std::vector<uint32_t> numbers;
  const auto add = [&](const Value& item) {
    const std::string& text = item.scalar(accepted);
    const size_t dash = text.find('-');
    const auto first = config::parse_integer(text.substr(0, dash));
    const auto last = dash == std::string::npos ? first : config::parse_integer(text.substr(dash + 1));
    if (!first || !last || *first > *last || *last > most) item.refuse(accepted);
    for (uint64_t number = *first; number <= *last; ++number) numbers.push_back(static_cast<uint32_t>(number));
    if (numbers.size() > size_t{most} + 1) item.refuse(fmt::format("up to {} of them", size_t{most} + 1));
  };
  if (!value.is_list()) {
    add(value);
  } else {
    for (const Value& item : value.list(1, size_t{most} + 1)) add(item);
  }
  return numbers;
}

Json numbers_json(const std::vector<uint32_t>& numbers) {
  Json json = Json::array();
  for (size_t begin = 0; begin < numbers.size();) {
    size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (end - begin == 1) {
      json.push_back(numbers[begin]);
    } else {
      json.push_back(fmt::format("{}-{}", numbers[begin], numbers[end - 1]));
    }
    begin = end;
  }
  return json;
}

std::vector<HostId> read_host_list(const Value& value) {
  return read_numbers(value, kMaxHosts - 1, "host numbers and ranges such as 7, 0-15 or [0-7, 32-39]");
}

}  // namespace heddle::lab
