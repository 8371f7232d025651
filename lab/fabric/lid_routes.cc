#include "lab/fabric/lid_routes.h"

#include <algorithm>

#include <fmt/format.h>

#include "lab/subnet/alternatives.h"
#include "lb/next_hop_group.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

constexpr uint16_t kAllLevels = 0xffff;

bool is_adaptive(const SwitchSettings& switches) { return switches.scheduler != lb::Scheduler(); }

// A dump's tables stay as they are when links fail, and so do the groups around them.
std::vector<bool> links_of_groups(const Topology& topology, const InfinibandSettings& settings,
                                  const std::vector<bool>& link_up) {
  return settings.tables.empty() ? link_up : std::vector<bool>(topology.links.size(), true);
}

// Alternatives for a dead port need not be all there are.
void limit_members(std::vector<SwitchRoutes>& routes) {
  for (SwitchRoutes& at : routes) {
    for (size_t i = 0; i < at.groups.size(); ++i) {
      std::vector<PortIndex>& members = at.groups[i];
      if (members.size() <= lb::kMaxMembers) continue;
      const PortIndex own = members[at.table_member[i]];
      if (at.table_member[i] >= lb::kMaxMembers) {
        at.table_member[i] = lb::kMaxMembers - 1;
        members[lb::kMaxMembers - 1] = own;
      }
      members.resize(lb::kMaxMembers);
    }
  }
}

}  // namespace

void apply_adaptive_mode(SwitchSettings& switches) {
  if (switches.infiniband.adaptive.mode != AdaptiveMode::kBounded) return;
  if (switches.scheduler != *lb::scheduler_named("adaptive")) {
    throw_bad_input(
        "fabric.adaptive_routing.mode: found bounded with scheduler {}; accepted: free, or scheduler: adaptive",
        lb::name_of(switches.scheduler));
  }
  switches.scheduler = {lb::Granularity::kFlowlet, lb::Choice::kQuality};
  switches.ars.idle_time = switches.infiniband.adaptive.ageing_time;
}

uint16_t adaptive_levels(const SwitchSettings& switches) {
  return is_adaptive(switches) ? switches.infiniband.adaptive.levels : uint16_t{0};
}

bool may_fail(const std::vector<LinkEvent>& events) {
  return std::any_of(events.begin(), events.end(), [](const LinkEvent& event) {
    return event.kind == LinkEvent::Kind::kDown || event.kind == LinkEvent::Kind::kUp;
  });
}

std::vector<SwitchRoutes> routes_by_lid(const Topology& topology, const SubnetTables& tables,
                                        const FabricSettings& settings, const std::vector<bool>& link_up,
                                        std::string& note) {
  const InfinibandSettings& infiniband = settings.switches.infiniband;
  const uint16_t levels = adaptive_levels(settings.switches);
  const bool fails_over = infiniband.self_healing != SelfHealing::kNone && may_fail(settings.events);
  if (levels == 0 && !fails_over) return table_groups(tables);
  std::vector<SwitchRoutes> routes;
  if (infiniband.is_plain_shortest_path()) {
    routes = groups_by_lid(tables, compute_routes(topology, link_up));
  } else {
    routes = equal_length_groups(topology, tables, links_of_groups(topology, infiniband, link_up));
    const CreditLoops loops = added_loops(topology, tables, routes, fails_over ? kAllLevels : levels);
    if (loops.in_loops != 0 && levels != 0) {
      throw_bad_input(
          "fabric.scheduler: adaptive routing over the tables of {} could close a loop of credits that they do not "
          "close: {}; accepted: ecmp, or fabric.routing: shortest-path",
          tables.engine, describe_loop(topology, loops.shortest));
    }
    if (loops.in_loops != 0) {
      note = fmt::format(
          "self_healing: no other ports are taken for dead ones: with the tables of {} they could close a loop of "
          "credits: {}",
          tables.engine, describe_loop(topology, loops.shortest));
      return table_groups(tables);
    }
  }
  if (levels != kAllLevels) split_by_table(tables, routes);
  if (levels == 0) limit_members(routes);
  return routes;
}

}  // namespace heddle::lab
