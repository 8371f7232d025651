// A YAML document as a tree of nodes that remember where they were written. Most code wants config/yaml.h, the view
// with types, ranges and error texts; this is what lies beneath it.
//
// Nodes never change once built, so that aliases (`*name`) and overlays share what they do not touch.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::config {

// Where a value was written: a line of a file, or a command-line overlay (line 0).
struct Place {
  std::shared_ptr<const std::string> source;
  int line = 0;

  bool is_overlay() const { return line == 0; }
  std::string text() const;  // "leaf.yaml:12" or "--set ports.0.rate=10G"
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Entry {
  std::string key;
  Place place;  // of the key
  NodePtr value;
};

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  bool quoted = false;  // a scalar in quotes or a block scalar: text, never a number or a boolean
  Place place;
  std::string text;            // of a scalar
  std::vector<NodePtr> items;  // of a list
  std::vector<Entry> entries;  // of a map, in the order written; keys are unique

  const Entry* find(std::string_view key) const;
};

// What one document may hold, so that no input takes the process down: bytes of text, levels of nesting, bytes
// of a key, and values once every alias is written out in full.
inline constexpr size_t kMaxYamlBytes = size_t{64} << 20U;
inline constexpr int kMaxYamlDepth = 64;
inline constexpr size_t kMaxYamlKey = 256;
inline constexpr size_t kMaxYamlValues = 8'000'000;

// Parses one YAML document; `name` is what errors call it. With `overlay`, places carry no line. Aliases and merge keys
// (`<<: *name`) are resolved. Throws bad input, one line: a syntax error, duplicate or non-scalar keys, tags, a second
// document, text that is not UTF-8, more than the limits above. An empty text gives a null node.
NodePtr parse_yaml(std::string_view text, const std::string& name, bool overlay = false);

// Reads a whole file (or pipe) for parse_yaml; throws bad input if it cannot be read or is too large.
std::string read_text_file(const std::string& path);

}  // namespace heddle::config
