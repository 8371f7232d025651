#include "lab/fabric/deadlock.h"

#include <algorithm>

namespace heddle::lab {

DeadlockWatch::DeadlockWatch(const Topology& topology, const Fabric& fabric, bool wanted)
    : topology_(topology), fabric_(fabric), first_switch_(topology.host_count), by_credit_(!fabric.subnets.empty()) {
  if (!wanted) return;
  next_ = kInterval;
  of_node_.resize(fabric.switches.size());
  for (NodeId node = first_switch_; node < topology.nodes.size(); ++node) {
    const dataplane::Pipeline& of = pipeline(node);
    for (PortIndex port = 0; port < of.port_count(); ++port) {
      if (topology.neighbor(node, port) < first_switch_) continue;  // hosts take what they get
      for (uint8_t tc = 0; tc < kTrafficClasses; ++tc) {
        const bool can_stop = by_credit_ ? of.lanes()->port(port).credits.knows(tc) : of.buffer().is_lossless(port, tc);
        if (!can_stop) continue;
        of_node_[node - first_switch_].push_back(queues_.size());
        queues_.push_back({.at = {node, port, tc}});
      }
    }
  }
}

void DeadlockWatch::look() {
  find_stuck();
  if (!found_) {
    std::vector<uint8_t> state(queues_.size());  // 0: not visited, 1: on the path, 2: leads to no cycle
    std::vector<size_t> path;
    for (size_t i = 0; i < queues_.size() && !found_; ++i) {
      if (queues_[i].stuck && state[i] == 0) visit(i, path, state);
    }
  } else if (found_->broken_at == kNever && !is_still_stuck()) {
    found_->broken_at = next_;
  }
  next_ += kInterval;
}

// Paused, with the same packet at the head as at the last look.
void DeadlockWatch::find_stuck() {
  for (Queue& queue : queues_) {
    const dataplane::EgressScheduler& port = pipeline(queue.at.node).port(queue.at.port);
    const dataplane::EgressQueue& held = port.queue(queue.at.traffic_class);
    const bool paused = ((port.paused() >> queue.at.traffic_class) & 1U) != 0;
    const Packet* front = paused && !held.empty() ? held.front() : nullptr;
    const Time arrival = front != nullptr ? meta_of(front).arrival : 0;
    queue.stuck = front != nullptr && front == queue.front && arrival == queue.arrival;
    queue.front = front;
    queue.arrival = arrival;
  }
}

bool DeadlockWatch::is_still_stuck() const {
  return std::all_of(cycle_.begin(), cycle_.end(), [this](size_t queue) { return queues_[queue].stuck; });
}

// Whether `other`, at the far end of the queue's link, holds packets that came in over it.
bool DeadlockWatch::waits_for(const Queue& queue, const Queue& other) const {
  // A packet may change its lane on the way through a switch, never its class.
  if (!by_credit_ && other.at.traffic_class != queue.at.traffic_class) return false;
  const LinkId id = topology_.ports[queue.at.node][queue.at.port];
  const Link& link = topology_.links[id];
  const PortIndex in = link.a == queue.at.node && link.a_port == queue.at.port ? link.b_port : link.a_port;
  const dataplane::EgressQueue& held = pipeline(other.at.node).port(other.at.port).queue(other.at.traffic_class);
  for (uint32_t i = 0; i < held.packets(); ++i) {
    const PacketMeta& meta = meta_of(held.peek(i));
    if (meta.in_port == in && (!by_credit_ || meta.arrival_lane == queue.at.traffic_class)) return true;
  }
  return false;
}

// Depth first; the path holds the queues that wait for each other up to this one. True once a cycle is found.
bool DeadlockWatch::visit(size_t queue, std::vector<size_t>& path, std::vector<uint8_t>& state) {
  state[queue] = 1;
  path.push_back(queue);
  const NodeId peer = topology_.neighbor(queues_[queue].at.node, queues_[queue].at.port);
  for (const size_t other : of_node_[peer - first_switch_]) {
    if (!queues_[other].stuck || state[other] == 2 || !waits_for(queues_[queue], queues_[other])) continue;
    if (state[other] == 1) {
      found_ = Deadlock{.at = next_};
      for (auto i = std::find(path.begin(), path.end(), other); i != path.end(); ++i) {
        found_->cycle.push_back(queues_[*i].at);
        cycle_.push_back(*i);
      }
      return true;
    }
    if (visit(other, path, state)) return true;
  }
  state[queue] = 2;
  path.pop_back();
  return false;
}

}  // namespace heddle::lab
