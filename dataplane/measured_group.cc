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

// Where all are bad, none is: then nothing is known to be better than trying.
void measure(lb::NextHopGroup& group, const telemetry::PathDelay& paths) {
  unsigned bad = 0;
  for (unsigned m = 0; m < paths.size(); ++m) bad += paths.member(m).bad ? 1U : 0U;
  for (unsigned m = 0; m < paths.size(); ++m) {
    lb::NextHop& member = group.members[m];
    member.share = static_cast<uint16_t>(paths.shares()[m]);
    member.remote_band = static_cast<uint8_t>(paths.bands_below_best(m));
    member.bad = paths.member(m).bad && bad != paths.size();
  }
  group.measured = true;
  group.make_table();
}

void shut_bad_members(lb::NextHopGroup& group, PortId dead_port) {
  if (!group.measured) return;
  for (lb::NextHop& member : group.members) {
    if (member.bad) member.port = dead_port;
  }
}

}  // namespace heddle::dataplane
