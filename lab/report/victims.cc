#include "lab/report/victims.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace heddle::lab {

namespace {

constexpr uint32_t kFar = UINT32_MAX;

// Hops between switches over live links, worked out for one switch after another as they are asked for.
class Distances {
 public:
  Distances(const Topology& topology, std::vector<bool> up) : topology_(topology), up_(std::move(up)) {}

  uint32_t between(NodeId from, NodeId to) { return of(from)[to]; }

 private:
  const std::vector<uint32_t>& of(NodeId from) {
    const auto [at, fresh] = of_.try_emplace(from);
    std::vector<uint32_t>& far = at->second;
    if (!fresh) return far;
    far.assign(topology_.nodes.size(), kFar);
    far[from] = 0;
    std::vector<NodeId> reached{from};
    for (size_t i = 0; i < reached.size(); ++i) {
      const NodeId node = reached[i];
      for (PortIndex port = 0; port < topology_.ports[node].size(); ++port) {
        const NodeId next = topology_.neighbor(node, port);
        if (!up_[topology_.ports[node][port]] || topology_.is_host(next) || far[next] != kFar) continue;
        far[next] = far[node] + 1;
        reached.push_back(next);
      }
    }
    return far;
  }

  const Topology& topology_;
  std::vector<bool> up_;
  std::map<NodeId, std::vector<uint32_t>> of_;
};

// Whether a packet from `source` to `target` may leave the origin's switch by the origin's port.
bool may_cross(const Topology& topology, Distances& distances, HostId source, HostId target, PauseOrigin origin) {
  const NodeId next = topology.neighbor(origin.node(), origin.port());
  if (topology.is_host(next)) return next == target;
  const NodeId first = topology.leaf_of(source);
  const NodeId last = topology.leaf_of(target);
  const uint32_t whole = distances.between(first, last);
  const uint32_t before = distances.between(first, origin.node());
  const uint32_t after = distances.between(last, next);
  return whole != kFar && before != kFar && after != kFar && before + 1 + after == whole;
}

}  // namespace

std::vector<HeldFlow> find_held_flows(const Topology& topology, const std::vector<LinkEvent>& events,
                                      const Workload& workload, std::vector<HeldMessage> held) {
  LinkStates states(topology);
  for (const LinkEvent& event : events) {
    if (event.at == 0) states.apply(event);
  }
  Distances at_start(topology, states.up());
  for (const LinkEvent& event : events) {
    if (event.at != 0) states.apply(event);
  }
  Distances at_end(topology, states.up());

  std::sort(held.begin(), held.end(), [](const HeldMessage& a, const HeldMessage& b) {
    return std::tuple(a.message, a.origin.mark()) < std::tuple(b.message, b.origin.mark());
  });
  std::vector<HeldFlow> flows;
  for (size_t i = 0; i < held.size();) {
    const PauseOrigin origin = held[i].origin;
    const MessageId id = held[i].message;
    Duration by_origin = 0;
    for (; i < held.size() && held[i].message == id && held[i].origin == origin; ++i)
      by_origin = std::max(by_origin, held[i].held);
    if (flows.empty() || flows.back().message != id) flows.push_back({.message = id});
    HeldFlow& flow = flows.back();
    flow.held += by_origin;
    const Message& message = workload.messages[id];
    if (!origin.is_known() || may_cross(topology, at_start, message.src, message.dst, origin) ||
        may_cross(topology, at_end, message.src, message.dst, origin)) {
      continue;
    }
    flow.by_others += by_origin;
    if (by_origin <= flow.by_origin) continue;
    flow.by_origin = by_origin;
    flow.origin = origin;
  }
  return flows;
}

}  // namespace heddle::lab
