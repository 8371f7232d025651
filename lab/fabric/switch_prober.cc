#include "lab/fabric/switch_prober.h"

#include <utility>

#include "dataplane/measured_group.h"

namespace heddle::lab {

void SwitchProber::use_tables(dataplane::ForwardingTables& tables, const std::vector<ProbedGroup>& probed, Time now) {
  tables_ = &tables;
  groups_.clear();
  std::vector<telemetry::ProbeTarget> targets;
  for (const ProbedGroup& of : probed) {
    groups_.push_back({of.group, tables.groups[of.group]});
    targets.push_back(dataplane::probe_target(groups_.back().whole, of.label, of.addresses));
  }
  prober_.retarget(std::move(targets), now);
  for (size_t target = 0; target < groups_.size(); ++target) apply(target);
}

void SwitchProber::apply(size_t target) {
  Measured& of = groups_[target];
  dataplane::measure(of.whole, prober_.paths(target));
  tables_->groups[of.id] = of.whole;
  dataplane::shut_bad_members(tables_->groups[of.id], dead_port_);
}

}  // namespace heddle::lab
