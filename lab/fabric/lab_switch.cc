#include "lab/fabric/lab_switch.h"

#include <algorithm>
#include <bit>

#include <rte_prefetch.h>

#include "lab/host/roce.h"

namespace heddle::lab {

namespace {
constexpr uint16_t kNotAnUplink = 0xffff;
// How many packets before a packet's turn the slot of its queue and the receiver's line are asked for.
constexpr size_t kPlaceAhead = 4;
}  // namespace

LabSwitch::LabSwitch(NodeId id, const Settings& settings, std::vector<Port> ports, std::vector<TableVersion> versions,
                     std::vector<PortEvent> events, std::unique_ptr<SwitchProber> prober)
    : LiveNode(ports.size()),
      id_(id),
      states_(ports.size()),
      pipeline_(settings.pipeline, states_, sink_, nullptr),
      prober_(std::move(prober)),
      ports_(std::move(ports)),
      versions_(std::move(versions)),
      events_(std::move(events)),
      notice_interval_(settings.notice_interval),
      in_time_order_(settings.in_time_order || settings.log_pauses || !pipeline_.is_simple() || prober_ != nullptr),
      flying_(ports_.size()),
      busy_(ports_.size()),
      departures_(ports_.size(), in_time_order_),
      sample_interval_(settings.sample_interval),
      next_sample_(settings.sample_interval) {
  for (PortId port = 0; port < ports_.size(); ++port) {
    if (ports_[port].is_uplink) uplinks_.push_back(port);
  }
  if (uplinks_.size() < 2) {  // nothing to compare
    uplinks_.clear();
    next_sample_ = kNever;
  }
  for (Port& port : ports_) port.uplink = kNotAnUplink;
  for (size_t i = 0; i < uplinks_.size(); ++i) ports_[uplinks_[i]].uplink = static_cast<uint16_t>(i);
  uplink_bytes_.resize(uplinks_.size());
  unrouted_.resize(ports_.size());
  lanes_ = pipeline_.lanes();
  if (settings.log_pauses) {
    start_log(settings.keeps_all_pauses);
  }
  pipeline_.use_source(&sink_);
  pipeline_.use_tables(versions_.front().tables.get());
  if (prober_ == nullptr) return;
  prober_->use_tables(*versions_.front().tables, versions_.front().probed, 0);
  pipeline_.use_probes({.address = prober_->prober().address(),
                        .node_id = id_,
                        .return_dscp = kCnpDscp,
                        .receiver = &prober_->prober()});
}

void LabSwitch::fetch_tables() const {
  prefetch_all(ports_.data(), ports_.size());
  departures_.prefetch();
  pipeline_.prefetch_port_tables();
  prefetch_all(uplink_bytes_.data(), uplink_bytes_.size());
}

void LabSwitch::fetch_ports(const Window& window) const {
  for (size_t word = 0; word < inbox_.words(); ++word) {
    const uint64_t arriving = flying_.word(word) | inbox_.peek(word, window.parity);
    PortSet::visit_bits(arriving, word, [&](PortId port) { ports_[port].in->prefetch_for_receiver(window.parity); });
    PortSet::visit_bits(arriving | busy_.word(word), word, [&](PortId port) {
      rte_prefetch0(&pipeline_.counters().ports[port]);
      if (lanes_ != nullptr) prefetch_lanes(port);
    });
  }
  busy_.for_each([&](PortId port) {
    ports_[port].out->prefetch_for_sender(window.parity);
    pipeline_.port(port).prefetch(ports_[port].traffic_class);
    if (pause_log_ != nullptr) pause_log_->prefetch(port, ports_[port].traffic_class);
  });
}

void LabSwitch::fetch_packets(const Window& window) const {
  for (size_t word = 0; word < inbox_.words(); ++word) {
    const uint64_t arriving = flying_.word(word) | inbox_.peek(word, window.parity);
    PortSet::visit_bits(arriving, word,
                        [&](PortId port) { ports_[port].in->prefetch_packets(window.parity, *window.packets); });
  }
  busy_.for_each([&](PortId port) {
    if (departures_.at(port) >= window.end) return;
    pipeline_.port(port).queue(ports_[port].traffic_class).prefetch_slots();
    ports_[port].out->prefetch_for_sender(window.parity);  // again: the node before has run meanwhile
    ports_[port].out->prefetch_bell(window.parity);
  });
}

void LabSwitch::run(const Window& window) {
  sink_.cache = window.packets;
  if (next_sample_ < window.begin) sample(window.begin);
  timer_ = std::min(next_timer(), next_sample_);
  collect(window);
  if (in_time_order_) {
    forward_in_time_order(window);
  } else {
    forward_port_by_port(window);
  }
}

void LabSwitch::forward_in_time_order(const Window& window) {
  for (const Arrival& arrival : window.scratch->arrivals) {
    const Time now = window.begin + (arrival.order >> 16U);
    Packet* packet = arrival.packet;
    PacketMeta& meta = meta_of(packet);
    const PortId in = meta.in_port;  // once it is forwarded, the packet may be somebody else's
    const bool ends_here = lanes_ != nullptr && dataplane::is_credit_packet(packet);
    meta.arrival = now;
    run_timers(now, window);
    if (has_to_send(now)) send_in_time_order(now, window);
    if (pause_log_ != nullptr) hear_origin(packet);
    const uint64_t dropped = sink_.taken;
    pipeline_.forward(&packet, 1, now);
    plan_repeats(now);
    wake_ports(now);
    if (ends_here) continue;
    if (sink_.taken != dropped) {
      note_drop(in, now);
      continue;
    }
    if (pause_log_ != nullptr) note_queued(packet, now);
    ports_[meta.out_port].traffic_class = meta.traffic_class;
    schedule_departure(meta.out_port, now);
  }
  run_timers(window.end, window);
  send_in_time_order(window.end, window);
}

// The same where a packet's path and admission depend on no other port: paths are chosen ahead, so that what the
// packets need can be fetched meanwhile, and a port sends when somebody looks at it.
void LabSwitch::forward_port_by_port(const Window& window) {
  const std::vector<Arrival>& arrivals = window.scratch->arrivals;
  size_t chosen = 0;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const Time now = window.begin + (arrivals[i].order >> 16U);
    run_timers(now, window);
    if (i == chosen) chosen = choose_paths(i, window);
    if (i + kPlaceAhead < chosen) {
      const Packet* later = arrivals[i + kPlaceAhead].packet;
      if (later != nullptr) prefetch_place(*later, window.parity);
    }
    Packet* packet = arrivals[i].packet;
    if (packet == nullptr) continue;
    const PacketMeta& meta = meta_of(packet);
    ports_[meta.out_port].traffic_class = meta.traffic_class;
    bring_up_to_date(meta.out_port, now, window);
    if (pipeline_.admit(packet, now)) schedule_departure(meta.out_port, now);
  }
  run_timers(window.end, window);
  busy_.for_each([&](PortId port) { bring_up_to_date(port, window.end, window); });
}

// Chooses the paths of the arrivals from that index up to the next timer; an arrival that is dropped loses its packet.
// Returns the index of the first without a path.
size_t LabSwitch::choose_paths(size_t from, const Window& window) {
  std::vector<Arrival>& arrivals = window.scratch->arrivals;
  size_t i = from;
  for (; i < arrivals.size(); ++i) {
    Packet*& packet = arrivals[i].packet;
    const Time now = window.begin + (arrivals[i].order >> 16U);
    if (timer_ < now) break;
    const PortId in = meta_of(packet).in_port;
    meta_of(packet).arrival = now;
    if (pipeline_.choose(packet, now)) {
      pipeline_.prefetch_queue(packet);
      ports_[meta_of(packet).out_port].out->prefetch_for_sender(window.parity);
    } else {
      note_drop(in, now);
      packet = nullptr;
    }
  }
  return i;
}

// A packet with a path will be queued, and may leave at once.
inline void LabSwitch::prefetch_place(const Packet& packet, unsigned parity) const {
  const PacketMeta& meta = meta_of(&packet);
  pipeline_.port(meta.out_port).queue(meta.traffic_class).prefetch_tail();
  ports_[meta.out_port].out->prefetch_bell(parity);
}

// What leaves in the window has waited since windows ago: its cache lines are cold, and here they are looked at.
void LabSwitch::prefetch_departing(PortId port) const {
  const dataplane::EgressQueue& queue = pipeline_.port(port).queue(ports_[port].traffic_class);
  for (uint32_t behind = 0; behind < 5; ++behind) {
    const Packet* packet = queue.peek(behind);
    if (packet == nullptr) return;
    rte_prefetch0(packet);
    rte_prefetch0(&meta_of(packet));  // what it gives back to buffers and lanes
  }
}

// Everything that arrives in the window, through the stages that do not depend on time, then in order of time and port.
void LabSwitch::collect(const Window& window) {
  std::vector<Arrival>& arrivals = window.scratch->arrivals;
  arrivals.clear();
  next_arrival_ = kNever;
  if (in_time_order_) {
    busy_.for_each([&](PortId port) {
      if (departures_.at(port) < window.end) prefetch_departing(port);
    });
  }
  for (size_t word = 0; word < inbox_.words(); ++word) {
    const uint64_t sent = inbox_.take(word, window.parity);
    PortSet::visit_bits(flying_.word(word) | sent, word,
                        [&](PortId port) { receive(port, (sent >> (port % 64U) & 1U) != 0, window); });
  }
  for (const Arrival& arrival : arrivals) pipeline_.prefetch_members(arrival.packet);
  window.scratch->time_order.sort(arrivals,
                                  static_cast<unsigned>(std::bit_width((window.end - window.begin) << 16U | 0xffffU)));
}

void LabSwitch::receive(PortId port, bool sent, const Window& window) {
  Wire& wire = *ports_[port].in;
  Arrived arrived;  // NOLINT(cppcoreguidelines-pro-type-member-init): as many as there are packets
  wire.receive(sent, window.parity, window.end, [&](Packet* packet, Time at) {
    window.packets->prefetch(packet);
    arrived.packets[arrived.count] = packet;
    arrived.at[arrived.count] = at;
    if (++arrived.count < kBurst) return;
    take_in(port, arrived, window);
    arrived.count = 0;
  });
  if (arrived.count != 0) take_in(port, arrived, window);
  const Time next = wire.next_arrival();
  next_arrival_ = std::min(next_arrival_, next);
  if (next == kNever) {
    flying_.remove(port);
  } else {
    flying_.add(port);
  }
}

// The survivors keep their order, so one walk finds each one's time again. Packets of one port never arrive at one
// time.
void LabSwitch::take_in(PortId port, const Arrived& arrived, const Window& window) {
  std::array<Packet*, kBurst> kept;  // NOLINT(cppcoreguidelines-pro-type-member-init): as many as there are packets
  std::copy_n(arrived.packets.begin(), arrived.count, kept.begin());
  const unsigned n = pipeline_.ingress(port, kept.data(), arrived.count, window.begin);
  unsigned at = 0;
  for (unsigned i = 0; i < n; ++i, ++at) {
    while (arrived.packets[at] != kept[i]) ++at;
    pipeline_.prefetch_group(kept[i]);
    window.scratch->arrivals.push_back({(arrived.at[at] - window.begin) << 16U | port, kept[i]});
  }
}

// What leaves a port before `until`, where nothing but its own queues has a say.
inline void LabSwitch::bring_up_to_date(PortId port, Time until, const Window& window) {
  Time departure = departures_.at(port);
  while (departure < until) {
    const Time now = departure;
    const dataplane::Queued sent = pipeline_.egress_one(port, now);
    departure = pipeline_.port(port).wire_free_at();
    if (pipeline_.port(port).idle()) {
      stop(port);
      departure = kNever;
    } else {
      departures_.set(port, departure);
    }
    if (sent) put_on_wire(port, sent, now, window);
  }
}

// What leaves any port before `until`, at equal times the lower port first, and what happens to pauses meanwhile.
void LabSwitch::send_in_time_order(Time until, const Window& window) {
  while (has_to_send(until)) {
    const Time attention = next_attention();
    const Time now = departures_.first_time();
    if (attention < until && attention <= now) {
      pipeline_.attend(attention);
      wake_ports(attention);
      continue;
    }
    depart(departures_.first(), now, window);
  }
}

void LabSwitch::expire_timers(Time until, const Window& window) {
  for (; timer_ < until; timer_ = std::min(next_timer(), next_sample_)) {
    if (in_time_order_) {
      send_in_time_order(timer_, window);
    } else {
      busy_.for_each([&](PortId port) { bring_up_to_date(port, timer_, window); });
    }
    if (timer_ == next_sample_) sample(timer_);
    apply_events(timer_);
    plan_repeats(timer_);
    if (repeat_at_ <= timer_) repeat_notices(timer_);
    if (next_probe() <= timer_) send_probes(timer_, window);
  }
}

void LabSwitch::depart(PortId port, Time now, const Window& window) {
  Packet* packet = nullptr;
  if (pipeline_.egress(port, &packet, 1, now) == 0) {  // its queues are gated
    stop(port);
    return;
  }
  if (pipeline_.has_work(port, now)) {
    departures_.set(port, pipeline_.port(port).wire_free_at());
  } else {
    stop(port);
  }
  wake_ports(now);
  if (pause_log_ != nullptr) note_departure(port, packet, now);
  put_on_wire(port, {packet, packet->pkt_len}, now, window);
}

// A packet that has begun at `now`.
inline void LabSwitch::put_on_wire(PortId port, dataplane::Queued sent, Time now, const Window& window) {
  const Time end = pipeline_.port(port).wire_free_at();
  const DropReason lost = ports_[port].out->send(sent.packet(), sent.frame_bytes(), now, end, window.parity);
  if (lost != DropReason::kNone) [[unlikely]] {
    drops_[static_cast<size_t>(lost)]++;
    note_loss(now);
    window.packets->put(sent.packet());
    return;
  }
  window.note_sent(end + ports_[port].delay);
  if (ports_[port].uplink != kNotAnUplink) uplink_bytes_[ports_[port].uplink] += sent.frame_bytes();
}

// The pipeline has dropped a packet that came in there: because a failure left it no way?
void LabSwitch::note_drop(PortId in, Time now) {
  const auto& drops = pipeline_.counters().ports[in].drops;
  const uint64_t unrouted = drops[static_cast<size_t>(DropReason::kNoRoute)].get() +
                            drops[static_cast<size_t>(DropReason::kNoLiveNextHop)].get();
  if (unrouted == unrouted_[in]) return;
  unrouted_[in] = unrouted;
  note_loss(now);
}

void LabSwitch::stop(PortId port) {
  departures_.set(port, kNever);
  busy_.remove(port);
}

void LabSwitch::wake_awakened(Time now) {
  pipeline_.take_awakened([this, now](PortId port) {
    if (pause_log_ != nullptr) note_pauses(port, now);
    if (pipeline_.has_work(port, now)) schedule_departure(port, now);
  });
}

// --- timers: links that change, tables that take over
// ------------------------------------------------------------------

Time LabSwitch::next_timer() const {
  const Time event = next_port_event_ < events_.size() ? events_[next_port_event_].at : kNever;
  const Time version = next_version_ < versions_.size() ? versions_[next_version_].from : kNever;
  return std::min({event, version, repeat_at_, next_probe()});
}

void LabSwitch::repeat_notices(Time now) {
  repeat_at_ = kNever;
  if (!pipeline_.repeats_notices()) return;  // there are new tables
  pipeline_.repeat_notices();
  if (pipeline_.repeats_notices()) repeat_at_ = now + notice_interval_;
  wake_ports(now);
}

// What is lost because its port is down is nobody's path: the link's state says so already.
void LabSwitch::send_probes(Time now, const Window& window) {
  telemetry::PathProber& prober = prober_->prober();
  prober_->attend(now, [&](const telemetry::PathProber::Due& due, const lb::NextHop& hop) {
    if (!states_.is_up(hop.port)) return;
    Packet* packet = sink_.make();
    meta_of(packet).owner = kNoOwner;  // of no message
    packet->data_len = static_cast<uint16_t>(prober.frame_bytes());
    packet->pkt_len = packet->data_len;
    if (!prober.write({frame_of(packet), packet->buf_len}, due, now)) {
      window.packets->put(packet);
      return;
    }
    pipeline_.send_probe(packet, hop, now);
  });
  wake_ports(now);
}

void LabSwitch::apply_events(Time now) {
  const size_t before = next_port_event_ + next_version_;
  while (next_port_event_ < events_.size() && events_[next_port_event_].at == now) {
    const PortEvent& event = events_[next_port_event_++];
    const bool was_up = states_.is_up(event.port);
    states_.set(event.port, event.up);
    pipeline_.port(event.port).set_rate(event.rate);
    pipeline_.set_link_rate(event.port, event.rate);
    if (prober_ != nullptr) prober_->prober().set_rate(event.port, event.rate);
    if (was_up && !event.up) {
      if (!pipeline_.port(event.port).empty()) note_loss(now);
      pipeline_.flush(event.port, DropReason::kPortDown, now);
      stop(event.port);
      if (pause_log_ != nullptr) note_flush(event.port, now);
      wake_ports(now);
    }
    if (!was_up && event.up) {
      pipeline_.restart_link(event.port, now);
      wake_ports(now);
    }
  }
  while (next_version_ < versions_.size() && versions_[next_version_].from == now) {
    TableVersion& version = versions_[next_version_++];
    pipeline_.use_tables(version.tables.get());
    if (prober_ != nullptr) prober_->use_tables(*version.tables, version.probed, now);
  }
  if (next_port_event_ + next_version_ == before) return;
  pipeline_.review_reach();
  wake_ports(now);
}

Time LabSwitch::next_event() const {
  Time next = std::min({next_timer(), next_arrival_, next_attention()});
  busy_.for_each([&](PortId port) { next = std::min(next, departures_.at(port)); });
  return next;
}

uint64_t LabSwitch::packets_held() const {
  uint64_t held = 0;
  for (PortId port = 0; port < ports_.size(); ++port) {
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) held += pipeline_.port(port).queue(tc).packets();
  }
  held += pipeline_.held_packets() + pipeline_.management_packets();
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
      double squares = 0;
      for (const uint64_t bytes : uplink_bytes_) squares += static_cast<double>(bytes) * static_cast<double>(bytes);
      const double jain = static_cast<double>(sum) * mean / squares;
      imbalance_.push_back({id_, next_sample_, static_cast<double>(*most - *least) / mean, jain});
    }
    std::fill(uplink_bytes_.begin(), uplink_bytes_.end(), 0);
    next_sample_ += sample_interval_;
    // An idle stretch holds no interval that counts.
    if (sum == 0 && next_sample_ <= now) next_sample_ += (now - next_sample_) / sample_interval_ * sample_interval_;
  }
}

}  // namespace heddle::lab
