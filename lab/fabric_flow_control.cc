#include "lab/fabric_flow_control.h"

#include <algorithm>

namespace heddle::lab {

namespace {

PortPauses pauses_of(const dataplane::Pipeline& pipeline, PortId port, Time at) {
  const telemetry::FlowControlCounters& counters = pipeline.counters().flow_control[port];
  PortPauses pauses;
  pauses.port = port;
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    pauses.sent += counters.tx_pause[tc].get();
    pauses.received += counters.rx_pause[tc].get();
    pauses.paused += pipeline.pauses(port).paused_time(tc, at);
    pauses.violations += counters.lossless_violations[tc].get();
    if (!pipeline.is_buffered()) continue;
    pauses.peak_headroom = std::max(pauses.peak_headroom, pipeline.buffer().occupancy(port, tc).peak_headroom);
  }
  return pauses;
}

}  // namespace

void collect_flow_control(const Fabric& fabric, RunResult& result) {
  for (size_t i = 0; i < fabric.switches.size(); ++i) {
    const dataplane::Pipeline& pipeline = fabric.switches[i]->pipeline();
    for (PortId port = 0; port < pipeline.port_count(); ++port) {
      const telemetry::FlowControlCounters& counters = pipeline.counters().flow_control[port];
      for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
        result.ecn_eligible += counters.ecn_eligible[tc].get();
        result.ecn_marked += counters.ecn_marked[tc].get();
      }
      result.control_frames += counters.tx_frames.get();
      result.control_frames_ended += counters.rx_frames.get();
      PortPauses pauses = pauses_of(pipeline, port, result.ended_at);
      pauses.node = static_cast<NodeId>(fabric.hosts.size() + i);
      if (pauses.sent != 0 || pauses.received != 0 || pauses.violations != 0) result.pauses.push_back(pauses);
    }
    if (pipeline.is_buffered()) {
      result.peak_buffer_bytes = std::max(result.peak_buffer_bytes, pipeline.buffer().peak_shared_used());
    }
  }
  for (const auto& host : fabric.hosts) {
    result.control_frames_ended += host->counters().pfc_frames + host->counters().control_ignored;
  }
}

}  // namespace heddle::lab
