// The pipeline's part in the PFC watchdog: looking at its queues, and what is done to a stormed one.
#include <algorithm>

#include "dataplane/pipeline.h"

namespace heddle::dataplane {

void Pipeline::configure_watchdog() {
  for (PortId port = 0; port < controls_.size(); ++port) {
    const PfcSettings& settings = controls_[port].settings;
    if (settings.classes == 0 || !settings.watchdog || max_frame_[port] == 0) continue;
    if (watches_.empty()) {
      careful_ = true;  // the way on which packets meet it
      watches_.resize(controls_.size());
      incidents_.reserve(kMaxIncidents);
      watch_interval_ = settings.watchdog->poll_interval();
    }
    watch_interval_ = std::min(watch_interval_, settings.watchdog->poll_interval());
    watches_[port].watched = settings.classes;
    watches_[port].dogs.fill(flowctl::PfcWatchdog(*settings.watchdog));
  }
}

void Pipeline::look_after_queues(Time now) {
  watch_at_ = now + watch_interval_;
  for (PortId port = 0; port < watches_.size(); ++port) {
    PortWatch& watch = watches_[port];
    if (watch.watched == 0) continue;
    const flowctl::PauseState& pauses = controls_[port].pauses;  // expired by `now`
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (((watch.watched >> tc) & 1U) == 0) continue;
      const EgressQueue& queue = egress_[port].queue(tc);
      const Packet* head = queue.empty() ? nullptr : queue.front();
      const flowctl::WatchdogSample sample{.queued_bytes = queue.bytes(),
                                           .head = head,
                                           .head_arrival = head == nullptr ? 0 : meta_of(head).arrival,
                                           .paused_time = pauses.paused_time(tc, now)};
      const flowctl::WatchdogEvent event = watch.dogs[tc].look(sample, now);
      if (event != flowctl::WatchdogEvent::kNone) follow_watchdog(port, tc, event, now);
    }
  }
  flush_drops();
  if (buffer_.has_changed()) follow_buffer(now);
}

// A storm began or ended. The queue that is dropped gives its bytes back to the ports they came by, so that these stop
// pausing their senders; other queues and ports are not touched.
void Pipeline::follow_watchdog(PortId port, unsigned traffic_class, flowctl::WatchdogEvent event, Time now) {
  PortWatch& watch = watches_[port];
  const flowctl::PfcWatchdog& dog = watch.dogs[traffic_class];
  const auto bit = static_cast<uint8_t>(1U << traffic_class);
  const bool began = event == flowctl::WatchdogEvent::kStormed;
  stormed_ = began ? stormed_ + 1 : stormed_ - 1;
  telemetry::FlowControlCounters& counters = counters_.flow_control[port];
  (began ? counters.watchdog_storms : counters.watchdog_restores)[traffic_class].add(1);
  if (incidents_.size() < kMaxIncidents) {
    incidents_.push_back({now, port, static_cast<uint8_t>(traffic_class), event});
  }
  const auto with = [bit](uint8_t classes, bool on) {
    return static_cast<uint8_t>(on ? classes | bit : classes & ~bit);
  };
  watch.dropping = with(watch.dropping, dog.drops());
  watch.ignoring = with(watch.ignoring, dog.ignores_pause());
  drops_early_[port] = with(drops_early_[port], dog.drops() || controls_[port].drop[traffic_class].is_on());
  if (dog.drops()) drop_queued(port, bit, DropReason::kPfcStorm);
  egress_[port].set_paused(held_back(port));
  awaken(port);
}

// What a queue that drops before it is full says to a packet.
DropReason Pipeline::early_refusal(PortId out, unsigned traffic_class, uint64_t queued) {
  if (!watches_.empty() && ((watches_[out].dropping >> traffic_class) & 1U) != 0) return DropReason::kPfcStorm;
  PortControl& control = controls_[out];
  return control.drop[traffic_class].strikes(queued, control.random) ? DropReason::kWred : DropReason::kNone;
}

void Pipeline::note_drop_in_storm(const Packet* packet) {
  const PacketMeta& meta = meta_of(packet);
  counters_.flow_control[meta.out_port].watchdog_drops[meta.traffic_class].add(1);
}

}  // namespace heddle::dataplane
