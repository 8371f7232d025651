#include "dataplane/lcore.h"

#include <algorithm>
#include <ctime>

#include <rte_ethdev.h>
#include <rte_pause.h>
#include <rte_prefetch.h>

#include "dataplane/probe_mailbox.h"

namespace heddle::dataplane {

namespace {

// Bursts a port may send before the other ports have their turn.
constexpr unsigned kMaxBurstsPerRound = 8;

// How often queue depths are published for readers.
constexpr Duration kViewPeriod = kMillisecond;

// With `idle: sleep`, a worker that found nothing for this long sleeps this long between polls.
constexpr Duration kIdleBeforeSleep = 200 * kMicrosecond;
constexpr timespec kNap{0, 50'000};

}  // namespace

Worker::Worker(const Settings& settings, const PipelineSettings& pipeline, PortStates& states, Handover* handover,
               SwitchControl& control, const TscClock& clock)
    : settings_(settings),
      control_(control),
      states_(states),
      clock_(clock),
      mempools_(settings.pool),
      pipeline_(pipeline, states, mempools_, handover),
      outboxes_(settings.owned.size()),
      views_(pipeline.ports.size() * kTrafficClasses),
      groups_(views_.size()) {
  pipeline_.use_source(&mempools_);
  if (settings_.probes != nullptr) {
    settings_.probing.receiver = settings_.probes;
    pipeline_.use_probes(settings_.probing);
  }
  for (const OwnedPort& port : settings_.owned) {
    const EgressSettings& egress = pipeline.ports[port.id].egress;
    pipeline_.port(port.id).reserve(egress.limit_packets);
    class_senders_.push_back(port.by_class ? std::make_unique<ClassSender>(port.id, port.ethdev, *port.by_class)
                                           : nullptr);
  }
  rte_rcu_qsbr_thread_register(control_.readers, settings_.index);
}

void Worker::run() {
  rte_rcu_qsbr_thread_online(control_.readers, settings_.index);
  SeenTables seen;
  Time last_work = clock_.now();
  Time next_view = last_work;
  uint64_t round_began = rte_rdtsc();
  for (;;) {
    const RunState state = control_.state.load(std::memory_order_relaxed);
    if (state == RunState::kStopped) break;
    const ForwardingTables* current = control_.tables.load(std::memory_order_acquire);
    if (seen.are_news(*current)) [[unlikely]]
      pipeline_.use_tables(current);

    const Time now = clock_.now();
    unsigned work = 0;
    if (state == RunState::kRunning) {
      unsigned waiting = 0;
      for (const OwnedPort& port : settings_.owned) {
        waiting += receive(port, now);
        if (waiting < kBurst) continue;
        work += waiting + transmit_all(now);  // while the burst is in the nearest cache
        waiting = 0;
      }
      work += waiting;
    }
    work += take_inbox(now);
    if (settings_.probes != nullptr && state == RunState::kRunning) work += send_probes(now);
    pipeline_.settle_buffer(now);
    if (pipeline_.needs_attention(now)) pipeline_.attend(now);
    work += transmit_all(now);
    if (!settings_.inbox.empty()) publish_loads(now);
    rte_rcu_qsbr_quiescent(control_.readers, settings_.index);

    const uint64_t tsc = rte_rdtsc();
    (work != 0 ? busy_ticks_ : idle_ticks_).add(tsc - round_began);
    round_began = tsc;
    if (!before(now, next_view)) {
      publish_views(now);
      next_view = now + kViewPeriod;
      if (state == RunState::kDraining) drained_.store(everything_sent(), std::memory_order_release);
    }
    if (work != 0) {
      last_work = now;
    } else if (settings_.sleep_when_idle && elapsed(now, last_work) > kIdleBeforeSleep) {
      rte_rcu_qsbr_thread_offline(control_.readers, settings_.index);
      nanosleep(&kNap, nullptr);
      rte_rcu_qsbr_thread_online(control_.readers, settings_.index);
      round_began = rte_rdtsc();
    }
  }
  drop_everything();
  publish_views(clock_.now());
  rte_rcu_qsbr_thread_offline(control_.readers, settings_.index);
}

inline unsigned Worker::receive(const OwnedPort& port, Time now) {
  if (port.by_class) [[unlikely]]
    return receive_by_class(port, now);
  return receive_from(port, 0, now);
}

// A class above XOFF stays in the NIC, which pauses the peer once the queue is full.
unsigned Worker::receive_by_class(const OwnedPort& port, Time now) {
  unsigned n = 0;
  for (unsigned tc = kTrafficClasses; tc-- > 0;) {
    if (((pipeline_.closed(port.id) >> tc) & 1U) == 0) n += receive_from(port, port.by_class->rx[tc], now);
  }
  return n;
}

inline unsigned Worker::receive_from(const OwnedPort& port, uint16_t queue, Time now) {
  Packet* packets[kBurst];
  const unsigned n = rte_eth_rx_burst(port.ethdev, queue, packets, kBurst);
  if (n == 0) return 0;
  const unsigned kept = pipeline_.ingress(port.id, packets, n, now);
  pipeline_.forward(packets, kept, now);
  return n;
}

unsigned Worker::take_inbox(Time now) {
  unsigned taken = 0;
  for (HandoverRing* ring : settings_.inbox) {
    Packet* packets[kBurst];
    const unsigned n = ring->pop(packets, kBurst);
    for (unsigned i = 0; i < n; ++i) {  // what the other lcore wrote last is in its cache
      rte_prefetch0(packets[i]);
      rte_prefetch0(&meta_of(packets[i]));
    }
    for (unsigned i = 0; i < n; ++i) pipeline_.accept_handover(packets[i], now);
    taken += n;
  }
  return taken;
}

// What has a turn now; a probe that cannot be made is one that is lost.
unsigned Worker::send_probes(Time now) {
  unsigned sent = 0;
  ProbeOrder order;
  while (sent < kBurst && settings_.probes->next(order)) {
    ++sent;
    Packet* packet = mempools_.make();
    if (packet == nullptr) continue;
    const uint32_t bytes = telemetry::probe_frame_bytes(order.fields.hops, order.fields.source.family);
    packet->data_len = static_cast<uint16_t>(bytes);
    packet->pkt_len = bytes;
    order.fields.sent = now;
    if (telemetry::write_probe({frame_of(packet), rte_pktmbuf_tailroom(packet) + bytes}, order.fields)) {
      pipeline_.send_probe(packet, order.over, now);
    } else {
      rte_pktmbuf_free(packet);
    }
  }
  return sent;
}

unsigned Worker::transmit_all(Time now) {
  unsigned sent = 0;
  for (size_t i = 0; i < settings_.owned.size(); ++i) {
    const OwnedPort& port = settings_.owned[i];
    if (port.by_class) [[unlikely]] {
      sent += class_senders_[i]->send(pipeline_, kMaxBurstsPerRound, states_.is_up(port.id), now);
    } else {
      sent += transmit(port, outboxes_[i], now);
    }
  }
  return sent;
}

// Sends until the queues are empty or gated, or the device takes no more. A round may bring one port the packets of all
// others, so that one burst per round would let a queue stand for ever that the wire has room for.
inline unsigned Worker::transmit(const OwnedPort& port, Outbox& outbox, Time now) {
  unsigned sent_in_all = 0;
  for (unsigned bursts = 0; bursts < kMaxBurstsPerRound; ++bursts) {
    if (outbox.count == 0) {
      outbox.first = 0;
      outbox.count = static_cast<uint16_t>(pipeline_.egress(port.id, outbox.packets.data(), kBurst, now));
      if (outbox.count == 0) break;
      outbox.stuck_since = now;
    }
    sent_in_all += outbox.send(port.ethdev, 0, now);
    if (outbox.count == 0) continue;
    if (outbox.is_stuck(now)) [[unlikely]]
      outbox.give_up(pipeline_, port.id, states_.is_up(port.id), now);
    break;
  }
  return sent_in_all;
}

void Worker::publish_views(Time now) {
  const unsigned restarts = peak_restarts_.load(std::memory_order_relaxed);
  const bool restart = restarts != peak_restarts_heeded_;
  peak_restarts_heeded_ = restarts;
  for (size_t i = 0; i < settings_.owned.size(); ++i) {
    const OwnedPort& port = settings_.owned[i];
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      const EgressQueue& queue = pipeline_.port(port.id).queue(tc);
      QueueView& view = views_[port.id * kTrafficClasses + tc];
      view.packets.set(queue.packets());
      view.bytes.set(queue.bytes());
      view.peak_bytes.set(std::max(view.peak_bytes.get(), queue.peak_bytes()));
      view.recent_peak.set(queue.peak_bytes());
      publish_group(i, tc, now);
    }
    if (restart) pipeline_.port(port.id).reset_peaks();
  }
  if (!pipeline_.is_buffered()) return;
  shared_used_.set(pipeline_.buffer().shared_used());
  if (restart) pipeline_.buffer().reset_peaks();
}

void Worker::publish_group(size_t owned, unsigned traffic_class, Time now) {
  const PortId port = settings_.owned[owned].id;
  GroupView& view = groups_[port * kTrafficClasses + traffic_class];
  if (const ClassSender* sender = class_senders_[owned].get(); sender != nullptr) {
    view.paused.set(sender->is_held(traffic_class) ? 1 : 0);
    view.paused_ps.set(sender->held_time(traffic_class, now));
  } else {
    const flowctl::PauseState& pauses = pipeline_.pauses(port);
    view.paused.set(pauses.is_paused(traffic_class) ? 1 : 0);
    view.paused_ps.set(pauses.paused_time(traffic_class, now));
  }
  if (!pipeline_.is_buffered()) return;
  const SharedBuffer& buffer = pipeline_.buffer();
  const SharedBuffer::Occupancy held = buffer.occupancy(port, traffic_class);
  view.reserved.set(held.reserved);
  view.shared.set(held.shared);
  view.headroom.set(held.headroom);
  view.peak_bytes.set(std::max(view.peak_bytes.get(), held.peak));
  view.recent_peak.set(held.peak);
  view.peak_headroom.set(std::max(view.peak_headroom.get(), held.peak_headroom));
  view.threshold.set(static_cast<uint64_t>(buffer.xoff_threshold(port, traffic_class)));
  view.xoff.set((buffer.xoff(port) >> traffic_class) & 1U);
}

// For the path choices of other workers. A line is written only when something has changed in it.
void Worker::publish_loads(Time now) {
  for (const OwnedPort& port : settings_.owned) {
    const Duration drain = pipeline_.port(port.id).drain_time(now);
    const uint64_t scheduled = pipeline_.goes_by_past() ? pipeline_.port(port.id).scheduled_bytes() : 0;
    if (drain != states_.drain_time(port.id) || scheduled != states_.scheduled_bytes(port.id)) {
      states_.set_load(port.id, drain, scheduled);
    }
  }
}

bool Worker::everything_sent() const {
  if (pipeline_.held_packets() != 0) return false;
  for (const HandoverRing* ring : settings_.inbox) {
    if (!ring->empty()) return false;
  }
  for (size_t i = 0; i < settings_.owned.size(); ++i) {
    if (outboxes_[i].count != 0 || !pipeline_.port(settings_.owned[i].id).empty()) return false;
    if (class_senders_[i] != nullptr && !class_senders_[i]->empty()) return false;
  }
  return true;
}

void Worker::drop_everything() {
  while (take_inbox(clock_.now()) != 0) {
  }
  pipeline_.drop_held(DropReason::kShutdown);
  for (size_t i = 0; i < settings_.owned.size(); ++i) {
    outboxes_[i].drop(pipeline_, settings_.owned[i].id, outboxes_[i].count, DropReason::kShutdown);
    if (class_senders_[i] != nullptr) class_senders_[i]->drop_all(pipeline_, DropReason::kShutdown);
    pipeline_.flush(settings_.owned[i].id, DropReason::kShutdown, clock_.now());
  }
}

}  // namespace heddle::dataplane
