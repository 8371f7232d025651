// What a request to the control socket says: its JSON body, read field by field. Bodies come from whoever may open the
// socket; what is wrong with one is an Error (bad input) whose line says what was found and what is accepted.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "control/switch_config.h"
#include "control/views.h"
#include "lb/next_hop_group.h"
#include "net/packet.h"

namespace heddle::control {

// The longest body: a hundred thousand routes take 8 MB.
inline constexpr size_t kMaxBodyBytes = size_t{16} << 20U;

// Refuses what is no JSON, and what is nested deeper than any request: much of the library that writes and frees a
// value goes down it by recursion.
Json parse_body(const std::string& body);

// The text of an answer. Bytes that are no UTF-8, as a request may have in its path, become U+FFFD.
std::string answer_text(const Json& answer);
std::string error_text(const std::string& what);

net::IpPrefix prefix_field(const Json& object);

// {"port", "mac", "vlan", "weight", "alternate"}, the last three with defaults. Its port and VLAN are the
// configuration's.
NextHopConfig read_next_hop(const Json& object, const SwitchConfig& config);

// {"scheduler", "class_schedulers", "control_scheduler"}, the last two with defaults.
struct Schedulers {
  lb::Scheduler all;
  lb::SchedulerOverrides overrides;
};
Schedulers read_schedulers(const Json& object);

}  // namespace heddle::control
