// What the switches of an InfiniBand subnet forward by: for each LID the port of the linear forwarding table, or the
// group around it, where packets may take others.
#pragma once

#include <string>
#include <vector>

#include "lab/engine/fabric_settings.h"
#include "lab/subnet/tables.h"
#include "lab/topology/routing.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// Bounded adaptive routing is the choice by quality for a flow that has paused for the ageing time: the scheduler and
// the idle time of `switches` become that. Throws bad input with a scheduler other than adaptive.
void apply_adaptive_mode(SwitchSettings& switches);

// Bit = service level whose packets choose among the ports of a group; 0 with scheduler ecmp.
uint16_t adaptive_levels(const SwitchSettings& switches);
// Whether links go down or come up, so that it matters what switches do about it.
bool may_fail(const std::vector<LinkEvent>& events);

// By switch. Throws bad input where adaptive routing over those tables could close a loop of credits that they
// themselves do not close; where only failing over could, every LID keeps to its one port, and `note` says so.
std::vector<SwitchRoutes> routes_by_lid(const Topology& topology, const SubnetTables& tables,
                                        const FabricSettings& settings, const std::vector<bool>& link_up,
                                        std::string& note);

}  // namespace heddle::lab
