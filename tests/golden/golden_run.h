// What the golden tests measure of a run, as docs/schemes.md defines it.
#pragma once

#include <algorithm>
#include <vector>

#include "lab/ideal/alone_time.h"
#include "tests/support/fabric_runs.h"

namespace heddle::golden {

using support::all_done;
using support::all_hosts;
using support::workload_of;

// As the published runs are: 4096-byte payloads, no congestion control, unlimited queues, an ACK for each packet,
// starts spread over one packet time.
inline lab::FabricSettings open_loop(const char* scheduler, uint64_t seed = 1) {
  lab::FabricSettings settings;
  settings.switches.scheduler = *lb::scheduler_named(scheduler);
  const bool keeps_order = settings.switches.scheduler.granularity != lb::Granularity::kPacket;
  settings.hosts.out_of_order = keeps_order ? lab::OutOfOrder::kGoBackN : lab::OutOfOrder::kAnyOrderPlacement;
  settings.run.threads = 1;
  settings.run.seed = seed;
  return settings;
}

// 1 / slowdown of each message; slowdown = completion time / time alone.
inline std::vector<double> shares_of_ideal(const lab::Topology& topology, const lab::Workload& workload,
                                           const lab::FabricSettings& settings, const lab::RunResult& result) {
  const lab::AloneTimes alone(topology, lab::LinkStates(topology), settings.hosts);
  std::vector<double> shares;
  for (lab::MessageId m = 0; m < workload.messages.size(); ++m) {
    shares.push_back(static_cast<double>(alone.completion(workload.messages[m])) /
                     static_cast<double>(support::completion_of(result.messages[m])));
  }
  return shares;
}

inline double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

inline double utilization(const lab::Topology& topology, const lab::Workload& workload,
                          const lab::FabricSettings& settings, const lab::RunResult& result) {
  return mean(shares_of_ideal(topology, workload, settings, result));
}

inline double microseconds(Duration d) { return to_microseconds(d); }

}  // namespace heddle::golden
