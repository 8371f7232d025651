// Cyclic buffer dependencies: queues that are paused, or without credit, and wait for each other, so that none will
// ever send again.
//
// A paused egress queue waits for the priority group at the other end of its link to drain, one without credit for the
// lane's buffer there; what they hold lies in egress queues of that switch; those that are stopped as well wait in
// turn. A cycle in which nothing has moved for a whole interval, in which everything that can drain has drained, is a
// deadlock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lab/engine/run_result.h"
#include "lab/fabric/builder.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

class DeadlockWatch {
 public:
  // Long against the time that a switch's buffer takes to leave by one port (9 MB at 100G: 0.72 ms).
  static constexpr Duration kInterval = 2 * kMillisecond;

  // Only where something can be stopped; keeps references.
  DeadlockWatch(const Topology& topology, const Fabric& fabric, bool wanted);

  // When to look next; kNever if there is nothing to find.
  Time next() const { return next_; }
  // Looks at the fabric as it is at `next`, between windows, and remembers the first deadlock ever seen.
  void look();
  const std::optional<Deadlock>& found() const { return found_; }
  // Credits that wait for each other wait for ever; pauses run out when their link fails.
  bool ends_run() const { return found_.has_value() && by_credit_; }

 private:
  struct Queue {
    QueueRef at;
    const Packet* front = nullptr;  // at the last look, and when it had come; null if it could send
    Time arrival = 0;
    bool stuck = false;
  };

  const dataplane::Pipeline& pipeline(NodeId node) const { return fabric_.switches[node - first_switch_]->pipeline(); }
  void find_stuck();
  bool is_still_stuck() const;
  bool waits_for(const Queue& queue, const Queue& other) const;
  bool visit(size_t queue, std::vector<size_t>& path, std::vector<uint8_t>& state);

  const Topology& topology_;
  const Fabric& fabric_;
  NodeId first_switch_;
  bool by_credit_;
  std::vector<Queue> queues_;                 // of lossless classes, by node, port, class
  std::vector<std::vector<size_t>> of_node_;  // indices into them, by switch
  std::optional<Deadlock> found_;
  std::vector<size_t> cycle_;  // its queues
  Time next_ = kNever;
};

}  // namespace heddle::lab
