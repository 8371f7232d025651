// ibnetdiscover's output and ibsim's net files: a block of lines per node of a subnet.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lab/subnet/ibnetdiscover.h"
#include "lab/subnet/tables.h"
#include "lab/topology/builders.h"
#include "lab/topology/import.h"
#include "lab/topology/import_text.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr size_t kNoNode = SIZE_MAX;

enum class FileKind : uint8_t { kSwitch, kAdapter, kRouter };

struct FilePort {
  uint16_t number = 0;
  std::string remote;
  uint16_t remote_number = 1;  // as ibsim takes it where it is not written
  std::optional<Rate> rate;
  int line = 0;
};

struct FileNode {
  FileKind kind = FileKind::kSwitch;
  std::string id;
  std::string description;
  uint64_t guid = 0;  // 0 = not given
  uint32_t port_count = 0;
  std::vector<FilePort> ports;
  int line = 0;
};

// Parts of one line, taken from its front.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool take(std::string_view prefix) {
    skip_blanks();
    if (rest_.substr(0, prefix.size()) != prefix) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  // What follows up to `end`, which is taken too. Nothing if `end` is missing.
  std::optional<std::string_view> take_until(char end) {
    const size_t at = rest_.find(end);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view part = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return part;
  }
  std::optional<uint64_t> take_number(int base = 10) {
    skip_blanks();
    uint64_t value = 0;
    const auto [end, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (status != std::errc{}) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  std::string_view rest() const { return rest_; }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\r')) {
      rest_.remove_prefix(1);
    }
  }
  std::string_view rest_;
};

// Reads the blocks as they are.
class BlockReader {
 public:
  BlockReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  std::vector<FileNode> read() {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size());
      const std::string_view line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++line_;
      read_line(line);
    }
    return std::move(nodes_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_bad_input("{}:{}: {}", file_, line_, fmt::format(format, std::forward<Args>(args)...));
  }

  void read_line(std::string_view text);
  void read_node(FileKind kind, Line line);
  void read_port(Line line);

  std::string_view text_;
  std::string file_;
  int line_ = 0;
  uint64_t guid_ = 0;  // of the node that comes next
  std::vector<FileNode> nodes_;
};

void BlockReader::read_line(std::string_view text) {
  Line line(text);
  if (line.take("[")) return read_port(line);
  for (const std::string_view word : {"switchguid=0x", "caguid=0x", "hcaguid=0x", "rtguid=0x"}) {
    if (!line.take(word)) continue;
    const std::optional<uint64_t> guid = line.take_number(16);
    if (!guid) fail("the GUID is {}; accepted: 0x and up to 16 hexadecimal digits", quoted(line.rest()));
    guid_ = *guid;
    return;
  }
  if (line.take("Switch")) return read_node(FileKind::kSwitch, line);
  if (line.take("Ca") || line.take("Hca")) return read_node(FileKind::kAdapter, line);
  if (line.take("Rt")) return read_node(FileKind::kRouter, line);
  for (const std::string_view word : {"include", "module", "do ", "@"}) {
    if (line.take(word)) fail("found ibsim's '{}'; accepted: nodes and ports as ibnetdiscover prints them", word);
  }
  // Comments, vendid, devid, sysimgguid and ibsim's settings say nothing about the topology.
}

void BlockReader::read_node(FileKind kind, Line line) {
  FileNode node;
  node.kind = kind;
  node.line = line_;
  node.guid = std::exchange(guid_, 0);
  const std::optional<uint64_t> ports = line.take_number();
  if (!ports || *ports == 0 || *ports > kMaxSubnetPorts) {
    fail("the number of ports of a node is {}; accepted: 1 to {}",
         ports ? fmt::format("{}", *ports) : quoted(line.rest()), kMaxSubnetPorts);
  }
  node.port_count = static_cast<uint32_t>(*ports);
  std::optional<std::string_view> id;
  if (line.take("\"")) id = line.take_until('"');
  if (!id || id->empty()) fail("a node without its id; accepted: Switch PORTS \"ID\", Ca PORTS \"ID\"");
  node.id = *id;
  node.description = node.id;
  if (line.take("#") && line.take("\"")) node.description = line.take_until('"').value_or(node.id);
  if (nodes_.size() > kMaxHosts + kMaxSwitches) fail("more than {} nodes", kMaxHosts + kMaxSwitches);
  nodes_.push_back(std::move(node));
}

// [1]	"S-0002c903000048"[17](guid)	# "description" lid 3 4xQDR
void BlockReader::read_port(Line line) {
  if (nodes_.empty()) fail("a port before the first node");
  FileNode& node = nodes_.back();
  FilePort port;
  port.line = line_;
  const std::optional<uint64_t> number = line.take_number();
  if (!number || *number == 0 || *number > node.port_count || !line.take("]")) {
    fail("a port of {} has no number from 1 to {}", quoted(node.id), node.port_count);
  }
  port.number = static_cast<uint16_t>(*number);
  if (line.take("(")) line.take_until(')');
  std::optional<std::string_view> remote;
  if (line.take("\"")) remote = line.take_until('"');
  if (!remote)
    fail("port {} of {} does not say where it leads; accepted: [PORT] \"ID\"[PORT]", *number, quoted(node.id));
  port.remote = *remote;
  if (line.take("[")) {
    const std::optional<uint64_t> far = line.take_number();
    if (!far || *far == 0 || *far > kMaxSubnetPorts || !line.take("]")) {
      fail("port {} of {} leads to no port from 1 to {}", *number, quoted(node.id), kMaxSubnetPorts);
    }
    port.remote_number = static_cast<uint16_t>(*far);
  }
  // The link's width and speed is the last word, after descriptions that may hold anything.
  const std::string_view rest = line.rest();
  const size_t end = rest.find_last_not_of(" \t\r");
  if (end != std::string_view::npos) {
    const std::string_view words = rest.substr(0, end + 1);
    const size_t begin = words.find_last_of(" \t");
    port.rate = infiniband_rate(begin == std::string_view::npos ? words : words.substr(begin + 1));
  }
  node.ports.push_back(std::move(port));
}

// Makes the topology of the blocks.
class Builder {
 public:
  Builder(std::vector<FileNode> nodes, std::string_view file, const ImportSettings& settings)
      : nodes_(std::move(nodes)), file_(file), settings_(settings) {}

  Topology build() {
    index_nodes();
    for (size_t n = 0; n < nodes_.size(); ++n) read_links(n);
    add_hosts();
    add_switches();
    add_links();
    derive_tiers_and_pods(topology_);
    note_rest();
    return std::move(topology_);
  }

 private:
  using End = std::pair<size_t, uint16_t>;  // a node of the file and one of its ports
  struct FileLink {
    End far;
    std::optional<Rate> rate;
  };

  template <typename... Args>
  [[noreturn]] void fail(int line, fmt::format_string<Args...> format, Args&&... args) const {
    throw_bad_input("{}:{}: {}", file_, line, fmt::format(format, std::forward<Args>(args)...));
  }

  void index_nodes();
  void read_links(size_t n);
  void enter(End from, End to, std::optional<Rate> rate, int line);
  void add_hosts();
  void add_switches();
  void add_links();
  void connect(End end, const FileLink& link);
  void note_rest();
  std::string unique_name(const FileNode& node, const std::string& suffix);

  std::vector<FileNode> nodes_;
  std::string file_;
  ImportSettings settings_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<End, FileLink> links_;  // from both of their ends
  std::map<End, NodeId> node_of_;  // an adapter's port; a switch's port 0
  std::set<std::string> names_;
  size_t routers_ = 0;
  size_t without_speed_ = 0;
  Topology topology_;
};

void Builder::index_nodes() {
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (!index_.emplace(nodes_[n].id, n).second) fail(nodes_[n].line, "node {} comes twice", quoted(nodes_[n].id));
    routers_ += nodes_[n].kind == FileKind::kRouter ? 1 : 0;
  }
}

void Builder::read_links(size_t n) {
  for (const FilePort& port : nodes_[n].ports) {
    const auto place = index_.find(port.remote);
    const size_t far = place == index_.end() ? kNoNode : place->second;
    if (far == kNoNode) fail(port.line, "port {} leads to {}, which is no node", port.number, quoted(port.remote));
    if (nodes_[n].kind == FileKind::kRouter || nodes_[far].kind == FileKind::kRouter) continue;
    if (port.remote_number > nodes_[far].port_count) {
      fail(port.line, "port {} leads to port {} of {}, which has {}", port.number, port.remote_number,
           quoted(port.remote), nodes_[far].port_count);
    }
    const End from{n, port.number};
    const End to{far, port.remote_number};
    if (from == to) fail(port.line, "port {} leads to itself", port.number);
    enter(from, to, port.rate, port.line);
    enter(to, from, port.rate, port.line);
  }
}

void Builder::enter(End from, End to, std::optional<Rate> rate, int line) {
  const auto [place, is_new] = links_.try_emplace(from, FileLink{to, rate});
  if (!is_new && place->second.far != to) {
    const FileLink& other = place->second;
    fail(line, "port {} of {} leads to port {} of {} and to port {} of {}", from.second, quoted(nodes_[from.first].id),
         other.far.second, quoted(nodes_[other.far.first].id), to.second, quoted(nodes_[to.first].id));
  }
  if (!place->second.rate) place->second.rate = rate;
}

// What may stand in "leaf0:3-spine1": no blanks, no colons.
std::string Builder::unique_name(const FileNode& node, const std::string& suffix) {
  std::string name = node.description.substr(0, 64) + suffix;
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte > 0x7e || c == ':' || c == '"') c = '_';
  }
  if (!names_.insert(name).second) {
    name += "_" + node.id + suffix;
    if (!names_.insert(name).second) fail(node.line, "two nodes would be called {}", quoted(name));
  }
  return name;
}

void Builder::add_hosts() {
  std::set<size_t> linked_ports;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].kind != FileKind::kAdapter) continue;
    const auto begin = links_.lower_bound({n, 0});
    const auto end = links_.lower_bound({n + 1, 0});
    const auto count = static_cast<size_t>(std::distance(begin, end));
    if (count > 0) linked_ports.insert(count);
    for (auto link = begin; link != end; ++link) {
      const uint16_t number = link->first.second;
      node_of_[link->first] =
          topology_.add_host(unique_name(nodes_[n], count > 1 ? fmt::format("_p{}", number) : ""), kNoPod);
      topology_.guids.push_back(nodes_[n].guid);
    }
  }
  if (linked_ports.size() == 1) topology_.hosts_per_server = static_cast<uint32_t>(*linked_ports.begin());
}

void Builder::add_switches() {
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].kind != FileKind::kSwitch) continue;
    if (links_.lower_bound({n, 0}) == links_.lower_bound({n + 1, 0})) continue;  // nothing hangs on it
    node_of_[{n, 0}] = topology_.add_switch(unique_name(nodes_[n], ""), 0, kNoPod);
    topology_.guids.push_back(nodes_[n].guid);
  }
}

// Hosts' links first, then by switch and port, so that ports keep their order where that can be.
void Builder::add_links() {
  topology_.port_numbers.resize(topology_.nodes.size());
  for (const FileKind kind : {FileKind::kAdapter, FileKind::kSwitch}) {
    for (const auto& [end, link] : links_) {
      if (nodes_[end.first].kind != kind) continue;
      const bool far_is_host = nodes_[link.far.first].kind == FileKind::kAdapter;
      if (kind == FileKind::kAdapter && far_is_host) {
        fail(nodes_[end.first].line, "{} and {} are linked directly; accepted: hosts linked to switches",
             quoted(nodes_[end.first].id), quoted(nodes_[link.far.first].id));
      }
      if (kind == FileKind::kSwitch && (far_is_host || link.far < end)) continue;  // done from there
      connect(end, link);
    }
  }
  // A file of ibsim may do without GUIDs: then all are made up.
  if (std::find(topology_.guids.begin(), topology_.guids.end(), 0) != topology_.guids.end()) topology_.guids.clear();
}

void Builder::connect(End end, const FileLink& link) {
  const auto node_at = [&](End at) {
    return node_of_.at(nodes_[at.first].kind == FileKind::kSwitch ? End{at.first, 0} : at);
  };
  const NodeId a = node_at(end);
  const NodeId b = node_at(link.far);
  without_speed_ += link.rate ? 0 : 1;
  topology_.connect(
      a, b, {.rate = link.rate.value_or(settings_.rate), .delay = settings_.delay, .overhead = settings_.overhead});
  topology_.port_numbers[a].push_back(end.second);
  topology_.port_numbers[b].push_back(link.far.second);
}

void Builder::note_rest() {
  if (routers_ > 0) topology_.notes.push_back(fmt::format("{} routers left out: the lab has one subnet", routers_));
  if (without_speed_ > 0) {
    topology_.notes.push_back(
        fmt::format("{} links have no speed in the file: {:g} Gb/s assumed", without_speed_, settings_.rate.gbps()));
  }
}

}  // namespace

Topology parse_ibnetdiscover_topology(std::string_view text, std::string_view file, const ImportSettings& settings) {
  return Builder(BlockReader(text, file).read(), file, settings).build();
}

}  // namespace heddle::lab
