// Next-hop groups whose members' shares follow from probes: what is probed of them, and what the findings do to them.
// The same for a real switch and for one of the lab.
#pragma once

#include <cstdint>
#include <vector>

#include "lb/next_hop_group.h"
#include "net/ip_address.h"
#include "telemetry/path_delay.h"
#include "telemetry/path_prober.h"

namespace heddle::dataplane {

// The group as a target of probes: its members, with their weights as first shares.
telemetry::ProbeTarget probe_target(const lb::NextHopGroup& group, uint64_t label,
                                    std::vector<net::IpAddress> addresses);

// What is known of the members (of paths made from probe_target, hence in the same order) decides from now on; the
// group's table is made anew where it is needed.
void measure(lb::NextHopGroup& group, const telemetry::PathDelay& paths);

// What is known of members holds among those that are still there: after any have come or gone, where all are bad, none
// is, and one alone is not measured, since nobody probes it. The group's table is still to be made.
void settle_members(lb::NextHopGroup& group);

// In a version for the packet path, which has its table: bad members get a port that is never up
// (PortStates::dead_port), so that every scheduler avoids them as it avoids dead links.
void shut_bad_members(lb::NextHopGroup& group, PortId dead_port);

}  // namespace heddle::dataplane
