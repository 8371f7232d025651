// The host's part of the workload: its connections, its messages, and what they set off.
#include <algorithm>

#include "lab/host/host.h"

namespace heddle::lab {

template <typename Queue>
void Host::connect(Queue& queue, HostId peer, uint32_t qp, uint32_t dest_qp) const {
  queue.peer = peer;
  queue.qp = qp;
  queue.dest_qp = dest_qp;
  queue.source_port = settings_.nic.entropy == Entropy::kNone ? uint16_t{0xc000} : source_port_of(qp, dest_qp);
}

uint32_t Host::add_send_queues(HostId peer, uint32_t first_receive_queue, Rate static_rate) {
  if (static_rate.is_unlimited()) static_rate = settings_.nic.static_rate;
  const bool paces = controls_congestion_ || settings_.nic.ccti || !static_rate.is_unlimited() || burst_packets_ > 1;
  const auto first = static_cast<uint32_t>(send_queues_.size());
  for (uint32_t i = 0; i < settings_.nic.qps_per_connection; ++i) {
    SendQueue& queue = send_queues_.emplace_back();
    connect(queue, peer, send_queue_number(first + i), receive_queue_number(first_receive_queue + i));
    if (pause_log_ != nullptr) waiting_since_.push_back(0);
    if (paces || !paced_.empty()) {
      paced_.resize(send_queues_.size());
      paced_.back().static_rate = static_rate;
    }
    if (controls_congestion_) reaction_.emplace_back(dcqcn_, settings_.rate);
    if (settings_.nic.ccti && gates_.empty()) injection_.emplace_back(*settings_.nic.ccti);
  }
  return first;
}

uint32_t Host::add_receive_queues(HostId peer, uint32_t first_send_queue) {
  const auto first = static_cast<uint32_t>(receive_queues_.size());
  for (uint32_t i = 0; i < settings_.nic.qps_per_connection; ++i) {
    ReceiveQueue& queue = receive_queues_.emplace_back();
    connect(queue, peer, receive_queue_number(first + i), send_queue_number(first_send_queue + i));
    if (controls_congestion_) notification_.emplace_back();
  }
  return first;
}

void Host::add_message(MessageId message, uint32_t first_send_queue) {
  own_.push_back({message, first_send_queue});
  const Message& m = board_.message(message);
  if (m.pending != 0) return;
  Time at = m.start;
  if (settings_.nic.start_jitter && !m.is_barrier()) {
    const uint64_t bytes =
        settings_.nic.mtu + data_overhead(settings_.nic.link_layer) + static_cast<uint64_t>(settings_.overhead);
    at += static_cast<Time>(random_.uniform() * static_cast<double>(settings_.rate.time_for(bytes)));
  }
  set_timer(at, Timer::Kind::kRelease, message);
}

void Host::release(MessageId message, Time now) {
  board_.released(message, now);
  if (board_.message(message).is_barrier()) {
    board_.barrier_done(message, now);
    fire(message, TriggerOn::kReceived, now);
    fire(message, TriggerOn::kSent, now);
    return;
  }
  const auto own = std::lower_bound(own_.begin(), own_.end(), message,
                                    [](const OwnMessage& o, MessageId m) { return o.message < m; });
  for (uint32_t i = 0; i < board_.parts_of(message); ++i) {
    const uint32_t index = own->first_send_queue + i;
    send_queues_[index].post(message, board_.part_bytes(message, i), settings_.nic.mtu);
    list(index, now);
  }
}

void Host::trigger(MessageId message, Time now) {
  if (!board_.count_trigger(message)) return;
  const Duration wait = board_.message(message).start;
  if (wait == 0) {
    release(message, now);
  } else {
    set_timer(now + wait, Timer::Kind::kRelease, message);
  }
}

void Host::fire(MessageId cause, TriggerOn on, Time now) {
  for (const Trigger& effect : board_.workload().triggers_of(cause)) {
    if (effect.on != on) continue;
    const HostId host = board_.message(effect.to).src;
    if (host != settings_.id) {
      outgoing_.push_back({host, effect.to, now + effect.delay + settings_.trigger_delay});
    } else if (effect.delay == 0) {
      trigger(effect.to, now);
    } else {
      set_timer(now + effect.delay, Timer::Kind::kTrigger, effect.to);
    }
  }
}

}  // namespace heddle::lab
