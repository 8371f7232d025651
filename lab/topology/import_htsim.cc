// htsim's fat-tree description: a few numbers per tier, from which the fabric follows.
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lab/topology/builders.h"
#include "lab/topology/import.h"
#include "lab/topology/import_text.h"

namespace heddle::lab {
namespace {

// Above every limit of a fabric, below what would overflow when two or three are multiplied in 64 bits.
constexpr uint64_t kMostOfAnything = 1'000'000;
constexpr uint64_t kFastestGbps = kMaxLinkRate.bits_per_second() / 1'000'000'000;
constexpr uint64_t kLongestLatency = kMaxLinkDelay / kNanosecond / 4;  // a link's delay is the sum of up to three

// A key that may come once: the range of its number, and the line it came on (0: not yet).
struct Value {
  uint64_t least = 1;
  uint64_t most = kMostOfAnything;
  uint64_t number = 0;
  int line = 0;
  uint64_t or_else(uint64_t fallback) const { return line == 0 ? fallback : number; }
};

struct Tier {
  Value speed_gbps = {.most = kFastestGbps};
  Value radix_down;
  Value radix_up;
  Value link_ns = {.most = kLongestLatency};
  Value switch_ns = {.least = 0, .most = kLongestLatency};
  Value oversubscribed;
  Value bundle;
  int line = 0;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view file, const ImportSettings& settings)
      : reader_(text, file), file_(file), settings_(settings) {}

  Topology parse() {
    std::vector<std::string_view> words;
    while (reader_.next_line(words)) {
      if (words[0].front() != '#') {
        read(words);
      }
    }
    check_complete();
    Topology topology = tiers_.number == 2 ? build_two_tiers() : build_three_tiers();
    topology.notes = std::move(notes_);
    return topology;
  }

 private:
  void read(const std::vector<std::string_view>& words);
  void read_tier(const std::vector<std::string_view>& words);
  void read_number(const std::vector<std::string_view>& words, Value& value);
  Value* value_of(const std::string& key);

  void check_complete() const;
  void check_tier(uint64_t tier) const;
  uint64_t divide(uint64_t total, uint64_t part, const char* what) const;
  void check_oversubscription(uint64_t tier) const;
  LinkSettings link_below(uint64_t tier) const;
  Topology build_two_tiers() const;
  Topology build_three_tiers() const;

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw_bad_input("{}: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }

  TextReader reader_;
  std::string file_;
  ImportSettings settings_;
  Value nodes_ = {.most = kMaxHosts};
  Value tiers_;
  Value podsize_;
  std::array<Tier, 3> tier_;
  Tier* current_ = nullptr;
  std::vector<std::string> notes_;
};

std::string lower(std::string_view word) {
  std::string text;
  for (const char c : word) {
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

void Parser::read(const std::vector<std::string_view>& words) {
  const std::string key = lower(words[0]);
  if (words.size() != 2 && !(words.size() > 2 && words[2].front() == '#')) {
    reader_.fail("{} with {} values; accepted: one", quoted(words[0]), words.size() - 1);
  }
  if (key == "tier") {
    read_tier(words);
    return;
  }
  if (current_ != nullptr && (key == "queue_up" || key == "queue_down")) {
    notes_.push_back(fmt::format("line {}: {} ignored: buffers belong to the scenario's fabric", reader_.line(), key));
    return;
  }
  Value* value = value_of(key);
  if (value == nullptr) {
    reader_.fail("{} {}; accepted: {}", quoted(words[0]), current_ == nullptr ? "in the header" : "within a tier",
                 current_ == nullptr ? "Nodes, Tiers, Podsize, Tier"
                                     : "Downlink_speed_Gbps, Radix_Down, Radix_Up, Downlink_Latency_ns, "
                                       "Switch_Latency_ns, Oversubscribed, Bundle, Queue_Up, Queue_Down, Tier");
  }
  read_number(words, *value);
}

void Parser::read_tier(const std::vector<std::string_view>& words) {
  const uint64_t tier = reader_.whole(words[1], "the tier", 0, 2);
  if (tier_[tier].line != 0) {
    reader_.fail("tier {} comes a second time, first on line {}", tier, tier_[tier].line);
  }
  current_ = &tier_[tier];
  current_->line = reader_.line();
}

void Parser::read_number(const std::vector<std::string_view>& words, Value& value) {
  if (value.line != 0) {
    reader_.fail("{} comes a second time, first on line {}", quoted(words[0]), value.line);
  }
  value.number = reader_.whole(words[1], words[0], value.least, value.most);
  value.line = reader_.line();
}

Value* Parser::value_of(const std::string& key) {
  struct Header {
    const char* key;
    Value Parser::*value;
  };
  struct PerTier {
    const char* key;
    Value Tier::*value;
  };
  static constexpr Header kHeader[] = {
      {"nodes", &Parser::nodes_}, {"tiers", &Parser::tiers_}, {"podsize", &Parser::podsize_}};
  static constexpr PerTier kPerTier[] = {{"downlink_speed_gbps", &Tier::speed_gbps},
                                         {"radix_down", &Tier::radix_down},
                                         {"radix_up", &Tier::radix_up},
                                         {"downlink_latency_ns", &Tier::link_ns},
                                         {"switch_latency_ns", &Tier::switch_ns},
                                         {"oversubscribed", &Tier::oversubscribed},
                                         {"bundle", &Tier::bundle}};
  if (current_ == nullptr) {
    for (const Header& entry : kHeader) {
      if (key == entry.key) {
        return &(this->*entry.value);
      }
    }
    return nullptr;
  }
  for (const PerTier& entry : kPerTier) {
    if (key == entry.key) {
      return &(current_->*entry.value);
    }
  }
  return nullptr;
}

void Parser::check_complete() const {
  for (const auto& [value, name] : {std::pair{nodes_, "Nodes"}, {tiers_, "Tiers"}, {podsize_, "Podsize"}}) {
    if (value.line == 0) {
      refuse("{} is missing from the header", name);
    }
  }
  if (tiers_.number < 2 || tiers_.number > 3) {
    throw_bad_input("{}:{}: Tiers is {}; accepted: 2 or 3", file_, tiers_.line, tiers_.number);
  }
  if (tiers_.number == 2 && tier_[2].line != 0) {
    throw_bad_input("{}:{}: tier 2 in a fabric of two tiers", file_, tier_[2].line);
  }
  for (uint64_t tier = 0; tier < tiers_.number; ++tier) {
    check_tier(tier);
  }
}

void Parser::check_tier(uint64_t tier) const {
  const Tier& t = tier_[tier];
  if (t.line == 0) {
    refuse("tier {} is missing", tier);
  }
  const bool is_top = tier + 1 == tiers_.number;
  for (const auto& [value, name] : {std::pair{t.speed_gbps, "Downlink_speed_Gbps"},
                                    {t.radix_down, "Radix_Down"},
                                    {t.link_ns, "Downlink_Latency_ns"},
                                    {is_top ? t.speed_gbps : t.radix_up, "Radix_Up"}}) {
    if (value.line == 0) {
      throw_bad_input("{}:{}: tier {} lacks {}", file_, t.line, tier, name);
    }
  }
  // Some writers give the top tier of two an (unused) Radix_Up; on tier 2 htsim refuses it.
  if (tier == 2 && t.radix_up.line != 0) {
    throw_bad_input("{}:{}: Radix_Up on the top tier", file_, t.radix_up.line);
  }
  if (tier == 0 && t.bundle.or_else(1) != 1) {
    throw_bad_input("{}:{}: Bundle {} towards hosts; accepted: 1", file_, t.bundle.line, t.bundle.number);
  }
}

uint64_t Parser::divide(uint64_t total, uint64_t part, const char* what) const {
  if (total % part != 0) {
    refuse("the numbers do not fit: {} / {} {} is not whole", total, part, what);
  }
  return total / part;
}

// htsim derives the number of upper switches from the oversubscription; here it follows from the radix, and the two
// must agree.
void Parser::check_oversubscription(uint64_t tier) const {
  const Tier& t = tier_[tier];
  const uint64_t down = t.radix_down.number * t.speed_gbps.number;
  const uint64_t up = t.radix_up.number * tier_[tier + 1].speed_gbps.number;
  if (down != up * t.oversubscribed.or_else(1)) {
    throw_bad_input("{}:{}: tier {} has {} Gb/s down and {} up; accepted: Oversubscribed {} (a whole number)", file_,
                    t.line, tier, down, up, static_cast<double>(down) / static_cast<double>(up));
  }
}

// The links between a tier and what is below it. The lab's switches have no latency of their own, so that of a switch
// is added to its links, half each: every path passes two links of a switch.
LinkSettings Parser::link_below(uint64_t tier) const {
  Duration delay = tier_[tier].link_ns.number * kNanosecond + tier_[tier].switch_ns.number * kNanosecond / 2;
  if (tier > 0) {
    delay += tier_[tier - 1].switch_ns.number * kNanosecond / 2;
  }
  return {.rate = Rate::gbps(tier_[tier].speed_gbps.number), .delay = delay, .overhead = settings_.overhead};
}

Topology Parser::build_two_tiers() const {
  if (podsize_.number != nodes_.number) {
    throw_bad_input("{}:{}: Podsize is {} in a fabric of two tiers; accepted: the number of nodes, {}", file_,
                    podsize_.line, podsize_.number, nodes_.number);
  }
  check_oversubscription(0);
  const uint64_t leaves = divide(nodes_.number, tier_[0].radix_down.number, "(hosts by Radix_Down of tier 0)");
  const uint64_t spines =
      divide(leaves * tier_[0].radix_up.number, tier_[1].radix_down.number, "(leaf uplinks by Radix_Down of tier 1)");
  const uint64_t bundle = tier_[1].bundle.or_else(1);
  if (spines * bundle != tier_[0].radix_up.number) {
    refuse("{} spines with Bundle {} take {} uplinks of a leaf, which has {}", spines, bundle, spines * bundle,
           tier_[0].radix_up.number);
  }
  return build_leaf_spine({.hosts = static_cast<uint32_t>(nodes_.number),
                           .leaves = static_cast<uint32_t>(leaves),
                           .spines = static_cast<uint32_t>(spines),
                           .links_per_pair = static_cast<uint32_t>(bundle),
                           .host_link = link_below(0),
                           .uplink = link_below(1)});
}

Topology Parser::build_three_tiers() const {
  check_oversubscription(0);
  check_oversubscription(1);
  const uint64_t pods = divide(nodes_.number, podsize_.number, "(hosts by Podsize)");
  const uint64_t edges = divide(podsize_.number, tier_[0].radix_down.number, "(Podsize by Radix_Down of tier 0)");
  const uint64_t aggregations = divide(edges * tier_[0].radix_up.number, tier_[1].radix_down.number,
                                       "(edge uplinks of a pod by Radix_Down of tier 1)");
  const uint64_t edge_bundle = tier_[1].bundle.or_else(1);
  const uint64_t core_bundle = tier_[2].bundle.or_else(1);
  if (aggregations * edge_bundle != tier_[0].radix_up.number) {
    refuse("{} aggregation switches a pod with Bundle {} take {} uplinks of an edge switch, which has {}", aggregations,
           edge_bundle, aggregations * edge_bundle, tier_[0].radix_up.number);
  }
  const uint64_t cores = divide(tier_[1].radix_up.number, core_bundle, "(Radix_Up of tier 1 by Bundle of tier 2)");
  if (pods * core_bundle != tier_[2].radix_down.number) {
    refuse("{} pods with Bundle {} take {} ports of a core, which has {}", pods, core_bundle, pods * core_bundle,
           tier_[2].radix_down.number);
  }
  const FatTreeShape shape = {.pods = static_cast<uint32_t>(pods),
                              .edges_per_pod = static_cast<uint32_t>(edges),
                              .hosts_per_edge = static_cast<uint32_t>(tier_[0].radix_down.number),
                              .aggregations_per_pod = static_cast<uint32_t>(aggregations),
                              .links_per_edge_aggregation = static_cast<uint32_t>(edge_bundle),
                              .cores_per_aggregation = static_cast<uint32_t>(cores),
                              .links_per_aggregation_core = static_cast<uint32_t>(core_bundle)};
  return build_fat_tree(shape, {.host = link_below(0), .aggregation = link_below(1), .core = link_below(2)});
}

}  // namespace

Topology parse_htsim_topology(std::string_view text, std::string_view file, const ImportSettings& settings) {
  return Parser(text, file, settings).parse();
}

}  // namespace heddle::lab
