// The time no fabric and no scheme can beat: what `efficiency` = lower bound / makespan is measured against.
//
// Three kinds of limit, each computed from the earliest time r(m) at which a message m can be released:
//
//   chain   r(m) = its start, or the latest of its triggers' times + its start (with pending = k of more triggers, the
//           k-th earliest). A trigger's time is r + the time of its cause alone (+ the ACK's way back for "sent"), +
//           the trigger's delay. So a compute gap costs its length. Alone, a message takes the longer of wire /
//           source's rate + the way of its smallest packet, as that may leave last, and wire / destination's rate + the
//           way of the packet that can get there first, as a rule a full one.
//   load    for a set of messages and a resource X that they use, in order of r: busy = max(busy, r(m)) + wire(m) /
//           C(X);
//           the set is done no sooner than busy + the shortest way without X itself. Resources are every host's link in
//           each direction, and every leaf's and pod's live capacity to and from the rest of the fabric. Sets are what
//           a message waits for together, all messages of a job, and those of all jobs (the busiest host over all).
//   step    in jobs that run in steps with pauses between (training; WorkloadBuilder::add_job): all messages of a step
//           are such a set, and the next step begins when the busiest X has carried it + the shortest one-way delay
//           + the pause. A ring costs steps × (chunk wire time + one-way delay) by its chains alone.
//
// wire(m) = bytes + packets × (headers + overhead), packets = ceil(bytes / payload per packet): data alone, as if ACKs
// took no room.
//
// Chain and load hold for every schedule. The step rule takes a pause for one of all hosts at once, as after an
// all-reduce nobody can begin the next step long before others. (Chunks that do not divide: by the time of one byte.)
#pragma once

#include <string>
#include <vector>

#include "lab/ideal/fabric_load.h"
#include "lab/workload/workload.h"

namespace heddle::lab {

struct LowerBound {
  Time makespan = 0;          // when the last byte can be at its receiver, counted from time 0 of the run
  std::vector<Time> job_end;  // the same by job, as if it ran alone
  std::string limit;          // what sets the makespan: "phases of job train", "host 7 receiving, all jobs", …
};

// Throws `failed` if the capacities do not fit the workload's hosts: the caller's mistake.
LowerBound lower_bound(const Workload& workload, const FabricCapacity& fabric);

}  // namespace heddle::lab
