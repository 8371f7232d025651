#include "lab/topology/link_state.h"

#include "net/error.h"

namespace heddle::lab {

void validate(const Topology& topology, const LinkEvent& event) {
  if (event.link >= topology.links.size()) {
    throw_bad_input("link event: there is no link {}; accepted: 0 to {}", event.link, topology.links.size() - 1);
  }
  const uint64_t rate = event.rate.bits_per_second();
  if (event.kind == LinkEvent::Kind::kRate &&
      (rate < kMinLinkRate.bits_per_second() || rate > kMaxLinkRate.bits_per_second())) {
    throw_bad_input("link event: link {} cannot run at {} Gb/s; accepted: {} to {}", link_name(topology, event.link),
                    event.rate.gbps(), kMinLinkRate.gbps(), kMaxLinkRate.gbps());
  }
  if (event.kind == LinkEvent::Kind::kLoss && !(event.loss >= 0 && event.loss < 1)) {
    throw_bad_input("link event: link {} cannot lose {} of its frames; accepted: from 0 to below 1",
                    link_name(topology, event.link), event.loss);
  }
}

LinkStates::LinkStates(const Topology& topology) : up_(topology.links.size(), true) {
  a_to_b_.reserve(topology.links.size());
  for (const Link& link : topology.links) {
    a_to_b_.push_back(link.rate);
  }
  b_to_a_ = a_to_b_;
}

void LinkStates::apply(const LinkEvent& event) {
  switch (event.kind) {
    case LinkEvent::Kind::kDown:
      up_[event.link] = false;
      break;
    case LinkEvent::Kind::kUp:
      up_[event.link] = true;
      break;
    case LinkEvent::Kind::kRate:
      if (event.direction != LinkDirection::kBToA) {
        a_to_b_[event.link] = event.rate;
      }
      if (event.direction != LinkDirection::kAToB) {
        b_to_a_[event.link] = event.rate;
      }
      break;
    case LinkEvent::Kind::kLoss:
      break;
  }
}

LinkStates states_at_start(const Topology& topology, const std::vector<LinkEvent>& events) {
  LinkStates states(topology);
  for (const LinkEvent& event : events) {
    if (event.at == 0) states.apply(event);
  }
  return states;
}

std::vector<Capacity> switch_capacities(const Topology& topology, const LinkStates& states) {
  std::vector<Capacity> capacities(topology.switch_count());
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    const Link& link = topology.links[id];
    if (!states.is_up(id) || topology.is_host(link.a) || topology.is_host(link.b)) {
      continue;
    }
    const uint64_t a_to_b = states.rate(id, true).bits_per_second();
    const uint64_t b_to_a = states.rate(id, false).bits_per_second();
    capacities[link.a - topology.host_count].out += a_to_b;
    capacities[link.a - topology.host_count].in += b_to_a;
    capacities[link.b - topology.host_count].out += b_to_a;
    capacities[link.b - topology.host_count].in += a_to_b;
  }
  return capacities;
}

std::vector<Capacity> pod_capacities(const Topology& topology, const LinkStates& states) {
  std::vector<Capacity> capacities(topology.pod_count());
  for (LinkId id = 0; id < topology.links.size(); ++id) {
    const Link& link = topology.links[id];
    const uint32_t pod_a = topology.nodes[link.a].pod;
    const uint32_t pod_b = topology.nodes[link.b].pod;
    if (!states.is_up(id) || pod_a == pod_b) {
      continue;
    }
    const uint64_t a_to_b = states.rate(id, true).bits_per_second();
    const uint64_t b_to_a = states.rate(id, false).bits_per_second();
    if (pod_a != kNoPod) {
      capacities[pod_a].out += a_to_b;
      capacities[pod_a].in += b_to_a;
    }
    if (pod_b != kNoPod) {
      capacities[pod_b].out += b_to_a;
      capacities[pod_b].in += a_to_b;
    }
  }
  return capacities;
}

}  // namespace heddle::lab
