// Which links every flow's data crosses, learnt from the engine, for models that share nothing else with it.
//
// Both directions of a link are resources of their own: 2 l from end a, 2 l + 1 from end b.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lab/host/roce.h"
#include "tests/support/fabric_runs.h"

namespace heddle::golden {

inline constexpr uint64_t kFrameOverhead = lab::kDataFrameOverhead + kEthernetOverhead;

// `links` in the order in which they lead away from `node`.
inline std::vector<uint32_t> in_order(const lab::Topology& t, lab::NodeId node, std::vector<uint32_t> links) {
  for (auto next = links.begin(); next != links.end(); ++next) {
    const auto leaves_here = [&](uint32_t resource) {
      const lab::Link& link = t.links[resource / 2];
      return (resource % 2 == 0 ? link.a : link.b) == node;
    };
    const auto found = std::find_if(next, links.end(), leaves_here);
    if (found == links.end()) break;  // not a path: the caller sees too few links or the wrong end
    std::iter_swap(next, found);
    node = t.other_end(*next / 2, node);
  }
  return links;
}

// By message, in the order of the path. Seven flows at a time of one packet each are sent, whose sizes are powers of
// two, so that the bytes on a link say whose packets crossed it. Hosts that send and receive one flow have the same
// queue pair numbers here and there, hence the same hash.
inline std::vector<std::vector<uint32_t>> paths_of(const lab::Topology& t, const lab::Workload& workload,
                                                   const lab::FabricSettings& settings) {
  std::vector<std::vector<uint32_t>> paths(workload.messages.size());
  for (lab::MessageId first = 0; first < paths.size(); first += 7) {
    std::vector<lab::Flow> probes;
    for (lab::MessageId m = first; m < std::min<size_t>(first + 7, paths.size()); ++m) {
      const lab::Message& message = workload.messages[m];
      probes.push_back({.src = message.src, .dst = message.dst, .bytes = uint64_t{64} << (m - first)});
    }
    const lab::RunResult result = run_fabric(t, support::workload_of(t.host_count, probes), settings);
    const auto note = [&](uint32_t resource, uint64_t packets, uint64_t bytes) {
      // An ACK is 4 bytes more than the rest of a data packet: 28 for all seven.
      const uint64_t whose = (bytes - packets * kFrameOverhead) / 64;
      for (uint32_t i = 0; i < probes.size(); ++i) {
        if ((whose >> i & 1U) != 0) paths[first + i].push_back(resource);
      }
    };
    for (lab::LinkId id = 0; id < t.links.size(); ++id) {
      const lab::LinkLoad& load = result.links[id];
      note(2 * id, load.a_to_b_packets, load.a_to_b_bytes);
      note(2 * id + 1, load.b_to_a_packets, load.b_to_a_bytes);
    }
  }
  for (lab::MessageId m = 0; m < paths.size(); ++m) paths[m] = in_order(t, workload.messages[m].src, paths[m]);
  return paths;
}

}  // namespace heddle::golden
