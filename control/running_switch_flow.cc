// Shared buffer and priority-based flow control of a running switch: checked at start, shown while it runs.
#include <string_view>

#include <fmt/format.h>

#include "control/running_switch.h"
#include "dataplane/device_traits.h"
#include "net/error.h"

namespace heddle::control {

namespace {

std::string_view in_storm(flowctl::WatchdogAction action) {
  switch (action) {
    case flowctl::WatchdogAction::kDrop:
      return "its packets are dropped";
    case flowctl::WatchdogAction::kForward:
      return "the pause is ignored";
    case flowctl::WatchdogAction::kAlert:
      break;
  }
  return "its packets wait";
}

}  // namespace

std::vector<Rate> RunningSwitch::port_rates() const {
  std::vector<Rate> rates;
  for (size_t i = 0; i < config_.ports.size(); ++i) {
    rates.push_back(config_.ports[i].rate.value_or(devices_[i].facts().rate));
  }
  return rates;
}

// What only the opened devices can tell.
void RunningSwitch::check_flow_control() {
  for (size_t i = 0; i < config_.ports.size(); ++i) {
    const PortConfig& port = config_.ports[i];
    if (port.pfc == PfcBackend::kEthdev) {
      const std::string why = devices_[i].let_nic_do_pfc(lossless_classes(port), port.pfc_quanta);
      if (why.empty()) continue;
      throw_bad_input("{}: found pfc 'ethdev' for port {}; accepted: frames or none, because {}", port.place, port.name,
                      why);
    }
    if (port.pfc != PfcBackend::kFrames) continue;
    if (const std::string why = devices_[i].receive_mac_control(); !why.empty()) {
      throw_bad_input("{}: found pfc 'frames' for port {}; accepted: none, because {}", port.place, port.name, why);
    }
    if (port_rates()[i].is_unlimited()) {
      throw_bad_input(
          "{}: found pfc 'frames' for port {} without a rate; accepted: rate: beside it, which quanta and "
          "headroom are measured by",
          port.place, port.name);
    }
  }
  check_buffer(config_, port_rates());
}

// Quanta are bit times of the link. On a NIC a rate below the link's is only how fast we send; a virtual link is as
// fast as its ports are told to be, whatever the driver reports.
dataplane::PfcSettings RunningSwitch::pfc_settings(size_t port) const {
  const PortConfig& config = config_.ports[port];
  dataplane::PfcSettings settings;
  if (config.pfc == PfcBackend::kEthdev) settings.by_nic = lossless_classes(config);
  if (config.pfc != PfcBackend::kFrames) return settings;
  const dataplane::DeviceFacts& device = devices_[port].facts();
  settings.classes = lossless_classes(config);
  settings.quanta = config.pfc_quanta;
  const bool is_virtual = !dataplane::traits_of(device.driver).driver.empty();
  settings.link = is_virtual || device.rate.is_unlimited() ? port_rates()[port] : device.rate;
  settings.source = config.macs.empty() ? device.mac : config.macs.front();
  settings.watchdog = config.watchdog;
  return settings;
}

telemetry::FlowControlCounters RunningSwitch::flow_counters(size_t port) const {
  telemetry::FlowControlCounters sum;
  for (const auto& worker : workers_) sum += worker->pipeline().counters().flow_control[port];
  return sum;
}

BufferStatus RunningSwitch::buffer_status() const {
  BufferStatus status;
  if (!config_.buffer.on) return status;
  const dataplane::BufferSettings settings = buffer_settings(config_, port_rates());
  status.bytes = settings.bytes;
  status.packets = settings.packets;
  status.shared_bytes = settings.shared_bytes();
  for (const auto& worker : workers_) status.shared_used += worker->shared_used();
  for (size_t i = 0; i < config_.ports.size(); ++i) {
    const PortConfig& port = config_.ports[i];
    const telemetry::FlowControlCounters counters = flow_counters(i);
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      const dataplane::GroupView& view = workers_[port.worker]->group(static_cast<PortId>(i), tc);
      const dataplane::GroupSettings& of = settings.groups[i][tc];
      status.groups.push_back({.port = port.name,
                               .traffic_class = tc,
                               .lossless = of.lossless,
                               .reserved_limit = of.reserved,
                               .headroom_limit = of.headroom,
                               .reserved = view.reserved.get(),
                               .shared = view.shared.get(),
                               .headroom = view.headroom.get(),
                               .threshold = view.threshold.get(),
                               .xoff = view.xoff.get() != 0,
                               .peak_bytes = view.peak_bytes.get(),
                               .recent_peak = view.recent_peak.get(),
                               .peak_headroom = view.peak_headroom.get(),
                               .violations = counters.lossless_violations[tc].get()});
    }
  }
  return status;
}

std::vector<PfcStatus> RunningSwitch::pfc_status() const {
  std::vector<PfcStatus> all;
  for (size_t i = 0; i < config_.ports.size(); ++i) {
    const PortConfig& port = config_.ports[i];
    const telemetry::FlowControlCounters counters = flow_counters(i);
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (((lossless_classes(port) >> tc) & 1U) == 0) continue;
      const dataplane::GroupView& view = workers_[port.worker]->group(static_cast<PortId>(i), tc);
      dataplane::NicPauses pauses{counters.rx_pause[tc].get(), counters.rx_resume[tc].get(),
                                  counters.tx_pause[tc].get(), counters.tx_resume[tc].get()};
      if (port.pfc == PfcBackend::kEthdev) pauses = devices_[i].nic_pauses(tc);
      all.push_back({.port = port.name,
                     .backend = port.pfc,
                     .traffic_class = tc,
                     .pauses = pauses,
                     .receiving = port.pfc != PfcBackend::kEthdev || view.xoff.get() == 0,
                     .paused = view.paused.get() != 0,
                     .paused_us = to_microseconds(view.paused_ps.get()),
                     .rx_global_pause = counters.rx_global_pause.get(),
                     .rx_malformed = counters.rx_malformed.get()});
    }
  }
  return all;
}

std::vector<WatchdogStatus> RunningSwitch::watchdog_status() const {
  std::vector<WatchdogStatus> all;
  for (size_t i = 0; i < config_.ports.size(); ++i) {
    const PortConfig& port = config_.ports[i];
    if (!port.watchdog) continue;
    const telemetry::FlowControlCounters counters = flow_counters(i);
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (((lossless_classes(port) >> tc) & 1U) == 0) continue;
      // A storm is counted before its end, and read after it.
      const uint64_t restores = counters.watchdog_restores[tc].get();
      const uint64_t storms = counters.watchdog_storms[tc].get();
      all.push_back({.port = port.name,
                     .traffic_class = tc,
                     .settings = *port.watchdog,
                     .stormed = storms > restores,
                     .storms = storms,
                     .restores = restores,
                     .dropped = counters.watchdog_drops[tc].get()});
    }
  }
  return all;
}

std::vector<WatchdogEventStatus> RunningSwitch::watchdog_events() const {
  const std::lock_guard lock(watchdog_mutex_);
  return {watchdog_events_.begin(), watchdog_events_.end()};
}

// Storms that began or ended since the last tick; a queue is stormed for far longer than the time between two.
void RunningSwitch::notice_storms() {
  const std::vector<WatchdogStatus> now = watchdog_status();
  if (watchdogs_noticed_.empty()) watchdogs_noticed_.resize(now.size());
  const std::lock_guard lock(watchdog_mutex_);
  for (size_t i = 0; i < now.size(); ++i) {
    const WatchdogStatus& dog = now[i];
    if (dog.stormed == watchdogs_noticed_[i].stormed && dog.storms == watchdogs_noticed_[i].storms) continue;
    watchdogs_noticed_[i] = dog;
    watchdog_events_.push_back({std::chrono::system_clock::now(), dog.port, dog.traffic_class, dog.stormed});
    if (watchdog_events_.size() > kWatchdogEvents) watchdog_events_.pop_front();
    notice_(
        fmt::format("port {} class {}: {}", dog.port, dog.traffic_class,
                    dog.stormed ? fmt::format("PFC storm, {}", in_storm(dog.settings.action)) : "PFC storm is over"));
  }
}

void RunningSwitch::restart_peaks() {
  for (const auto& worker : workers_) worker->restart_peaks();
}

}  // namespace heddle::control
