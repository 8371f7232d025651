// Packets through links that each serve in order of arrival, and nothing else: no ACKs, hosts, switches or buffers.
// What queues in a row do to a flow, to hold the engine against where the fluid model is too kind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

namespace heddle::golden {

struct FifoFlow {
  int64_t start = 0;             // ps
  std::vector<int64_t> packets;  // wire time of each, ps
  std::vector<uint32_t> links;   // in the order they are crossed
};

// When each flow's last packet is through its last link, in ps. Packets are stored and forwarded; `delay` is the
// propagation of every link, of which there are `link_count`.
inline std::vector<int64_t> fifo_completions(const std::vector<FifoFlow>& flows, size_t link_count, int64_t delay) {
  struct Arrival {
    int64_t at;
    uint32_t flow;
    uint32_t packet;
    uint32_t hop;
    bool operator>(const Arrival& other) const {
      return std::tie(at, flow, packet, hop) > std::tie(other.at, other.flow, other.packet, other.hop);
    }
  };
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals;
  for (uint32_t f = 0; f < flows.size(); ++f) arrivals.push({flows[f].start, f, 0, 0});
  std::vector<int64_t> free_at(link_count, 0);
  std::vector<int64_t> done(flows.size(), 0);
  while (!arrivals.empty()) {
    const Arrival a = arrivals.top();
    arrivals.pop();
    const FifoFlow& flow = flows[a.flow];
    int64_t& free = free_at[flow.links[a.hop]];
    free = std::max(free, a.at) + flow.packets[a.packet];
    // The sender has its packets ready: the next one queues for the first link right behind.
    if (a.hop == 0 && a.packet + 1 < flow.packets.size()) arrivals.push({free, a.flow, a.packet + 1, 0});
    if (a.hop + 1 < flow.links.size()) {
      arrivals.push({free + delay, a.flow, a.packet, a.hop + 1});
    } else {
      done[a.flow] = std::max(done[a.flow], free + delay);
    }
  }
  return done;
}

}  // namespace heddle::golden
