#include "control/views.h"

#include "config/address.h"
#include "config/units.h"
#include "control/switch_config_parts.h"
#include "net/drop_reason.h"

namespace heddle::control {

namespace {

Json drops_of(const telemetry::PortCounters& counters) {
  Json drops = Json::object();
  for (size_t i = 1; i < kDropReasons; ++i) {
    if (const uint64_t n = counters.drops[i].get(); n != 0) drops[std::string(kDropTexts[i].name)] = n;
  }
  return drops;
}

Json resequencer_json(const RunningSwitch& running) {
  if (!running.config().resequencer.enabled) return nullptr;
  const ResequencerStatus r = running.resequencer_status();
  return {{"in_order", r.in_order},     {"held", r.held}, {"released", r.released}, {"timed_out", r.timed_out},
          {"overflowed", r.overflowed}, {"late", r.late}, {"resyncs", r.resyncs},   {"unknown", r.unknown},
          {"max_degree", r.max_degree}};
}

// How even the members' loads are: 1 if all carried bytes in proportion to their weights, 1/members if one carried all.
Json jain_of(const Json& members) {
  double sum = 0;
  double squares = 0;
  for (const Json& member : members) {
    const double load = member["bytes"].get<double>() / member["weight"].get<double>();
    sum += load;
    squares += load * load;
  }
  if (squares == 0) return nullptr;
  return sum * sum / (static_cast<double>(members.size()) * squares);
}

Json class_schedulers(const lb::NextHopGroup& group) {
  Json json = Json::object();
  for (size_t tc = 0; group.overrides != nullptr && tc < kTrafficClasses; ++tc) {
    if (const auto& of = group.overrides->of_class[tc]) json[std::to_string(tc)] = lb::name_of(*of);
  }
  return json;
}

Json control_scheduler(const lb::NextHopGroup& group) {
  if (group.overrides == nullptr || !group.overrides->of_control) return "default";
  return lb::name_of(*group.overrides->of_control);
}

}  // namespace

Json ports_view(const RunningSwitch& running) {
  Json ports = Json::array();
  for (const PortStatus& port : running.port_status()) {
    Json macs = Json::array();
    for (const net::Mac& mac : port.macs) macs.push_back(config::print_mac(mac));
    ports.push_back({{"name", port.name},
                     {"device", port.device},
                     {"driver", port.driver},
                     {"mac", port.any_mac ? Json("any") : macs},
                     {"rate", config::print_rate(port.rate)},
                     {"up", port.up},
                     {"worker", port.worker},
                     {"max_frame", port.max_frame},
                     {"rx_packets", port.counters.rx_packets.get()},
                     {"rx_bytes", port.counters.rx_bytes.get()},
                     {"tx_packets", port.counters.tx_packets.get()},
                     {"tx_bytes", port.counters.tx_bytes.get()},
                     {"answered", port.counters.answered.get()},
                     {"drops", drops_of(port.counters)}});
  }
  return {{"ports", ports}};
}

Json queues_view(const RunningSwitch& running, bool all) {
  Json queues = Json::array();
  for (const QueueStatus& queue : running.queue_status()) {
    if (!all && queue.peak_bytes == 0) continue;
    const bool unlimited = queue.limit_bytes == dataplane::EgressQueue::kUnlimited;
    queues.push_back({{"port", queue.port},
                      {"class", queue.traffic_class},
                      {"priority", queue.strict ? "strict" : "weighted"},
                      {"weight", queue.weight},
                      {"limit_bytes", unlimited ? Json() : Json(queue.limit_bytes)},
                      {"packets", queue.packets},
                      {"bytes", queue.bytes},
                      {"peak_bytes", queue.peak_bytes},
                      {"recent_peak", queue.recent_peak}});
  }
  return {{"queues", queues}};
}

Json buffer_view(const RunningSwitch& running, bool all) {
  const BufferStatus buffer = running.buffer_status();
  Json groups = Json::array();
  for (const GroupStatus& group : buffer.groups) {
    if (!all && group.peak_bytes == 0) continue;
    groups.push_back({{"port", group.port},
                      {"class", group.traffic_class},
                      {"lossless", group.lossless},
                      {"reserved", group.reserved},
                      {"reserved_limit", group.reserved_limit},
                      {"shared", group.shared},
                      {"threshold", group.threshold},
                      {"headroom", group.headroom},
                      {"headroom_limit", group.headroom_limit},
                      {"xoff", group.xoff},
                      {"peak_bytes", group.peak_bytes},
                      {"recent_peak", group.recent_peak},
                      {"peak_headroom", group.peak_headroom},
                      {"lossless_violations", group.violations}});
  }
  return {{"buffer",
           {{"bytes", buffer.bytes},
            {"packets", buffer.packets},
            {"shared_bytes", buffer.shared_bytes},
            {"shared_used", buffer.shared_used},
            {"groups", groups}}}};
}

Json pfc_view(const RunningSwitch& running) {
  const auto counted = [](const std::optional<uint64_t>& frames) { return frames ? Json(*frames) : Json(); };
  Json classes = Json::array();
  for (const PfcStatus& pfc : running.pfc_status()) {
    classes.push_back({{"port", pfc.port},
                       {"backend", word_for(pfc_words(), pfc.backend)},
                       {"class", pfc.traffic_class},
                       {"rx_pause", counted(pfc.pauses.rx_pause)},
                       {"rx_resume", counted(pfc.pauses.rx_resume)},
                       {"tx_pause", counted(pfc.pauses.tx_pause)},
                       {"tx_resume", counted(pfc.pauses.tx_resume)},
                       {"receiving", pfc.receiving},
                       {"paused", pfc.paused},
                       {"paused_us", pfc.paused_us},
                       {"rx_global_pause", pfc.rx_global_pause},
                       {"rx_malformed", pfc.rx_malformed}});
  }
  return {{"pfc", classes}};
}

Json watchdog_view(const RunningSwitch& running) {
  Json queues = Json::array();
  for (const WatchdogStatus& dog : running.watchdog_status()) {
    queues.push_back({{"port", dog.port},
                      {"class", dog.traffic_class},
                      {"detect_ms", to_microseconds(dog.settings.detect) / 1000},
                      {"restore_ms", to_microseconds(dog.settings.restore) / 1000},
                      {"action", flowctl::name_of(dog.settings.action)},
                      {"state", dog.stormed ? "stormed" : "operational"},
                      {"storms", dog.storms},
                      {"restores", dog.restores},
                      {"dropped", dog.dropped}});
  }
  Json events = Json::array();
  for (const WatchdogEventStatus& event : running.watchdog_events()) {
    const auto at = std::chrono::duration_cast<std::chrono::milliseconds>(event.at.time_since_epoch());
    events.push_back({{"at_ms", at.count()},
                      {"port", event.port},
                      {"class", event.traffic_class},
                      {"event", event.storm ? "storm" : "restored"}});
  }
  return {{"watchdog", queues}, {"events", events}};
}

Json ecn_view(const RunningSwitch& running) {
  Json queues = Json::array();
  for (const QueueStatus& queue : running.queue_status()) {
    if (!queue.ecn.is_on()) continue;
    const double share =
        queue.ecn_eligible == 0 ? 0 : static_cast<double>(queue.ecn_marked) / static_cast<double>(queue.ecn_eligible);
    queues.push_back({{"port", queue.port},
                      {"class", queue.traffic_class},
                      {"kmin", queue.ecn.min_bytes},
                      {"kmax", queue.ecn.max_bytes},
                      {"pmax", queue.ecn.max_probability},
                      {"eligible", queue.ecn_eligible},
                      {"marked", queue.ecn_marked},
                      {"share", share}});
  }
  return {{"ecn", queues}};
}

Json routes_view(RunningSwitch& running) {
  Json routes = Json::array();
  for (const Route& route : running.routes().routes()) {
    routes.push_back({{"prefix", config::print_prefix(route.prefix)}, {"via", route.group}});
  }
  return {{"routes", routes}};
}

Json paths_view(RunningSwitch& running) {
  const std::vector<PortStatus> ports = running.port_status();
  Json groups = Json::array();
  for (const Group& group : running.routes().groups()) {
    Json members = Json::array();
    uint64_t sum = 0;
    for (const lb::NextHop& member : group.members.members) {
      const telemetry::PathCounters traffic = running.routes().traffic_of(member);
      sum += traffic.packets.get();
      members.push_back({{"port", ports[member.port].name},
                         {"mac", config::print_mac(member.rewrite.destination)},
                         {"vlan", member.rewrite.vlan_id},
                         {"weight", member.weight},
                         {"alternate", member.alternate},
                         {"up", ports[member.port].up},
                         {"packets", traffic.packets.get()},
                         {"bytes", traffic.bytes.get()}});
    }
    const Json jain = jain_of(members);
    for (Json& member : members) {
      member["share"] = sum == 0 ? 0.0 : member["packets"].get<double>() / static_cast<double>(sum);
    }
    groups.push_back({{"name", group.name},
                      {"scheduler", lb::name_of(group.members.scheduler)},
                      {"class_schedulers", class_schedulers(group.members)},
                      {"control_scheduler", control_scheduler(group.members)},
                      {"routes", group.routes},
                      {"jain", jain},
                      {"members", members}});
  }
  const FlowletStatus flowlets = running.flowlet_status();
  return {{"groups", groups},
          {"flowlets",
           {{"begun", flowlets.flowlets}, {"reroutes", flowlets.reroutes}, {"collisions", flowlets.collisions}}},
          {"resequencer", resequencer_json(running)},
          {"path_delay", path_delay_view(running)}};
}

Json drops_view(const RunningSwitch& running) {
  telemetry::PortCounters sum;
  Json by_port = Json::object();
  for (const PortStatus& port : running.port_status()) {
    sum += port.counters;
    if (Json drops = drops_of(port.counters); !drops.empty()) by_port[port.name] = drops;
  }
  const Json total = drops_of(sum);
  Json meaning = Json::object();
  for (const DropText& text : kDropTexts) {
    const std::string name(text.name);
    if (total.contains(name)) meaning[name] = text.meaning;
  }
  return {{"drops", total}, {"ports", by_port}, {"meaning", meaning}};
}

Json totals_view(RunningSwitch& running) {
  Json totals = ports_view(running);
  totals["drops"] = drops_view(running)["drops"];
  totals["groups"] = paths_view(running)["groups"];
  Json workers = Json::array();
  for (const WorkerStatus& worker : running.worker_status()) {
    workers.push_back({{"cpu", worker.cpu}, {"busy_ticks", worker.busy_ticks}, {"idle_ticks", worker.idle_ticks}});
  }
  totals["workers"] = workers;
  return totals;
}

}  // namespace heddle::control
