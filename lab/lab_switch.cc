#include "lab/lab_switch.h"

#include <algorithm>

#include <rte_prefetch.h>

namespace heddle::lab {

namespace {
constexpr uint16_t kNotAnUplink = 0xffff;
}  // namespace

LabSwitch::LabSwitch(NodeId id, const dataplane::Pipeline::Settings& pipeline, std::vector<Port> ports,
                     std::vector<TableVersion> versions, std::vector<PortEvent> events, Duration sample_interval)
    : id_(id),
      states_(ports.size()),
      pipeline_(pipeline, states_, sink_, nullptr),
      ports_(std::move(ports)),
      versions_(std::move(versions)),
      events_(std::move(events)),
      departures_(ports_.size(), kNever),
      sample_interval_(sample_interval),
      next_sample_(sample_interval),
      uplink_of_port_(ports_.size(), kNotAnUplink) {
  for (PortId port = 0; port < ports_.size(); ++port) {
    if (!ports_[port].uplink) continue;
    uplink_of_port_[port] = static_cast<uint16_t>(uplinks_.size());
    uplinks_.push_back(port);
  }
  if (uplinks_.size() < 2) uplinks_.clear();
  uplink_bytes_.resize(uplinks_.size());
  pipeline_.use_tables(versions_.front().tables.get());
}

void LabSwitch::approach() const {
  const auto* ports = reinterpret_cast<const std::byte*>(ports_.data());
  for (size_t at = 0; at < ports_.size() * sizeof(Port); at += 64) rte_prefetch0(ports + at);
  const auto* departures = reinterpret_cast<const std::byte*>(departures_.data());
  for (size_t at = 0; at < departures_.size() * sizeof(Time); at += 64) rte_prefetch0(departures + at);
}

void LabSwitch::prepare() const {
  for (PortId port = 0; port < ports_.size(); ++port) {
    ports_[port].in->prefetch_for_receiver();
    ports_[port].out->prefetch_for_sender();
    rte_prefetch0(&pipeline_.port(port));
    rte_prefetch0(&pipeline_.counters().ports[port]);
  }
}

void LabSwitch::run(const Window& window) {
  sink_.cache = window.packets;
  collect(window);
  for (const Arrival& arrival : arrivals_) {
    const Time now = window.begin + (arrival.order >> 16U);
    advance(now, window);
    Packet* packet = arrival.packet;
    PacketMeta& meta = meta_of(packet);
    meta.arrival = now;
    const uint64_t dropped = sink_.taken;
    pipeline_.forward(&packet, 1, now);
    if (sink_.taken == dropped) schedule_departure(meta.out_port, now);
  }
  advance(window.end, window);
}

// What leaves in the window has waited since windows ago: its three cache lines are cold.
void LabSwitch::prefetch_front(PortId port) const {
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    const dataplane::EgressQueue& queue = pipeline_.port(port).queue(tc);
    if (!queue.empty()) prefetch_packet(queue.front());
  }
}

// Everything that arrives in the window, through the stages that do not depend on time, then in order of time and port.
void LabSwitch::collect(const Window& window) {
  arrivals_.clear();
  next_arrival_ = first_sent_ = kNever;
  // All heads first, so that their cache misses overlap.
  for (PortId port = 0; port < ports_.size(); ++port) {
    Wire& wire = *ports_[port].in;
    wire.collect(window.parity);
    if (!wire.empty()) prefetch_packet(wire.front());
    if (departures_[port] < window.end) prefetch_front(port);
  }
  for (PortId port = 0; port < ports_.size(); ++port) {
    Wire& wire = *ports_[port].in;
    unsigned n = 0;
    Time arrival = wire.next_arrival();
    while (arrival < window.end) {
      burst_[n] = wire.pop();
      burst_times_[n] = arrival;
      if (!wire.empty()) prefetch_packet(wire.front());
      if (++n == kBurst) {
        take_in(port, window, n);
        n = 0;
      }
      arrival = wire.next_arrival();
    }
    if (n != 0) take_in(port, window, n);
    next_arrival_ = std::min(next_arrival_, arrival);
  }
  std::sort(arrivals_.begin(), arrivals_.end(), [](const Arrival& a, const Arrival& b) { return a.order < b.order; });
}

// The survivors keep their order, so one walk finds each one's time again. Packets of one port never arrive at one
// time.
void LabSwitch::take_in(PortId port, const Window& window, unsigned count) {
  std::array<Packet*, kBurst> kept = burst_;
  const unsigned n = pipeline_.ingress(port, kept.data(), count, window.begin);
  unsigned at = 0;
  for (unsigned i = 0; i < n; ++i, ++at) {
    while (burst_[at] != kept[i]) ++at;
    arrivals_.push_back({(burst_times_[at] - window.begin) << 16U | port, kept[i]});
  }
}

// Timers and departures before `until`.
void LabSwitch::advance(Time until, const Window& window) {
  for (;;) {
    const Time timer = next_timer();
    if (timer < until && timer <= next_departure_) {
      apply_events(timer);
      continue;
    }
    if (next_departure_ >= until) return;
    const Time now = next_departure_;
    PortId port = 0;
    while (departures_[port] != now) ++port;
    depart(port, now, window);
    next_departure_ = *std::min_element(departures_.begin(), departures_.end());
  }
}

void LabSwitch::depart(PortId port, Time now, const Window& window) {
  Packet* packet = nullptr;
  if (pipeline_.egress(port, &packet, 1, now) == 0) {  // its queues are gated
    departures_[port] = kNever;
    return;
  }
  const dataplane::EgressScheduler& scheduler = pipeline_.port(port);
  const Time end = scheduler.wire_free_at();
  departures_[port] = scheduler.idle() ? kNever : end;
  if (now >= next_sample_) sample(now);
  const DropReason lost = ports_[port].out->send(packet, now, end, window.parity);
  if (lost != DropReason::kNone) {
    drops_[static_cast<size_t>(lost)]++;
    window.packets->put(packet);
    return;
  }
  first_sent_ = std::min(first_sent_, end + ports_[port].delay);
  if (const uint16_t uplink = uplink_of_port_[port]; uplink < uplink_bytes_.size()) {
    uplink_bytes_[uplink] += packet->pkt_len;
  }
}

void LabSwitch::schedule_departure(PortId port, Time now) {
  if (departures_[port] != kNever) return;
  const Time at = std::max(now, pipeline_.port(port).wire_free_at());
  departures_[port] = at;
  next_departure_ = std::min(next_departure_, at);
}

// --- timers: links that change, tables that take over
// ------------------------------------------------------------------

Time LabSwitch::next_timer() const {
  const Time event = next_port_event_ < events_.size() ? events_[next_port_event_].at : kNever;
  const Time version = next_version_ < versions_.size() ? versions_[next_version_].from : kNever;
  return std::min(event, version);
}

void LabSwitch::apply_events(Time now) {
  while (next_port_event_ < events_.size() && events_[next_port_event_].at == now) {
    const PortEvent& event = events_[next_port_event_++];
    const bool was_up = states_.is_up(event.port);
    states_.set(event.port, event.up);
    pipeline_.port(event.port).set_rate(event.rate);
    if (was_up && !event.up) {
      pipeline_.flush(event.port, DropReason::kPortDown, now);
      departures_[event.port] = kNever;
      next_departure_ = *std::min_element(departures_.begin(), departures_.end());
    }
  }
  while (next_version_ < versions_.size() && versions_[next_version_].from == now) {
    pipeline_.use_tables(versions_[next_version_++].tables.get());
  }
}

Time LabSwitch::next_event() const { return std::min({next_timer(), next_departure_, next_arrival_, first_sent_}); }

uint64_t LabSwitch::packets_held() const {
  uint64_t held = 0;
  for (PortId port = 0; port < ports_.size(); ++port) {
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) held += pipeline_.port(port).queue(tc).packets();
  }
  return held;
}

// Closes the intervals that ended by `now`. An interval counts if its uplinks carried a tenth of what they could.
void LabSwitch::sample(Time now) {
  while (next_sample_ <= now) {
    uint64_t sum = 0;
    uint64_t capacity = 0;
    for (size_t i = 0; i < uplinks_.size(); ++i) {
      sum += uplink_bytes_[i];
      capacity += pipeline_.port(uplinks_[i]).rate().bytes_in(sample_interval_);
    }
    if (!uplinks_.empty() && sum * 10 >= capacity) {
      const auto [least, most] = std::minmax_element(uplink_bytes_.begin(), uplink_bytes_.end());
      const double mean = static_cast<double>(sum) / static_cast<double>(uplinks_.size());
      imbalance_.push_back({id_, next_sample_, static_cast<double>(*most - *least) / mean});
    }
    std::fill(uplink_bytes_.begin(), uplink_bytes_.end(), 0);
    next_sample_ += sample_interval_;
    // An idle stretch holds no interval that counts.
    if (sum == 0 && next_sample_ <= now) next_sample_ += (now - next_sample_) / sample_interval_ * sample_interval_;
  }
}

}  // namespace heddle::lab
