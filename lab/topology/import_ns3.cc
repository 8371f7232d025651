// HPCC, ConWeave and SimAI topology files: a list of links between numbered nodes.
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lab/topology/builders.h"
#include "lab/topology/import.h"
#include "lab/topology/import_text.h"

namespace heddle::lab {
namespace {

constexpr uint64_t kMostNodes = kMaxHosts + kMaxSwitches;

struct Header {
  uint64_t nodes = 0;
  uint64_t switches = 0;    // in all
  uint64_t nvswitches = 0;  // the first of them
  uint64_t links = 0;
  uint64_t gpus_per_server = 1;
};

enum class Role : uint8_t { kHost, kSwitch, kNvswitch };

struct FileLink {
  uint64_t src = 0;
  uint64_t dst = 0;
  LinkSettings settings;
};

// "100Gbps" into its number and "Gbps". Nothing if it does not begin with a number.
std::optional<std::pair<double, std::string_view>> split_unit(std::string_view word) {
  double value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || !std::isfinite(value)) {
    return std::nullopt;
  }
  return std::pair{value, word.substr(static_cast<size_t>(end - word.data()))};
}

// ns-3's DataRate: a number with a prefix of k, K, M, G or T, then bps, b/s (bits) or Bps, B/s (bytes).
std::optional<double> bits_per_second_of(std::string_view word) {
  constexpr std::string_view kPrefixes = "kKMGT";
  static constexpr double kFactors[] = {1e3, 1e3, 1e6, 1e9, 1e12};
  const auto parts = split_unit(word);
  if (!parts) {
    return std::nullopt;
  }
  auto [value, unit] = *parts;
  const size_t prefix = unit.empty() ? std::string_view::npos : kPrefixes.find(unit.front());
  if (prefix != std::string_view::npos) {
    value *= kFactors[prefix];
    unit.remove_prefix(1);
  } else if (unit.empty()) {
    return value;
  }
  if (unit == "bps" || unit == "b/s") {
    return value;
  }
  return unit == "Bps" || unit == "B/s" ? std::optional(value * 8) : std::nullopt;
}

// ns-3's Time: a number with one of its units, or seconds.
std::optional<double> picoseconds_of(std::string_view word) {
  struct Unit {
    std::string_view name;
    double picoseconds;
  };
  static constexpr Unit kUnits[] = {{"", 1e12}, {"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}, {"ps", 1}};
  const auto parts = split_unit(word);
  if (!parts) {
    return std::nullopt;
  }
  for (const Unit& unit : kUnits) {
    if (unit.name == parts->second) {
      return parts->first * unit.picoseconds;
    }
  }
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file, bool simai_header, const ImportSettings& settings)
      : reader_(text, file), simai_(simai_header), settings_(settings) {}

  Topology parse() {
    read_header();
    read_switches();
    read_links();
    return build();
  }

 private:
  void read_header();
  void read_switches();
  void read_links();
  FileLink read_link(uint64_t number);
  void check_ends(const FileLink& link);
  void check_size(uint64_t hosts);
  Topology build();
  void note_rest(Topology& topology);
  std::string_view want_word(std::string_view what, uint64_t number);

  TextReader reader_;
  bool simai_;
  ImportSettings settings_;
  Header header_;
  std::vector<Role> roles_;      // by id in the file
  std::vector<bool> has_link_;   // hosts that have one, by id in the file
  std::vector<FileLink> links_;  // of the network; those to NVSwitches are only counted
  uint64_t nvlinks_ = 0;
};

void Parser::read_header() {
  std::vector<std::string_view> words;
  reader_.next_line(words);
  const size_t expected = simai_ ? 6 : 3;
  if (words.size() != expected) {
    reader_.fail("the header has {} words; accepted: {}", words.size(),
                 simai_ ? "'nodes gpus_per_server nvswitches switches links gpu_type' (for 'nodes switches links' "
                          "say format hpcc)"
                        : "'nodes switches links' (for a header of six words say format simai)");
  }
  header_.nodes = reader_.whole(words[0], "the number of nodes", 2, kMostNodes);
  if (simai_) {
    header_.gpus_per_server = reader_.whole(words[1], "the number of GPUs per server", 1, header_.nodes);
    header_.nvswitches = reader_.whole(words[2], "the number of NVSwitches", 0, header_.nodes - 1);
  }
  const uint64_t network = reader_.whole(words[simai_ ? 3 : 1], "the number of switches", 1, header_.nodes - 1);
  header_.switches = network + header_.nvswitches;
  header_.links = reader_.whole(words[simai_ ? 4 : 2], "the number of links", 1, kMaxLinks);
  if (header_.switches >= header_.nodes) {
    reader_.fail("{} nodes, all of them switches; accepted: at least one host", header_.nodes);
  }
  check_size(header_.nodes - header_.switches);
}

void Parser::check_size(uint64_t hosts) {
  if (hosts > kMaxHosts || header_.switches - header_.nvswitches > kMaxSwitches) {
    reader_.fail("{} hosts and {} switches; accepted: up to {} and {}", hosts, header_.switches, kMaxHosts,
                 kMaxSwitches);
  }
  if (hosts % header_.gpus_per_server != 0) {
    reader_.fail("{} GPUs are no whole number of servers with {} each", hosts, header_.gpus_per_server);
  }
}

void Parser::read_switches() {
  roles_.assign(header_.nodes, Role::kHost);
  has_link_.assign(header_.nodes, false);
  for (uint64_t i = 0; i < header_.switches; ++i) {
    const std::string_view word = want_word("switch id", i);
    const uint64_t id = reader_.whole(word, "a switch id", 0, header_.nodes - 1);
    if (roles_[id] != Role::kHost) {
      reader_.fail("switch {} is listed twice", id);
    }
    roles_[id] = i < header_.nvswitches ? Role::kNvswitch : Role::kSwitch;
  }
}

void Parser::read_links() {
  for (uint64_t i = 0; i < header_.links; ++i) {
    const FileLink link = read_link(i);
    if (roles_[link.src] == Role::kNvswitch || roles_[link.dst] == Role::kNvswitch) {
      ++nvlinks_;
      continue;
    }
    check_ends(link);
    links_.push_back(link);
  }
}

FileLink Parser::read_link(uint64_t number) {
  FileLink link;
  link.src = reader_.whole(want_word("link", number), "the first end of a link", 0, header_.nodes - 1);
  link.dst = reader_.whole(want_word("link", number), "the second end of a link", 0, header_.nodes - 1);
  const std::string_view rate = want_word("link", number);
  const std::optional<double> bits = bits_per_second_of(rate);
  const bool is_nvlink = roles_[link.src] == Role::kNvswitch || roles_[link.dst] == Role::kNvswitch;
  if (!bits || (!is_nvlink && !(*bits >= static_cast<double>(kMinLinkRate.bits_per_second()) &&
                                *bits <= static_cast<double>(kMaxLinkRate.bits_per_second())))) {
    reader_.fail("the rate of a link is {}; accepted: 1Mbps to 1600Gbps", quoted(rate));
  }
  const std::string_view delay = want_word("link", number);
  const std::optional<double> picoseconds = picoseconds_of(delay);
  if (!picoseconds ||
      !(*picoseconds >= static_cast<double>(kMinLinkDelay) && *picoseconds <= static_cast<double>(kMaxLinkDelay))) {
    reader_.fail("the delay of a link is {}; accepted: 1ns to 1s", quoted(delay));
  }
  link.settings.loss = reader_.real(want_word("link", number), "the error rate of a link", 0, 1);
  link.settings.rate = is_nvlink ? kMaxLinkRate : Rate(static_cast<uint64_t>(std::llround(*bits)));
  link.settings.delay = static_cast<Duration>(std::llround(*picoseconds));
  link.settings.overhead = settings_.overhead;
  return link;
}

void Parser::check_ends(const FileLink& link) {
  if (link.src == link.dst) {
    reader_.fail("node {} is linked to itself", link.src);
  }
  if (roles_[link.src] == Role::kHost && roles_[link.dst] == Role::kHost) {
    reader_.fail("hosts {} and {} are linked directly; accepted: hosts linked to switches", link.src, link.dst);
  }
  for (const uint64_t end : {link.src, link.dst}) {
    if (roles_[end] == Role::kHost && has_link_[end]) {
      reader_.fail("host {} has a second link; accepted: one (a server with N NICs is N hosts)", end);
    }
    has_link_[end] = true;
  }
}

// The next word of the `number`th (from 0) of the things called `what`.
std::string_view Parser::want_word(std::string_view what, uint64_t number) {
  std::string_view word;
  if (!reader_.next_word(word)) {
    reader_.fail("the file ends within {} {} of {}", what, number + 1,
                 what == "link" ? header_.links : header_.switches);
  }
  return word;
}

Topology Parser::build() {
  Topology topology;
  topology.hosts_per_server = static_cast<uint32_t>(header_.gpus_per_server);
  std::vector<NodeId> node_of(header_.nodes);
  for (const Role role : {Role::kHost, Role::kSwitch}) {
    for (uint64_t id = 0; id < header_.nodes; ++id) {
      if (roles_[id] == role) {
        node_of[id] = role == Role::kHost ? topology.add_host(fmt::format("host{}", id), kNoPod)
                                          : topology.add_switch(fmt::format("switch{}", id), 0, kNoPod);
        topology.file_ids.push_back(static_cast<uint32_t>(id));
      }
    }
  }
  for (const FileLink& link : links_) {
    topology.connect(node_of[link.src], node_of[link.dst], link.settings);
  }
  derive_tiers_and_pods(topology);
  note_rest(topology);
  return topology;
}

void Parser::note_rest(Topology& topology) {
  if (header_.nvswitches > 0) {
    topology.notes.push_back(
        fmt::format("{} NVSwitches and {} NVLinks left out: the lab has the network between "
                    "servers, not the one inside",
                    header_.nvswitches, nvlinks_));
  }
  // Whoever added links but did not count them would otherwise never know.
  std::vector<std::string_view> words;
  if (reader_.next_line(words) && words.size() == 5 && bits_per_second_of(words[2]) && picoseconds_of(words[3])) {
    topology.notes.push_back(
        fmt::format("line {} looks like a link but comes after the {} the header speaks of: "
                    "ignored, with what follows",
                    reader_.line(), header_.links));
  }
}

}  // namespace

Topology parse_ns3_topology(std::string_view text, std::string_view file, bool simai_header,
                            const ImportSettings& settings) {
  return Parser(text, file, simai_header, settings).parse();
}

}  // namespace heddle::lab
