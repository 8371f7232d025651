#include "lab/subnet/loops.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "net/random.h"

namespace heddle::lab {
namespace {

using ChannelId = uint32_t;
constexpr ChannelId kNone = UINT32_MAX;

// Channels are numbered by switch, port and lane. A dependency leads from a channel to one of the switch at its end.
class ChannelGraph {
 public:
  ChannelGraph(const Topology& topology, const SubnetTables& tables, const PathChoices& choices)
      : topology_(topology), tables_(tables), choices_(choices), lanes_(tables.lanes()) {
    first_.reserve(topology.switch_count() + 1);
    uint32_t next = 0;
    for (NodeId node = topology.host_count; node < topology.nodes.size(); ++node) {
      first_.push_back(next);
      next += static_cast<uint32_t>(topology.ports[node].size()) * lanes_;
    }
    first_.push_back(next);
    used_.resize(next);
    next_.resize(next);
  }

  void add_all_paths();

  const std::vector<std::vector<ChannelId>>& next() const { return next_; }
  uint64_t used() const { return static_cast<uint64_t>(std::count(used_.begin(), used_.end(), true)); }
  Channel channel(ChannelId id) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), id);
    const auto s = static_cast<uint32_t>(after - first_.begin() - 1);
    const uint32_t rest = id - first_[s];
    return {topology_.host_count + s, static_cast<PortIndex>(rest / lanes_), static_cast<uint8_t>(rest % lanes_)};
  }

 private:
  // A place where packets to one LID on one service level are: a switch, and the port they came in by.
  struct Place {
    uint32_t s;
    uint8_t in_port;
    ChannelId held;  // the channel they came by; kNone from a host
  };

  void add_paths(Lid lid, uint8_t sl, const std::vector<HostId>& sources);
  void add_step(const Place& at, uint8_t out, uint8_t sl);
  bool has_choices(uint8_t sl) const { return choices_.groups != nullptr && ((choices_.levels >> sl) & 1U) != 0; }
  bool is_known(HostId to, Lid lid, uint8_t sl);
  void add_dependency(ChannelId from, ChannelId to);
  uint8_t port_of(NodeId node, LinkId link) const {
    const Link& l = topology_.links[link];
    return static_cast<uint8_t>((l.a == node ? l.a_port : l.b_port) + 1);
  }

  const Topology& topology_;
  const SubnetTables& tables_;
  PathChoices choices_;
  uint32_t lanes_;
  std::vector<uint32_t> first_;  // channels by switch
  std::vector<bool> used_;
  std::vector<std::vector<ChannelId>> next_;  // dependencies, by the channel that is held
  std::vector<Place> walk_;
  std::vector<ChannelId> passed_;
  std::vector<bool> seen_;  // by channel, of the walk
  std::set<uint64_t> known_;
};

// One host of each leaf stands for all: what differs is the service level.
void ChannelGraph::add_all_paths() {
  seen_.resize(used_.size());
  std::vector<HostId> one_per_leaf;
  std::vector<bool> has_one(topology_.switch_count());
  for (HostId host = 0; host < topology_.host_count; ++host) {
    const uint32_t leaf = topology_.leaf_of(host) - topology_.host_count;
    if (!has_one[leaf]) one_per_leaf.push_back(host);
    has_one[leaf] = true;
  }
  std::array<std::vector<HostId>, kServiceLevels> sources;
  for (HostId to = 0; to < topology_.host_count; ++to) {
    if (tables_.host_lids[to] == 0) continue;
    for (std::vector<HostId>& hosts : sources) hosts.clear();
    if (tables_.path_sl.empty()) {
      sources[0] = one_per_leaf;
    } else {
      for (HostId from = 0; from < topology_.host_count; ++from) {
        if (from != to) sources[tables_.sl(from, to)].push_back(from);
      }
    }
    for (uint8_t sl = 0; sl < kServiceLevels; ++sl) {
      for (uint32_t path = 0; !sources[sl].empty() && path < tables_.paths_per_host(); ++path) {
        const auto lid = static_cast<Lid>(tables_.host_lids[to] + path);
        if (has_choices(sl) && tables_.path_sl.empty() && is_known(to, lid, sl)) continue;
        add_paths(lid, sl, sources[sl]);
      }
    }
  }
}

// Whether packets to another LID of the same leaf have the same choices at all switches before it. Groups are many
// ports wide: it pays not to walk them again for each host.
bool ChannelGraph::is_known(HostId to, Lid lid, uint8_t sl) {
  const uint32_t leaf = topology_.leaf_of(to) - topology_.host_count;
  uint64_t signature = mix64(uint64_t{leaf} << 8U | sl);
  for (uint32_t s = 0; s < choices_.groups->size(); ++s) {
    const std::vector<uint16_t>& group = (*choices_.groups)[s].group_of_host;
    if (s != leaf) signature = mix64(signature + (lid < group.size() ? group[lid] : kUnreachable));
  }
  return !known_.insert(signature).second;
}

// Follows the paths as a tree: a channel that has been walked already leads on in the same way.
void ChannelGraph::add_paths(Lid lid, uint8_t sl, const std::vector<HostId>& sources) {
  walk_.clear();
  passed_.clear();
  for (const HostId from : sources) {
    const NodeId leaf = topology_.leaf_of(from);
    walk_.push_back({leaf - topology_.host_count, port_of(leaf, topology_.ports[from][0]), kNone});
  }
  while (!walk_.empty()) {
    const Place at = walk_.back();
    walk_.pop_back();
    if (!has_choices(sl)) {
      add_step(at, tables_.port(at.s, lid), sl);
      continue;
    }
    const SwitchRoutes& routes = (*choices_.groups)[at.s];
    if (lid >= routes.group_of_host.size() || routes.group_of_host[lid] == kUnreachable) continue;
    for (const PortIndex port : routes.groups[routes.group_of_host[lid]]) {
      add_step(at, static_cast<uint8_t>(port + 1), sl);
    }
  }
  for (const ChannelId channel : passed_) seen_[channel] = false;
}

// From a place on by one port.
void ChannelGraph::add_step(const Place& at, uint8_t out, uint8_t sl) {
  const NodeId node = topology_.host_count + at.s;
  if (out == kLftSelf || out > topology_.ports[node].size()) return;
  const LinkId link = topology_.ports[node][out - 1U];
  const NodeId next = topology_.other_end(link, node);
  const uint8_t vl = tables_.vl(at.s, at.in_port, out, sl);
  if (topology_.is_host(next) || vl >= lanes_) return;
  const ChannelId channel = first_[at.s] + (out - 1U) * lanes_ + vl;
  if (at.held != kNone) add_dependency(at.held, channel);
  if (seen_[channel]) return;
  seen_[channel] = true;
  used_[channel] = true;
  passed_.push_back(channel);
  walk_.push_back({next - topology_.host_count, port_of(next, link), channel});
}

void ChannelGraph::add_dependency(ChannelId from, ChannelId to) {
  std::vector<ChannelId>& list = next_[from];
  const auto place = std::lower_bound(list.begin(), list.end(), to);
  if (place == list.end() || *place != to) list.insert(place, to);
}

// Strongly connected components (Tarjan 1972), without recursion: paths can be as long as there are channels.
class Components {
 public:
  explicit Components(const std::vector<std::vector<ChannelId>>& next)
      : next_(next), order_(next.size(), kNone), low_(next.size()), on_stack_(next.size()), on_loop_(next.size()) {
    for (ChannelId c = 0; c < next.size(); ++c) {
      if (order_[c] == kNone) visit(c);
    }
  }
  const std::vector<bool>& on_loop() const { return on_loop_; }

 private:
  struct Frame {
    ChannelId channel;
    size_t done;  // of its dependencies
  };

  void enter(ChannelId c) {
    order_[c] = low_[c] = count_++;
    stack_.push_back(c);
    on_stack_[c] = true;
    frames_.push_back({c, 0});
  }

  void visit(ChannelId root) {
    enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const ChannelId c = frame.channel;
      if (frame.done < next_[c].size()) {
        const ChannelId to = next_[c][frame.done++];
        if (order_[to] == kNone) {
          enter(to);
        } else if (on_stack_[to]) {
          low_[c] = std::min(low_[c], order_[to]);
        }
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) low_[frames_.back().channel] = std::min(low_[frames_.back().channel], low_[c]);
      if (low_[c] == order_[c]) close(c);
    }
  }

  // A component of several channels is a loop, and so would be one that waits for itself.
  void close(ChannelId c) {
    const bool several = stack_.back() != c || std::binary_search(next_[c].begin(), next_[c].end(), c);
    ChannelId member = kNone;
    do {
      member = stack_.back();
      stack_.pop_back();
      on_stack_[member] = false;
      on_loop_[member] = several;
    } while (member != c);
  }

  const std::vector<std::vector<ChannelId>>& next_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> low_;
  std::vector<bool> on_stack_;
  std::vector<bool> on_loop_;
  std::vector<ChannelId> stack_;
  std::vector<Frame> frames_;
  uint32_t count_ = 0;
};

// The shortest way from a channel back to itself, if it is shorter than `limit`.
std::vector<ChannelId> shortest_through(const std::vector<std::vector<ChannelId>>& next,
                                        const std::vector<bool>& on_loop, ChannelId start, size_t limit,
                                        std::vector<ChannelId>& before) {
  std::vector<ChannelId> queue = {start};
  std::vector<ChannelId> found;
  size_t depth = 0;
  for (size_t i = 0, level_end = 1; i < queue.size() && found.empty(); ++i) {
    if (i == level_end) {
      level_end = queue.size();
      if (++depth + 1 >= limit) break;
    }
    for (const ChannelId to : next[queue[i]]) {
      if (to == start) {
        for (ChannelId c = queue[i]; c != start; c = before[c]) found.push_back(c);
        found.push_back(start);
        std::reverse(found.begin(), found.end());
        break;
      }
      if (on_loop[to] && before[to] == kNone) {
        before[to] = queue[i];
        queue.push_back(to);
      }
    }
  }
  for (const ChannelId c : queue) before[c] = kNone;
  return found;
}

}  // namespace

CreditLoops find_credit_loops(const Topology& topology, const SubnetTables& tables, const PathChoices& choices) {
  ChannelGraph graph(topology, tables, choices);
  graph.add_all_paths();
  CreditLoops loops;
  loops.channels = graph.used();
  for (const std::vector<ChannelId>& list : graph.next()) loops.dependencies += list.size();
  const Components components(graph.next());
  const std::vector<bool>& on_loop = components.on_loop();
  loops.in_loops = static_cast<uint64_t>(std::count(on_loop.begin(), on_loop.end(), true));
  // A bounded number of starts: the first of thousands of cycles need not be the very shortest.
  constexpr uint32_t kMostStarts = 4096;
  std::vector<ChannelId> best;
  std::vector<ChannelId> before(on_loop.size(), kNone);
  uint32_t starts = 0;
  for (ChannelId c = 0; c < on_loop.size() && starts < kMostStarts; ++c) {
    if (!on_loop[c]) continue;
    ++starts;
    std::vector<ChannelId> loop =
        shortest_through(graph.next(), on_loop, c, best.empty() ? SIZE_MAX : best.size(), before);
    if (!loop.empty()) best = std::move(loop);
  }
  for (const ChannelId c : best) loops.shortest.push_back(graph.channel(c));
  return loops;
}

std::string describe_loop(const Topology& topology, const std::vector<Channel>& loop, bool with_lanes) {
  std::string text;
  for (size_t i = 0; i <= loop.size() && !loop.empty(); ++i) {
    const Channel& at = loop[i % loop.size()];
    const LinkId id = topology.ports[at.from][at.port];
    const Link& link = topology.links[id];
    const bool forward = link.a == at.from;
    text += fmt::format("{}{}:{}-{}:{}", i == 0 ? "" : " → ", topology.nodes[at.from].name, at.port,
                        topology.nodes[forward ? link.b : link.a].name, forward ? link.b_port : link.a_port);
    if (with_lanes) text += fmt::format(" VL {}", at.vl);
  }
  return text;
}

}  // namespace heddle::lab
