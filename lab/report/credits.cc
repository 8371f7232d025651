// What a run on InfiniBand links says about credits and congestion control.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "lab/report/report.h"

namespace heddle::lab {

using Json = nlohmann::ordered_json;

// Null without congestion control of InfiniBand's.
Json Report::congestion_json() const {
  if (!is_infiniband() || !experiment_.settings.hosts.ccti) return nullptr;
  return {{"fecn_eligible", result_.ecn_eligible},  {"fecn_marked", result_.ecn_marked},
          {"fecn_received", result_.ce_packets},    {"becn_sent", result_.cnps},
          {"becn_received", result_.cnps_received}, {"throttled_queue_pairs", result_.throttled_queues},
          {"peak_ccti", result_.peak_ccti}};
}

// `credit_stall_us` in all, and by lane; the ports that waited longest by name.
void Report::put_credits(Json& json) const {
  json["credit_stall_us"] = json["lanes"] = json["credit_stalls"] = json["self_healing"] = nullptr;
  json["infiniband_congestion"] = congestion_json();
  if (!is_infiniband()) return;
  Duration stalled = 0;
  Json lanes = Json::array();
  for (size_t vl = 0; vl < result_.lanes.size(); ++vl) {
    const LaneUse& lane = result_.lanes[vl];
    stalled += lane.stalled;
    lanes.push_back({{"vl", vl},
                     {"credit_stall_us", to_microseconds(lane.stalled)},
                     {"peak_buffer_bytes", lane.peak},
                     {"buffer_bytes", lane.buffer}});
  }
  json["credit_stall_us"] = to_microseconds(stalled);
  json["lanes"] = std::move(lanes);

  constexpr size_t kMostNamed = 32;
  std::vector<CreditStall> longest = result_.stalls;
  std::stable_sort(longest.begin(), longest.end(),
                   [](const CreditStall& a, const CreditStall& b) { return a.stalled > b.stalled; });
  if (longest.size() > kMostNamed) longest.resize(kMostNamed);
  Json ports = Json::array();
  for (const CreditStall& stall : longest) {
    const Topology& topology = experiment_.topology;
    ports.push_back({{"node", topology.nodes[stall.node].name},
                     {"port", stall.port},
                     {"peer", topology.nodes[topology.neighbor(stall.node, stall.port)].name},
                     {"vl", stall.vl},
                     {"stall_us", to_microseconds(stall.stalled)},
                     {"peak_buffer_bytes", stall.peak}});
  }
  json["credit_stalls"] = std::move(ports);
  const HealingCounts& healing = result_.healing;
  json["self_healing"] = {{"failover_packets", healing.failovers},
                          {"notices_sent", healing.notices_sent},
                          {"notices_received", healing.notices_received},
                          {"notices_without_room", result_.drops[static_cast<size_t>(DropReason::kManagementFull)]}};
}

}  // namespace heddle::lab
