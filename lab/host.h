// A server's NIC and the RDMA application behind it: posts the messages of the workload, answers those that arrive.
//
// One egress port at line rate: acknowledgements first, then the queue pairs in turn, one packet each.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/fabric_settings.h"
#include "lab/live_node.h"
#include "lab/message_board.h"
#include "lab/queue_pair.h"
#include "lab/roce.h"
#include "lab/wire.h"
#include "net/random.h"
#include "net/rate.h"

namespace heddle::lab {

struct HostCounters {
  uint64_t packets_sent = 0;
  uint64_t data_packets = 0;
  uint64_t packets_received = 0;
  uint64_t retransmitted = 0;
  uint64_t timeouts = 0;
  uint64_t naks = 0;
  uint64_t duplicates = 0;
  uint64_t out_of_order_packets = 0;
  uint64_t out_of_order_degree = 0;
  uint64_t messages_sent = 0;  // of this host, with their last ACK
};

class Host : public LiveNode {
 public:
  struct RateChange {
    Time at = 0;
    Rate rate;
  };
  struct Settings {
    HostId id = 0;
    NodeId first_switch = 0;
    Rate rate;
    int overhead = kEthernetOverhead;
    Duration link_delay = 0;
    Duration trigger_delay = 0;
    uint64_t seed = 1;
    std::vector<RateChange> rate_changes{};  // of its link, ascending
    HostSettings nic;
  };

  Host(const Settings& settings, MessageBoard& board, Wire& out, Wire& in);

  // Set-up, in the same order at both ends of every connection. Returns the index of the first of its queues.
  uint32_t add_send_queues(HostId peer, uint32_t first_receive_queue);
  uint32_t add_receive_queues(HostId peer, uint32_t first_send_queue);
  // Messages of this host, with the index of their connection's first send queue. `at_start`: nothing to wait for.
  void add_message(MessageId message, uint32_t first_send_queue);

  void run(const Window& window) override;
  void fetch_ports(const Window& window) const override {
    in_.prefetch_for_receiver(window.parity);
    out_.prefetch_for_sender(window.parity);
  }
  void fetch_packets(const Window& window) const override { in_.prefetch_packets(window.parity); }
  Time next_event() const override;
  uint64_t packets_held() const override { return control_.size() - control_head_; }
  const DropCounts& drops() const override { return drops_; }

  // Between windows: effects on other hosts' messages, and those of others on ours.
  std::vector<RemoteTrigger>& outgoing() { return outgoing_; }
  void deliver(const RemoteTrigger& trigger) { set_timer(trigger.at, Timer::Kind::kTrigger, trigger.message); }

  const HostCounters& counters() const { return counters_; }

  // Numbers on the wire of the queues with these indices; one number space per host.
  static constexpr uint32_t send_queue_number(uint32_t index) { return 0x10 + 2 * index; }
  static constexpr uint32_t receive_queue_number(uint32_t index) { return 0x11 + 2 * index; }

 private:
  struct Timer {
    // In the order in which they happen at one time.
    enum class Kind : uint8_t { kTrigger, kRelease, kRetransmit };
    Time at;
    Kind kind;
    uint32_t id;  // message or send queue

    bool operator>(const Timer& other) const {
      if (at != other.at) return at > other.at;
      if (kind != other.kind) return kind > other.kind;
      return id > other.id;
    }
  };

  // An acknowledgement that waits for the port.
  struct Control {
    uint32_t receive_queue;
    uint32_t psn;
    uint32_t msn;
    bool nak;
  };

  void arrive(Packet* packet, Time now);
  void receive_data(Packet* packet, Time now);
  void receive_ack(Packet* packet, Time now);
  void expire(const Timer& timer, Time now);
  void depart(const Window& window, Time now);
  Packet* next_control(PacketArena::Cache& packets);
  Packet* next_data(PacketArena::Cache& packets, Time now);
  void send(Packet* packet, Time now, const Window& window);

  void release(MessageId message, Time now);
  void trigger(MessageId message, Time now);
  void fire(MessageId cause, TriggerOn on, Time now);
  void set_timer(Time at, Timer::Kind kind, uint32_t id);
  void restart_timer(uint32_t queue, Time now);
  void list(uint32_t queue);
  uint16_t source_port(SendQueue& queue);

  bool can_send() const { return control_head_ != control_.size() || !turns_.empty(); }

  Settings settings_;
  MessageBoard& board_;
  Wire& out_;
  Wire& in_;
  RoceWriter writer_;
  Random random_;
  Time wire_free_at_ = 0;
  uint64_t window_packets_ = 0;
  size_t next_rate_change_ = 0;
  std::vector<Control> control_;  // in order; those before control_head_ are sent
  size_t control_head_ = 0;

  // Send queues that have a packet for the port, in turn: a ring.
  class Turns {
   public:
    bool empty() const { return head_ == tail_; }
    void push(uint32_t queue);
    uint32_t pop() { return ring_[head_++ & (ring_.size() - 1)]; }

   private:
    std::vector<uint32_t> ring_;
    uint64_t head_ = 0;
    uint64_t tail_ = 0;
  };

  Turns turns_;
  std::vector<SendQueue> send_queues_;
  std::vector<ReceiveQueue> receive_queues_;
  std::vector<Timer> timers_;  // a heap, the next at the front
  struct OwnMessage {
    MessageId message;
    uint32_t first_send_queue;
  };
  std::vector<OwnMessage> own_;  // ascending by message
  std::vector<RemoteTrigger> outgoing_;
  HostCounters counters_;
  DropCounts drops_{};
};

}  // namespace heddle::lab
