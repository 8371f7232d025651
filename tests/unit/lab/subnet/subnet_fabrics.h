// Fabrics that several of the subnet tests use.
#pragma once

#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "lab/topology/builders.h"
#include "net/random.h"

namespace heddle::lab {

inline std::vector<bool> all_up(const Topology& t) { return std::vector<bool>(t.links.size(), true); }

inline Topology ring(uint32_t switches, uint32_t hosts_each) {
  GraphSettings settings;
  for (uint32_t s = 0; s < switches; ++s) settings.switches.push_back({fmt::format("sw{}", s), 1, hosts_each, {}});
  for (uint32_t s = 0; s < switches; ++s) {
    settings.links.push_back({fmt::format("sw{}", s), fmt::format("sw{}", (s + 1) % switches), 1, {}});
  }
  return build_graph(settings);
}

// Switches linked as a random tree, and `more` links beyond it.
inline Topology random_graph(uint64_t seed, uint32_t switches, uint32_t more) {
  Random random(seed);
  GraphSettings settings;
  for (uint32_t s = 0; s < switches; ++s) {
    settings.switches.push_back({fmt::format("sw{}", s), 1, 1 + static_cast<uint32_t>(random.below(3)), {}});
  }
  const auto connect = [&](uint32_t a, uint32_t b) {
    settings.links.push_back({fmt::format("sw{}", a), fmt::format("sw{}", b), 1, {}});
  };
  for (uint32_t s = 1; s < switches; ++s) connect(random.below(s), s);
  for (uint32_t i = 0; i < more; ++i) {
    const uint32_t a = random.below(switches);
    connect(a, (a + 1 + random.below(switches - 1)) % switches);
  }
  return build_graph(settings);
}

}  // namespace heddle::lab
