#include "lab/subnet/dumps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "lab/subnet/ibnetdiscover.h"
#include "lab/topology/import_text.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr uint8_t kNoPort = kLftUnreachable;

using Words = std::vector<std::string_view>;

// The number after `key`, wherever that stands in the line's words: "guid 0x0002…" or "src_lid=1".
std::optional<uint64_t> number_in(std::string_view word, int base) {
  if (base == 16 && word.substr(0, 2) == "0x") word.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  return status == std::errc{} && end != word.data() ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> after_word(const Words& words, std::string_view key, int base) {
  const auto at = std::find(words.begin(), words.end(), key);
  return at == words.end() || at + 1 == words.end() ? std::nullopt : number_in(*(at + 1), base);
}

// Our ports by the numbers of the subnet.
class PortMap {
 public:
  explicit PortMap(const Topology& topology) : topology_(topology), of_switch_(topology.switch_count()) {
    for (uint32_t s = 0; s < of_switch_.size(); ++s) {
      const NodeId node = topology.host_count + s;
      of_switch_[s].fill(kNoPort);
      of_switch_[s][0] = kLftSelf;
      for (size_t port = 0; port < topology.ports[node].size(); ++port) {
        const uint32_t number = port_number(topology, node, static_cast<PortIndex>(port));
        of_switch_[s][number & 0xFFU] = static_cast<uint8_t>(port + 1);
      }
      switch_of_guid_.emplace(node_guid(topology, node), s);
    }
  }

  uint8_t ours(uint32_t s, uint64_t number) const { return number < 256 ? of_switch_[s][number] : kNoPort; }
  // The number in the subnet of a port that is counted from 1.
  uint32_t theirs(uint32_t s, uint32_t port) const {
    return port == 0 ? 0 : port_number(topology_, topology_.host_count + s, static_cast<PortIndex>(port - 1));
  }
  uint32_t switch_of(uint64_t guid, const TextReader& reader) const {
    const auto place = switch_of_guid_.find(guid);
    if (place == switch_of_guid_.end()) {
      reader.fail("switch 0x{:016x} is none of this topology; accepted: a dump of the same subnet", guid);
    }
    return place->second;
  }

 private:
  const Topology& topology_;
  std::vector<std::array<uint8_t, 256>> of_switch_;
  std::unordered_map<uint64_t, uint32_t> switch_of_guid_;
};

// Which host or switch has a LID.
class LidMap {
 public:
  explicit LidMap(const SubnetTables& tables) {
    for (HostId host = 0; host < tables.host_lids.size(); ++host) {
      if (tables.host_lids[host] != 0) host_of_.emplace(tables.host_lids[host], host);
    }
    for (uint32_t s = 0; s < tables.switches.size(); ++s) {
      if (tables.switches[s].lid != 0) switch_of_.emplace(tables.switches[s].lid, s);
    }
  }
  std::optional<HostId> host(uint64_t lid) const { return find(host_of_, lid); }
  std::optional<uint32_t> switch_at(uint64_t lid) const { return find(switch_of_, lid); }

 private:
  static std::optional<uint32_t> find(const std::unordered_map<uint64_t, uint32_t>& map, uint64_t lid) {
    const auto place = map.find(lid);
    return place == map.end() ? std::nullopt : std::optional(place->second);
  }
  std::unordered_map<uint64_t, uint32_t> host_of_;
  std::unordered_map<uint64_t, uint32_t> switch_of_;
};

SubnetTables empty_tables(const Topology& topology) {
  SubnetTables tables;
  tables.engine = "file";
  tables.host_lids.assign(topology.host_count, 0);
  tables.switches.resize(topology.switch_count());
  for (uint32_t s = 0; s < topology.switch_count(); ++s) {
    tables.switches[s].ports = static_cast<uint32_t>(topology.ports[topology.host_count + s].size());
  }
  return tables;
}

// Gives hosts the LIDs that their leaves send to them. LMC is that of the host with most.
void find_host_lids(const Topology& topology, SubnetTables& tables) {
  uint32_t most = 1;
  for (HostId host = 0; host < topology.host_count; ++host) {
    const LinkId id = topology.ports[host][0];
    const Link& link = topology.links[id];
    const uint8_t port = static_cast<uint8_t>((link.a == host ? link.b_port : link.a_port) + 1);
    const std::vector<uint8_t>& lft = tables.switches[topology.leaf_of(host) - topology.host_count].lft;
    const auto first = std::find(lft.begin(), lft.end(), port);
    if (first == lft.end()) continue;
    tables.host_lids[host] = static_cast<Lid>(first - lft.begin());
    most = std::max(most, static_cast<uint32_t>(std::count(first, lft.end(), port)));
  }
  while (tables.paths_per_host() < most && tables.lmc < kMaxLmc) ++tables.lmc;
}

}  // namespace

SubnetTables read_lft_dump(const Topology& topology, std::string_view text, std::string_view file) {
  const PortMap ports(topology);
  SubnetTables tables = empty_tables(topology);
  TextReader reader(text, file);
  Words words;
  constexpr uint32_t kNoSwitch = UINT32_MAX;
  uint32_t s = kNoSwitch;
  while (reader.next_line(words)) {
    if (words[0] == "Unicast" && words.size() > 1 && words[1] == "lids") {
      const std::optional<uint64_t> guid = after_word(words, "guid", 16);
      if (!guid) reader.fail("a table without its switch; accepted: Unicast lids … guid 0x…");
      s = ports.switch_of(*guid, reader);
      tables.switches[s].lft.assign(1, kLftUnreachable);
    } else if (s != kNoSwitch && words.size() >= 2 && words[0].substr(0, 2) == "0x") {
      const std::optional<uint64_t> lid = number_in(words[0], 16);
      if (!lid || *lid == 0 || *lid > kLastUnicastLid) {
        reader.fail("the LID is {}; accepted: 0x1 to 0xbfff", quoted(words[0]));
      }
      const auto port = static_cast<uint8_t>(reader.whole(words[1], "the port", 0, 255));
      SwitchTables& at = tables.switches[s];
      if (at.lft.size() <= *lid) at.lft.resize(*lid + 1, kLftUnreachable);
      at.lft[*lid] = ports.ours(s, port);
      if (port == 0 && at.lid == 0) at.lid = static_cast<Lid>(*lid);
    }
  }
  if (s == kNoSwitch)
    throw_bad_input("{}: no forwarding table; accepted: OpenSM's {} or what dump_fts prints", file, kLftDump);
  find_host_lids(topology, tables);
  return tables;
}

void read_sl_to_vl_dump(const Topology& topology, std::string_view text, std::string_view file, SubnetTables& tables) {
  const PortMap ports(topology);
  const LidMap lids(tables);
  TextReader reader(text, file);
  Words words;
  SwitchTables* at = nullptr;
  uint32_t s = 0;
  std::optional<HostId> host;
  tables.host_sl_to_vl.assign(topology.host_count, SlToVl{});
  while (reader.next_line(words)) {
    if (words[0] == "Switch" || words[0] == "Channel") {
      at = nullptr;
      host.reset();
      if (words[0] == "Switch" && words.size() > 1) {
        s = ports.switch_of(number_in(words[1], 16).value_or(0), reader);
        at = &tables.switches[s];
        at->sl_to_vl.assign((at->ports + 1U) * (at->ports + 1U), SlToVl{});
      } else {
        host = lids.host(after_word(words, "LID", 10).value_or(0));
      }
    } else if ((at != nullptr || host) && words[0].front() >= '0' && words[0].front() <= '9') {
      if (words.size() != 3 + kServiceLevels || words[2] != ":") {
        reader.fail("{} words; accepted: in out : and {} lanes", words.size(), kServiceLevels);
      }
      SlToVl map{};
      for (uint32_t sl = 0; sl < kServiceLevels; ++sl) {
        map[sl] = static_cast<uint8_t>(reader.whole(words[3 + sl], "the lane", 0, kDataLanes));
      }
      const uint64_t in = reader.whole(words[0], "the input port", 0, 255);
      const uint64_t out = reader.whole(words[1], "the output port", 0, 255);
      if (host) {
        tables.host_sl_to_vl[*host] = map;
      } else if (ports.ours(s, in) != kNoPort && ports.ours(s, out) != kNoPort) {
        at->sl_to_vl[ports.ours(s, in) * (at->ports + 1U) + ports.ours(s, out)] = map;
      }
    }
  }
}

void read_path_sl_dump(std::string_view text, SubnetTables& tables) {
  const LidMap lids(tables);
  const size_t hosts = tables.host_lids.size();
  constexpr std::string_view kFrom = "src_lid=";
  constexpr std::string_view kTo = "dest_lid=";
  constexpr std::string_view kLane = "vl=";
  for (size_t at = text.find(kFrom); at != std::string_view::npos; at = text.find(kFrom, at + 1)) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    const size_t to = line.find(kTo);
    const size_t lane = line.find(kLane);
    if (to == std::string_view::npos || lane == std::string_view::npos) continue;
    const auto from_host = lids.host(number_in(line.substr(kFrom.size()), 10).value_or(0));
    const auto to_host = lids.host(number_in(line.substr(to + kTo.size()), 10).value_or(0));
    const uint64_t sl = number_in(line.substr(lane + kLane.size()), 10).value_or(kServiceLevels);
    if (!from_host || !to_host || sl >= kServiceLevels) continue;  // switches have paths as well
    if (tables.path_sl.empty()) tables.path_sl.assign(hosts * hosts, 0);
    tables.path_sl[*from_host * hosts + *to_host] = static_cast<uint8_t>(sl);
  }
}

namespace {

// "|0x0 |0x1 |" in words: "|0x0", "|0x1", "|".
std::vector<uint8_t> cells(const Words& words, const TextReader& reader) {
  std::vector<uint8_t> values;
  for (std::string_view word : words) {
    if (word.size() < 2 || word.front() != '|') continue;
    const std::optional<uint64_t> value = number_in(word.substr(1), 16);
    if (!value || *value > 255) reader.fail("the entry is {}; accepted: |0x0 to |0xff", quoted(word));
    values.push_back(static_cast<uint8_t>(*value));
  }
  return values;
}

}  // namespace

void read_vl_arbitration_dump(const Topology& topology, std::string_view text, std::string_view file,
                              SubnetTables& tables) {
  const PortMap ports(topology);
  const LidMap lids(tables);
  TextReader reader(text, file);
  Words words;
  VlArbitration* at = nullptr;
  std::vector<VlArbitrationEntry>* table = nullptr;
  std::vector<uint8_t> lanes;
  while (reader.next_line(words)) {
    if (words.size() > 1 && words[1] == "VLArbitration") {
      at = nullptr;
      table = nullptr;
      const uint64_t lid = after_word(words, "Lid", 10).value_or(0);
      const uint64_t port = after_word(words, "port", 10).value_or(0);
      if (const auto host = lids.host(lid)) {
        tables.host_vl_arbitration.resize(topology.host_count);
        at = &tables.host_vl_arbitration[*host];
      } else if (const auto s = lids.switch_at(lid); s && ports.ours(*s, port) != kNoPort) {
        tables.switches[*s].vl_arbitration.resize(tables.switches[*s].ports + 1U);
        at = &tables.switches[*s].vl_arbitration[ports.ours(*s, port)];
      }
      if (at != nullptr) at->high_limit = static_cast<uint8_t>(after_word(words, "HighLimit", 10).value_or(0));
    } else if (at != nullptr && words.size() > 1 && (words[1] == "Low" || words[1] == "High")) {
      table = words[1] == "Low" ? &at->low : &at->high;
    } else if (table != nullptr && words[0] == "VL") {
      lanes = cells(words, reader);
    } else if (table != nullptr && words[0] == "WEIGHT:") {
      const std::vector<uint8_t> weights = cells(words, reader);
      if (weights.size() != lanes.size()) reader.fail("{} weights for {} lanes", weights.size(), lanes.size());
      table->clear();
      for (size_t i = 0; i < lanes.size(); ++i) {
        if (lanes[i] < kDataLanes) table->push_back({lanes[i], weights[i]});
      }
    }
  }
}

std::vector<HostId> read_host_order(const SubnetTables& tables, std::string_view text, std::string_view file) {
  const LidMap lids(tables);
  TextReader reader(text, file);
  Words words;
  std::vector<HostId> order;
  while (reader.next_line(words)) {
    const std::optional<uint64_t> lid = number_in(words[0], 16);
    if (words.size() < 2 || !lid) reader.fail("found {}; accepted: a LID such as 0x000d and a name", quoted(words[0]));
    if (words[1] == "DUMMY") continue;
    const std::optional<HostId> host = lids.host(*lid);
    if (!host) reader.fail("LID {} is no host's", quoted(words[0]));
    order.push_back(*host);
  }
  return order;
}

std::string write_host_order(const Topology& topology, const SubnetTables& tables, const std::vector<HostId>& order) {
  std::string text;
  for (const HostId host : order) {
    fmt::format_to(std::back_inserter(text), "0x{:04x}\t{}\n", tables.host_lids[host], topology.nodes[host].name);
  }
  return text;
}

std::string write_lft_dump(const Topology& topology, const SubnetTables& tables) {
  const PortMap ports(topology);
  std::string text;
  auto out = std::back_inserter(text);
  std::vector<const std::string*> name_of(kLastUnicastLid + 1U);
  for (HostId host = 0; host < topology.host_count; ++host) {
    for (uint32_t path = 0; tables.host_lids[host] != 0 && path < tables.paths_per_host(); ++path) {
      name_of[tables.host_lids[host] + path] = &topology.nodes[host].name;
    }
  }
  for (uint32_t s = 0; s < tables.switches.size(); ++s) {
    name_of[tables.switches[s].lid] = &topology.nodes[topology.host_count + s].name;
  }
  for (uint32_t s = 0; s < tables.switches.size(); ++s) {
    const SwitchTables& at = tables.switches[s];
    const NodeId node = topology.host_count + s;
    const size_t last = at.lft.empty() ? 0 : at.lft.size() - 1;
    fmt::format_to(out, "Unicast lids [0-{}] of switch Lid {} guid 0x{:016x} ('{}'):\n", last, at.lid,
                   node_guid(topology, node), topology.nodes[node].name);
    uint32_t count = 0;
    for (size_t lid = 1; lid <= last; ++lid) {
      if (at.lft[lid] == kLftUnreachable) continue;
      fmt::format_to(out, "0x{:04x} {:03d} # '{}'\n", lid, ports.theirs(s, at.lft[lid]),
                     name_of[lid] != nullptr ? *name_of[lid] : std::string());
      ++count;
    }
    fmt::format_to(out, "{} lids dumped\n", count);
  }
  return text;
}

std::string write_sl_to_vl_dump(const Topology& topology, const SubnetTables& tables) {
  const PortMap ports(topology);
  std::string text;
  auto out = std::back_inserter(text);
  const auto row = [&](uint32_t in, uint32_t out_port, const SlToVl& map) {
    fmt::format_to(out, "{:<3d} {:<3d} :", in, out_port);
    for (const uint8_t lane : map) fmt::format_to(out, " {:<2d}", lane);
    text += '\n';
  };
  for (uint32_t s = 0; s < tables.switches.size(); ++s) {
    const SwitchTables& at = tables.switches[s];
    if (at.sl_to_vl.empty()) continue;
    const NodeId node = topology.host_count + s;
    fmt::format_to(out, "Switch 0x{:016x}, base LID {}, \"{}\"\n", node_guid(topology, node), at.lid,
                   topology.nodes[node].name);
    for (uint32_t o = 0; o <= at.ports; ++o) {
      for (uint32_t i = 0; i <= at.ports; ++i) {
        row(ports.theirs(s, i), ports.theirs(s, o), at.sl_to_vl[i * (at.ports + 1) + o]);
      }
    }
  }
  for (HostId host = 0; host < tables.host_sl_to_vl.size(); ++host) {
    fmt::format_to(out, "Channel Adapter 0x{:016x}, base LID {}, \"{}\"\n",
                   node_guid(topology, host) + port_number(topology, host, 0), tables.host_lids[host],
                   topology.nodes[host].name);
    row(0, 0, tables.host_sl_to_vl[host]);
  }
  return text;
}

std::string write_path_sl_dump(const SubnetTables& tables) {
  std::string text;
  const size_t hosts = tables.host_lids.size();
  for (size_t i = 0; i < tables.path_sl.size(); ++i) {
    if (i / hosts == i % hosts) continue;
    fmt::format_to(std::back_inserter(text), "route from src_lid={} to dest_lid={} on vl={}\n",
                   tables.host_lids[i / hosts], tables.host_lids[i % hosts], tables.path_sl[i]);
  }
  return text;
}

std::string write_vl_arbitration_dump(const Topology& topology, const SubnetTables& tables) {
  const PortMap ports(topology);
  std::string text;
  auto out = std::back_inserter(text);
  const auto put_table = [&](const char* name, const std::vector<VlArbitrationEntry>& table) {
    fmt::format_to(out, "# {} priority VL Arbitration Table:\nVL    : |", name);
    for (const VlArbitrationEntry& entry : table) fmt::format_to(out, "0x{:x} |", entry.vl);
    text += "\nWEIGHT: |";
    for (const VlArbitrationEntry& entry : table) fmt::format_to(out, "0x{:x} |", entry.weight);
    text += '\n';
  };
  const auto put_port = [&](Lid lid, uint32_t port, const VlArbitration& at) {
    fmt::format_to(out, "# VLArbitration tables: Lid {} port {} LowCap {} HighCap {} HighLimit {}\n", lid, port,
                   at.low.size(), at.high.size(), at.high_limit);
    put_table("Low", at.low);
    put_table("High", at.high);
  };
  for (uint32_t s = 0; s < tables.switches.size(); ++s) {
    const SwitchTables& at = tables.switches[s];
    for (uint32_t port = 0; port < at.vl_arbitration.size(); ++port) {
      put_port(at.lid, ports.theirs(s, port), at.vl_arbitration[port]);
    }
  }
  for (HostId host = 0; host < tables.host_vl_arbitration.size(); ++host) {
    put_port(tables.host_lids[host], port_number(topology, host, 0), tables.host_vl_arbitration[host]);
  }
  return text;
}

SubnetTables read_subnet_directory(const Topology& topology, const std::string& directory) {
  const auto path = [&](const char* name) { return (std::filesystem::path(directory) / name).string(); };
  const auto is_there = [&](const char* name) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(path(name), ignored);
  };
  SubnetTables tables = read_lft_dump(topology, read_text_file(path(kLftDump)), path(kLftDump));
  if (is_there(kSlToVlDump)) {
    read_sl_to_vl_dump(topology, read_text_file(path(kSlToVlDump)), path(kSlToVlDump), tables);
  }
  if (is_there(kPathSlDump)) read_path_sl_dump(read_text_file(path(kPathSlDump)), tables);
  if (is_there(kVlArbitrationDump)) {
    read_vl_arbitration_dump(topology, read_text_file(path(kVlArbitrationDump)), path(kVlArbitrationDump), tables);
  }
  return tables;
}

void write_subnet_directory(const Topology& topology, const std::vector<bool>& link_up, const SubnetTables& tables,
                            const std::vector<HostId>& host_order, const std::string& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  const auto write = [&](const char* name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(directory) / name;
    if (text.empty()) {  // what an earlier run left would be read as this one's
      std::filesystem::remove(path, problem);
      return;
    }
    std::ofstream file(path);
    if (!(file << text) || !file.flush()) throw_failed("cannot write {}", path.string());
  };
  write("fabric.net", write_ibnetdiscover(topology, link_up));
  write(kLftDump, write_lft_dump(topology, tables));
  write(kSlToVlDump, write_sl_to_vl_dump(topology, tables));
  write(kPathSlDump, write_path_sl_dump(tables));
  write(kHostOrderDump, write_host_order(topology, tables, host_order));
  write(kVlArbitrationDump, write_vl_arbitration_dump(topology, tables));
}

}  // namespace heddle::lab
