#include "lab/fabric/probes.h"

#include <algorithm>

namespace heddle::lab {

void collect_probes(const Topology& topology, const LabSwitch& of_switch, RunResult& result) {
  const telemetry::PathProber& prober = of_switch.prober()->prober();
  const NodeId node = of_switch.id();
  ProbeResult& probes = result.probes;
  probes.links.resize(topology.links.size());
  for (PortIndex port = 0; port < topology.ports[node].size(); ++port) {
    const LinkId link = topology.ports[node][port];
    probes.links[link][topology.links[link].a == node ? 0 : 1] += of_switch.pipeline().probe_bytes(port);
  }
  const telemetry::PathProber::Counters& counters = prober.counters();
  probes.sent += counters.sent;
  probes.ended += counters.returned + counters.refused;
  probes.returned += counters.returned;
  probes.bytes += counters.bytes;
  probes.updates += counters.updates;
  if (prober.size() == 0) return;
  probes.sweep_min = probes.sweep_max == 0 ? prober.sweep() : std::min(probes.sweep_min, prober.sweep());
  probes.sweep_max = std::max(probes.sweep_max, prober.sweep());
  for (size_t t = 0; t < prober.size(); ++t) {
    const telemetry::PathDelay& paths = prober.paths(t);
    for (unsigned m = 0; m < paths.size(); ++m) {
      const telemetry::PathDelay::Member& of = paths.member(m);
      probes.paths.push_back({.node = node,
                              .destination = prober.target(t).label,
                              .port = prober.target(t).members[m].port,
                              .measured = of.measured,
                              .bad = of.bad,
                              .delay = of.delay,
                              .jitter = of.jitter,
                              .loss = of.loss,
                              .capacity_mbps = of.capacity,
                              .share = paths.shares()[m]});
    }
  }
  for (const telemetry::PathProber::Change& change : prober.trace()) {
    probes.trace.push_back({change.at, node, change.label, change.shares});
  }
}

}  // namespace heddle::lab
