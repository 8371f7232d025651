#include "lab/scenario/experiment.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/words.h"
#include "lab/fabric/lid_routes.h"
#include "lab/ideal/fabric_capacity.h"
#include "lab/scenario/build_topology.h"
#include "lab/scenario/build_workload.h"
#include "lab/scenario/machine_memory.h"
#include "net/error.h"
#include "net/infiniband.h"

namespace heddle::lab {
namespace {

void note_links(Experiment& experiment);
Duration trigger_delay_of(const Experiment& experiment);
LowerBound bound_of(const Experiment& experiment);
Time give_up_at(const Experiment& experiment);

}  // namespace

Experiment prepare(const Scenario& scenario) {
  Experiment experiment;
  experiment.scenario = scenario;
  resolve(experiment.scenario);
  experiment.topology = build_topology(experiment.scenario.topology);
  experiment.notes = experiment.topology.notes;
  note_links(experiment);

  FabricSettings& settings = experiment.settings;
  settings.switches = experiment.scenario.switches;
  settings.hosts = experiment.scenario.hosts;
  settings.run = experiment.scenario.run;
  if (settings.hosts.link_layer == LinkLayer::kInfiniband) {  // whose switches have nothing of the kind
    settings.switches.flow_control = {};
    settings.switches.resequencer.enabled = false;
    settings.switches.path_delay.enabled = false;
    apply_adaptive_mode(settings.switches);
  }
  settings.events = build_events(experiment.topology, experiment.scenario.events);

  BuiltWorkload built = build_workload(experiment.scenario, experiment.topology, settings.events);
  experiment.workload = std::move(built.workload);
  experiment.notes.insert(experiment.notes.end(), built.notes.begin(), built.notes.end());
  settings.events.insert(settings.events.begin(), built.failures.begin(), built.failures.end());

  experiment.bound = bound_of(experiment);
  if (settings.run.until == 0) settings.run.until = give_up_at(experiment);
  return experiment;
}

CaptureSettings parse_capture(const Topology& topology, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    throw_bad_input("--capture: found {}; accepted: a port and a file, such as leaf0:3=leaf0.pcapng",
                    config::quote(text));
  }
  try {
    return {find_port(topology, text.substr(0, equals)), text.substr(equals + 1)};
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("--capture: {}", error.what()));
  }
}

void check_memory(uint64_t bytes) {
  const auto available = available_memory();
  if (!available || bytes <= *available) return;
  throw_bad_input("this takes about {:.1f} GiB of memory and {:.1f} GiB are available; make it smaller or give it more",
                  static_cast<double>(bytes) / 0x1p30, static_cast<double>(*available) / 0x1p30);
}

namespace {

// What links are, and what buffers stand behind them.
void note_links(Experiment& experiment) {
  const SwitchSettings& switches = experiment.scenario.switches;
  if (experiment.scenario.hosts.link_layer == LinkLayer::kInfiniband) {
    for (Link& link : experiment.topology.links) link.overhead = net::kInfinibandOverhead;
    experiment.notes.push_back(fmt::format("InfiniBand links: {} bytes of buffer for each port and virtual lane",
                                           switches.infiniband.credits.buffer));
  } else if (switches.flow_control.port_buffer != 0) {
    experiment.notes.push_back(fmt::format("Ethernet links: {} bytes of buffer for each port and lossless class",
                                           switches.flow_control.port_buffer));
  }
}

Duration trigger_delay_of(const Experiment& experiment) {
  const Duration written = experiment.settings.run.trigger_delay;
  return written != 0 ? written : experiment.topology.smallest_delay();
}

LowerBound bound_of(const Experiment& experiment) {
  const FabricSettings& settings = experiment.settings;
  return lower_bound(experiment.workload,
                     capacity_of(experiment.topology, settings.events, settings.hosts, trigger_delay_of(experiment)));
}

// Hosts that only a time-out helps must have the time to see some.
Time give_up_at(const Experiment& experiment) {
  const Duration time_outs = 3 * experiment.settings.hosts.retransmit_timeout;
  return std::max(kPatience * experiment.bound.makespan, experiment.bound.makespan + time_outs);
}

}  // namespace
}  // namespace heddle::lab
