#include "dataplane/reach.h"

#include <algorithm>

#include "dataplane/tables.h"

namespace heddle::dataplane {

void Reach::begin_sweep() {
  ++sweep_;
  for (LidSet& set : lost_) set.clear();
  told_.clear();
  spoken_.clear();
  repeats_left_ = 0;
  changes_.clear();
  any_lost_ = false;
}

bool Reach::hear(PortId from, const net::ReachNotice& notice) {
  if (notice.sweep != sweep_) return false;
  for (size_t i = 0; i < notice.count; ++i) {
    const net::LidRange& range = notice.ranges[i];
    for (uint32_t lid = range.first; lid < uint32_t{range.first} + range.count; ++lid) {
      lost_[from].set(lid, !notice.restored);
    }
  }
  any_lost_ = true;  // until the next sweep
  return true;
}

void Reach::review(const ForwardingTables& tables, const PortStates& ports) {
  look_at(tables, ports, 0, static_cast<uint32_t>(tables.group_of_route.size()));
}

void Reach::review(const ForwardingTables& tables, const PortStates& ports, const net::ReachNotice& heard) {
  const auto end = static_cast<uint32_t>(tables.group_of_route.size());
  for (size_t i = 0; i < heard.count; ++i) {
    const uint32_t from = heard.ranges[i].first;
    look_at(tables, ports, from, std::min(end, from + heard.ranges[i].count));
  }
}

void Reach::look_at(const ForwardingTables& tables, const PortStates& ports, uint32_t from, uint32_t end) {
  for (uint32_t lid = from; lid < end; ++lid) {
    if (tables.group_for(lid) == nullptr) continue;  // nor do they: nobody sends it here
    const bool reached = reaches(tables, ports, lid);
    if (reached != told_.has(lid)) continue;
    told_.set(lid, !reached);
    spoken_.set(lid, true);
    repeats_left_ = settings_.repeats;
    add(changes_, lid, reached);
  }
}

bool Reach::reaches(const ForwardingTables& tables, const PortStates& ports, uint32_t lid) const {
  const std::vector<lb::NextHop>& members = tables.group_for(lid)->members;
  return std::any_of(members.begin(), members.end(), [&](const lb::NextHop& member) {
    return ports.is_up(member.port) && is_usable(member.port, lid);
  });
}

void Reach::repeat(const ForwardingTables& tables) {
  if (repeats_left_ == 0) return;
  --repeats_left_;
  for (const bool restored : {true, false}) {
    for (uint32_t lid = 0; lid < tables.group_of_route.size(); ++lid) {
      if (spoken_.has(lid) && told_.has(lid) != restored) add(changes_, lid, restored);
    }
  }
}

// Ranges grow while LIDs follow each other.
void Reach::add(std::vector<net::ReachNotice>& to, uint32_t lid, bool restored) const {
  if (!to.empty() && to.back().restored == restored) {
    net::ReachNotice& last = to.back();
    net::LidRange& range = last.ranges[last.count - 1U];
    if (uint32_t{range.first} + range.count == lid) {
      ++range.count;
      return;
    }
    if (last.count < net::ReachNotice::kMostRanges) {
      last.ranges[last.count++] = {static_cast<uint16_t>(lid), 1};
      return;
    }
  }
  net::ReachNotice& notice = to.emplace_back();
  notice.sweep = sweep_;
  notice.restored = restored;
  notice.count = 1;
  notice.ranges[0] = {static_cast<uint16_t>(lid), 1};
}

std::vector<net::ReachNotice> Reach::all_losses(const ForwardingTables& tables) const {
  std::vector<net::ReachNotice> notices;
  for (uint32_t lid = 0; lid < tables.group_of_route.size() && !told_.empty(); ++lid) {
    if (told_.has(lid)) add(notices, lid, false);
  }
  return notices;
}

}  // namespace heddle::dataplane
