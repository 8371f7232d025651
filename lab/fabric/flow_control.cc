#include "lab/fabric/flow_control.h"

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
        result.watchdog_storms += counters.watchdog_storms[tc].get();
        result.watchdog_restores += counters.watchdog_restores[tc].get();
        result.watchdog_drops += counters.watchdog_drops[tc].get();
      }
      result.control_frames += counters.tx_frames.get();
      result.control_frames_ended += counters.rx_frames.get();
      PortPauses pauses = pauses_of(pipeline, port, result.ended_at);
      pauses.node = static_cast<NodeId>(fabric.hosts.size() + i);
      if (pauses.sent != 0 || pauses.received != 0 || pauses.violations != 0) result.pauses.push_back(pauses);
    }
    for (const dataplane::Pipeline::Incident& incident : pipeline.incidents()) {
      result.incidents.push_back(
          {.at = incident.at,
           .queue = {static_cast<NodeId>(fabric.hosts.size() + i), incident.port, incident.traffic_class},
           .storm = incident.event == flowctl::WatchdogEvent::kStormed});
    }
    if (pipeline.is_buffered()) {
      result.peak_buffer_bytes = std::max(result.peak_buffer_bytes, pipeline.buffer().peak_shared_used());
    }
  }
  std::stable_sort(result.incidents.begin(), result.incidents.end(),
                   [](const WatchdogIncident& a, const WatchdogIncident& b) { return a.at < b.at; });
  for (const auto& host : fabric.hosts) {
    result.control_frames_ended += host->counters().pfc_frames + host->counters().control_ignored;
  }
}

void collect_pauses(const Fabric& fabric, RunResult& result) {
  const auto add = [&result](NodeId node, const PauseLog* log) {
    if (log == nullptr) return;
    for (const PauseInterval& pause : log->intervals()) result.timeline.push_back({node, pause});
    const std::vector<HeldMessage> held = log->held();
    result.held.insert(result.held.end(), held.begin(), held.end());
  };
  for (size_t i = 0; i < fabric.hosts.size(); ++i) {
    fabric.hosts[i]->close_pauses(result.ended_at);
    add(static_cast<NodeId>(i), fabric.hosts[i]->pauses());
  }
  for (size_t i = 0; i < fabric.switches.size(); ++i) {
    fabric.switches[i]->close_pauses(result.ended_at);
    add(static_cast<NodeId>(fabric.hosts.size() + i), fabric.switches[i]->pauses());
  }
  std::stable_sort(result.timeline.begin(), result.timeline.end(),
                   [](const NodePause& a, const NodePause& b) { return a.pause.from < b.pause.from; });
}

}  // namespace heddle::lab
