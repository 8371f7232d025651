#include "lab/subnet/load.h"

#include <algorithm>
#include <numeric>

#include "net/random.h"

namespace heddle::lab {
namespace {

// Follows paths and counts them per direction of a link: 2 × link for a to b, 2 × link + 1 back.
class Counter {
 public:
  Counter(const Topology& topology, const SubnetTables& tables)
      : topology_(topology), tables_(tables), counts_(2 * topology.links.size()) {}

  // The directions of links that the path from one host to another takes, behind the first host's own link.
  void follow(HostId from, HostId to, std::vector<uint32_t>& path) const {
    path.clear();
    NodeId node = topology_.leaf_of(from);
    for (uint32_t hops = 0; hops <= topology_.switch_count(); ++hops) {
      const uint8_t port = tables_.port(node - topology_.host_count, tables_.host_lids[to]);
      if (port == kLftSelf || port > topology_.ports[node].size()) return;
      const LinkId link = topology_.ports[node][port - 1U];
      path.push_back(2 * link + (topology_.links[link].a == node ? 0 : 1));
      node = topology_.other_end(link, node);
      if (topology_.is_host(node)) return;
    }
  }

  void add(const std::vector<uint32_t>& path) {
    for (const uint32_t direction : path) ++counts_[direction];
  }
  void remove(const std::vector<uint32_t>& path) {
    for (const uint32_t direction : path) --counts_[direction];
  }
  uint64_t most_on(const std::vector<uint32_t>& path) const {
    uint64_t most = 1;
    for (const uint32_t direction : path) most = std::max<uint64_t>(most, counts_[direction]);
    return most;
  }
  const std::vector<uint32_t>& counts() const { return counts_; }

 private:
  const Topology& topology_;
  const SubnetTables& tables_;
  std::vector<uint32_t> counts_;
};

// One flow from each host to its partner: the most flows on a link, and the shares of all flows added up.
struct FlowsOnLinks {
  uint64_t most = 0;
  double shares = 0;
};

FlowsOnLinks count_flows(Counter& counter, const std::vector<HostId>& from, const std::vector<HostId>& to) {
  std::vector<std::vector<uint32_t>> paths(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    counter.follow(from[i], to[i], paths[i]);
    counter.add(paths[i]);
  }
  FlowsOnLinks flows;
  for (const std::vector<uint32_t>& path : paths) {
    const uint64_t most = counter.most_on(path);
    flows.most = std::max(flows.most, most);
    flows.shares += 1.0 / static_cast<double>(most);
  }
  for (const std::vector<uint32_t>& path : paths) counter.remove(path);
  return flows;
}

}  // namespace

PathsPerLink count_paths(const Topology& topology, const std::vector<bool>& link_up, const SubnetTables& tables) {
  Counter counter(topology, tables);
  std::vector<uint32_t> path;
  // Hosts of one leaf take the same way: one stands for all of them.
  std::vector<uint32_t> hosts_of(topology.nodes.size());
  std::vector<HostId> one_per_leaf;
  for (HostId host = 0; host < topology.host_count; ++host) {
    if (hosts_of[topology.leaf_of(host)]++ == 0) one_per_leaf.push_back(host);
  }
  std::vector<uint64_t> paths(2 * topology.links.size());
  for (HostId to = 0; to < topology.host_count; ++to) {
    for (const HostId from : one_per_leaf) {
      counter.follow(from, to, path);
      for (const uint32_t direction : path) paths[direction] += hosts_of[topology.leaf_of(from)];
    }
  }
  PathsPerLink result;
  result.least = UINT64_MAX;
  uint64_t sum = 0;
  for (LinkId link = 0; link < topology.links.size(); ++link) {
    if (!link_up[link] || topology.is_host(topology.links[link].a) || topology.is_host(topology.links[link].b))
      continue;
    for (const uint32_t direction : {2 * link, 2 * link + 1}) {
      ++result.links;
      result.least = std::min(result.least, paths[direction]);
      result.most = std::max(result.most, paths[direction]);
      sum += paths[direction];
    }
  }
  if (result.links == 0) return {};
  result.mean = static_cast<double>(sum) / static_cast<double>(result.links);
  return result;
}

ShiftContention shift_contention(const Topology& topology, const SubnetTables& tables,
                                 const std::vector<HostId>& order) {
  constexpr size_t kMostShifts = 1024;
  Counter counter(topology, tables);
  ShiftContention result;
  std::vector<HostId> to(order.size());
  const size_t all = order.size() - 1;
  const size_t count = std::min(all, kMostShifts);
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t shift = 1 + i * all / count;
    for (size_t place = 0; place < order.size(); ++place) to[place] = order[(place + shift) % order.size()];
    const uint64_t most = count_flows(counter, order, to).most;
    ++result.shifts;
    result.free += most <= 1 ? 1 : 0;
    result.most = std::max(result.most, most);
    sum += most;
  }
  result.mean = result.shifts == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(result.shifts);
  return result;
}

PermutationContention permutation_contention(const Topology& topology, const SubnetTables& tables, uint64_t seed,
                                             uint32_t permutations) {
  Counter counter(topology, tables);
  PermutationContention result;
  const std::vector<HostId> from = natural_order(topology);
  std::vector<HostId> to = from;
  for (uint32_t round = 0; round < permutations && from.size() > 1; ++round) {
    Random random(seed, round);
    // Sattolo's: one cycle, so nobody sends to itself.
    for (uint32_t i = static_cast<uint32_t>(to.size()) - 1; i > 0; --i) std::swap(to[i], to[random.below(i)]);
    const FlowsOnLinks flows = count_flows(counter, from, to);
    ++result.permutations;
    result.mean_most += static_cast<double>(flows.most);
    result.mean_share += flows.shares / static_cast<double>(from.size());
    to = from;
  }
  if (result.permutations > 0) {
    result.mean_most /= result.permutations;
    result.mean_share /= result.permutations;
  }
  return result;
}

std::vector<HostId> natural_order(const Topology& topology) {
  std::vector<HostId> order(topology.host_count);
  std::iota(order.begin(), order.end(), HostId{0});
  return order;
}

}  // namespace heddle::lab
