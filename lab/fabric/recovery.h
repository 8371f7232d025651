// How a run came through a failure: the first link event after its start that takes away capacity that there was until
// then, or packets that arrived until then.
#pragma once

#include <optional>
#include <vector>

#include "lab/engine/run_result.h"
#include "lab/topology/link_state.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

struct Recovery {
  Time at = 0;          // of the failure
  LinkId link = 0;      // the first that it concerns
  uint64_t lost = 0;    // packets lost on links, or for want of a way, in the whole run
  Duration losing = 0;  // from the failure to the last of them
  // From the failure until the last packet arrived that had been missing until it was sent again; nothing: none did.
  std::optional<Duration> repaired;
  // Payload per second over all receivers: the mean of up to ten whole sample intervals before the failure, and the
  // least of an interval after it while messages were under way; nothing if no interval was whole.
  std::optional<double> before_gbps;
  std::optional<double> least_gbps;
  // From the failure to the end of the first interval in which goodput was back at 90 % of what it was before, after it
  // had been less; 0 if it never was less, nothing if it never came back.
  std::optional<Duration> recovered;
};

// Nothing if there was no failure. `until`: when the first message was completed that was under way at the failure, or
// the run ended; afterwards goodput falls because there is less to send.
std::optional<Recovery> recovery_of(const Topology& topology, const std::vector<LinkEvent>& events,
                                    const RunResult& result, Duration interval);

}  // namespace heddle::lab
