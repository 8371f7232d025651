// Reading YAML with units and exact errors. How to use it:
//
//   const Document document = load_file("leaf.yaml", {"ports.0.rate=10G"});      // file, then --set overlays
//   const Map root = document.root().map({"switch", "ports"});                    // every key that is accepted here
//   const Map sw = root.section("switch", {"name", "seed", "idle"});              // absent: empty, all defaults
//   const std::string name = sw.optional("name", "heddle", name_text(32));
//   const bool poll = sw.optional("idle", true, one_of<bool>({{"poll", true}, {"sleep", false}}));
//   for (const Value& item : root.list("ports", 1, 64)) {
//     const Map port = item.map({"device", "rate", "mtu"});
//     port.required("device", text(255));
//     port.optional("rate", Rate::gbps(100), rate());
//     port.optional("mtu", uint16_t{1500}, integer<uint16_t>(576, 9600));
//   }
//
// A *reader* (`rate()`, `integer(1, 9)`, `one_of(…)`, `list_of(mac())`, or any callable that takes a Value) turns one
// value into a typed one or throws. Keys that are not listed are refused where the map is opened, with the nearest
// accepted key; asking for a key that was not listed is a bug and throws std::logic_error. A map whose accepted keys
// depend on its `kind` asks for `kind()` first and opens itself afterwards.
//
// Every error is heddle::Error (bad input) of one line, `FILE:LINE: found …; accepted: …`; for a value that came from
// an overlay `--set TEXT: found …`. Code that checks values against each other says so with Value::refuse.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "config/address.h"
#include "config/units.h"
#include "config/yaml_tree.h"

namespace heddle::config {

class Map;
class Value;
using List = std::vector<Value>;
template <typename T>
using Reader = std::function<T(const Value&)>;

// One value of the document, or the place where one is missing. Cheap to copy; keeps its node alive.
class Value {
 public:
  Value(NodePtr node, Place place, std::string label)
      : node_(std::move(node)), place_(std::move(place)), label_(std::move(label)) {}

  bool is_missing() const { return !node_; }
  bool is_null() const { return node_ && node_->kind == Node::Kind::kNull; }
  bool is_scalar() const { return node_ && node_->kind == Node::Kind::kScalar; }
  bool is_list() const { return node_ && node_->kind == Node::Kind::kList; }
  bool is_map() const { return node_ && node_->kind == Node::Kind::kMap; }

  const Place& place() const { return place_; }
  const std::string& label() const { return label_; }  // "mtu", "ports[2]": as errors name it

  // The text of a scalar; anything else is refused with what would be accepted.
  const std::string& scalar(std::string_view accepted) const;
  bool is_word(std::string_view word) const { return is_scalar() && node_->text == word; }

  // This value as a map with these keys, or as a list of this many items.
  Map map(std::vector<std::string_view> accepted_keys) const;
  List list(size_t min_items, size_t max_items) const;
  // The entries of a map whose keys are data (`dscp: {26: 3}`), in the order written; missing or null: none. Each key
  // is a value too, so that a reader can check it.
  std::vector<std::pair<Value, Value>> entries() const;
  // The `kind` of this map: one of `kinds`, `fallback` if the key is absent (then the map itself may be absent too).
  std::string kind(const std::vector<std::string_view>& kinds, std::string_view fallback) const;

  // Throws: "PLACE: found LABEL 'TEXT'WHY; accepted: ACCEPTED".
  [[noreturn]] void refuse(std::string_view accepted, std::string_view why = "") const;
  // Throws: "PLACE: found FOUND; accepted: ACCEPTED", where naming this value would not help.
  [[noreturn]] void refuse_found(std::string_view found, std::string_view accepted) const;

 private:
  std::string found() const;

  NodePtr node_;
  Place place_;
  std::string label_;
};

// A map opened with its accepted keys.
class Map {
 public:
  // `source` is a map, or null or missing for an empty one.
  Map(const Value& source, NodePtr node, std::vector<std::string_view> accepted_keys);

  const Place& place() const { return place_; }
  bool has(std::string_view key) const { return !at(key).is_missing(); }
  Value at(std::string_view key) const;

  template <typename Read>
  auto required(std::string_view key, const Read& read) const {
    return read(at(key));
  }
  template <typename Read, typename T = std::invoke_result_t<Read, const Value&>>
  T optional(std::string_view key, std::type_identity_t<T> fallback, const Read& read) const {
    const Value value = at(key);
    return value.is_missing() ? std::move(fallback) : read(value);
  }
  template <typename Read, typename T = std::invoke_result_t<Read, const Value&>>
  std::optional<T> maybe(std::string_view key, const Read& read) const {
    const Value value = at(key);
    return value.is_missing() ? std::nullopt : std::optional<T>(read(value));
  }

  // A map or list within this one. Absent, or written without a value, it is empty; an empty list must be allowed by
  // `min_items`.
  Map section(std::string_view key, std::vector<std::string_view> accepted_keys) const;
  List list(std::string_view key, size_t min_items, size_t max_items) const;

 private:
  NodePtr node_;
  Place place_;
  std::string label_;
  std::vector<std::string_view> accepted_;
};

// --- readers
// ----------------------------------------------------------------------------------------------------------

Reader<bool> boolean();  // true, false
Reader<double> number(double min, double max);
Reader<std::string> text(size_t max_length);       // any text without control characters, not empty
Reader<std::string> name_text(size_t max_length);  // letters, digits, `_`, `-`, `.`
Reader<Rate> rate(bool may_be_unlimited = true);   // 1M … 10T, what Rate keeps accurate
Reader<uint64_t> bytes(uint64_t min, uint64_t max);
Reader<Duration> duration(Duration min, Duration max);
Reader<double> share();             // 0 … 1, `5%`
Reader<net::Mac> station_mac();     // of one station: neither multicast nor all zeros
Reader<IpPrefix> unicast_prefix();  // host bits and multicast refused

uint64_t read_integer(const Value& value, uint64_t min, uint64_t max);
template <typename Int = uint64_t>
auto integer(Int min, Int max) {
  return [=](const Value& value) { return static_cast<Int>(read_integer(value, min, max)); };
}

size_t read_word(const Value& value, const std::vector<std::string_view>& words);
// One of some words, each standing for a value.
template <typename T>
auto one_of(std::vector<std::pair<std::string_view, T>> choices) {
  return [choices = std::move(choices)](const Value& value) {
    std::vector<std::string_view> words;
    for (const auto& choice : choices) words.push_back(choice.first);
    return choices[read_word(value, words)].second;
  };
}

// A list, or (a list of one) a single value in its place.
template <typename Read>
auto list_of(Read read, size_t min_items, size_t max_items) {
  return [=](const Value& value) {
    std::vector<std::invoke_result_t<Read, const Value&>> items;
    if (!value.is_list()) {
      items.push_back(read(value));
    } else {
      for (const Value& item : value.list(min_items, max_items)) items.push_back(read(item));
    }
    return items;
  };
}

// --- documents
// --------------------------------------------------------------------------------------------------------

struct OverlayOptions {
  // Setting the `kind` of a map to another one drops the keys that its file gave it for the old kind; keys that come
  // from overlays stay, in whatever order the overlays stand.
  bool new_kind_drops_keys = false;
  // The kind of a map (by its dotted path) that does not say which, so that naming the default drops nothing.
  std::map<std::string, std::string> default_kinds = {};
};

// A file's tree with the overlays applied.
class Document {
 public:
  explicit Document(NodePtr root) : root_(std::move(root)) {}

  Value root() const { return {root_, root_->place, ""}; }

  // What was read, overlays included, in the order written. Plain numbers, booleans and nulls of YAML 1.2's core schema
  // become JSON's; everything else is text.
  nlohmann::ordered_json to_json() const;
  std::string to_yaml() const;

 private:
  NodePtr root_;
};

// An empty file is refused; `{}` is an empty map.
//
// An overlay is `section.key=value`, its value YAML. A number names an item of a list, as does the `name` of an item
// that is a map (`ports.up0.rate=10G`). Maps that do not exist yet are made.
Document load_file(const std::string& path, const std::vector<std::string>& overlays = {},
                   const OverlayOptions& options = {});
Document load_text(std::string_view text, const std::string& name, const std::vector<std::string>& overlays = {},
                   const OverlayOptions& options = {});

}  // namespace heddle::config
