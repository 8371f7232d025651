#include "config/yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "config/words.h"
#include "net/error.h"

namespace heddle::config {
namespace {

std::string range_text(std::string_view forms, std::string_view low, std::string_view high) {
  return fmt::format("{}, from {} to {}", forms, low, high);
}

}  // namespace

std::string Value::found() const {
  if (is_missing()) return "no " + label_;
  const std::string as = label_.empty() ? "" : " as " + label_;
  switch (node_->kind) {
    case Node::Kind::kScalar:
      return label_.empty() ? quote(node_->text) : label_ + " " + quote(node_->text);
    case Node::Kind::kList:
      return "a list" + as;
    case Node::Kind::kMap:
      return "a map" + as;
    case Node::Kind::kNull:
      break;
  }
  return label_.empty() ? "nothing" : "no value for " + label_;
}

void Value::refuse(std::string_view accepted, std::string_view why) const {
  refuse_found(why.empty() ? found() : fmt::format("{} {}", found(), why), accepted);
}

void Value::refuse_found(std::string_view found, std::string_view accepted) const {
  throw_bad_input("{}: found {}; accepted: {}", place_.text(), found, accepted);
}

const std::string& Value::scalar(std::string_view accepted) const {
  if (!is_scalar()) refuse(accepted);
  return node_->text;
}

Map Value::map(std::vector<std::string_view> accepted_keys) const {
  if (!is_map()) refuse(fmt::format("a map of {}", listed(accepted_keys)));
  return {*this, node_, std::move(accepted_keys)};
}

List Value::list(size_t min_items, size_t max_items) const {
  const std::string accepted = min_items == 0 ? fmt::format("a list of up to {} items", max_items)
                                              : fmt::format("a list of {} to {} items", min_items, max_items);
  if (!is_list()) refuse(accepted);
  if (node_->items.size() < min_items || node_->items.size() > max_items) {
    refuse_found(fmt::format("{} items in {}", node_->items.size(), label_.empty() ? "the list" : label_), accepted);
  }
  List values;
  values.reserve(node_->items.size());
  for (size_t i = 0; i < node_->items.size(); ++i) {
    values.emplace_back(node_->items[i], node_->items[i]->place, fmt::format("{}[{}]", label_, i));
  }
  return values;
}

std::string Value::kind(const std::vector<std::string_view>& kinds, std::string_view fallback) const {
  if (is_missing() || is_null()) return std::string(fallback);
  if (!is_map()) refuse(fmt::format("a map with a kind of {}", listed(kinds)));
  const Entry* entry = node_->find("kind");
  if (entry == nullptr) return std::string(fallback);
  return std::string(kinds[read_word({entry->value, entry->value->place, "kind"}, kinds)]);
}

std::vector<std::pair<Value, Value>> Value::entries() const {
  std::vector<std::pair<Value, Value>> entries;
  if (is_missing() || is_null()) return entries;
  if (!is_map()) refuse("a map");
  for (const Entry& entry : node_->entries) {
    auto key = std::make_shared<Node>();
    key->kind = Node::Kind::kScalar;
    key->place = entry.place;
    key->text = entry.key;
    entries.emplace_back(Value(key, entry.place, label_ + " key"),
                         Value(entry.value, entry.value->place, label_ + " " + entry.key));
  }
  return entries;
}

Map::Map(const Value& source, NodePtr node, std::vector<std::string_view> accepted_keys)
    : node_(std::move(node)), place_(source.place()), label_(source.label()), accepted_(std::move(accepted_keys)) {
  if (!node_) return;
  for (const Entry& entry : node_->entries) {
    if (std::find(accepted_.begin(), accepted_.end(), entry.key) != accepted_.end()) continue;
    const std::string_view meant = nearest(entry.key, accepted_);
    throw_bad_input("{}: found unknown key {}{}{}; accepted: {}", entry.place.text(), quote(entry.key),
                    label_.empty() ? "" : " in " + label_,
                    meant.empty() ? "" : fmt::format(" (did you mean '{}'?)", meant), listed(accepted_));
  }
}

Value Map::at(std::string_view key) const {
  if (std::find(accepted_.begin(), accepted_.end(), key) == accepted_.end()) {
    throw std::logic_error(fmt::format("key '{}' is read but not among the accepted ones", key));
  }
  const Entry* entry = node_ ? node_->find(key) : nullptr;
  if (entry != nullptr) return {entry->value, entry->value->place, std::string(key)};
  return {nullptr, place_, fmt::format("'{}'{}", key, label_.empty() ? "" : " in " + label_)};
}

Map Map::section(std::string_view key, std::vector<std::string_view> accepted_keys) const {
  const Value value = at(key);
  if (!value.is_missing() && !value.is_null()) return value.map(std::move(accepted_keys));
  return {Value(nullptr, place_, std::string(key)), nullptr, std::move(accepted_keys)};
}

List Map::list(std::string_view key, size_t min_items, size_t max_items) const {
  const Value value = at(key);
  if (min_items == 0 && (value.is_missing() || value.is_null())) return {};
  return value.list(min_items, max_items);
}

// --- readers
// ----------------------------------------------------------------------------------------------------------

Reader<bool> boolean() { return one_of<bool>({{"true", true}, {"false", false}}); }

Reader<double> number(double min, double max) {
  return [=](const Value& value) {
    const std::string accepted = fmt::format("a number from {} to {}", min, max);
    const std::string& text = value.scalar(accepted);
    double result = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error != std::errc() || end != text.data() + text.size() || !(result >= min && result <= max)) {
      value.refuse(accepted);
    }
    return result;
  };
}

Reader<std::string> text(size_t max_length) {
  return [=](const Value& value) {
    const std::string accepted = fmt::format("text of 1 to {} characters", max_length);
    const std::string& text = value.scalar(accepted);
    const bool clean = std::none_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
    if (text.empty() || text.size() > max_length || !clean) value.refuse(accepted);
    return text;
  };
}

Reader<std::string> name_text(size_t max_length) {
  return [=](const Value& value) {
    const std::string accepted = fmt::format("a name of 1 to {} letters, digits, '_', '-' or '.'", max_length);
    const std::string& text = value.scalar(accepted);
    const bool clean = std::all_of(text.begin(), text.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
             c == '.';
    });
    if (text.empty() || text.size() > max_length || !clean) value.refuse(accepted);
    return text;
  };
}

Reader<Rate> rate(bool may_be_unlimited) {
  return [=](const Value& value) {
    constexpr uint64_t min = 1'000'000;
    constexpr uint64_t max = 10'000'000'000'000;
    const std::string_view accepted = may_be_unlimited ? "a rate from 1M to 10T such as 100G or 25Gbps, or unlimited"
                                                       : "a rate from 1M to 10T such as 100G or 25Gbps";
    const auto rate = parse_rate(value.scalar(accepted));
    if (!rate) value.refuse(accepted);
    const uint64_t bits = rate->bits_per_second();
    if (rate->is_unlimited() ? !may_be_unlimited : bits < min || bits > max) value.refuse(accepted);
    return *rate;
  };
}

Reader<uint64_t> bytes(uint64_t min, uint64_t max) {
  return [=](const Value& value) {
    const std::string accepted = range_text(kBytesForms, print_bytes(min), print_bytes(max));
    const auto bytes = parse_bytes(value.scalar(accepted));
    if (!bytes || *bytes < min || *bytes > max) value.refuse(accepted);
    return *bytes;
  };
}

Reader<Duration> duration(Duration min, Duration max) {
  return [=](const Value& value) {
    const std::string accepted = range_text(kDurationForms, print_duration(min), print_duration(max));
    const auto duration = parse_duration(value.scalar(accepted));
    if (!duration || *duration < min || *duration > max) value.refuse(accepted);
    return *duration;
  };
}

Reader<double> share() {
  return [](const Value& value) {
    const auto share = parse_share(value.scalar(kShareForms));
    if (!share) value.refuse(kShareForms);
    return *share;
  };
}

Reader<net::Mac> station_mac() {
  return [](const Value& value) {
    constexpr std::string_view accepted = "a MAC address of one station such as 02:00:00:00:00:01";
    const auto mac = parse_mac(value.scalar(accepted));
    if (!mac) value.refuse(accepted);
    if (is_group(*mac)) value.refuse(accepted, "(multicast)");
    if (is_zero(*mac)) value.refuse(accepted);
    return *mac;
  };
}

Reader<IpPrefix> unicast_prefix() {
  return [](const Value& value) {
    constexpr std::string_view accepted = "a unicast prefix such as 198.51.100.0/24 or 2001:db8::/64";
    const auto prefix = parse_prefix(value.scalar(accepted));
    if (!prefix) value.refuse(accepted);
    const IpPrefix network = without_host_bits(*prefix);
    if (network != *prefix) value.refuse(print_prefix(network), "with host bits set");
    if (is_multicast(*prefix)) value.refuse(accepted, "(multicast)");
    return *prefix;
  };
}

uint64_t read_integer(const Value& value, uint64_t min, uint64_t max) {
  const std::string accepted = fmt::format("a whole number from {} to {}", min, max);
  const auto number = parse_integer(value.scalar(accepted));
  if (!number || *number < min || *number > max) value.refuse(accepted);
  return *number;
}

size_t read_word(const Value& value, const std::vector<std::string_view>& words) {
  const std::string accepted = listed(words);
  const std::string& text = value.scalar(accepted);
  const auto word = std::find(words.begin(), words.end(), text);
  if (word == words.end()) value.refuse(accepted);
  return static_cast<size_t>(word - words.begin());
}

}  // namespace heddle::config
