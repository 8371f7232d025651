#include "lab/fabric/switch_prober.h"

#include <utility>

namespace heddle::lab {

void SwitchProber::use_tables(dataplane::ForwardingTables& tables, const std::vector<ProbedGroup>& probed, Time now) {
  tables_ = &tables;
  groups_.clear();
  std::vector<telemetry::ProbeTarget> targets;
  for (const ProbedGroup& of : probed) {
    telemetry::ProbeTarget target{.label = of.label, .addresses = of.addresses, .members = {}};
    for (const lb::NextHop& hop : tables.groups[of.group].members) target.members.push_back({hop.port, hop.weight});
    targets.push_back(std::move(target));
    groups_.push_back(of.group);
  }
  prober_.retarget(std::move(targets), now);
  for (size_t target = 0; target < groups_.size(); ++target) apply(target);
}

void SwitchProber::apply(size_t target) {
  lb::NextHopGroup& group = tables_->groups[groups_[target]];
  const telemetry::PathDelay& paths = prober_.paths(target);
  for (unsigned m = 0; m < paths.size(); ++m) {
    group.members[m].weight = static_cast<uint16_t>(paths.shares()[m]);
    group.members[m].remote_band = static_cast<uint8_t>(paths.bands_below_best(m));
  }
  group.measured = true;
  group.make_table();
}

}  // namespace heddle::lab
