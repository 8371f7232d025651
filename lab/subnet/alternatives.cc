#include "lab/subnet/alternatives.h"

#include <algorithm>
#include <map>
#include <utility>

#include <tbb/parallel_for.h>

namespace heddle::lab {
namespace {

constexpr uint16_t kFar = UINT16_MAX;

// Hops to one LID from every switch along the tables; kFar where they do not lead to its host over links that are up.
class TableHops {
 public:
  TableHops(const Topology& topology, const SubnetTables& tables, const std::vector<bool>& link_up)
      : topology_(topology), tables_(tables), link_up_(link_up) {}

  std::vector<uint16_t> to(HostId host, Lid lid) const {
    std::vector<uint16_t> hops(tables_.switches.size(), kUnknown);
    std::vector<uint32_t> passed;
    for (uint32_t s = 0; s < hops.size(); ++s) walk(s, host, lid, hops, passed);
    return hops;
  }

 private:
  static constexpr uint16_t kUnknown = kFar - 1;

  // To where the distance is known, then back over all switches passed. Who is met again is on a loop: far.
  void walk(uint32_t s, HostId host, Lid lid, std::vector<uint16_t>& hops, std::vector<uint32_t>& passed) const {
    passed.clear();
    uint16_t left = kUnknown;  // from the switch after the last of `passed`; 0: the host
    while (left == kUnknown) {
      if (hops[s] != kUnknown) {
        left = hops[s];
        break;
      }
      hops[s] = kFar;
      passed.push_back(s);
      const NodeId node = topology_.host_count + s;
      const uint8_t port = tables_.port(s, lid);
      if (port == kLftSelf || port > topology_.ports[node].size() || !link_up_[topology_.ports[node][port - 1U]]) {
        left = kFar;
        break;
      }
      const NodeId next = topology_.neighbor(node, static_cast<PortIndex>(port - 1));
      if (topology_.is_host(next)) {
        left = next == host ? uint16_t{0} : kFar;
      } else {
        s = next - topology_.host_count;
      }
    }
    while (!passed.empty() && left != kFar) {
      hops[passed.back()] = ++left;
      passed.pop_back();
    }
  }

  const Topology& topology_;
  const SubnetTables& tables_;
  const std::vector<bool>& link_up_;
};

// Collects the groups of one switch, each set of ports once.
class Groups {
 public:
  Groups(SwitchRoutes& routes, size_t lids) : routes_(routes) { routes_.group_of_host.assign(lids, kUnreachable); }

  void enter(size_t lid, const std::vector<PortIndex>& members) {
    const auto [at, fresh] = known_.try_emplace(members, static_cast<uint16_t>(routes_.groups.size()));
    if (fresh) routes_.groups.push_back(members);
    routes_.group_of_host[lid] = at->second;
  }

 private:
  SwitchRoutes& routes_;
  std::map<std::vector<PortIndex>, uint16_t> known_;
};

// All LIDs of hosts, as pairs of host and LID.
std::vector<std::pair<HostId, Lid>> host_lids(const SubnetTables& tables) {
  std::vector<std::pair<HostId, Lid>> all;
  for (HostId host = 0; host < tables.host_lids.size(); ++host) {
    for (uint32_t path = 0; path < tables.paths_per_host() && tables.host_lids[host] != 0; ++path) {
      all.emplace_back(host, static_cast<Lid>(tables.host_lids[host] + path));
    }
  }
  return all;
}

size_t end_of_lids(const SubnetTables& tables) {
  size_t end = 0;
  for (const SwitchTables& at : tables.switches) end = std::max(end, at.lft.size());
  return end;
}

// The table's own port, and those that lead as near.
void members_of(const Topology& topology, const std::vector<bool>& link_up, uint32_t s, uint8_t own,
                const std::vector<uint16_t>& hops, std::vector<PortIndex>& members) {
  const NodeId node = topology.host_count + s;
  members.clear();
  for (PortIndex port = 0; port < topology.ports[node].size(); ++port) {
    const NodeId next = topology.neighbor(node, port);
    const bool nearer = hops[s] != kFar && link_up[topology.ports[node][port]] && !topology.is_host(next) &&
                        hops[next - topology.host_count] + 1 == hops[s];
    if (nearer || port + 1 == own) members.push_back(port);
  }
}

}  // namespace

std::vector<SwitchRoutes> equal_length_groups(const Topology& topology, const SubnetTables& tables,
                                              const std::vector<bool>& link_up) {
  const std::vector<std::pair<HostId, Lid>> lids = host_lids(tables);
  const TableHops find(topology, tables, link_up);
  std::vector<std::vector<uint16_t>> hops(lids.size());
  tbb::parallel_for(size_t{0}, lids.size(), [&](size_t i) { hops[i] = find.to(lids[i].first, lids[i].second); });
  std::vector<SwitchRoutes> routes(tables.switches.size());
  const size_t end = end_of_lids(tables);
  tbb::parallel_for(size_t{0}, routes.size(), [&](size_t s) {
    Groups groups(routes[s], end);
    std::vector<PortIndex> members;
    for (size_t i = 0; i < lids.size(); ++i) {
      const uint8_t own = tables.port(static_cast<uint32_t>(s), lids[i].second);
      if (own == kLftUnreachable || own == kLftSelf) continue;
      members_of(topology, link_up, static_cast<uint32_t>(s), own, hops[i], members);
      groups.enter(lids[i].second, members);
    }
  });
  return routes;
}

std::vector<SwitchRoutes> groups_by_lid(const SubnetTables& tables, std::vector<SwitchRoutes>&& by_host) {
  std::vector<SwitchRoutes> routes(by_host.size());
  for (size_t s = 0; s < routes.size(); ++s) {
    routes[s].groups = std::move(by_host[s].groups);
    routes[s].group_of_host.assign(end_of_lids(tables), kUnreachable);
    for (const auto& [host, lid] : host_lids(tables)) routes[s].group_of_host[lid] = by_host[s].group_of_host[host];
  }
  return routes;
}

std::vector<SwitchRoutes> table_groups(const SubnetTables& tables) {
  std::vector<SwitchRoutes> routes(tables.switches.size());
  for (size_t s = 0; s < routes.size(); ++s) {
    const std::vector<uint8_t>& lft = tables.switches[s].lft;
    Groups groups(routes[s], lft.size());
    for (size_t lid = 0; lid < lft.size(); ++lid) {
      if (lft[lid] == kLftUnreachable || lft[lid] == kLftSelf) continue;  // nobody in the lab talks to switches
      groups.enter(lid, {static_cast<PortIndex>(lft[lid] - 1)});
    }
  }
  return routes;
}

void split_by_table(const SubnetTables& tables, std::vector<SwitchRoutes>& routes) {
  for (uint32_t s = 0; s < routes.size(); ++s) {
    SwitchRoutes& at = routes[s];
    std::map<std::pair<uint16_t, uint8_t>, uint16_t> known;
    std::vector<std::vector<PortIndex>> groups;
    for (size_t lid = 0; lid < at.group_of_host.size(); ++lid) {
      uint16_t& group = at.group_of_host[lid];
      if (group == kUnreachable) continue;
      const std::vector<PortIndex>& members = at.groups[group];
      const auto own = static_cast<PortIndex>(tables.port(s, static_cast<Lid>(lid)) - 1);
      const auto place = std::find(members.begin(), members.end(), own);
      const auto member = static_cast<uint8_t>(place == members.end() ? 0 : place - members.begin());
      const auto [entry, fresh] = known.try_emplace({group, member}, static_cast<uint16_t>(groups.size()));
      if (fresh) {
        groups.push_back(members);
        at.table_member.push_back(member);
      }
      group = entry->second;
    }
    at.groups = std::move(groups);
  }
}

CreditLoops added_loops(const Topology& topology, const SubnetTables& tables, const std::vector<SwitchRoutes>& groups,
                        uint16_t levels) {
  CreditLoops loops = find_credit_loops(topology, tables, {&groups, levels});
  if (loops.in_loops != 0 && find_credit_loops(topology, tables).in_loops != 0) return {};
  return loops;
}

}  // namespace heddle::lab
