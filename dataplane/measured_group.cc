#include "dataplane/measured_group.h"

#include <algorithm>
#include <utility>

namespace heddle::dataplane {

telemetry::ProbeTarget probe_target(const lb::NextHopGroup& group, uint64_t label,
                                    std::vector<net::IpAddress> addresses) {
  telemetry::ProbeTarget target{.label = label, .addresses = std::move(addresses), .members = {}};
  target.members.reserve(group.members.size());
  for (const lb::NextHop& member : group.members) {
    target.members.push_back({.port = member.port, .share = member.weight, .identity = lb::identity_of(member)});
  }
  return target;
}

namespace {

// Then nothing is known to be better than trying.
void spare_where_all_are_bad(std::vector<lb::NextHop>& members) {
  const auto is_bad = [](const lb::NextHop& member) { return member.bad; };
  if (!std::all_of(members.begin(), members.end(), is_bad)) return;
  for (lb::NextHop& member : members) member.bad = false;
}

}  // namespace

void measure(lb::NextHopGroup& group, const telemetry::PathDelay& paths) {
  for (unsigned m = 0; m < paths.size(); ++m) {
    lb::NextHop& member = group.members[m];
    member.share = static_cast<uint16_t>(paths.shares()[m]);
    member.remote_band = static_cast<uint8_t>(paths.bands_below_best(m));
    member.bad = paths.member(m).bad;
  }
  spare_where_all_are_bad(group.members);
  group.measured = true;
  group.make_table();
}

void settle_members(lb::NextHopGroup& group) {
  if (!group.measured) return;
  spare_where_all_are_bad(group.members);
  if (group.members.size() > 1) return;
  group.measured = false;
  for (lb::NextHop& member : group.members) {
    member.share = 0;
    member.remote_band = 0;
  }
}

void shut_bad_members(lb::NextHopGroup& group, PortId dead_port) {
  if (!group.measured) return;
  for (lb::NextHop& member : group.members) {
    if (member.bad) member.port = dead_port;
  }
}

}  // namespace heddle::dataplane
