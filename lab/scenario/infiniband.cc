// `fabric.link_layer`, `routing`, `tables`, `lmc`, `partitions`, `credits` and `fecn` of a scenario.
#include <algorithm>

#include <fmt/format.h>

#include "config/units.h"
#include "lab/scenario/parts.h"
#include "lab/subnet/manager.h"
#include "lab/subnet/tables.h"

namespace heddle::lab {
namespace {

using config::integer;
using config::Map;
using config::one_of;
using config::Value;

constexpr uint64_t kMaxCreditBuffer = 1'000'000'000;
constexpr size_t kMaxPartitions = 1024;

const Words<LinkLayer>& link_layer_words() {
  static const Words<LinkLayer> words{{"ethernet", LinkLayer::kEthernet}, {"infiniband", LinkLayer::kInfiniband}};
  return words;
}

std::vector<std::pair<std::string_view, std::string>> routing_words() {
  std::vector<std::pair<std::string_view, std::string>> words;
  for (const std::string_view engine : subnet_engines()) words.emplace_back(engine, engine);
  return words;
}

// Every packet must fit, whatever the hosts' MTU, or nothing of it would ever be sent.
void check(const Map& section, const flowctl::CreditSettings& credits) {
  const uint64_t blocks = credits.buffer / credits.format.block;
  const uint64_t needed = credits.format.blocks_of(4096 + 64);
  if (blocks < needed) {
    section.at("buffer").refuse(config::print_bytes(needed * credits.format.block) +
                                " and more: a packet of 4096 bytes");
  }
  if (credits.format.window() < needed) {
    section.at("counter_bits").refuse("a window, half the counters' range, of a packet of 4096 bytes and more");
  }
}

std::vector<HostId> read_members(const Value& value) {
  return value.is_missing() ? std::vector<HostId>() : read_host_list(value);
}

std::vector<Partition> read_partitions(const config::List& items) {
  std::vector<Partition> partitions;
  for (const Value& item : items) {
    const Map map = item.map({"name", "key", "hosts", "limited"});
    Partition& partition = partitions.emplace_back();
    partition.key = map.optional("key", static_cast<uint16_t>(partitions.size()), integer<uint16_t>(1, 0x7fff - 1));
    const auto same = [&partition](const Partition& other) { return other.key == partition.key; };
    if (std::any_of(partitions.begin(), partitions.end() - 1, same)) {
      map.at("key").refuse("a key that no partition before it has");
    }
    partition.name = map.optional("name", fmt::format("partition{}", partitions.size()), config::name_text(64));
    partition.full = read_members(map.at("hosts"));
    partition.limited = read_members(map.at("limited"));
  }
  return partitions;
}

}  // namespace

void read_infiniband(const Map& section, Scenario& scenario) {
  InfinibandSettings& settings = scenario.switches.infiniband;
  scenario.hosts.link_layer = section.optional("link_layer", LinkLayer::kEthernet, one_of(link_layer_words()));
  settings.routing = section.optional("routing", settings.routing, one_of(routing_words()));
  settings.tables = section.optional("tables", settings.tables, read_file_name);
  settings.lmc = section.optional("lmc", settings.lmc, integer<uint8_t>(0, kMaxLmc));
  settings.partitions = read_partitions(section.list("partitions", 0, kMaxPartitions));
  read_infiniband_routing(section, settings);
  const Map map = section.section("credits", {"buffer", "counter_bits", "block", "lanes", "period"});
  flowctl::CreditSettings& credits = settings.credits;
  credits.buffer = map.optional("buffer", credits.buffer, config::bytes(1, kMaxCreditBuffer));
  credits.format.counter_bits = map.optional("counter_bits", credits.format.counter_bits, integer<unsigned>(4, 28));
  credits.format.block = map.optional("block", credits.format.block, integer<uint32_t>(16, 65'536));
  credits.lanes = map.optional("lanes", credits.lanes, integer<unsigned>(1, flowctl::LinkCredits::kMaxLanes));
  const Value period = map.at("period");
  if (!period.is_missing() && !period.is_word("auto")) {
    credits.period = config::duration(100 * kNanosecond, kSecond)(period);
  }
  check(map, credits);
  settings.fecn = read_fecn(section);
}

void put_infiniband(const Scenario& scenario, Json& json) {
  const InfinibandSettings& settings = scenario.switches.infiniband;
  const flowctl::CreditSettings& credits = settings.credits;
  json["link_layer"] = word_for(link_layer_words(), scenario.hosts.link_layer);
  json["routing"] = settings.routing;
  if (!settings.tables.empty()) json["tables"] = settings.tables;
  json["lmc"] = settings.lmc;
  json["partitions"] = Json::array();
  for (const Partition& partition : settings.partitions) {
    Json& item = json["partitions"].emplace_back(Json{{"name", partition.name}, {"key", partition.key}});
    if (!partition.full.empty()) item["hosts"] = numbers_json(partition.full);
    if (!partition.limited.empty()) item["limited"] = numbers_json(partition.limited);
  }
  put_infiniband_routing(settings, json);
  json["credits"] = {{"buffer", config::print_bytes(credits.buffer)},
                     {"counter_bits", credits.format.counter_bits},
                     {"block", credits.format.block},
                     {"lanes", credits.lanes},
                     {"period", credits.period == 0 ? "auto" : config::print_duration(credits.period)}};
  json["fecn"] = fecn_json(settings.fecn);
}

}  // namespace heddle::lab
