#include "control/route_table.h"

#include <algorithm>
#include <utility>

#include "config/address.h"
#include "dataplane/measured_group.h"
#include "net/error.h"

namespace heddle::control {

using dataplane::GroupId;

namespace {

bool same_hop(const lb::NextHop& a, const lb::NextHop& b) {
  return a.port == b.port && a.rewrite.destination == b.rewrite.destination && a.rewrite.vlan_id == b.rewrite.vlan_id;
}

std::vector<lb::NextHop>::iterator find_member(std::vector<lb::NextHop>& members, const lb::NextHop& wanted) {
  return std::find_if(members.begin(), members.end(), [&](const lb::NextHop& m) { return same_hop(m, wanted); });
}

}  // namespace

RouteTable::RouteTable(dataplane::SwitchControl& control, uint32_t max_routes, PortId dead_port)
    : control_(control), max_routes_(max_routes), dead_port_(dead_port), counted_before_(kMaxPathCounters) {
  for (uint32_t i = kMaxPathCounters; i-- > 0;) free_counters_.push_back(i);
  for (size_t i = 0; i < versions_.size(); ++i) {
    versions_[i].name = "fib" + std::to_string(i);
    rebuild(versions_[i], model_);
  }
  control_.tables.store(&versions_[live_].tables, std::memory_order_release);
}

void RouteTable::apply(const Batch& batch) {
  const std::scoped_lock lock(mutex_);
  Model wanted = model_;
  wanted.changes.clear();
  edit(wanted, batch);
  publish(std::move(wanted));
}

void RouteTable::edit(Model& model, const Batch& batch) {
  for (const Group& group : batch.groups_) {
    if (model.find(group.name)) throw_bad_input("group '{}' exists already", group.name);
    model.add_group(group);
  }
  for (const auto& [name, member] : batch.added_) {
    const auto id = model.find(name);
    if (!id) throw_bad_input("no group '{}'", name);
    auto& members = model.groups[*id].members.members;
    const auto at = find_member(members, member);
    if (at != members.end()) {
      at->weight = member.weight;
      at->alternate = member.alternate;
    } else {
      if (members.size() == lb::kMaxMembers) throw_bad_input("group '{}' is full: {} members", name, lb::kMaxMembers);
      members.push_back(member);
    }
  }
  for (const auto& [name, member] : batch.parted_) {
    const auto id = model.find(name);
    if (!id) throw_bad_input("no group '{}'", name);
    auto& members = model.groups[*id].members.members;
    const auto at = find_member(members, member);
    if (at == members.end()) {
      throw_bad_input("group '{}' has no member {}", name, config::print_mac(member.rewrite.destination));
    }
    members.erase(at);
  }
  for (const Batch::Schedulers& change : batch.schedulers_) {
    const auto id = model.find(change.group);
    if (!id) throw_bad_input("no group '{}'", change.group);
    model.groups[*id].members.scheduler = change.scheduler;
    model.groups[*id].members.overrides = change.overrides;
  }
  for (const net::IpPrefix& prefix : batch.removed_) {
    const auto at = model.routes.find(prefix);
    if (at == model.routes.end()) throw_bad_input("no route {}", config::print_prefix(prefix));
    model.unpoint(at->second);
    model.routes.erase(at);
    model.changes.push_back({prefix, std::nullopt});
  }
  for (const Route& route : batch.routes_) set_route(model, route.prefix, route.group);
  for (const auto& [prefix, group] : batch.in_place_) {
    const auto existing = model.find(group.name);
    model.point(prefix, existing ? *existing : model.add_group(group));
  }
  const auto count = [&](net::IpFamily family) {
    return std::count_if(model.routes.begin(), model.routes.end(),
                         [family](const auto& route) { return route.first.family == family; });
  };
  for (const net::IpFamily family : {net::IpFamily::kIpv4, net::IpFamily::kIpv6}) {
    if (const auto n = count(family); n > max_routes_) {
      throw_bad_input("{} routes of one family; max_routes is {}", n, max_routes_);
    }
  }
}

void RouteTable::set_route(Model& model, const net::IpPrefix& prefix, const std::string& group) {
  const auto id = model.find(group);
  if (!id) throw_bad_input("route {}: no group '{}'", config::print_prefix(prefix), group);
  model.point(prefix, *id);
}

// Gives every new member a counter, writes the idle version, publishes it, waits, writes the other. What is thrown has
// changed nothing.
void RouteTable::publish(Model model) {
  std::vector<uint8_t> used(kMaxPathCounters, 0);
  size_t free = free_counters_.size();  // whatever is thrown, they stay free until the batch is in force
  for (Group& group : model.groups) {
    for (lb::NextHop& member : group.members.members) {
      if (member.counter == 0) claim_counter(member, free);
      used[member.counter - 1] = 1;
    }
    dataplane::settle_members(group.members);
    group.members.make_table();
  }
  try {
    write(idle(), model);
  } catch (const Error&) {  // the FIB is full
    refresh(idle());
    throw;
  }
  show_idle();

  free_counters_.resize(free);
  for (const Group& group : model_.groups) {  // counters of members that are gone
    for (const lb::NextHop& member : group.members.members) {
      if (used[member.counter - 1] == 0) free_counters_.insert(free_counters_.begin(), member.counter - 1);
    }
  }
  model_ = std::move(model);
  generation_.fetch_add(1, std::memory_order_release);
  try {
    write(idle(), model_);
  } catch (const Error&) {  // the batch is in force all the same; who writes next tries again
  }
}

// The idle version is in force from now on; when this returns, no worker sees the other, which is the idle one then.
void RouteTable::show_idle() {
  idle().tables.generation = versions_[live_].tables.generation + 1;
  control_.tables.store(&idle().tables, std::memory_order_release);
  if (control_.readers != nullptr) rte_rcu_qsbr_synchronize(control_.readers, RTE_QSBR_THRID_INVALID);
  live_ = 1 - live_;
}

// As `publish`, of these groups alone: a table of many routes is not copied for a few weights.
void RouteTable::measure(const std::vector<Measured>& measured) {
  const std::scoped_lock lock(mutex_);
  std::vector<GroupId> changed;
  for (const Measured& of : measured) {
    const std::optional<GroupId> id = model_.find(of.name);
    if (!id) continue;
    lb::NextHopGroup& group = model_.groups[*id].members;
    for (const lb::NextHop& from : of.group->members) {
      const auto at = find_member(group.members, from);
      if (at == group.members.end()) continue;
      at->share = from.share;
      at->remote_band = from.remote_band;
      at->bad = from.bad;
    }
    group.measured = true;
    dataplane::settle_members(group);  // members may have gone since they were probed
    group.make_table();
    changed.push_back(*id);
  }
  if (changed.empty()) return;
  if (!refresh(idle())) return;  // then they go with the next batch
  for (const GroupId id : changed) write_group(idle(), id, model_.groups[id]);
  show_idle();
  for (const GroupId id : changed) write_group(idle(), id, model_.groups[id]);
}

// In a NextHop of the model, counter 0 means none yet; the tables hold the index itself. Takes the last of the first
// `free` free ones.
void RouteTable::claim_counter(lb::NextHop& member, size_t& free) {
  if (free == 0) throw_bad_input("more than {} next-hop members", kMaxPathCounters);
  const uint32_t index = free_counters_[--free];
  if (read_path_) counted_before_[index] = read_path_(index);
  member.counter = index + 1;
}

void RouteTable::write(Version& version, const Model& model) {
  if (!std::exchange(version.stale, true)) {
    write_groups(version, model);
    if (change_routes(*version.fib, model.changes)) {
      version.stale = false;
      return;
    }
  }
  rebuild(version, model);
}

// Makes the idle version what is in force, if its last write failed; false if that cannot be done, either.
bool RouteTable::refresh(Version& version) {
  if (!version.stale) return true;
  try {
    rebuild(version, model_);
  } catch (const Error&) {
    return false;
  }
  return true;
}

// False: the FIB refuses some of them.
bool RouteTable::change_routes(dataplane::Fib& fib, const std::vector<Change>& changes) {
  try {
    for (const Change& change : changes) {
      if (change.group) {
        fib.add(change.prefix, *change.group);
      } else if (!fib.remove(change.prefix)) {
        return false;
      }
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

// rte_fib6 of 22.11 counts the second-level tables it has promised to a prefix by the parent that the prefix has at the
// moment. When prefixes go in another order than they came, the count drifts, and in the end it refuses what there is
// room for (later releases count the levels instead). So a refusal is believed only of a FIB made anew. The old one
// goes first: the memory was computed for two.
void RouteTable::rebuild(Version& version, const Model& model) {
  version.stale = true;
  version.tables.lookup = nullptr;
  version.fib.reset();
  version.fib = std::make_unique<dataplane::Fib>(version.name, max_routes_);
  version.tables.lookup = version.fib.get();
  write_groups(version, model);
  for (const auto& [prefix, group] : model.routes) version.fib->add(prefix, group);
  version.stale = false;
}

void RouteTable::write_groups(Version& version, const Model& model) const {
  version.tables.groups.resize(model.groups.size());
  for (size_t i = 0; i < model.groups.size(); ++i) write_group(version, i, model.groups[i]);
  version.tables.note_schedulers();
}

void RouteTable::write_group(Version& version, size_t id, const Group& group) const {
  lb::NextHopGroup& written = version.tables.groups[id];
  written = group.members;
  for (lb::NextHop& member : written.members) member.counter--;
  if (dead_port_ != kNoPort) dataplane::shut_bad_members(written, dead_port_);
}

std::vector<Route> RouteTable::routes() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Route> routes;
  routes.reserve(model_.routes.size());
  for (const auto& [prefix, group] : model_.routes) routes.push_back({prefix, model_.groups[group].name});
  return routes;
}

std::vector<Group> RouteTable::groups() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Group> groups;
  std::copy_if(model_.groups.begin(), model_.groups.end(), std::back_inserter(groups),
               [](const Group& group) { return !group.name.empty(); });
  return groups;
}

telemetry::PathCounters RouteTable::traffic_of(const lb::NextHop& member) const {
  const std::scoped_lock lock(mutex_);
  telemetry::PathCounters sum;
  if (!read_path_ || member.counter == 0) return sum;
  sum = read_path_(member.counter - 1);
  sum.packets.subtract(counted_before_[member.counter - 1].packets.get());
  sum.bytes.subtract(counted_before_[member.counter - 1].bytes.get());
  return sum;
}

std::optional<GroupId> RouteTable::Model::find(const std::string& name) const {
  if (name.empty()) return std::nullopt;  // as free slots are called
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].name == name) return static_cast<GroupId>(i);
  }
  return std::nullopt;
}

GroupId RouteTable::Model::add_group(Group group) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].name.empty()) {
      groups[i] = std::move(group);
      return static_cast<GroupId>(i);
    }
  }
  if (groups.size() == kMaxGroups) throw_bad_input("more than {} next-hop groups", kMaxGroups);
  groups.push_back(std::move(group));
  return static_cast<GroupId>(groups.size() - 1);
}

void RouteTable::Model::point(const net::IpPrefix& prefix, GroupId group) {
  const auto at = routes.find(prefix);
  if (at != routes.end()) {
    if (at->second == group) return;
    groups[group].routes++;
    unpoint(at->second);
    at->second = group;
  } else {
    groups[group].routes++;
    routes.emplace(prefix, group);
  }
  changes.push_back({prefix, group});
}

// A group that was made for one route goes with its last one.
void RouteTable::Model::unpoint(GroupId group) {
  if (--groups[group].routes == 0 && groups[group].in_place) groups[group] = Group{};
}

}  // namespace heddle::control
