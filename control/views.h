// What a running switch shows of itself, as JSON: the control socket's answers, `heddle show` and the final counters
// are all made from these.
#pragma once

#include <nlohmann/json.hpp>

#include "control/running_switch.h"

namespace heddle::control {

using Json = nlohmann::ordered_json;

// {"ports": [{name, device, driver, mac, rate, up, worker, max_frame, rx_packets, …, drops{reason: n}}]}
Json ports_view(const RunningSwitch& running);
// {"queues": [{port, class, priority, weight, limit_bytes, packets, bytes, peak_bytes, recent_peak}]}, only classes
// ever used unless `all`
Json queues_view(const RunningSwitch& running, bool all);
// {"buffer": {bytes, packets, shared_bytes, shared_used, groups: [{port, class, …}]}}; groups never used are left out
// unless `all`
Json buffer_view(const RunningSwitch& running, bool all);
// {"pfc": [{port, backend, class, rx_pause, …}]}, lossless classes
Json pfc_view(const RunningSwitch& running);
// {"watchdog": [{port, class, action, state, storms, …}], "events": [{at, port, class, event}]}
Json watchdog_view(const RunningSwitch& running);
// {"ecn": [{port, class, kmin, kmax, pmax, eligible, marked, share}]}, queues that mark
Json ecn_view(const RunningSwitch& running);
// {"routes": [{prefix, via}]}
Json routes_view(RunningSwitch& running);
// {"groups": [{name, scheduler, members: [{port, mac, vlan, weight, up, packets, bytes, share}]}], flowlets,
// resequencer, path_delay}
Json paths_view(RunningSwitch& running);
// What probes found out: {address, sweep_us, …, ports: [{port, bytes, share}], targets: [{name, group, addresses,
// members}]}; null without probes
Json path_delay_view(const RunningSwitch& running);
// {"drops": {reason: n}, "ports": {name: {reason: n}}, "meaning": {reason: text}}, only those that happened
Json drops_view(const RunningSwitch& running);
// Everything that counts: ports, drops, paths, workers.
Json totals_view(RunningSwitch& running);

}  // namespace heddle::control
