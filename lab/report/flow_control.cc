// What a run says about pauses, marks and the losses that there should have been none of.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lab/host/roce.h"
#include "lab/report/report.h"

namespace heddle::lab {

using Json = nlohmann::ordered_json;

void Report::put_flow_control(Json& json) const {
  const FlowControlSettings& settings = experiment_.settings.switches.flow_control;
  const bool buffered = !is_infiniband() && settings.is_limited();
  uint64_t violations = 0;
  uint64_t sent = 0;
  Duration paused = result_.host_pause_time;
  Json ports = Json::array();
  for (const PortPauses& port : result_.pauses) {
    violations += port.violations;
    sent += port.sent;
    paused += port.paused;
    const Topology& topology = experiment_.topology;
    ports.push_back({{"switch", topology.nodes[port.node].name},
                     {"port", port.port},
                     {"peer", topology.nodes[topology.neighbor(port.node, port.port)].name},
                     {"sent", port.sent},
                     {"received", port.received},
                     {"paused_us", to_microseconds(port.paused)},
                     {"peak_headroom", port.peak_headroom},
                     {"lossless_violations", port.violations}});
  }
  const bool lossless = buffered && settings.lossless != 0;
  json["lossless_violations"] = lossless ? Json(violations) : Json();
  json["pauses_sent"] = lossless ? Json(sent) : Json();
  json["pause_time_us"] = lossless ? Json(to_microseconds(paused)) : Json();
  json["pauses"] = lossless ? std::move(ports) : Json();
  json["watchdog"] = watchdog_json();
  json["victims"] = victims_json();
  const bool marks = !is_infiniband() && settings.ecn.is_on();
  json["ecn_marked"] = marks ? Json(result_.ecn_marked) : Json();
  json["ecn_eligible"] = marks ? Json(result_.ecn_eligible) : Json();
  json["peak_buffer_bytes"] = buffered ? Json(result_.peak_buffer_bytes) : Json();
}

// Null where nothing can be paused, false where nothing got stuck.
void Report::put_deadlock(Json& json) const {
  const FlowControlSettings& settings = experiment_.settings.switches.flow_control;
  json["deadlock"] = is_infiniband() || settings.pauses() ? Json(false) : Json();
  if (!result_.deadlock) return;
  Json cycle = Json::array();
  for (const QueueRef& queue : result_.deadlock->cycle) {
    cycle.push_back({{"switch", experiment_.topology.nodes[queue.node].name},
                     {"port", queue.port},
                     {"to", experiment_.topology.nodes[experiment_.topology.neighbor(queue.node, queue.port)].name},
                     {is_infiniband() ? "vl" : "class", queue.traffic_class}});
  }
  const Time broken = result_.deadlock->broken_at;
  json["deadlock"] = {{"at_us", to_microseconds(result_.deadlock->at)},
                      {"broken_at_us", broken == kNever ? Json() : Json(to_microseconds(broken))},
                      {"cycle", std::move(cycle)}};
}

Json Report::watchdog_json() const {
  if (!experiment_.settings.switches.flow_control.watchdog) return nullptr;
  Json events = Json::array();
  for (const WatchdogIncident& incident : result_.incidents) {
    events.push_back({{"at_us", to_microseconds(incident.at)},
                      {"switch", experiment_.topology.nodes[incident.queue.node].name},
                      {"port", incident.queue.port},
                      {"class", incident.queue.traffic_class},
                      {"event", incident.storm ? "storm" : "restored"}});
  }
  return {{"storms", result_.watchdog_storms},
          {"restores", result_.watchdog_restores},
          {"dropped", result_.watchdog_drops},
          {"events", std::move(events)}};
}

// A lossless class that lost packets has too little headroom, or nobody who would obey it.
std::vector<std::string> Report::explain_violations() const {
  const FlowControlSettings& settings = experiment_.settings.switches.flow_control;
  std::vector<std::string> lines;
  for (const PortPauses& port : result_.pauses) {
    if (port.violations == 0) continue;
    const Topology& topology = experiment_.topology;
    const Link& link = topology.links[topology.ports[port.node][port.port]];
    const uint32_t frame = experiment_.settings.hosts.mtu + kDataFrameOverhead;
    const uint64_t needed = needed_headroom(link.rate, link.delay, frame, link.overhead, 1);
    std::string why = "PFC is off, so that the sender went on";
    if (settings.pfc) {
      why = fmt::format(
          "headroom {} bytes, and {} may arrive after XOFF: 3 frames of {} bytes, a pause frame, and what "
          "{:g} Gbit/s carry in twice {:g} us",
          settings.headroom.value_or(needed), needed, static_cast<int64_t>(frame) + link.overhead, link.rate.gbps(),
          to_microseconds(link.delay));
    }
    lines.push_back(fmt::format("{} packets of a lossless class were lost at {} port {} (from {}): {}", port.violations,
                                topology.nodes[port.node].name, port.port,
                                topology.nodes[topology.neighbor(port.node, port.port)].name, why));
    if (lines.size() == 8) break;
  }
  return lines;
}

}  // namespace heddle::lab
