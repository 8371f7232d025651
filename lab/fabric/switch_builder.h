// The switches of a fabric: their tables at every time, their pipelines, and what happens to their ports.
#pragma once

#include <memory>
#include <vector>

#include "dataplane/pipeline.h"
#include "lab/fabric/fabric_parts.h"
#include "lab/fabric/lab_switch.h"
#include "lab/topology/link_state.h"
#include "lab/topology/routing.h"

namespace heddle::lab {

class SwitchBuilder : private FabricParts {
 public:
  // Keeps references to all three.
  SwitchBuilder(const Topology& topology, const FabricSettings& settings, Fabric& fabric);

  // Once wires, hosts and the first subnet exist. Throws Error (bad input) for groups that are too large.
  void make_switches();

 private:
  void make_tables();
  std::vector<SwitchRoutes> routes_over(const std::vector<bool>& link_up);
  std::unique_ptr<dataplane::ForwardingTables> tables_of(NodeId node, const SwitchRoutes& routes,
                                                         const LinkStates& rates) const;
  void set_weights(NodeId node, const LinkStates& rates, lb::NextHopGroup& group) const;
  static const lb::NextHopGroup* group_before(const dataplane::ForwardingTables& before,
                                              const dataplane::ForwardingTables& now);
  std::unique_ptr<SwitchProber> prober_of(NodeId node) const;
  dataplane::PipelineSettings pipeline_settings(NodeId node) const;
  std::vector<LabSwitch::PortEvent> port_events(NodeId node) const;

  // Whether one of the two schedulers is such.
  template <typename Predicate>
  bool any_scheduler(const Predicate& is) const {
    const SwitchSettings& of = settings_.switches;
    return is(of.scheduler) || (of.control_scheduler && is(*of.control_scheduler));
  }

  std::vector<std::vector<LabSwitch::TableVersion>> versions_;  // by switch
  std::shared_ptr<const lb::SchedulerOverrides> overrides_;
  unsigned probe_hops_ = 0;  // with probes
};

}  // namespace heddle::lab
