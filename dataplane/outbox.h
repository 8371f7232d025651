// Frames that were scheduled but that a device's transmit queue has not taken yet.
#pragma once

#include <array>
#include <cstdint>

#include <rte_ethdev.h>

#include "dataplane/pipeline.h"

namespace heddle::dataplane {

struct Outbox {
  // A device that takes nothing for this long has the frame at its head dropped: net_tap refuses some frames for ever,
  // and what waits behind must not pay for it.
  static constexpr Duration kStuckLimit = 100 * kMillisecond;

  std::array<Packet*, kBurst> packets{};
  uint16_t first = 0;
  uint16_t count = 0;
  Time stuck_since = 0;

  // Offers what there is to the queue; returns how many it took.
  uint16_t send(uint16_t ethdev, uint16_t queue, Time now) {
    const uint16_t sent = rte_eth_tx_burst(ethdev, queue, packets.data() + first, count);
    first = static_cast<uint16_t>(first + sent);
    count = static_cast<uint16_t>(count - sent);
    if (sent != 0) stuck_since = now;
    return sent;
  }
  bool is_stuck(Time now) const { return count != 0 && elapsed(now, stuck_since) > kStuckLimit; }

  // One frame of a stuck queue while the link is up, so that only what the device refuses is lost; all of them on a
  // dead link.
  void give_up(Pipeline& pipeline, PortId port, bool up, Time now) {
    drop(pipeline, port, up ? 1 : count, up ? DropReason::kTransmitFailed : DropReason::kPortDown);
    stuck_since = now;
  }
  void drop(Pipeline& pipeline, PortId port, uint16_t lost, DropReason reason) {
    pipeline.count_unsent(port, packets.data() + first, lost, reason);
    first = static_cast<uint16_t>(first + lost);
    count = static_cast<uint16_t>(count - lost);
  }
};

}  // namespace heddle::dataplane
