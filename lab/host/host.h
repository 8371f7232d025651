// A server's NIC and the RDMA application behind it: posts the messages of the workload, answers those that arrive.
//
// One egress port at line rate: congestion notifications first, then acknowledgements, then the queue pairs in turn,
// one packet or burst each. With congestion control or a static rate a queue pair waits for its own next time before it
// joins the turns again (pacing.cc). Classes that the switch has paused wait (802.1Q 36); on an InfiniBand link, lanes
// without credit (lanes.cc).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "flowctl/dcqcn.h"
#include "flowctl/ib_congestion.h"
#include "flowctl/pfc.h"
#include "lab/engine/fabric_settings.h"
#include "lab/engine/growing_ring.h"
#include "lab/engine/live_node.h"
#include "lab/engine/message_board.h"
#include "lab/engine/pause_log.h"
#include "lab/engine/send_gaps.h"
#include "lab/engine/wire.h"
#include "lab/host/lanes.h"
#include "lab/host/queue_pair.h"
#include "lab/host/roce.h"
#include "net/prefetch.h"
#include "net/random.h"
#include "net/rate.h"

namespace heddle::lab {

struct HostCounters {
  uint64_t packets_sent = 0;
  uint64_t data_packets = 0;
  uint64_t packets_received = 0;
  uint64_t retransmitted = 0;
  uint64_t retransmitted_bytes = 0;  // payload
  uint64_t timeouts = 0;
  uint64_t naks = 0;
  uint64_t duplicates = 0;
  uint64_t payload_received = 0;  // bytes, first copies
  uint64_t out_of_order_packets = 0;
  uint64_t out_of_order_degree = 0;
  uint64_t out_of_order_extent = 0;
  SendGaps gaps;                 // of its queue pairs
  uint64_t messages_sent = 0;    // of this host, with their last ACK
  Time last_message_sent = 0;    // when that was
  uint64_t ce_packets = 0;       // data packets that arrived marked "congestion experienced", or with FECN
  uint64_t cnps_sent = 0;        // or ACKs with BECN
  uint64_t cnps_received = 0;    // likewise
  uint64_t pfc_frames = 0;       // received; in no other count
  uint64_t control_ignored = 0;  // other MAC control frames, likewise
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
    bool log_pauses = false;                  // what pauses and missing credit hold back
    bool keeps_all_pauses = true;             // PauseLog
    Duration goodput_interval = 0;            // in which received bytes are added up; 0: they are not
    std::optional<HostLaneSettings> lanes{};  // of an InfiniBand port
  };

  Host(const Settings& settings, MessageBoard& board, Wire& out, Wire& in);

  // Set-up, in the same order at both ends of every connection. Returns the index of the first of its queues.
  // `static_rate`: of the path to the peer, unlimited where the host's own settings say all.
  uint32_t add_send_queues(HostId peer, uint32_t first_receive_queue, Rate static_rate = Rate::unlimited());
  uint32_t add_receive_queues(HostId peer, uint32_t first_send_queue);
  // Messages of this host, with the index of their connection's first send queue. `at_start`: nothing to wait for.
  void add_message(MessageId message, uint32_t first_send_queue);

  // Asks for what most packets need of the host itself, all of which lies together.
  void fetch() const { prefetch_for_later(this, &settings_.nic.static_rate); }
  void run(const Window& window) override;
  void fetch_ports(const Window& window) const override {
    in_.prefetch_for_receiver(window.parity);
    out_.prefetch_for_sender(window.parity);
    fetch_queues();
  }
  void fetch_packets(const Window& window) const override { in_.prefetch_packets(window.parity, *window.packets); }
  Time next_event() const override;
  uint64_t packets_held() const override { return acks_.size() + cnps_.size(); }
  const DropCounts& drops() const override { return drops_; }

  // Between windows: effects on other hosts' messages, and those of others on ours.
  std::vector<RemoteTrigger>& outgoing() { return outgoing_; }
  void deliver(const RemoteTrigger& trigger) { set_timer(trigger.at, Timer::Kind::kTrigger, trigger.message); }

  const HostCounters& counters() const { return counters_; }
  // How long PFC has held a class back in all, up to `now`, the end of the run.
  Duration paused_time(unsigned traffic_class, Time now) const { return pause_.paused_time(traffic_class, now); }
  // Payload of first copies that arrived, by interval (Settings::goodput_interval).
  const std::vector<uint64_t>& goodput() const { return goodput_; }
  // When a packet last arrived that had been missing until it was sent again; kNever: none did.
  Time last_repair() const { return last_repair_; }
  // Null where nothing can be paused, nor wait for credit.
  const PauseLog* pauses() const { return pause_log_.get(); }
  void close_pauses(Time now);
  // Null at an Ethernet port.
  const HostLanes* lanes() const { return lanes_.get(); }
  // Of the send queue with this index; only with congestion control.
  const flowctl::ReactionPoint& reaction_point(uint32_t index) const { return reaction_[index]; }
  // By send queue, or by service level; empty without InfiniBand's congestion control.
  const std::vector<flowctl::InjectionPoint>& injection_points() const { return injection_; }

  // Numbers on the wire of the queues with these indices; one number space per host.
  static constexpr uint32_t send_queue_number(uint32_t index) { return 0x10 + 2 * index; }
  static constexpr uint32_t receive_queue_number(uint32_t index) { return 0x11 + 2 * index; }

 private:
  struct Timer {
    // In the order in which they happen at one time.
    enum class Kind : uint8_t { kTrigger, kRelease, kRetransmit, kPace, kLevel, kCreditPeriod, kLinkUp };
    Time at;
    Kind kind;
    uint32_t id;  // message, send queue or service level

    bool operator>(const Timer& other) const {
      if (at != other.at) return at > other.at;
      if (kind != other.kind) return kind > other.kind;
      return id > other.id;
    }
  };

  // What holds a send queue back.
  struct Paced {
    Rate static_rate;
    Time eligible_at = 0;  // when its next burst may start
    Time burst_began = 0;
    uint64_t burst_bytes = 0;  // on the wire, of the burst it is in the midst of; 0: of none
    uint32_t burst_packets = 0;
  };

  void fetch_queues() const;
  template <typename Queue>
  void connect(Queue& queue, HostId peer, uint32_t qp, uint32_t dest_qp) const;
  void arrive(Packet* packet, Time now);
  void receive_data(Packet* packet, Time now);
  void receive_ack(Packet* packet, Time now);
  void receive_cnp(const Packet* packet, Time now);
  void receive_mac_control(const Packet* packet, Time now);
  void notice_congestion(uint32_t receive_queue, Time now);
  void note_first_copy(uint32_t payload, bool repeated, Time now);
  void expire(const Timer& timer, Time now);
  void depart(const Window& window, Time now);
  Packet* next_cnp(PacketArena::Cache& packets);
  Packet* next_ack(const WaitingAck& ack, PacketArena::Cache& packets);
  bool next_turn(uint32_t& index);
  void drop_idle_turns(GrowingRing<uint32_t>& turns);
  Packet* next_data(uint32_t index, PacketArena::Cache& packets, Time now);
  void send(Packet* packet, Time now, const Window& window);
  void transmit(Packet* packet, Time now, const Window& window);

  void release(MessageId message, Time now);
  void trigger(MessageId message, Time now);
  void fire(MessageId cause, TriggerOn on, Time now);
  void set_timer(Time at, Timer::Kind kind, uint32_t id);
  void restart_timer(uint32_t queue, Time now);
  void apply_rate_changes(Time now);
  uint16_t source_port(SendQueue& queue);

  // --- when a send queue's next packet may go (pacing.cc)
  void list(uint32_t queue, Time now);
  void join_turns(uint32_t queue, Time now);
  void take_turn(uint32_t queue, Time now);
  void requeue(uint32_t index, uint64_t wire_bytes, Time now);
  void note_sent(uint32_t index, uint64_t wire_bytes, Time now);
  void pace(uint32_t index, Time now);
  Duration injection_gap(uint32_t index, Time now);
  void hold_back(GrowingRing<uint32_t>& turns, Time now);
  void open_gate(uint32_t level, Time now);

  // --- what holds messages back (pauses.cc)
  void note_pauses(uint8_t paused, Time now);
  // Most of the time nothing has changed.
  void note_stalls(Time now) {
    if (lanes_->port.stalled == pause_log_->paused(0)) return;
    pause_log_->note_each(0, lanes_->port.stalled, heard_.data(), now);
  }
  void hear_origin(const Packet* credit_packet, unsigned vl);
  void note_turn(uint32_t index, MessageId message, Time now);
  unsigned class_to(HostId peer) const { return lanes_ == nullptr ? kDataClass : lanes_->writer.lane_to(peer); }

  // --- at an InfiniBand port (lanes.cc)
  void arrive_by_lane(Packet* packet, Time now);
  void review_lanes(Time now);
  void depart_by_lane(const Window& window, Time now);
  void send_in_lane(Packet* packet, unsigned vl, const Window& window, Time now);
  void send_credits(const Window& window, Time now);
  void keep_period(Time now);
  void end_period(Time now);
  void restart_link(Time now);

  // Where what waits for the port queues up: all together, or by the lane that leads to the peer.
  GrowingRing<uint32_t>& turns_to(HostId peer) {
    return lanes_ == nullptr ? turns_ : lanes_->turns[lanes_->writer.lane_to(peer)];
  }
  GrowingRing<WaitingAck>& acks_to(HostId peer) {
    return lanes_ == nullptr ? acks_ : lanes_->acks[lanes_->writer.lane_to(peer)];
  }
  void mark_becn(Packet* packet);
  bool return_mark(uint32_t receive_queue);
  Packet* next_cnp_of_lane(unsigned vl, PacketArena::Cache& packets);
  void notice_becn(uint32_t send_queue, Time now);
  const net::Bth& bth_in(const Packet* packet) const {
    return *net::header_at<net::Bth>(frame_of(packet),
                                     lanes_ == nullptr ? kRoceHeaders - sizeof(net::Bth) : sizeof(net::Lrh));
  }
  const net::Aeth& aeth_in(const Packet* packet) const {
    return *net::header_at<net::Aeth>(frame_of(packet), lanes_ == nullptr ? kRoceHeaders : kInfinibandHeaders);
  }

  // Classes for which something waits.
  uint8_t backlog() const {
    return static_cast<uint8_t>((cnps_.empty() ? 0U : 1U << kCnpClass) | (acks_.empty() ? 0U : 1U << ack_class_) |
                                (turns_.empty() ? 0U : 1U << kDataClass));
  }
  uint64_t wire_bytes_of(const Packet* packet) const {
    return static_cast<uint64_t>(int64_t{packet->pkt_len} + settings_.overhead);
  }
  bool may_send(unsigned traffic_class) const { return !pause_.is_paused(traffic_class); }
  bool can_send() const { return lanes_ != nullptr ? lanes_->can_send() : (backlog() & ~pause_.paused()) != 0; }
  // When the port starts its next packet, unless something comes before. A pause may run out first.
  Time next_departure() const {
    if (can_send()) return wire_free_at_;
    return backlog() == 0 || lanes_ != nullptr ? kNever : std::max(wire_free_at_, pause_.next_expiry());
  }

  // As switches sort them by default (dataplane::IngressPort).
  static constexpr unsigned kDataClass = 3;
  static constexpr unsigned kCnpClass = 6;

  // First what most packets need: `fetch`.
  MessageBoard& board_;
  Wire& out_;
  Wire& in_;
  Time wire_free_at_ = 0;
  uint64_t window_packets_ = 0;
  uint32_t burst_packets_;
  unsigned ack_class_;
  size_t next_rate_change_ = 0;
  std::unique_ptr<HostLanes> lanes_;
  std::unique_ptr<PauseLog> pause_log_;
  GrowingRing<uint32_t> cnps_;  // receive queues whose peer is to be notified
  GrowingRing<WaitingAck> acks_;
  GrowingRing<uint32_t> turns_;  // send queues that have a packet for the port now
  std::vector<SendQueue> send_queues_;
  std::vector<ReceiveQueue> receive_queues_;
  uint32_t last_received_ = 0;  // the receive queue, and the send queue, that packets last came for: they are likely
  uint32_t last_acknowledged_ = 0;  // to be the next, too
  std::vector<Timer> timers_;       // a heap, the next at the front
  bool controls_congestion_;        // DCQCN
  RoceWriter writer_;
  Random random_;
  flowctl::PauseState pause_;
  HostCounters counters_;
  Settings settings_;

  flowctl::DcqcnSettings dcqcn_;
  std::array<PauseOrigin, kTrafficClasses> heard_{};      // of the last pause frame (all alike), or flow-control packet
  std::vector<Time> waiting_since_;                       // by send queue: when it joined the turns; only with a log
  std::vector<Paced> paced_;                              // by send queue; empty if nothing holds them back
  std::vector<flowctl::ReactionPoint> reaction_;          // by send queue; empty without DCQCN
  std::vector<flowctl::InjectionPoint> injection_;        // by send queue or service level; empty without InfiniBand's
  std::vector<LevelGate> gates_;                          // by service level; empty where queue pairs are held back
  std::vector<flowctl::NotificationPoint> notification_;  // by receive queue; empty without DCQCN
  struct OwnMessage {
    MessageId message;
    uint32_t first_send_queue;
  };
  std::vector<OwnMessage> own_;  // ascending by message
  std::vector<RemoteTrigger> outgoing_;
  std::vector<uint64_t> goodput_;
  Time last_repair_ = ~Time{0};
  DropCounts drops_{};
};

}  // namespace heddle::lab
