// What the packet path looks things up in. A version is immutable once published; the next one replaces it whole.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/route_groups.h"
#include "lb/next_hop_group.h"

namespace heddle::dataplane {

struct ForwardingTables {
  const RouteLookup* lookup = nullptr;
  // Which publication this is, from 1: two that follow one another between two looks of a worker bring it back to the
  // same address with other contents.
  uint64_t generation = 1;
  // Route id → group. Empty: route ids are group ids (a real switch, where the FIB holds the group). The lab's switches
  // share one lookup and differ here.
  RouteGroups group_of_route;
  std::vector<lb::NextHopGroup> groups;
  // Whether a group's scheduler goes by flowlets, or by quality: note_schedulers.
  bool flowlets = false;
  bool quality = false;

  // To be called when `groups` are complete.
  void note_schedulers() {
    const auto any = [this](const auto& is) {
      return std::any_of(groups.begin(), groups.end(), [&](const lb::NextHopGroup& g) { return g.any_scheduler(is); });
    };
    flowlets = any([](const lb::Scheduler& s) { return s.granularity == lb::Granularity::kFlowlet; });
    quality = any([](const lb::Scheduler& s) { return s.choice == lb::Choice::kQuality; });
  }

  const lb::NextHopGroup* group_for(RouteId route) const {
    size_t id = route;
    if (!group_of_route.empty()) {
      if (route >= group_of_route.size()) return nullptr;
      id = group_of_route[route];
    }
    return id < groups.size() ? groups.data() + id : nullptr;
  }
  // Index of a group, for the per-lcore state beside it.
  size_t index_of(const lb::NextHopGroup* group) const { return static_cast<size_t>(group - groups.data()); }
};

// What a worker remembers of the tables it has seen.
class SeenTables {
 public:
  // Whether they are others than at the last call.
  bool are_news(const ForwardingTables& tables) {
    return std::exchange(generation_, tables.generation) != tables.generation;
  }

 private:
  uint64_t generation_ = 0;
};

// Which ports can send, and how much waits at them. Link states are written by whoever watches the links, read for
// every path decision: a dead port leaves all groups within one burst. Drain times are written by the port's lcore once
// a round and read by the others, which cannot look into its queues.
class PortStates {
 public:
  explicit PortStates(size_t ports) : up_(ports + 1), load_(ports) {
    for (size_t i = 0; i < ports; ++i) up_[i].store(1, std::memory_order_relaxed);
  }
  // One that is never up: members that must get nothing are given it for their port, at no cost per packet.
  PortId dead_port() const { return static_cast<PortId>(up_.size() - 1); }
  bool is_up(PortId port) const { return up_[port].load(std::memory_order_relaxed) != 0; }
  const std::atomic<uint8_t>* flags() const { return up_.data(); }  // the same by port, for a loop
  // What a port's lcore last told the others: how long its queues take, and the wire bytes it has scheduled so far.
  Duration drain_time(PortId port) const { return load_[port].drain.load(std::memory_order_relaxed); }
  uint64_t scheduled_bytes(PortId port) const { return load_[port].scheduled.load(std::memory_order_relaxed); }
  void set_load(PortId port, Duration drain, uint64_t scheduled) {
    load_[port].drain.store(drain, std::memory_order_relaxed);
    load_[port].scheduled.store(scheduled, std::memory_order_relaxed);
  }
  void set(PortId port, bool up) { up_[port].store(up ? 1 : 0, std::memory_order_relaxed); }

 private:
  struct alignas(64) Load {
    std::atomic<Duration> drain{0};
    std::atomic<uint64_t> scheduled{0};
  };
  std::vector<std::atomic<uint8_t>> up_;
  std::vector<Load> load_;
};

}  // namespace heddle::dataplane
