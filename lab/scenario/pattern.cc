// What a job of a scenario does: the keys of each kind.
#include <fmt/format.h>

#include "lab/scenario/parts.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

using config::integer;
using config::Map;
using config::one_of;
using config::Value;

Pattern read_flows(const Map& map);
Pattern read_incast(const Map& map);
Pattern read_pipeline(const Map& map);
Training read_collective(const Map& map, std::string_view name);
Pattern read_training(const Map& map);
Pattern read_poisson(const Map& map);
SizesSpec read_sizes(const Value& value);

uint64_t read_size(const Map& map, std::string_view key, uint64_t fallback) {
  return map.optional(key, fallback, config::bytes(1, kMaxMessageBytes));
}

constexpr uint64_t kMessageSize = 2'000'000;
constexpr uint64_t kBufferSize = 16'000'000;  // of an all-reduce, all-gather, reduce-scatter
constexpr uint64_t kPieceSize = 256'000;      // of an all-to-all, to each other rank

const Words<CollectiveKind> kAllReduceWords{{"ring", CollectiveKind::kRingAllReduce},
                                            {"halving-doubling", CollectiveKind::kHalvingDoubling}};
const Words<CollectiveKind> kAllToAllWords{{"naive", CollectiveKind::kAllToAll},
                                           {"staggered", CollectiveKind::kStaggeredAllToAll}};
const std::vector<std::string_view> kCollectives{"all-reduce", "all-gather", "reduce-scatter", "all-to-all"};

}  // namespace

std::vector<std::string_view> pattern_keys(std::string_view kind) {
  if (kind == "shift") return {"size", "distance"};
  if (kind == "incast") return {"size", "fan_in", "victims", "victim_size"};
  if (kind == "all-to-all") return {"size", "algorithm", "in_flight"};
  if (kind == "all-reduce") return {"size", "algorithm"};
  if (kind == "pipeline") return {"size", "microbatches", "forward", "backward", "backward_work"};
  if (kind == "poisson") return {"distribution", "load", "duration", "max_flows"};
  if (kind == "flows") return {"size", "flows"};
  if (kind == "training") {
    return {"collective", "size", "algorithm", "in_flight", "steps", "compute", "compute_spread"};
  }
  return {"size"};
}

void read_pattern(const Map& map, JobSpec& job) {
  if (job.kind == "permutation") job.pattern = Permutation{read_size(map, "size", kMessageSize)};
  if (job.kind == "shift") {
    job.pattern =
        Shift{read_size(map, "size", kMessageSize), map.optional("distance", 1, integer<uint32_t>(1, kMaxHosts - 1))};
  }
  if (job.kind == "incast") job.pattern = read_incast(map);
  if (job.kind == "pipeline") job.pattern = read_pipeline(map);
  if (job.kind == "flows") job.pattern = read_flows(map);
  if (job.kind == "training") job.pattern = read_training(map);
  if (job.kind == "poisson") {
    job.pattern = read_poisson(map);
    job.sizes = map.optional("distribution", SizesByName(), read_sizes);
  }
  for (const std::string_view collective : kCollectives) {
    if (job.kind == collective) job.pattern = read_collective(map, collective);
  }
}

namespace {

Pattern read_incast(const Map& map) {
  Incast incast;
  incast.bytes = read_size(map, "size", kMessageSize);
  incast.fan_in = map.optional("fan_in", 0, integer<uint32_t>(1, kMaxHosts));
  incast.victim_count = map.optional("victims", 0, integer<uint32_t>(0, kMaxHosts));
  incast.victim_bytes = read_size(map, "victim_size", incast.bytes);
  return incast;
}

Pattern read_pipeline(const Map& map) {
  Pipeline pipeline;
  pipeline.bytes = read_size(map, "size", kMessageSize);
  pipeline.microbatches = map.optional("microbatches", pipeline.microbatches, integer<uint32_t>(1, 1'000'000));
  pipeline.forward = map.optional("forward", 0, config::duration(0, kMaxDelay));
  pipeline.backward = map.optional("backward", false, config::boolean());
  pipeline.backward_work = map.optional("backward_work", 0, config::duration(0, kMaxDelay));
  return pipeline;
}

Pattern read_flows(const Map& map) {
  Flows flows;
  const uint64_t usual = read_size(map, "size", kMessageSize);
  const auto rank = integer<uint32_t>(0, kMaxHosts - 1);
  for (const Value& item : map.list("flows", 1, 1'000'000)) {
    const Map flow = item.map({"src", "dst", "size", "start"});
    flows.flows.push_back({flow.required("src", rank), flow.required("dst", rank), read_size(flow, "size", usual),
                           flow.optional("start", 0, config::duration(0, kMaxDelay))});
  }
  return flows;
}

Training read_collective(const Map& map, std::string_view name) {
  Training training;
  Collective& collective = training.collective;
  collective.bytes = read_size(map, "size", name == "all-to-all" ? kPieceSize : kBufferSize);
  if (name == "all-reduce") {
    collective.kind = map.optional("algorithm", CollectiveKind::kRingAllReduce, one_of(kAllReduceWords));
  }
  if (name == "all-to-all") {
    collective.kind = map.optional("algorithm", CollectiveKind::kAllToAll, one_of(kAllToAllWords));
    collective.in_flight = map.optional("in_flight", 1, integer<uint32_t>(1, kMaxHosts));
    const bool staggered = collective.kind == CollectiveKind::kStaggeredAllToAll;
    if (map.has("in_flight") && !staggered) map.at("in_flight").refuse("in_flight beside algorithm: staggered");
  }
  if (name == "all-gather") collective.kind = CollectiveKind::kRingAllGather;
  if (name == "reduce-scatter") collective.kind = CollectiveKind::kRingReduceScatter;
  return training;
}

Pattern read_training(const Map& map) {
  const size_t which =
      map.optional("collective", size_t{0}, [](const Value& value) { return config::read_word(value, kCollectives); });
  const std::string_view name = kCollectives[which];
  const bool has_algorithms = name == "all-reduce" || name == "all-to-all";
  for (const std::string_view key : {"algorithm", "in_flight"}) {
    const bool fits = key == "algorithm" ? has_algorithms : name == "all-to-all";
    if (map.has(key) && !fits) map.at(key).refuse(fmt::format("none, with collective: {}", name));
  }
  Training training = read_collective(map, name);
  training.steps = map.optional("steps", 1, integer<uint32_t>(1, 1'000'000));
  training.compute = map.optional("compute", 0, config::duration(0, kMaxDelay));
  training.compute_spread = map.optional("compute_spread", 0, config::duration(0, kMaxDelay));
  return training;
}

Pattern read_poisson(const Map& map) {
  Poisson poisson;
  poisson.load = map.optional("load", poisson.load, [](const Value& value) {
    const double load = config::share()(value);
    if (load <= 0) value.refuse("a share above 0, up to 1, such as 50% or 0.5");
    return load;
  });
  poisson.duration = map.optional("duration", poisson.duration, config::duration(kNanosecond, kMaxDelay));
  poisson.max_flows = map.optional("max_flows", 0, integer<uint64_t>(1, kMaxMessages));
  return poisson;
}

// A distribution's name, a file of points, or one size.
SizesSpec read_sizes(const Value& value) {
  if (value.is_map()) {
    const Map map = value.map({"file", "unit_bytes", "size"});
    if (map.has("size") == map.has("file")) value.refuse("a name, {file: …} or {size: …}");
    if (map.has("size")) return SizesFixed{read_size(map, "size", 0)};
    return SizesFromFile{map.required("file", read_file_name), map.optional("unit_bytes", 1, config::number(1, 1e6))};
  }
  const std::vector<std::string> names = size_distribution_names();
  std::string accepted;
  for (const std::string& name : names) accepted += name + ", ";
  accepted += "or {file: …} or {size: …}";
  const std::string& text = value.scalar(accepted);
  try {
    find_size_distribution(text);
  } catch (const Error&) {
    value.refuse(accepted);
  }
  return SizesByName{text};
}

std::string bytes_text(uint64_t bytes) { return config::print_bytes(bytes); }
std::string time_text(Duration duration) { return config::print_duration(duration); }

struct SizesJson {
  Json operator()(const SizesByName& sizes) const { return sizes.name; }
  Json operator()(const SizesFromFile& sizes) const { return {{"file", sizes.file}, {"unit_bytes", sizes.unit_bytes}}; }
  Json operator()(const SizesFixed& sizes) const { return {{"size", bytes_text(sizes.bytes)}}; }
};

struct PatternJson {
  const JobSpec& job;

  Json operator()(const Permutation& p) const { return {{"size", bytes_text(p.bytes)}}; }
  Json operator()(const Shift& p) const { return {{"size", bytes_text(p.bytes)}, {"distance", p.distance}}; }
  Json operator()(const Incast& p) const {
    Json json{{"size", bytes_text(p.bytes)}};
    if (p.fan_in != 0) json["fan_in"] = p.fan_in;
    json["victims"] = p.victim_count;
    json["victim_size"] = bytes_text(p.victim_bytes);
    return json;
  }
  Json operator()(const Pipeline& p) const {
    return {{"size", bytes_text(p.bytes)},
            {"microbatches", p.microbatches},
            {"forward", time_text(p.forward)},
            {"backward", p.backward},
            {"backward_work", time_text(p.backward_work)}};
  }
  Json operator()(const Flows& p) const {
    Json flows = Json::array();
    for (const Flow& flow : p.flows) {
      flows.push_back(
          {{"src", flow.src}, {"dst", flow.dst}, {"size", bytes_text(flow.bytes)}, {"start", time_text(flow.start)}});
    }
    return {{"flows", std::move(flows)}};
  }
  Json operator()(const Poisson& p) const {
    Json json{
        {"distribution", std::visit(SizesJson(), job.sizes)}, {"load", p.load}, {"duration", time_text(p.duration)}};
    if (p.max_flows != 0) json["max_flows"] = p.max_flows;
    return json;
  }
  Json operator()(const Training& p) const {
    Json json;
    const Collective& collective = p.collective;
    std::string_view name = "all-reduce";
    if (collective.kind == CollectiveKind::kRingAllGather) name = "all-gather";
    if (collective.kind == CollectiveKind::kRingReduceScatter) name = "reduce-scatter";
    const std::string_view to_all = word_for(kAllToAllWords, collective.kind);
    if (!to_all.empty()) name = "all-to-all";
    if (job.kind == "training") json["collective"] = name;
    json["size"] = bytes_text(collective.bytes);
    if (name == "all-reduce") json["algorithm"] = word_for(kAllReduceWords, collective.kind);
    if (name == "all-to-all") json["algorithm"] = to_all;
    if (to_all == "staggered") json["in_flight"] = collective.in_flight;
    if (job.kind != "training") return json;
    json["steps"] = p.steps;
    json["compute"] = time_text(p.compute);
    json["compute_spread"] = time_text(p.compute_spread);
    return json;
  }
};

}  // namespace

Json pattern_json(const JobSpec& job) { return std::visit(PatternJson{job}, job.pattern); }

}  // namespace heddle::lab
