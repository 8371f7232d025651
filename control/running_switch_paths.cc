// Path probes of a running switch: set up at start, shown while it runs.
#include "control/path_probes.h"
#include "control/running_switch.h"

namespace heddle::control {

// One for each worker, before the workers are made: what tells them that there are probes.
void RunningSwitch::make_mailboxes() {
  if (!config_.path_delay.is_on()) return;
  for (unsigned w = 0; w < config_.workers; ++w) mailboxes_.push_back(std::make_unique<dataplane::ProbeMailbox>());
}

void RunningSwitch::start_probes() {
  if (!config_.path_delay.is_on()) return;
  std::vector<dataplane::ProbeMailbox*> mailboxes;
  for (const auto& mailbox : mailboxes_) mailboxes.push_back(mailbox.get());
  probes_began_ = clock_->now();
  probes_ = std::make_unique<PathProbes>(config_, PathProbes::Surroundings{.routes = *routes_,
                                                                           .states = *states_,
                                                                           .clock = *clock_,
                                                                           .mailboxes = mailboxes,
                                                                           .rates = port_rates(),
                                                                           .notice = notice_});
}

std::optional<PathDelayStatus> RunningSwitch::path_delay_status() const {
  if (probes_ == nullptr) return std::nullopt;
  PathDelayStatus status = probes_->status();
  for (const auto& mailbox : mailboxes_) status.overflowed += mailbox->overflowed();
  for (const auto& worker : workers_) status.turned_round += worker->pipeline().turned_round();
  const std::vector<Rate> rates = port_rates();
  const double seconds = to_seconds(elapsed(clock_->now(), probes_began_));
  for (size_t i = 0; i < config_.ports.size(); ++i) {
    ProbeCost cost{.port = config_.ports[i].name};
    for (const auto& worker : workers_) cost.bytes += worker->pipeline().probe_bytes(static_cast<PortId>(i));
    const Rate rate = rates[i].is_unlimited() ? Rate::gbps(100) : rates[i];  // as the prober counts it
    const double could = static_cast<double>(rate.bits_per_second()) / 8 * seconds;
    cost.share = could <= 0 ? 0 : static_cast<double>(cost.bytes) / could;
    status.costs.push_back(std::move(cost));
  }
  return status;
}

}  // namespace heddle::control
