// The prober of one lab switch, and what its findings do to the switch's tables.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/tables.h"
#include "lab/fabric/probe_plan.h"
#include "telemetry/path_prober.h"

namespace heddle::lab {

class SwitchProber {
 public:
  // `dead_port`: of PortStates.
  SwitchProber(const telemetry::ProberSettings& settings, PortId dead_port)
      : prober_(settings), dead_port_(dead_port) {}

  // These tables are in force from now on, and belong to nobody else.
  void use_tables(dataplane::ForwardingTables& tables, const std::vector<ProbedGroup>& probed, Time now);

  // Calls `send(due, hop)` for every probe whose turn has come, and puts changed shares into the tables.
  template <typename Send>
  void attend(Time now, const Send& send) {
    prober_.attend(
        now, [&](const telemetry::PathProber::Due& due) { send(due, groups_[due.target].whole.members[due.member]); },
        [this](size_t target) { apply(target); });
  }

  telemetry::PathProber& prober() { return prober_; }
  const telemetry::PathProber& prober() const { return prober_; }

 private:
  struct Measured {
    uint16_t id = 0;
    lb::NextHopGroup whole;  // with the ports of bad members, which the tables lack
  };
  void apply(size_t target);

  telemetry::PathProber prober_;
  dataplane::ForwardingTables* tables_ = nullptr;
  PortId dead_port_;
  std::vector<Measured> groups_;  // by target
};

}  // namespace heddle::lab
