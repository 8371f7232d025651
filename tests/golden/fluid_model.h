// Flows as fluids that share links max-min fairly (Bertsekas and Gallager, Data Networks, 6.5.2): a model that knows no
// packets, queues or order, to hold the engine against.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace heddle::golden {

struct FluidFlow {
  double bytes = 0;
  std::vector<uint32_t> links;
};

// Rates of the flows that are `active`, by progressive filling: all grow together until a link is full; its flows stay
// at that, the others go on.
inline std::vector<double> max_min_rates(const std::vector<FluidFlow>& flows, const std::vector<bool>& active,
                                         const std::vector<double>& capacity) {
  std::vector<double> rate(flows.size(), 0);
  std::vector<double> left = capacity;
  std::vector<uint32_t> users(capacity.size(), 0);
  std::vector<bool> open = active;
  size_t still_open = 0;
  for (size_t f = 0; f < flows.size(); ++f) {
    if (!open[f]) continue;
    ++still_open;
    for (const uint32_t link : flows[f].links) users[link]++;
  }
  while (still_open > 0) {
    double share = std::numeric_limits<double>::infinity();
    for (size_t link = 0; link < capacity.size(); ++link) {
      if (users[link] > 0) share = std::min(share, left[link] / users[link]);
    }
    std::vector<bool> full(capacity.size(), false);
    for (size_t link = 0; link < capacity.size(); ++link) {
      full[link] = users[link] > 0 && left[link] / users[link] <= share * (1 + 1e-9);
    }
    for (size_t f = 0; f < flows.size(); ++f) {
      const auto on_full = [&](uint32_t link) { return full[link]; };
      if (!open[f] || std::none_of(flows[f].links.begin(), flows[f].links.end(), on_full)) continue;
      rate[f] = share;
      open[f] = false;
      --still_open;
      for (const uint32_t link : flows[f].links) {
        left[link] -= share;
        users[link]--;
      }
    }
  }
  return rate;
}

// When each flow is done, all beginning at 0; `capacity` in bytes per unit of time.
inline std::vector<double> fluid_completions(const std::vector<FluidFlow>& flows, const std::vector<double>& capacity) {
  std::vector<double> done(flows.size(), 0);
  std::vector<double> bytes;
  for (const FluidFlow& flow : flows) bytes.push_back(flow.bytes);
  std::vector<bool> active(flows.size(), true);
  double now = 0;
  for (size_t left = flows.size(); left > 0;) {
    const std::vector<double> rate = max_min_rates(flows, active, capacity);
    double step = std::numeric_limits<double>::infinity();
    for (size_t f = 0; f < flows.size(); ++f) {
      if (active[f]) step = std::min(step, bytes[f] / rate[f]);
    }
    now += step;
    for (size_t f = 0; f < flows.size(); ++f) {
      if (!active[f]) continue;
      bytes[f] -= rate[f] * step;
      if (bytes[f] > flows[f].bytes * 1e-9) continue;
      active[f] = false;
      done[f] = now;
      --left;
    }
  }
  return done;
}

}  // namespace heddle::golden
