#include "config/yaml_tree.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <unordered_set>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/node/node.h>  // what parser.h declares: clang-tidy takes it for ours otherwise
#include <yaml-cpp/parser.h>

#include "config/words.h"
#include "net/error.h"

namespace heddle::config {
namespace {

[[noreturn]] void refuse(const Place& place, std::string_view found, std::string_view accepted) {
  throw_bad_input("{}: found {}; accepted: {}", place.text(), found, accepted);
}

// Builds the tree from yaml-cpp's events. Events rather than YAML::Node, because a YAML::Node silently keeps both of
// two equal keys and follows an alias bomb wherever it leads.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& name, bool overlay)
      : source_(std::make_shared<const std::string>(name)), overlay_(overlay) {}

  NodePtr root() const { return root_; }
  Place place(const YAML::Mark& mark) const { return {source_, overlay_ ? 0 : mark.line + 1}; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) refuse(place(mark), "a second document", "one YAML document");
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string&) override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_as_key(mark, "an empty key");
    add(mark, anchor, {start(mark, Node::Kind::kNull, "")});
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_escapes(mark, value);
    if (expects_key()) return take_key(mark, value);
    const auto scalar = start(mark, Node::Kind::kScalar, tag);
    scalar->text = value;
    scalar->quoted = tag != "?" && !tag.empty();
    add(mark, anchor, {scalar});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_as_key(mark, "an alias as a key");
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) refuse(place(mark), "an alias inside its own anchor", "an alias after its anchor");
    add(mark, 0, known->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_as_key(mark, "a list as a key");
    open(mark, anchor, start(mark, Node::Kind::kList, tag));
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_as_key(mark, "a map as a key");
    open(mark, anchor, start(mark, Node::Kind::kMap, tag));
  }
  void OnMapEnd() override {
    merge(stack_.back());
    close();
  }

 private:
  // A finished node with its size once every alias in it is written out.
  struct Finished {
    NodePtr node;
    size_t values = 1;
    int height = 1;
  };

  // A list or map between its start and its end.
  struct Open {
    std::shared_ptr<Node> node;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    size_t values = 1;
    int height = 1;
    bool key_pending = false;  // a map whose last entry still lacks its value
    std::unordered_set<std::string> keys;
    std::vector<NodePtr> merged;  // the maps of its `<<` key
  };

  bool expects_key() const {
    return !stack_.empty() && stack_.back().node->kind == Node::Kind::kMap && !stack_.back().key_pending;
  }

  void refuse_as_key(const YAML::Mark& mark, std::string_view found) const {
    // An unclosed bracket looks like the start of such a key to yaml-cpp.
    if (expects_key())
      refuse(place(mark), found, "a plain word as the key, and a closing bracket for each opening one");
  }

  // yaml-cpp turns the escapes \N and \_ into single bytes that are no UTF-8.
  void check_escapes(const YAML::Mark& mark, const std::string& value) const {
    for (size_t at = 0; at < value.size();) {
      const auto byte = static_cast<uint8_t>(value[at]);
      const size_t length = byte < 0x80 ? 1 : utf8_length(value, at);
      if (length == 0) refuse(place(mark), fmt::format("an escape for byte 0x{:02x}", byte), "escapes for UTF-8 text");
      at += length;
    }
  }

  std::shared_ptr<Node> start(const YAML::Mark& mark, Node::Kind kind, const std::string& tag) const {
    constexpr std::string_view string_tag = "tag:yaml.org,2002:str";
    if (!tag.empty() && tag != "?" && tag != "!" && !(kind == Node::Kind::kScalar && tag == string_tag)) {
      refuse(place(mark), fmt::format("tag {}", quote(tag)), "values without a tag");
    }
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->place = place(mark);
    return node;
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, std::shared_ptr<Node> node) {
    Open opened;
    opened.node = std::move(node);
    opened.mark = mark;
    opened.anchor = anchor;
    stack_.push_back(std::move(opened));
    check_depth(mark, 0);
  }

  void close() {
    const Open closed = std::move(stack_.back());
    stack_.pop_back();
    add(closed.mark, closed.anchor, {closed.node, closed.values, closed.height});
  }

  void check_depth(const YAML::Mark& mark, int below) const {
    if (static_cast<int>(stack_.size()) + below > kMaxYamlDepth) {
      refuse(place(mark), "values nested too deeply", fmt::format("at most {} levels", kMaxYamlDepth));
    }
  }

  void take_key(const YAML::Mark& mark, const std::string& key) {
    Open& map = stack_.back();
    if (key.size() > kMaxYamlKey) {
      refuse(place(mark), fmt::format("a key of {} bytes", key.size()), fmt::format("at most {}", kMaxYamlKey));
    }
    if (!map.keys.insert(key).second) {
      const Entry* first = map.node->find(key);
      refuse(place(mark), fmt::format("key {} a second time", quote(key)),
             first != nullptr && !overlay_ ? fmt::format("each key once (first on line {})", first->place.line)
                                           : "each key once");
    }
    map.node->entries.push_back({key, place(mark), nullptr});
    map.key_pending = true;
  }

  // Hands a finished node (or one behind an alias) to the collection around it.
  void add(const YAML::Mark& mark, YAML::anchor_t anchor, const Finished& finished) {
    if (anchor != 0) anchors_[anchor] = finished;
    check_depth(mark, finished.height);
    if (stack_.empty()) {
      root_ = finished.node;
      return;
    }
    Open& parent = stack_.back();
    parent.values += finished.values;
    parent.height = std::max(parent.height, finished.height + 1);
    if (parent.values > kMaxYamlValues) {
      refuse(place(mark), "too many values", fmt::format("at most {}, aliases written out", kMaxYamlValues));
    }
    if (parent.node->kind == Node::Kind::kList) {
      parent.node->items.push_back(finished.node);
    } else {
      parent.key_pending = false;
      Entry& entry = parent.node->entries.back();
      if (entry.key == "<<") {
        take_merged(mark, parent, finished.node);
      } else {
        entry.value = finished.node->kind == Node::Kind::kNull ? null_at(entry.place) : finished.node;
      }
    }
  }

  // yaml-cpp notices a missing value only at what comes next, often lines below its key.
  static NodePtr null_at(const Place& place) {
    auto node = std::make_shared<Node>();
    node->place = place;
    return node;
  }

  // `<<: *map` or `<<: [*map, …]`: their entries become defaults of this map (YAML 1.1 merge key).
  void take_merged(const YAML::Mark& mark, Open& map, const NodePtr& value) const {
    map.node->entries.pop_back();
    map.merged = value->kind == Node::Kind::kList ? value->items : std::vector<NodePtr>{value};
    for (const NodePtr& from : map.merged) {
      if (from->kind != Node::Kind::kMap)
        refuse(place(mark), "something else than maps to merge", "<<: *ANCHOR_OF_A_MAP");
    }
  }

  static void merge(Open& map) {
    for (const NodePtr& from : map.merged) {
      for (const Entry& entry : from->entries) {
        if (map.keys.insert(entry.key).second) map.node->entries.push_back(entry);
      }
    }
  }

  std::shared_ptr<const std::string> source_;
  bool overlay_;
  NodePtr root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Finished> anchors_;
};

// yaml-cpp guesses the encoding and replaces what it cannot decode; a configuration is UTF-8 text or it is refused.
void check_text(std::string_view text, const TreeBuilder& builder) {
  YAML::Mark mark;
  if (text.size() > kMaxYamlBytes) {
    refuse(builder.place(mark), fmt::format("{} bytes", text.size()), fmt::format("at most {}", kMaxYamlBytes));
  }
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) {
      refuse(builder.place(mark), fmt::format("byte 0x{:02x}", static_cast<uint8_t>(text[at])), "YAML in UTF-8 text");
    }
    if (text[at] == '\n') ++mark.line;
    at += length;
  }
}

// Whether a tab stands before the first other character of a line: yaml-cpp's message would not say so.
bool has_tab_indentation(std::string_view text, int line) {
  size_t start = 0;
  for (; line > 0 && start != std::string_view::npos; --line) {
    start = text.find('\n', start);
    if (start != std::string_view::npos) ++start;
  }
  if (start == std::string_view::npos) return false;
  const size_t end = text.find_first_not_of(" \t", start);
  return text.substr(start, end == std::string_view::npos ? end : end - start).find('\t') != std::string_view::npos;
}

}  // namespace

std::string Place::text() const { return is_overlay() ? *source : fmt::format("{}:{}", *source, line); }

const Entry* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

NodePtr parse_yaml(std::string_view text, const std::string& name, bool overlay) {
  TreeBuilder builder(name, overlay);
  check_text(text, builder);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    if (has_tab_indentation(text, e.mark.line)) refuse(builder.place(e.mark), "a tab in the indentation", "spaces");
    std::string message = e.msg;  // may end in the byte that the parser stumbled over
    std::replace_if(
        message.begin(), message.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    refuse(builder.place(e.mark), fmt::format("a YAML syntax error in column {}: {}", e.mark.column + 1, message),
           "YAML (https://yaml.org)");
  }
  if (builder.root()) return builder.root();
  auto empty = std::make_shared<Node>();
  empty->place = builder.place(YAML::Mark());
  return empty;
}

std::string read_text_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw_bad_input("{}: found a directory; accepted: a YAML file", path);
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw_bad_input("{}: found {}; accepted: a readable YAML file", path,
                    errno == ENOENT ? "no such file" : std::strerror(errno));
  }
  // In pieces: a pipe has no size, and /dev/zero no end.
  std::string text;
  std::array<char, 65536> piece;
  while (file.read(piece.data(), piece.size()), file.gcount() > 0) {
    text.append(piece.data(), static_cast<size_t>(file.gcount()));
    if (text.size() > kMaxYamlBytes) {
      throw_bad_input("{}: found more than {} bytes; accepted: at most that many", path, kMaxYamlBytes);
    }
  }
  if (file.bad()) throw_bad_input("{}: found a read error; accepted: a readable YAML file", path);
  return text;
}

}  // namespace heddle::config
