// Documents: loading, overlays, and writing the tree out again.
#include <algorithm>

#include "config/words.h"
#include "config/yaml.h"
#include "net/error.h"

namespace heddle::config {
namespace {

using Path = std::vector<std::string>;

// One `section.key=value`.
struct Overlay {
  std::string source;  // "--set section.key=value", what errors call it
  Path path;
  NodePtr value;
};

[[noreturn]] void refuse(const Overlay& overlay, std::string_view found, std::string_view accepted) {
  throw_bad_input("{}: found {}; accepted: {}", overlay.source, found, accepted);
}

std::string one_line(std::string_view text) {
  std::string line = quote(text);
  return line.substr(1, line.size() - 2);
}

Overlay parse_overlay(const std::string& text) {
  Overlay overlay;
  overlay.source = "--set " + one_line(text);
  constexpr std::string_view accepted = "section.key=value";
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) refuse(overlay, fmt::format("byte 0x{:02x}", static_cast<uint8_t>(text[at])), "UTF-8 text");
    at += length;
  }
  const size_t equals = text.find('=');
  if (equals == std::string::npos) refuse(overlay, "no '='", accepted);
  std::string path;  // `ports[0].rate`, as errors write it, is `ports.0.rate`
  for (const char c : text.substr(0, equals)) {
    if (c != ']') path += c == '[' ? '.' : c;
  }
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('.', at), path.size());
    if (end == at) refuse(overlay, "an empty name in the path", accepted);
    if (end - at > kMaxYamlKey) refuse(overlay, "a name too long", fmt::format("at most {} bytes", kMaxYamlKey));
    overlay.path.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  if (overlay.path.size() > kMaxYamlDepth) {
    refuse(overlay, fmt::format("a path of {} names", overlay.path.size()), fmt::format("at most {}", kMaxYamlDepth));
  }
  overlay.value = parse_yaml(std::string_view(text).substr(equals + 1), overlay.source, true);
  return overlay;
}

// What overlays put under this node, without what the file put there; null if nothing.
NodePtr only_overlaid(const NodePtr& node) {
  if (node->place.is_overlay()) return node;
  if (node->kind == Node::Kind::kMap) {
    auto kept = std::make_shared<Node>(*node);
    kept->entries.clear();
    for (const Entry& entry : node->entries) {
      if (NodePtr value = only_overlaid(entry.value)) kept->entries.push_back({entry.key, entry.place, value});
    }
    return kept->entries.empty() ? nullptr : kept;
  }
  // A list keeps its place and its length: its items are named by number.
  const bool any = std::any_of(node->items.begin(), node->items.end(),
                               [](const NodePtr& item) { return only_overlaid(item) != nullptr; });
  return any ? node : nullptr;
}

void drop_old_kind(Node& map, const Overlay& overlay, const OverlayOptions& options) {
  std::string where;
  for (size_t i = 0; i + 1 < overlay.path.size(); ++i) where += (i == 0 ? "" : ".") + overlay.path[i];
  std::string old_kind;
  if (const auto known = options.default_kinds.find(where); known != options.default_kinds.end()) {
    old_kind = known->second;
  }
  if (const Entry* entry = map.find("kind")) old_kind = entry->value->text;
  if (overlay.value->kind == Node::Kind::kScalar && overlay.value->text == old_kind) return;
  std::vector<Entry> kept;
  for (const Entry& entry : map.entries) {
    if (NodePtr value = only_overlaid(entry.value)) kept.push_back({entry.key, entry.place, value});
  }
  map.entries = std::move(kept);
}

// The item of a list that a path names, by its number or by its `name`.
size_t item_index(const Node& list, const Overlay& overlay, size_t depth) {
  const std::string& name = overlay.path[depth];
  if (const auto index = parse_integer(name); index && *index < list.items.size()) return *index;
  for (size_t i = 0; i < list.items.size(); ++i) {
    const Entry* entry = list.items[i]->find("name");
    if (entry != nullptr && entry->value->text == name) return i;
  }
  refuse(overlay, fmt::format("no item {} in the list of {}", quote(name), list.items.size()),
         list.items.empty() ? "no item, the list is empty"
                            : fmt::format("0 to {}, or the name of an item", list.items.size() - 1));
}

// A copy of `node` with the overlay applied below it; nodes off the path are shared.
NodePtr applied(const NodePtr& node, const Overlay& overlay, size_t depth, const OverlayOptions& options) {
  if (depth == overlay.path.size()) return overlay.value;
  auto copy = std::make_shared<Node>(*node);
  const std::string& name = overlay.path[depth];
  if (copy->kind == Node::Kind::kList) {
    NodePtr& item = copy->items[item_index(*copy, overlay, depth)];
    item = applied(item, overlay, depth + 1, options);
    return copy;
  }
  if (copy->kind == Node::Kind::kScalar) {
    refuse(overlay, fmt::format("{} before {}, which holds no keys", quote(node->text), quote(name)),
           "the path of a key, such as section.key");
  }
  copy->kind = Node::Kind::kMap;
  if (options.new_kind_drops_keys && name == "kind" && depth + 1 == overlay.path.size()) {
    drop_old_kind(*copy, overlay, options);
  }
  const Place place = overlay.value->place;
  for (Entry& entry : copy->entries) {
    if (entry.key != name) continue;
    entry.value = applied(entry.value, overlay, depth + 1, options);
    if (depth + 1 == overlay.path.size()) entry.place = place;
    return copy;
  }
  auto made = std::make_shared<Node>();
  made->place = place;
  copy->entries.push_back({name, place, applied(made, overlay, depth + 1, options)});
  return copy;
}

Document overlaid(NodePtr root, const std::vector<std::string>& overlays, const OverlayOptions& options) {
  for (const std::string& text : overlays) root = applied(root, parse_overlay(text), 0, options);
  return Document(std::move(root));
}

bool is_json_number(const std::string& text) {
  if (text.empty() || !(text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) return false;
  return nlohmann::ordered_json::parse(text, nullptr, false).is_number();
}

nlohmann::ordered_json json_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kScalar:
      if (!node.quoted && (node.text == "true" || node.text == "false")) return node.text == "true";
      if (!node.quoted && is_json_number(node.text)) return nlohmann::ordered_json::parse(node.text);
      return node.text;
    case Node::Kind::kList: {
      auto list = nlohmann::ordered_json::array();
      for (const NodePtr& item : node.items) list.push_back(json_of(*item));
      return list;
    }
    case Node::Kind::kMap:
      break;
  }
  auto map = nlohmann::ordered_json::object();
  for (const Entry& entry : node.entries) map[entry.key] = json_of(*entry.value);
  return map;
}

// As it was written if that is unmistakable, else in quotes (a JSON string is a YAML double-quoted one).
std::string yaml_scalar(const std::string& text, bool quoted) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/' ||
           c == '.' || c == '-' || c == '+' || c == '%' || c == ':';
  };
  const bool is_null = text == "null" || text == "Null" || text == "NULL";  // YAML 1.2 10.2.1.1
  const bool plain = !quoted && !is_null && !text.empty() && std::all_of(text.begin(), text.end(), is_plain) &&
                     text.back() != ':' && std::string_view(":.-+%").find(text[0]) == std::string_view::npos;
  return plain || (!quoted && is_json_number(text)) ? text : nlohmann::json(text).dump();
}

// Block style. `inline_first`: the first entry goes on the line already begun, behind a list item's dash.
void write_yaml(std::string& out, const Node& node, size_t indent, bool inline_first) {
  auto begin_entry = [&, first = inline_first]() mutable {
    if (!first) out.append("\n").append(indent, ' ');
    first = false;
  };
  switch (node.kind) {
    case Node::Kind::kNull:
      out += "null";
      break;
    case Node::Kind::kScalar:
      out += yaml_scalar(node.text, node.quoted);
      break;
    case Node::Kind::kList:
      if (node.items.empty()) out += "[]";
      for (const NodePtr& item : node.items) {
        begin_entry();
        out += "- ";
        write_yaml(out, *item, indent + 2, true);
      }
      break;
    case Node::Kind::kMap:
      if (node.entries.empty()) out += "{}";
      for (const Entry& entry : node.entries) {
        begin_entry();
        out += yaml_scalar(entry.key, false) + ":";
        const Node& value = *entry.value;
        const bool one_line = value.items.empty() && value.entries.empty();
        if (one_line) out += ' ';
        write_yaml(out, value, indent + 2, one_line);
      }
      break;
  }
}

}  // namespace

nlohmann::ordered_json Document::to_json() const { return json_of(*root_); }

std::string Document::to_yaml() const {
  std::string out;
  write_yaml(out, *root_, 0, true);
  return out + "\n";
}

Document load_file(const std::string& path, const std::vector<std::string>& overlays, const OverlayOptions& options) {
  return load_text(read_text_file(path), path, overlays, options);
}

Document load_text(std::string_view text, const std::string& name, const std::vector<std::string>& overlays,
                   const OverlayOptions& options) {
  NodePtr root = parse_yaml(text, name);
  if (root->kind == Node::Kind::kNull) {
    throw_bad_input("{}: found an empty file; accepted: a YAML map, {{}} for one with every default",
                    root->place.text());
  }
  return overlaid(std::move(root), overlays, options);
}

}  // namespace heddle::config
