// How long a message takes if it has the fabric to itself: what its slowdown is measured against.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/engine/fabric_settings.h"
#include "lab/topology/base_path.h"
#include "lab/workload/workload.h"

namespace heddle::lab {

class AloneTimes {
 public:
  // `states`: of the links when the run begins.
  AloneTimes(const Topology& topology, const LinkStates& states, const HostSettings& hosts);

  // From the first bit out of the source to the source's last ACK, on the base path: all packets over the slowest link
  // one after another, one packet stored and forwarded on each of the others, propagation there, and the ACK back.
  // Exact for one queue pair per connection; with several, to within their shorter last packets. 0 if no live path
  // leads there.
  Duration completion(const Message& message) const;

  // Data packets of a message, and how many links each crosses.
  uint64_t packets(const Message& message) const;
  uint64_t hops(const Message& message) const { return paths_.path(message.src, message.dst).size(); }

  // `completion` of every message; 0 for barriers. On all oneTBB threads.
  std::vector<Duration> of(const Workload& workload) const;

  // Links that packets and their ACKs will cross if nothing is sent twice: what a run's progress is measured by.
  uint64_t expected_hops(const Workload& workload) const;

 private:
  const Topology& topology_;
  LinkStates states_;
  HostSettings hosts_;
  BasePaths paths_;
};

}  // namespace heddle::lab
