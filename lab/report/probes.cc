// The report's part on path probes: what they cost, and what they found.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "lab/fabric/probe_plan.h"
#include "lab/report/report.h"
#include "telemetry/path_delay.h"

namespace heddle::lab {

namespace {

using Json = nlohmann::ordered_json;

double share_of(uint32_t slots) { return static_cast<double>(slots) / telemetry::kShareSlots; }

}  // namespace

void Report::put_probes(Json& json) const {
  json["path_delay"] = nullptr;
  if (!experiment_.settings.switches.path_delay.enabled) return;
  const ProbeResult& probes = result_.probes;
  const Topology& topology = experiment_.topology;
  Json paths = Json::array();
  for (const PathState& path : probes.paths) {
    paths.push_back({{"switch", topology.nodes[path.node].name},
                     {"destination", destination_of_label(topology, path.destination)},
                     {"port", path.port},
                     {"to", topology.nodes[topology.neighbor(path.node, path.port)].name},
                     {"measured", path.measured},
                     {"bad", path.bad},
                     {"delay_us", to_microseconds(path.delay)},
                     {"jitter_us", to_microseconds(path.jitter)},
                     {"loss", path.loss},
                     {"capacity_gbps", path.capacity_mbps == 0 ? Json() : Json(path.capacity_mbps / 1e3)},
                     {"share", share_of(path.share)}});
  }
  Json trace = Json::array();
  for (const ShareChange& change : probes.trace) {
    Json shares = Json::array();
    for (const uint32_t slots : change.shares) shares.push_back(share_of(slots));
    trace.push_back({{"at_us", to_microseconds(change.at)},
                     {"switch", topology.nodes[change.node].name},
                     {"destination", destination_of_label(topology, change.destination)},
                     {"shares", std::move(shares)}});
  }
  double busiest = 0;
  for (LinkId link = 0; link < probes.links.size(); ++link) {
    for (const uint64_t bytes : probes.links[link]) {
      const double could =
          static_cast<double>(topology.links[link].rate.bits_per_second()) * to_seconds(result_.ended_at) / 8;
      if (could > 0) busiest = std::max(busiest, static_cast<double>(bytes) / could);
    }
  }
  json["path_delay"] = {
      {"sent", probes.sent},
      {"returned", probes.returned},
      {"sweep_us", {{"min", to_microseconds(probes.sweep_min)}, {"max", to_microseconds(probes.sweep_max)}}},
      {"busiest_link", busiest},
      {"updates", probes.updates},
      {"paths", std::move(paths)}};
  if (experiment_.settings.switches.path_delay.trace) json["path_delay"]["trace"] = std::move(trace);
}

}  // namespace heddle::lab
