// What those who build a fabric share: what it is built from, what there is of it already, and who is at a link's ends.
#pragma once

#include "lab/engine/fabric_settings.h"
#include "lab/fabric/builder.h"
#include "net/random.h"

namespace heddle::lab {

class FabricParts {
 protected:
  // Keeps references to all three.
  FabricParts(const Topology& topology, const FabricSettings& settings, Fabric& fabric)
      : topology_(topology), settings_(settings), fabric_(&fabric) {}

  bool is_infiniband() const { return settings_.hosts.link_layer == LinkLayer::kInfiniband; }
  bool logs_pauses() const { return is_infiniband() || settings_.switches.flow_control.pauses(); }
  // A lane may wait for every packet that it sends: too much to keep, unless it is asked for.
  bool keeps_all_pauses() const { return !is_infiniband() || settings_.run.timeline; }

  bool is_a(LinkId link, NodeId node) const { return topology_.links[link].a == node; }
  Wire& wire_from(LinkId link, NodeId node) const { return fabric_->wires[2 * link + (is_a(link, node) ? 0 : 1)]; }
  Wire& wire_to(LinkId link, NodeId node) const { return fabric_->wires[2 * link + (is_a(link, node) ? 1 : 0)]; }
  // Streams of random numbers belong to a node or a link.
  uint64_t seed_of(uint64_t kind, uint64_t index) const { return mix64(settings_.run.seed * 8 + kind) + mix64(index); }

  const Topology& topology_;
  const FabricSettings& settings_;
  Fabric* fabric_;
};

}  // namespace heddle::lab
