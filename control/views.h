// What a running switch shows of itself, as JSON: the control socket's answers, `heddle show` and the final counters
// are all made from these.
#pragma once

#include <nlohmann/json.hpp>

#include "control/running_switch.h"

namespace heddle::control {

using Json = nlohmann::ordered_json;

// {"ports": [{name, device, driver, mac, rate, up, worker, max_frame, rx_packets, …, drops{reason: n}}]}
Json ports_view(const RunningSwitch& running);
// {"queues": [{port, class, priority, weight, limit_bytes, packets, bytes, peak_bytes}]}, only classes ever used unless
// `all`
Json queues_view(const RunningSwitch& running, bool all);
// {"routes": [{prefix, via}]}
Json routes_view(RunningSwitch& running);
// {"groups": [{name, scheduler, members: [{port, mac, vlan, weight, up, packets, bytes, share}]}]}
Json paths_view(RunningSwitch& running);
// {"drops": {reason: n}, "ports": {name: {reason: n}}, "meaning": {reason: text}}, only those that happened
Json drops_view(const RunningSwitch& running);
// Everything that counts: ports, drops, paths, workers.
Json totals_view(RunningSwitch& running);

}  // namespace heddle::control
