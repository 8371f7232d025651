// What those who build a fabric share: what it is built from, what there is of it already, and who is at a link's ends.
#pragma once

#include "lab/engine/fabric_settings.h"
#include "lab/fabric/builder.h"
#include "lab/topology/link_state.h"
#include "net/random.h"

namespace heddle::lab {

class FabricParts {
 protected:
  // Keeps references to all three. Throws Error (bad input) for events that do not fit the topology.
  FabricParts(const Topology& topology, const FabricSettings& settings, Fabric& fabric)
      : topology_(topology),
        settings_(settings),
        fabric_(&fabric),
        at_start_(valid_states_at_start(topology, settings.events)) {}

  bool is_infiniband() const { return settings_.hosts.link_layer == LinkLayer::kInfiniband; }
  bool logs_pauses() const { return is_infiniband() || settings_.switches.flow_control.pauses(); }
  // A lane may wait for every packet that it sends: too much to keep, unless it is asked for.
  bool keeps_all_pauses() const { return !is_infiniband() || settings_.run.timeline; }

  bool is_a(LinkId link, NodeId node) const { return topology_.links[link].a == node; }
  Wire& wire_from(LinkId link, NodeId node) const { return fabric_->wires[2 * link + (is_a(link, node) ? 0 : 1)]; }
  Wire& wire_to(LinkId link, NodeId node) const { return fabric_->wires[2 * link + (is_a(link, node) ? 1 : 0)]; }
  // Of the link, as `node` sends, when the run begins.
  Rate rate_at_start(LinkId link, NodeId node) const { return at_start_.rate(link, is_a(link, node)); }
  // Streams of random numbers belong to a node or a link.
  uint64_t seed_of(uint64_t kind, uint64_t index) const { return mix64(settings_.run.seed * 8 + kind) + mix64(index); }

  const Topology& topology_;
  const FabricSettings& settings_;
  Fabric* fabric_;
  const LinkStates at_start_;  // what happens at time 0 holds from the beginning

 private:
  static LinkStates valid_states_at_start(const Topology& topology, const std::vector<LinkEvent>& events) {
    for (const LinkEvent& event : events) validate(topology, event);
    return states_at_start(topology, events);
  }
};

}  // namespace heddle::lab
