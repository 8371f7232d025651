#include "lab/ideal/shortest_ways.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "lab/topology/switch_graph.h"

namespace heddle::lab {
namespace {

// Leaves × links up to which every leaf is measured from: less than half a second.
constexpr uint64_t kFewWays = uint64_t{1} << 21U;
constexpr size_t kSampledLeaves = 64;

bool is_regular(const Topology& topology) { return topology.kind != "graph" && topology.kind != "file"; }

class Survey {
 public:
  Survey(const Topology& topology, const LinkStates& states, uint64_t frame_bytes)
      : topology_(topology),
        states_(states),
        frame_(frame_bytes),
        graph_(topology, states.up()),
        ends_(graph_.leaves().size()) {
    for (auto& tier : ways_.times) tier.fill(ShortestWays::kNoWay);
    if (is_regular(topology) && !measures_all()) note_fastest();
    put_ends();
  }

  ShortestWays measure() {
    const size_t leaves = ends_.size();
    size_t sources = leaves;
    if (!measures_all()) sources = is_regular(topology_) ? 1 : std::min(leaves, kSampledLeaves);
    for (size_t i = 0; i < sources; ++i) measure_from(static_cast<uint16_t>(i * leaves / sources));
    return ways_;
  }

 private:
  static constexpr Duration kNoWay = ShortestWays::kNoWay;

  // The shortest of a leaf's live host links, in both directions: with the frame's time on it and without.
  struct Ends {
    Duration out = kNoWay;
    Duration in = kNoWay;
    Duration delay = kNoWay;
    uint32_t hosts = 0;
  };

  bool measures_all() const { return ends_.size() * topology_.links.size() <= kFewWays; }

  std::pair<uint16_t, uint16_t> kind_of(const Link& link) const {
    return std::minmax({topology_.nodes[link.a].tier, topology_.nodes[link.b].tier});
  }
  void note_fastest() {
    for (LinkId id = 0; id < topology_.links.size(); ++id) {
      Duration& fastest = fastest_.try_emplace(kind_of(topology_.links[id]), kNoWay).first->second;
      fastest = std::min({fastest, own_time(id, true), own_time(id, false)});
    }
  }
  Duration own_time(LinkId id, bool from_a) const {
    return states_.rate(id, from_a).time_for(frame_ + static_cast<uint64_t>(topology_.links[id].overhead));
  }
  Duration time_on(LinkId id, NodeId sender) const {
    const Link& link = topology_.links[id];
    return fastest_.empty() ? own_time(id, link.a == sender) : fastest_.at(kind_of(link));
  }

  void put_ends() {
    for (HostId host = 0; host < topology_.host_count; ++host) {
      const LinkId id = topology_.ports[host][0];
      if (!states_.is_up(id)) continue;
      Ends& ends = ends_[graph_.leaf_of(host)];
      const Duration delay = topology_.links[id].delay;
      ends.out = std::min(ends.out, delay + time_on(id, host));
      ends.in = std::min(ends.in, delay + time_on(id, topology_.leaf_of(host)));
      ends.delay = std::min(ends.delay, delay);
      ++ends.hosts;
    }
  }

  uint32_t pod_of(uint32_t s) const { return topology_.nodes[topology_.host_count + s].pod; }

  // Whether a link between switch `inner` and the next one is left out of the ways of `leaf`.
  bool leaves_out(WayWithout without, uint16_t leaf, uint32_t inner, uint32_t outer) const {
    if (without == WayWithout::kLeaf) return inner == leaf;
    return without == WayWithout::kPod && pod_of(inner) == pod_of(leaf) && pod_of(outer) != pod_of(leaf);
  }

  // To all switches from a leaf, or from all switches to it, between its switch and theirs (Dijkstra).
  std::vector<Duration> times(uint16_t leaf, bool outwards, WayWithout without) const {
    using Reached = std::pair<Duration, uint32_t>;
    std::vector<Duration> best(graph_.size(), kNoWay);
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> next;
    best[leaf] = 0;
    next.emplace(0, leaf);
    while (!next.empty()) {
      const auto [time, s] = next.top();
      next.pop();
      if (time > best[s]) continue;
      const NodeId node = topology_.host_count + s;
      for (const SwitchGraph::Edge edge : graph_.edges(s)) {
        const LinkId link = topology_.ports[node][edge.port];
        const NodeId sender = outwards ? node : topology_.host_count + edge.neighbor;
        Duration then = time + topology_.links[link].delay;
        if (!leaves_out(without, leaf, s, edge.neighbor)) then += time_on(link, sender);
        if (then >= best[edge.neighbor]) continue;
        best[edge.neighbor] = then;
        next.emplace(then, edge.neighbor);
      }
    }
    return best;
  }

  void keep_smaller(WayTier tier, WayWithout without, Duration way) {
    Duration& smallest = ways_.times[static_cast<size_t>(tier)][static_cast<size_t>(without)];
    smallest = std::min(smallest, way);
  }

  // The pods of leaves without one are all the same.
  WayTier tier_between(uint16_t leaf, uint16_t other) const {
    if (leaf == other) return WayTier::kLeaf;
    return pod_of(leaf) == pod_of(other) ? WayTier::kPod : WayTier::kAcross;
  }

  void measure_from(uint16_t index) {
    const uint16_t leaf = graph_.leaves()[index];
    if (ends_[index].hosts == 0) return;
    measure(index, true, times(leaf, true, WayWithout::kNone), WayWithout::kNone);
    for (const WayWithout without : {WayWithout::kLeaf, WayWithout::kPod}) {
      measure(index, true, times(leaf, true, without), without);
      measure(index, false, times(leaf, false, without), without);
    }
  }

  void measure(uint16_t index, bool outwards, const std::vector<Duration>& times, WayWithout without) {
    const uint16_t leaf = graph_.leaves()[index];
    for (uint16_t i = 0; i < ends_.size(); ++i) {
      const uint16_t other = graph_.leaves()[i];
      const Ends& from = ends_[outwards ? index : i];
      const Ends& to = ends_[outwards ? i : index];
      if (to.hosts == 0 || from.hosts == 0 || times[other] == kNoWay || (i == index && to.hosts == 1)) continue;
      const WayTier tier = tier_between(leaf, other);
      keep_smaller(tier, without, times[other] + from.out + to.in);
      if (without != WayWithout::kNone) continue;
      keep_smaller(tier, WayWithout::kHost, times[other] + std::min(from.out + to.delay, from.delay + to.in));
    }
  }

  const Topology& topology_;
  const LinkStates& states_;
  uint64_t frame_;
  SwitchGraph graph_;
  std::map<std::pair<uint16_t, uint16_t>, Duration> fastest_;  // by kind of link; empty: each link has its own time
  std::vector<Ends> ends_;                                     // by leaf
  ShortestWays ways_;
};

}  // namespace

ShortestWays shortest_ways(const Topology& topology, const LinkStates& states, uint64_t frame_bytes) {
  return Survey(topology, states, frame_bytes).measure();
}

}  // namespace heddle::lab
