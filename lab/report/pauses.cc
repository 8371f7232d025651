// What a run says about pauses (and waits for credit) of others: who suffered from them, and each as a line of CSV.
#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lab/report/report.h"

namespace heddle::lab {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kWorst = 10;

struct Mean {
  double sum = 0;
  uint64_t count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  Json json() const { return count == 0 ? Json() : Json(sum / static_cast<double>(count)); }
};

// Messages as flows are counted: without barriers.
std::vector<uint64_t> flow_numbers(const Workload& workload) {
  std::vector<uint64_t> numbers(workload.messages.size());
  uint64_t flows = 0;
  for (MessageId m = 0; m < numbers.size(); ++m) {
    if (!workload.messages[m].is_barrier()) numbers[m] = flows++;
  }
  return numbers;
}

// "{switch, port, to}"
Json port_json(const Topology& topology, PauseOrigin origin) {
  return {{"switch", topology.nodes[origin.node()].name},
          {"port", origin.port()},
          {"to", topology.nodes[topology.neighbor(origin.node(), origin.port())].name}};
}

}  // namespace

const HeldFlow* Report::held_flow(MessageId message) const {
  const auto at = std::lower_bound(held_flows_.begin(), held_flows_.end(), message,
                                   [](const HeldFlow& flow, MessageId m) { return flow.message < m; });
  return at != held_flows_.end() && at->message == message ? &*at : nullptr;
}

// Flows held back by pauses that were not theirs, beside the others.
Json Report::victims_json() const {
  if (!logs_pauses()) return nullptr;
  const Workload& workload = experiment_.workload;
  Mean of_victims;
  Mean of_others;
  for (MessageId m = 0; m < workload.messages.size(); ++m) {
    const MessageTimes& at = result_.messages[m];
    if (workload.messages[m].is_barrier() || at.sent == kNever) continue;
    const HeldFlow* held = held_flow(m);
    const bool victim = held != nullptr && held->by_others != 0;
    (victim ? of_victims : of_others).add(static_cast<double>(at.sent - at.released) / static_cast<double>(alone_[m]));
  }
  std::vector<const HeldFlow*> victims;
  Duration held_in_all = 0;
  for (const HeldFlow& flow : held_flows_) {
    if (flow.by_others == 0) continue;
    victims.push_back(&flow);
    held_in_all += flow.by_others;
  }
  std::stable_sort(victims.begin(), victims.end(),
                   [](const HeldFlow* a, const HeldFlow* b) { return a->by_others > b->by_others; });
  Json json{{"flows", victims.size()},
            {"held_us", to_microseconds(held_in_all)},
            {"mean_slowdown", of_victims.json()},
            {"mean_slowdown_of_others", of_others.json()},
            {"worst", Json::array()}};
  const std::vector<uint64_t> numbers = flow_numbers(workload);
  for (size_t i = 0; i < std::min(victims.size(), kWorst); ++i) {
    const HeldFlow& victim = *victims[i];
    const Message& message = workload.messages[victim.message];
    Json origin = port_json(experiment_.topology, victim.origin);
    origin["us"] = to_microseconds(victim.by_origin);
    json["worst"].push_back({{"flow", numbers[victim.message]},
                             {"job", workload.jobs[message.job]},
                             {"src", message.src},
                             {"dst", message.dst},
                             {"held_us", to_microseconds(victim.held)},
                             {"held_by_others_us", to_microseconds(victim.by_others)},
                             {"origin", std::move(origin)}});
  }
  return json;
}

std::string pauses_csv_header() {
  return "run,workload,scheme,node,port,peer,class,from_us,until_us,origin,origin_port,origin_peer";
}

std::string Report::pauses_csv(const std::string& prefix) const {
  const Topology& topology = experiment_.topology;
  fmt::memory_buffer out;
  for (const NodePause& at : result_.timeline) {
    const PauseInterval& pause = at.pause;
    fmt::format_to(std::back_inserter(out), "{}{},{},{},{},{}.{:06},{}.{:06},", prefix, topology.nodes[at.node].name,
                   pause.port, topology.nodes[topology.neighbor(at.node, pause.port)].name, pause.traffic_class,
                   pause.from / kMicrosecond, pause.from % kMicrosecond, pause.until / kMicrosecond,
                   pause.until % kMicrosecond);
    if (pause.origin.is_known()) {
      const NodeId peer = topology.neighbor(pause.origin.node(), pause.origin.port());
      fmt::format_to(std::back_inserter(out), "{},{},{}", topology.nodes[pause.origin.node()].name, pause.origin.port(),
                     topology.nodes[peer].name);
    } else {
      fmt::format_to(std::back_inserter(out), ",,");
    }
    out.push_back('\n');
  }
  return fmt::to_string(out);
}

}  // namespace heddle::lab
