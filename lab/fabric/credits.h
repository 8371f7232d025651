// InfiniBand links of a fabric: how its switches are set up for them, and what credits have done when a run is over.
#pragma once

#include <memory>
#include <vector>

#include "dataplane/pipeline.h"
#include "lab/engine/run_result.h"
#include "lab/fabric/builder.h"
#include "lab/host/partitions.h"
#include "lab/subnet/tables.h"

namespace heddle::lab {

// The built-in routing's tables over the links that are up.
SubnetTables subnet_of(const Topology& topology, const InfinibandSettings& settings, const std::vector<bool>& link_up);

// Throws bad input for settings that belong to the other kind of links, and for tables that a scheduler would not
// follow.
void check_link_layer(const FabricSettings& settings);

// Both ends of a link as credits see it.
flowctl::CreditLink credit_link(const Link& link, uint32_t mtu);

// What credits need to know, beside what the tables say: how many lanes there are. Throws bad input for more than a
// port has.
flowctl::CreditSettings credits_for(const InfinibandSettings& settings, const SubnetTables& tables);

// The keys of the hosts at a switch's ports; none at ports to other switches.
std::vector<std::vector<uint16_t>> keys_at(const Topology& topology, NodeId node, const PartitionTables& partitions);

// What a switch port does with its lanes: they share it and are never full; FECN marks where hosts heed them.
void set_lane_classes(const FabricSettings& settings, dataplane::PortSettings& port);
// Fills in the table that a scenario leaves to us: at its end all hosts together fit into one port.
void complete(flowctl::CctiSettings& settings, uint32_t hosts);

flowctl::VlArbiterSettings arbiter_settings(const VlArbitration& tables);

// The lanes of switch `s`.
dataplane::LaneSettings lanes_of(const Topology& topology, uint32_t s, const FabricSettings& settings,
                                 const SubnetTables& tables);

// Adds what credits did to the result of a run, which knows when it ended.
void collect_credits(const Fabric& fabric, RunResult& result);
// Throws `failed` if a packet came without credit, or to a full buffer.
void check_credits(const RunResult& result);

}  // namespace heddle::lab
