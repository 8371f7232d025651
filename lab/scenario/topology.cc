// The `topology` section of a scenario.
#include <fmt/format.h>

#include "lab/scenario/parts.h"

namespace heddle::lab {
namespace {

using config::integer;
using config::Map;
using config::one_of;
using config::Value;

const std::vector<std::string_view> kKinds{"leaf-spine", "fat-tree", "rail", "single-switch", "graph", "file"};
// Bytes that may be below zero.
int read_overhead(const Value& value) {
  const std::string accepted = fmt::format("a whole number from {} to {}", kMinLinkOverhead, kMaxLinkOverhead);
  const std::string& text = value.scalar(accepted);
  const bool negative = text.starts_with('-');
  const auto size = config::parse_integer(std::string_view(text).substr(negative ? 1 : 0));
  if (!size || *size > (negative ? uint64_t{-kMinLinkOverhead} : uint64_t{kMaxLinkOverhead})) value.refuse(accepted);
  return negative ? -static_cast<int>(*size) : static_cast<int>(*size);
}

const std::vector<std::string_view> kLinkKeys{"rate", "delay", "overhead", "loss", "bit_error"};
constexpr size_t kMaxGraphItems = 1'000'000;

std::vector<std::string_view> keys_of(std::string_view kind);
LeafSpineSettings read_leaf_spine(const Map& map);
FatTreeSettings read_fat_tree(const Map& map);
RailSettings read_rail(const Map& map);
GraphSettings read_graph(const Map& map);
TopologyFile read_topology_file(const Map& map);
LinkSettings read_link(const Value& value, LinkSettings link);
void read_link_rate(const Map& map, LinkSettings& link);
void read_link_keys(const Map& map, LinkSettings& link);
LinkSettings read_upper_link(const Map& map, std::string_view key);

}  // namespace

const Words<TopologyFormat>& topology_format_words() {
  static const Words<TopologyFormat> words{{"htsim", TopologyFormat::kHtsim},
                                           {"hpcc", TopologyFormat::kHpcc},
                                           {"conweave", TopologyFormat::kConweave},
                                           {"simai", TopologyFormat::kSimai},
                                           {"ibnetdiscover", TopologyFormat::kIbnetdiscover}};
  return words;
}

// What to_json writes may have an exponent, which parse_share does not read.
double read_loss(const Value& value) {
  constexpr std::string_view accepted = "a share from 0 to below 1 such as 0.1% or 0.001";
  const std::string& text = value.scalar(accepted);
  double share = config::parse_share(text).value_or(1);
  if (share == 1 && text.find('e') != std::string::npos) share = config::number(0, 1)(value);
  if (share >= 1) value.refuse(accepted);
  return share;
}

TopologySpec read_topology(const Map& root) {
  const Value value = root.at("topology");
  const std::string kind = value.kind(kKinds, kDefaultTopologyKind);
  const Map map = root.section("topology", keys_of(kind));
  TopologySpec spec;
  spec.place = value.place().text();
  if (kind == "leaf-spine") spec.shape = read_leaf_spine(map);
  if (kind == "fat-tree") spec.shape = read_fat_tree(map);
  if (kind == "rail") spec.shape = read_rail(map);
  if (kind == "graph") spec.shape = read_graph(map);
  if (kind == "single-switch") {
    spec.shape =
        SingleSwitchSettings{map.optional("hosts", 16, integer<uint32_t>(1, kMaxHosts)), read_link(map.at("link"), {})};
  }
  if (kind == "file") spec.shape = read_topology_file(map);
  return spec;
}

namespace {

std::vector<std::string_view> keys_of(std::string_view kind) {
  if (kind == "leaf-spine") {
    return {"kind", "hosts", "leaves", "spines", "links_per_pair", "oversubscription", "link", "host_link", "uplink"};
  }
  if (kind == "fat-tree") {
    return {"kind",     "hosts", "k", "radix", "pods", "oversubscription", "link", "host_link", "aggregation_link",
            "core_link"};
  }
  if (kind == "rail") {
    return {"kind", "hosts",     "nics_per_server", "servers_per_group", "spines", "links_per_pair", "oversubscription",
            "link", "host_link", "uplink"};
  }
  if (kind == "graph") return {"kind", "hosts", "switches", "links", "hosts_per_server", "link"};
  if (kind == "file") return {"kind", "file", "format", "overhead", "rate", "delay"};
  return {"kind", "hosts", "link"};
}

double read_oversubscription(const Value& value) { return config::number(1e-3, 1e3)(value); }

// What leaf-spine and rail have in common.
template <typename Settings>
void read_two_tiers(const Map& map, Settings& settings) {
  settings.links_per_pair = map.optional("links_per_pair", 1, integer<uint32_t>(1, 1024));
  settings.host_link = read_link(map.at("host_link"), read_link(map.at("link"), {}));
  settings.uplink = read_upper_link(map, "uplink");
  settings.spines = map.optional("spines", 0, integer<uint32_t>(1, kMaxSwitches));
  // Of spines, uplink rate and over-subscription, what is not written follows; with too little written there is none.
  const bool free = settings.spines == 0;
  settings.oversubscription = map.optional("oversubscription", free ? 1 : 0, read_oversubscription);
}

LeafSpineSettings read_leaf_spine(const Map& map) {
  LeafSpineSettings settings;
  settings.hosts = map.optional("hosts", settings.hosts, integer<uint32_t>(1, kMaxHosts));
  settings.leaves = map.optional("leaves", settings.leaves, integer<uint32_t>(1, kMaxSwitches));
  read_two_tiers(map, settings);
  return settings;
}

RailSettings read_rail(const Map& map) {
  RailSettings settings;
  settings.hosts = map.optional("hosts", settings.hosts, integer<uint32_t>(1, kMaxHosts));
  settings.nics_per_server = map.optional("nics_per_server", settings.nics_per_server, integer<uint32_t>(1, 64));
  settings.servers_per_group = map.optional("servers_per_group", 0, integer<uint32_t>(1, kMaxHosts));
  read_two_tiers(map, settings);
  return settings;
}

FatTreeSettings read_fat_tree(const Map& map) {
  FatTreeSettings settings;
  settings.hosts = map.optional("hosts", 0, integer<uint32_t>(1, kMaxHosts));
  settings.k = map.optional("k", 0, integer<uint32_t>(4, 64));
  settings.radix = map.optional("radix", 0, integer<uint32_t>(4, 1024));
  settings.pods = map.optional("pods", 0, integer<uint32_t>(1, 1024));
  settings.oversubscription = map.optional("oversubscription", 1, read_oversubscription);
  settings.host_link = read_link(map.at("host_link"), read_link(map.at("link"), {}));
  settings.aggregation_link = read_upper_link(map, "aggregation_link");
  settings.core_link = read_upper_link(map, "core_link");
  return settings;
}

GraphSettings read_graph(const Map& map) {
  GraphSettings settings;
  const LinkSettings usual = read_link(map.at("link"), {});
  const auto name = config::name_text(64);
  for (const Value& host : map.list("hosts", 0, kMaxHosts)) settings.hosts.push_back(name(host));
  for (const Value& item : map.list("switches", 1, kMaxSwitches)) {
    const Map entry = item.map({"name", "tier", "hosts", "host_link"});
    settings.switches.push_back({entry.required("name", name), entry.optional("tier", 0, integer<uint16_t>(1, 16)),
                                 entry.optional("hosts", 0, integer<uint32_t>(0, kMaxPorts)),
                                 read_link(entry.at("host_link"), usual)});
  }
  for (const Value& item : map.list("links", 0, kMaxGraphItems)) {
    const Map entry = item.map({"a", "b", "count", "rate", "delay", "overhead", "loss", "bit_error"});
    GraphLink link = {entry.required("a", name), entry.required("b", name),
                      entry.optional("count", 1, integer<uint32_t>(1, kMaxPorts)), usual};
    read_link_keys(entry, link.link);
    settings.links.push_back(link);
  }
  settings.hosts_per_server = map.optional("hosts_per_server", 1, integer<uint32_t>(1, 64));
  return settings;
}

TopologyFile read_topology_file(const Map& map) {
  TopologyFile file{map.required("file", read_file_name), map.required("format", one_of(topology_format_words())),
                    map.optional("overhead", kEthernetOverhead, read_overhead), LinkSettings()};
  for (const std::string_view key : {"rate", "delay"}) {
    if (map.has(key) && file.format != TopologyFormat::kIbnetdiscover) {
      map.at(key).refuse_found(fmt::format("topology.{}", key),
                               "format: ibnetdiscover with it; the other formats say it themselves");
    }
  }
  read_link_rate(map, file.link);
  file.link.delay = map.optional("delay", file.link.delay, config::duration(kMinLinkDelay, kMaxLinkDelay));
  return file;
}

LinkSettings read_link(const Value& value, LinkSettings link) {
  if (value.is_missing() || value.is_null()) return link;
  read_link_keys(value.map(kLinkKeys), link);
  return link;
}

void read_link_rate(const Map& map, LinkSettings& link) {
  link.rate = map.optional("rate", link.rate, [](const Value& value) {
    constexpr std::string_view accepted = "a rate from 1M to 1600G such as 100G or 25Gbps";
    const auto rate = config::parse_rate(value.scalar(accepted));
    if (!rate || rate->bits_per_second() < kMinLinkRate.bits_per_second() ||
        rate->bits_per_second() > kMaxLinkRate.bits_per_second()) {
      value.refuse(accepted);
    }
    return *rate;
  });
}

void read_link_keys(const Map& map, LinkSettings& link) {
  read_link_rate(map, link);
  link.delay = map.optional("delay", link.delay, config::duration(kMinLinkDelay, kMaxLinkDelay));
  link.overhead = map.optional("overhead", link.overhead, read_overhead);
  link.loss = map.optional("loss", link.loss, read_loss);
  link.bit_error = map.optional("bit_error", link.bit_error, config::number(0, 0.1));
}

// A tier above the hosts' links: as `link`, but with a rate that the builder derives unless it is written. `link.rate`
// is about all tiers only if the hosts' rate is written by itself.
LinkSettings read_upper_link(const Map& map, std::string_view key) {
  LinkSettings link = read_link(map.at("link"), {});
  const Value host_link = map.at("host_link");
  const bool link_has_rate = map.section("link", kLinkKeys).has("rate");
  const bool host_has_rate = map.section("host_link", kLinkKeys).has("rate");
  if (!link_has_rate || !host_has_rate) link.rate = Rate::unlimited();
  return read_link(map.at(key), link);
}

Json link_json(const LinkSettings& link) {
  Json json = Json::object();
  if (!link.rate.is_unlimited()) json["rate"] = config::print_rate(link.rate);
  json["delay"] = config::print_duration(link.delay);
  json["overhead"] = link.overhead;
  json["loss"] = link.loss;
  json["bit_error"] = link.bit_error;
  return json;
}

template <typename T>
void put_unless_zero(Json& json, const char* key, T value) {
  if (value != 0) json[key] = value;
}

template <typename Settings>
void put_two_tiers(Json& json, const Settings& settings) {
  put_unless_zero(json, "spines", settings.spines);
  json["links_per_pair"] = settings.links_per_pair;
  put_unless_zero(json, "oversubscription", settings.oversubscription);
  json["host_link"] = link_json(settings.host_link);
  json["uplink"] = link_json(settings.uplink);
}

struct ShapeJson {
  Json operator()(const LeafSpineSettings& settings) const {
    Json json{{"kind", "leaf-spine"}, {"hosts", settings.hosts}, {"leaves", settings.leaves}};
    put_two_tiers(json, settings);
    return json;
  }
  Json operator()(const RailSettings& settings) const {
    Json json{{"kind", "rail"}, {"hosts", settings.hosts}, {"nics_per_server", settings.nics_per_server}};
    put_unless_zero(json, "servers_per_group", settings.servers_per_group);
    put_two_tiers(json, settings);
    return json;
  }
  Json operator()(const FatTreeSettings& settings) const {
    Json json{{"kind", "fat-tree"}};
    put_unless_zero(json, "hosts", settings.hosts);
    put_unless_zero(json, "k", settings.k);
    put_unless_zero(json, "radix", settings.radix);
    put_unless_zero(json, "pods", settings.pods);
    json["oversubscription"] = settings.oversubscription;
    json["host_link"] = link_json(settings.host_link);
    json["aggregation_link"] = link_json(settings.aggregation_link);
    json["core_link"] = link_json(settings.core_link);
    return json;
  }
  Json operator()(const SingleSwitchSettings& settings) const {
    return {{"kind", "single-switch"}, {"hosts", settings.hosts}, {"link", link_json(settings.link)}};
  }
  Json operator()(const GraphSettings& settings) const {
    Json json{{"kind", "graph"}, {"hosts", settings.hosts}, {"switches", Json::array()}, {"links", Json::array()}};
    for (const GraphSwitch& s : settings.switches) {
      Json item{{"name", s.name}};
      put_unless_zero(item, "tier", s.tier);
      item["hosts"] = s.hosts;
      item["host_link"] = link_json(s.host_link);
      json["switches"].push_back(std::move(item));
    }
    for (const GraphLink& link : settings.links) {
      Json item{{"a", link.a}, {"b", link.b}, {"count", link.count}};
      item.update(link_json(link.link));
      json["links"].push_back(std::move(item));
    }
    json["hosts_per_server"] = settings.hosts_per_server;
    return json;
  }
  Json operator()(const TopologyFile& file) const {
    Json json{{"kind", "file"},
              {"file", file.file},
              {"format", word_for(topology_format_words(), file.format)},
              {"overhead", file.overhead}};
    if (file.format == TopologyFormat::kIbnetdiscover) {
      json["rate"] = config::print_rate(file.link.rate);
      json["delay"] = config::print_duration(file.link.delay);
    }
    return json;
  }
};

}  // namespace

Json topology_json(const TopologySpec& spec) { return std::visit(ShapeJson(), spec.shape); }

}  // namespace heddle::lab
