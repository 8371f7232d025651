// Flows that pauses have held back, and which of those pauses were not theirs.
//
// A pause is a flow's own if the congestion it comes from (lab/engine/pause_log.h) lies on a path that routing may give
// the flow, whether or not its packets took that path: what a flow is a victim of is certain. How long pauses of one
// origin held it is the time for which packets of it stood in a paused queue, of the queues on its way, the sending
// NIC's included, the one where that was longest; pauses of several origins are summed.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/engine/pause_log.h"
#include "lab/topology/link_state.h"
#include "lab/topology/topology.h"
#include "lab/workload/workload.h"

namespace heddle::lab {

// A message that was held back.
struct HeldFlow {
  MessageId message = 0;
  Duration held = 0;       // by all pauses
  Duration by_others = 0;  // by those that were not its own
  PauseOrigin origin;      // of these, where most of it came from
  Duration by_origin = 0;
};

// `held`: of all nodes, in any order. Paths are the shortest over the links that live at the start, and over those that
// live after all events. Ascending by message.
std::vector<HeldFlow> find_held_flows(const Topology& topology, const std::vector<LinkEvent>& events,
                                      const Workload& workload, std::vector<HeldMessage> held);

}  // namespace heddle::lab
