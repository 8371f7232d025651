#include "lab/subnet/check.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include "net/error.h"

namespace heddle::lab {
namespace {

enum class Fate : uint8_t { kUnknown, kOnTheWay, kArrives, kDropped, kLoops, kMisled };

// Where a packet to one LID ends from one switch on.
struct Way {
  Fate fate = Fate::kUnknown;
  uint16_t hops = 0;  // links from here to the host
};

// One switch's step towards a LID.
struct Step {
  Fate fate = Fate::kUnknown;  // kUnknown: on to `next`
  NodeId next = 0;
};

// What became of the packets of all hosts to one LID.
struct Result {
  SubnetCheck counts;
  HostId failed_from = kMaxHosts;  // the first host whose packet failed
};

class Follower {
 public:
  Follower(const Topology& topology, const std::vector<bool>& link_up, const SubnetTables& tables)
      : topology_(topology), link_up_(link_up), tables_(tables) {}

  Result follow_all(HostId to, Lid lid) const;
  std::string describe(HostId from, HostId to, Lid lid) const;

 private:
  Step step(uint32_t s, HostId to, Lid lid) const;
  const Way& follow(uint32_t s, HostId to, Lid lid, std::vector<Way>& ways, std::vector<uint32_t>& path) const;

  const Topology& topology_;
  const std::vector<bool>& link_up_;
  const SubnetTables& tables_;
};

Step Follower::step(uint32_t s, HostId to, Lid lid) const {
  const NodeId node = topology_.host_count + s;
  const uint8_t port = tables_.port(s, lid);
  if (port == kLftSelf || port > topology_.ports[node].size()) return {Fate::kDropped, node};
  const LinkId link = topology_.ports[node][port - 1U];
  const NodeId next = topology_.other_end(link, node);
  if (!link_up_[link]) return {Fate::kDropped, next};
  if (topology_.is_host(next)) return {next == to ? Fate::kArrives : Fate::kMisled, next};
  return {Fate::kUnknown, next};
}

// Walks to where the fate is known, then writes it to all switches passed.
const Way& Follower::follow(uint32_t s, HostId to, Lid lid, std::vector<Way>& ways, std::vector<uint32_t>& path) const {
  path.clear();
  uint32_t at = s;
  while (ways[at].fate == Fate::kUnknown) {
    ways[at].fate = Fate::kOnTheWay;
    path.push_back(at);
    const Step next = step(at, to, lid);
    if (next.fate != Fate::kUnknown) {
      ways[at] = {next.fate, 1};
      path.pop_back();
      break;
    }
    at = next.next - topology_.host_count;
  }
  Way way = ways[at];
  if (way.fate == Fate::kOnTheWay) way = {Fate::kLoops, 0};
  for (size_t i = path.size(); i-- > 0;) {
    ++way.hops;
    ways[path[i]] = way;
  }
  return ways[s];
}

Result Follower::follow_all(HostId to, Lid lid) const {
  Result result;
  SubnetCheck& counts = result.counts;
  std::vector<Way> ways(tables_.switches.size());
  std::vector<uint32_t> path;
  for (HostId from = 0; from < topology_.host_count; ++from) {
    if (from == to) continue;
    ++counts.pairs;
    Way way{Fate::kDropped, 0};
    if (link_up_[topology_.ports[from][0]]) {
      way = follow(topology_.leaf_of(from) - topology_.host_count, to, lid, ways, path);
    }
    const uint32_t hops = way.hops + 1U;
    switch (way.fate) {
      case Fate::kArrives:
        ++counts.reachable;
        counts.most_hops = std::max(counts.most_hops, hops);
        counts.all_hops += hops;
        break;
      case Fate::kLoops:
        ++counts.looping;
        break;
      case Fate::kMisled:
        ++counts.misled;
        break;
      default:
        ++counts.dropped;
        break;
    }
    if (way.fate != Fate::kArrives) result.failed_from = std::min(result.failed_from, from);
  }
  return result;
}

std::string Follower::describe(HostId from, HostId to, Lid lid) const {
  const auto name = [&](NodeId node) -> const std::string& { return topology_.nodes[node].name; };
  std::string text = fmt::format("{} to {} (LID {}): {}", name(from), name(to), lid, name(from));
  if (!link_up_[topology_.ports[from][0]]) return text + ", whose link is down";
  std::vector<bool> passed(tables_.switches.size());
  NodeId node = topology_.leaf_of(from);
  while (true) {
    const uint32_t s = node - topology_.host_count;
    text += fmt::format(", {}", name(node));
    if (passed[s]) return text + ", where it has been";
    passed[s] = true;
    const Step next = step(s, to, lid);
    if (next.fate == Fate::kMisled) return text + fmt::format(", which gives it to {}", name(next.next));
    if (next.fate == Fate::kDropped && next.next != node) {
      return text + fmt::format(", whose link to {} is down", name(next.next));
    }
    if (next.fate == Fate::kDropped) return text + ", which has no port for it";
    node = next.next;
  }
}

void check_ports_of_lanes(const Topology& topology, const SubnetTables& tables) {
  for (uint32_t s = 0; s < tables.switches.size(); ++s) {
    const SwitchTables& at = tables.switches[s];
    const std::string& name = topology.nodes[topology.host_count + s].name;
    const size_t ports = topology.ports[topology.host_count + s].size();
    if (at.ports != ports) throw_bad_input("subnet: tables for {} ports of {}, which has {}", at.ports, name, ports);
    if (!at.sl_to_vl.empty() && at.sl_to_vl.size() != (ports + 1) * (ports + 1)) {
      throw_bad_input("subnet: {} SL to VL tables at {}; accepted: none, or {}", at.sl_to_vl.size(), name,
                      (ports + 1) * (ports + 1));
    }
    if (!at.vl_arbitration.empty() && at.vl_arbitration.size() != ports + 1) {
      throw_bad_input("subnet: {} VL arbitration tables at {}; accepted: none, or {}", at.vl_arbitration.size(), name,
                      ports + 1);
    }
  }
}

void check_lids(const Topology& topology, const SubnetTables& tables) {
  std::vector<bool> taken(kLastUnicastLid + 1U);
  const auto take = [&](uint32_t lid, const std::string& name) {
    if (lid > kLastUnicastLid || taken[lid]) {
      throw_bad_input("subnet: {} has LID {}, which {}", name, lid,
                      lid > kLastUnicastLid ? "is none of a node" : "another node has too");
    }
    taken[lid] = true;
  };
  for (HostId host = 0; host < topology.host_count; ++host) {
    if (tables.host_lids[host] == 0) continue;
    for (uint32_t path = 0; path < tables.paths_per_host(); ++path) {
      take(uint32_t{tables.host_lids[host]} + path, topology.nodes[host].name);
    }
  }
  for (uint32_t s = 0; s < tables.switches.size(); ++s) {
    if (tables.switches[s].lid != 0) take(tables.switches[s].lid, topology.nodes[topology.host_count + s].name);
  }
}

void check_shape(const Topology& topology, const SubnetTables& tables) {
  if (tables.host_lids.size() != topology.host_count || tables.switches.size() != topology.switch_count()) {
    throw_bad_input("subnet: tables for {} hosts and {} switches; the topology has {} and {}", tables.host_lids.size(),
                    tables.switches.size(), topology.host_count, topology.switch_count());
  }
  const size_t hosts = topology.host_count;
  if ((!tables.path_sl.empty() && tables.path_sl.size() != hosts * hosts) ||
      (!tables.host_sl_to_vl.empty() && tables.host_sl_to_vl.size() != hosts) ||
      (!tables.host_vl_arbitration.empty() && tables.host_vl_arbitration.size() != hosts) || tables.lmc > kMaxLmc) {
    throw_bad_input("subnet: hosts' service levels, lanes or LMC do not fit {} hosts", hosts);
  }
  check_ports_of_lanes(topology, tables);
  check_lids(topology, tables);
}

}  // namespace

SubnetCheck check_subnet(const Topology& topology, const std::vector<bool>& link_up, const SubnetTables& tables) {
  check_shape(topology, tables);
  const Follower follower(topology, link_up, tables);
  const uint32_t paths = tables.paths_per_host();
  std::vector<Result> results(size_t{topology.host_count} * paths);
  tbb::parallel_for(size_t{0}, results.size(), [&](size_t i) {
    const auto to = static_cast<HostId>(i / paths);
    results[i] = follower.follow_all(to, static_cast<Lid>(tables.host_lids[to] + i % paths));
  });
  SubnetCheck sum;
  for (size_t i = 0; i < results.size(); ++i) {
    const SubnetCheck& part = results[i].counts;
    sum.pairs += part.pairs;
    sum.reachable += part.reachable;
    sum.dropped += part.dropped;
    sum.looping += part.looping;
    sum.misled += part.misled;
    sum.most_hops = std::max(sum.most_hops, part.most_hops);
    sum.all_hops += part.all_hops;
    if (sum.first.empty() && results[i].failed_from != kMaxHosts) {
      const auto to = static_cast<HostId>(i / paths);
      sum.first = follower.describe(results[i].failed_from, to, static_cast<Lid>(tables.host_lids[to] + i % paths));
    }
  }
  return sum;
}

void require_reachable(const Topology& topology, const std::vector<bool>& link_up, const SubnetTables& tables) {
  const SubnetCheck check = check_subnet(topology, link_up, tables);
  if (!check.all_reachable()) {
    throw_bad_input("subnet: {} of {} paths do not arrive; the first: {}", check.pairs - check.reachable, check.pairs,
                    check.first);
  }
}

}  // namespace heddle::lab
