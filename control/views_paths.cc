// What path probes found out, as JSON.
#include "config/address.h"
#include "control/path_probes.h"
#include "control/views.h"

namespace heddle::control {

namespace {

Json member_json(const PathMemberStatus& member, const SwitchConfig& config) {
  const telemetry::PathDelay::Member& path = member.path;
  return {{"port", config.ports[member.hop.port].name},
          {"mac", config::print_mac(member.hop.rewrite.destination)},
          {"vlan", member.hop.rewrite.vlan_id},
          {"measured", path.measured},
          {"bad", path.bad},
          {"delay_us", to_microseconds(path.delay)},
          {"wire_us", to_microseconds(path.wire)},
          {"jitter_us", to_microseconds(path.jitter)},
          {"loss", path.loss},
          {"capacity_gbps", path.capacity / 1000},
          {"share", member.share},
          {"age_ms", member.age ? Json(to_microseconds(*member.age) / 1000) : Json()},
          {"sent", path.sent},
          {"returned", path.returned},
          {"lost", path.lost}};
}

}  // namespace

Json path_delay_view(const RunningSwitch& running) {
  const std::optional<PathDelayStatus> status = running.path_delay_status();
  if (!status) return nullptr;
  Json ports = Json::array();
  for (const ProbeCost& cost : status->costs) {
    ports.push_back({{"port", cost.port}, {"bytes", cost.bytes}, {"share", cost.share}});
  }
  Json targets = Json::array();
  for (const PathTargetStatus& target : status->targets) {
    Json addresses = Json::array();
    for (const net::IpAddress& address : target.addresses) addresses.push_back(config::print_address(address));
    Json members = Json::array();
    for (const PathMemberStatus& member : target.members) members.push_back(member_json(member, running.config()));
    targets.push_back({{"name", target.name},
                       {"group", target.group},
                       {"addresses", std::move(addresses)},
                       {"members", std::move(members)}});
  }
  return {{"address", config::print_address(status->address)},
          {"sweep_us", to_microseconds(status->sweep)},
          {"sent", status->counters.sent},
          {"returned", status->counters.returned},
          {"refused", status->counters.refused},
          {"overflowed", status->overflowed},
          {"turned_round", status->turned_round},
          {"updates", status->counters.updates},
          {"ports", std::move(ports)},
          {"targets", std::move(targets)}};
}

}  // namespace heddle::control
