#include "dataplane/class_sender.h"

namespace heddle::dataplane {

unsigned ClassSender::send(Pipeline& pipeline, unsigned most, bool up, Time now) {
  unsigned sent = 0;
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    if (is_held(tc)) sent += offer(pipeline, tc, up, now);
  }
  for (unsigned bursts = 0; bursts < most; ++bursts) {
    pipeline.port(port_).set_paused(held_);
    Packet* packets[kBurst];
    const unsigned n = pipeline.egress(port_, packets, kBurst, now);
    if (n == 0) break;
    uint8_t classes = 0;
    for (unsigned i = 0; i < n; ++i) {  // of classes whose outbox is empty: a burst fits
      const unsigned tc = meta_of(packets[i]).traffic_class;
      Outbox& outbox = outboxes_[tc];
      if (((classes >> tc) & 1U) == 0) {
        outbox.first = 0;
        outbox.stuck_since = now;
      }
      outbox.packets[outbox.count++] = packets[i];
      classes |= static_cast<uint8_t>(1U << tc);
    }
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (((classes >> tc) & 1U) != 0) sent += offer(pipeline, tc, up, now);
    }
  }
  return sent;
}

// A lossless class waits for as long as its pause lasts: what looks stuck is what was asked for.
unsigned ClassSender::offer(Pipeline& pipeline, unsigned tc, bool up, Time now) {
  Outbox& outbox = outboxes_[tc];
  const unsigned sent = outbox.send(ethdev_, queues_.tx[tc], now);
  const bool may_wait = up && ((queues_.lossless >> tc) & 1U) != 0;
  if (!may_wait && outbox.is_stuck(now)) [[unlikely]]
    outbox.give_up(pipeline, port_, up, now);
  note_held(tc, outbox.count != 0, now);
  return sent;
}

void ClassSender::note_held(unsigned tc, bool held, Time now) {
  if (held == is_held(tc)) return;
  if (held) {
    held_since_[tc] = now;
  } else {
    held_time_[tc] += elapsed(now, held_since_[tc]);
  }
  held_ ^= static_cast<uint8_t>(1U << tc);
}

void ClassSender::drop_all(Pipeline& pipeline, DropReason reason) {
  for (Outbox& outbox : outboxes_) outbox.drop(pipeline, port_, outbox.count, reason);
  held_ = 0;
}

}  // namespace heddle::dataplane
