// A device with one queue each way per class, behind ethdev's burst functions: what a NIC would hold lies in lists that
// a test fills, empties and closes. It may be polled by another thread.
#pragma once

#include <array>
#include <deque>
#include <mutex>
#include <vector>

#include <rte_ethdev.h>

#include "dataplane/class_queues.h"
#include "tests/support/packets.h"

namespace heddle::support {

class QueueDevice {
 public:
  // Takes the place of ethdev port `id`, which nobody else uses.
  explicit QueueDevice(uint16_t id);
  ~QueueDevice() { rte_eth_fp_ops[id_] = before_; }
  QueueDevice(const QueueDevice&) = delete;
  QueueDevice& operator=(const QueueDevice&) = delete;

  uint16_t id() const { return id_; }
  // Queue of class c is c on the way in and 7 - c on the way out.
  static dataplane::ClassQueues queues(uint8_t lossless);

  void arrive(unsigned queue, Packet* packet);
  size_t waiting(unsigned queue) const;
  uint64_t polls(unsigned queue) const;
  // How many more frames the transmit queue takes: 0, as if the peer had paused it.
  void set_room(unsigned queue, size_t room);
  std::vector<Packet*> sent(unsigned queue) const;

 private:
  struct Queue {
    mutable std::mutex mutex;
    std::deque<Packet*> packets;
    uint64_t polls = 0;
    size_t room = SIZE_MAX;
  };
  template <typename Read>
  static auto locked(const Queue& queue, const Read& read) {
    const std::lock_guard lock(queue.mutex);
    return read(queue);
  }
  static uint16_t receive(void* queue, rte_mbuf** packets, uint16_t count);
  static uint16_t transmit(void* queue, rte_mbuf** packets, uint16_t count);

  uint16_t id_;
  struct rte_eth_fp_ops before_;
  std::array<Queue, kTrafficClasses> rx_;
  std::array<Queue, kTrafficClasses> tx_;
  std::array<void*, kTrafficClasses> rx_data_{};
  std::array<void*, kTrafficClasses> tx_data_{};
  std::array<void*, kTrafficClasses> callbacks_{};
};

// ---------------------------------------------------------------------------------------------------------------------

inline QueueDevice::QueueDevice(uint16_t id) : id_(id), before_(rte_eth_fp_ops[id]) {
  for (unsigned queue = 0; queue < kTrafficClasses; ++queue) {
    rx_data_[queue] = &rx_[queue];
    tx_data_[queue] = &tx_[queue];
  }
  struct rte_eth_fp_ops& ops = rte_eth_fp_ops[id];
  ops.rx_pkt_burst = &receive;
  ops.tx_pkt_burst = &transmit;
  ops.rxq = {.data = rx_data_.data(), .clbk = callbacks_.data()};
  ops.txq = {.data = tx_data_.data(), .clbk = callbacks_.data()};
}

inline dataplane::ClassQueues QueueDevice::queues(uint8_t lossless) {
  dataplane::ClassQueues queues;
  for (uint16_t tc = 0; tc < kTrafficClasses; ++tc) {
    queues.rx[tc] = tc;
    queues.tx[tc] = static_cast<uint16_t>(7 - tc);
  }
  queues.rx_count = queues.tx_count = kTrafficClasses;
  queues.lossless = lossless;
  return queues;
}

inline void QueueDevice::arrive(unsigned queue, Packet* packet) {
  const std::lock_guard lock(rx_[queue].mutex);
  rx_[queue].packets.push_back(packet);
}

inline size_t QueueDevice::waiting(unsigned queue) const {
  return locked(rx_[queue], [](const Queue& q) { return q.packets.size(); });
}

inline uint64_t QueueDevice::polls(unsigned queue) const {
  return locked(rx_[queue], [](const Queue& q) { return q.polls; });
}

inline void QueueDevice::set_room(unsigned queue, size_t room) {
  const std::lock_guard lock(tx_[queue].mutex);
  tx_[queue].room = room;
}

inline std::vector<Packet*> QueueDevice::sent(unsigned queue) const {
  return locked(tx_[queue], [](const Queue& q) { return std::vector<Packet*>(q.packets.begin(), q.packets.end()); });
}

inline uint16_t QueueDevice::receive(void* queue, rte_mbuf** packets, uint16_t count) {
  auto& from = *static_cast<Queue*>(queue);
  const std::lock_guard lock(from.mutex);
  ++from.polls;
  uint16_t n = 0;
  for (; n < count && !from.packets.empty(); ++n) {
    packets[n] = from.packets.front();
    from.packets.pop_front();
  }
  return n;
}

inline uint16_t QueueDevice::transmit(void* queue, rte_mbuf** packets, uint16_t count) {
  auto& to = *static_cast<Queue*>(queue);
  const std::lock_guard lock(to.mutex);
  uint16_t n = 0;
  for (; n < count && to.room != 0; ++n, --to.room) to.packets.push_back(packets[n]);
  return n;
}

}  // namespace heddle::support
