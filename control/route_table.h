// Routes and next-hop groups of a running switch: changed by the control thread while lcores forward.
//
// There are two versions of everything the packet path reads. A batch of changes goes into the idle one, whose pointer
// is then published; when every lcore has passed a quiescent state (rte_rcu_qsbr), the same batch goes into the other.
// No lcore waits, no packet sees half a change, and rte_fib may recycle its second-level tables at once, as it does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/fib.h"
#include "dataplane/lcore.h"
#include "dataplane/tables.h"
#include "lb/next_hop_group.h"
#include "net/prefix.h"

namespace heddle::control {

struct Group {
  std::string name;
  bool in_place = false;  // made for one route, goes with it
  lb::NextHopGroup members;
  uint32_t routes = 0;  // how many lead to it
};

struct Route {
  net::IpPrefix prefix;
  std::string group;
};

class RouteTable {
 public:
  // Room for `max_routes` prefixes per family. Publishes an empty version at once; `control` outlives the table.
  // `dead_port`: of PortStates, for members that probes find bad.
  RouteTable(dataplane::SwitchControl& control, uint32_t max_routes, PortId dead_port = kNoPort);

  // Reads the traffic of one path counter, summed over lcores; asked when a counter passes on to a new member.
  using PathReader = std::function<telemetry::PathCounters(uint32_t counter)>;
  void set_path_reader(PathReader reader) { read_path_ = std::move(reader); }

  // One batch of changes, applied together. All of them throw Error (bad input) when they make no sense, before
  // anything has changed.
  class Batch;
  void apply(const Batch& batch);

  // What probes say of groups by that name (dataplane::measure) takes effect, for the members they still have; a group
  // that is gone is passed over. Touches nothing but these groups.
  struct Measured {
    std::string name;
    const lb::NextHopGroup* group = nullptr;
  };
  void measure(const std::vector<Measured>& measured);
  // Counts batches: whoever keeps a copy of the groups sees that it is old.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // Copies for readers.
  std::vector<Route> routes() const;
  std::vector<Group> groups() const;
  // Traffic of one member since it became one.
  telemetry::PathCounters traffic_of(const lb::NextHop& member) const;

  static constexpr size_t kMaxPathCounters = 16'384;
  static constexpr size_t kMaxGroups = dataplane::kNoRoute - 1;

 private:
  struct Version {
    std::string name;  // of its FIB
    std::unique_ptr<dataplane::Fib> fib;
    dataplane::ForwardingTables tables;
    bool stale = false;  // nobody has finished writing it: to be made anew before it is shown
  };
  struct Change {  // of one prefix; nothing = removed
    net::IpPrefix prefix;
    std::optional<dataplane::GroupId> group;
  };
  // The wanted state; edited by a batch, then written into the versions.
  struct Model {
    std::map<net::IpPrefix, dataplane::GroupId> routes;
    std::vector<Group> groups;  // index = group id; a free slot has an empty name
    std::vector<Change> changes;

    std::optional<dataplane::GroupId> find(const std::string& name) const;
    dataplane::GroupId add_group(Group group);
    void point(const net::IpPrefix& prefix, dataplane::GroupId group);
    void unpoint(dataplane::GroupId group);
  };

  void edit(Model& model, const Batch& batch);
  void set_route(Model& model, const net::IpPrefix& prefix, const std::string& group);
  void claim_counter(lb::NextHop& member, size_t& free);
  void publish(Model model);
  Version& idle() { return versions_[1 - live_]; }
  void show_idle();
  void write(Version& version, const Model& model);
  static bool change_routes(dataplane::Fib& fib, const std::vector<Change>& changes);
  bool refresh(Version& version);
  void rebuild(Version& version, const Model& model);
  void write_groups(Version& version, const Model& model) const;
  void write_group(Version& version, size_t id, const Group& group) const;

  mutable std::mutex mutex_;
  dataplane::SwitchControl& control_;
  uint32_t max_routes_;
  PortId dead_port_;
  std::atomic<uint64_t> generation_{0};
  Model model_;
  std::array<Version, 2> versions_;
  unsigned live_ = 0;
  PathReader read_path_;
  std::vector<uint32_t> free_counters_;
  std::vector<telemetry::PathCounters> counted_before_;  // of a counter's earlier members
};

// What a batch can say. Names of groups are those of the configuration; a group made in place is named by its route.
class RouteTable::Batch {
 public:
  void set_group(Group group) { groups_.push_back(std::move(group)); }
  void set_route(const net::IpPrefix& prefix, std::string group) { routes_.push_back({prefix, std::move(group)}); }
  void set_route_in_place(const net::IpPrefix& prefix, Group group) {
    in_place_.emplace_back(prefix, std::move(group));
  }
  void remove_route(const net::IpPrefix& prefix) { removed_.push_back(prefix); }
  // Adds a member, or replaces the one with the same port, MAC and VLAN (its weight may differ).
  void add_member(std::string group, const lb::NextHop& member) { added_.emplace_back(std::move(group), member); }
  // The schedulers of a group from now on: its own, and those that differ (null: none).
  void set_schedulers(std::string group, const lb::Scheduler& scheduler,
                      std::shared_ptr<const lb::SchedulerOverrides> overrides) {
    schedulers_.push_back({std::move(group), scheduler, std::move(overrides)});
  }
  void remove_member(std::string group, const lb::NextHop& member) { parted_.emplace_back(std::move(group), member); }

 private:
  friend class RouteTable;
  struct Schedulers {
    std::string group;
    lb::Scheduler scheduler;
    std::shared_ptr<const lb::SchedulerOverrides> overrides;
  };
  std::vector<Group> groups_;
  std::vector<Route> routes_;
  std::vector<std::pair<net::IpPrefix, Group>> in_place_;
  std::vector<net::IpPrefix> removed_;
  std::vector<std::pair<std::string, lb::NextHop>> added_;
  std::vector<std::pair<std::string, lb::NextHop>> parted_;
  std::vector<Schedulers> schedulers_;
};

}  // namespace heddle::control
