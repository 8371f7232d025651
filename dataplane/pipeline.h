// The line of stages that a packet passes through in one switch, driven by whoever owns the clock: an lcore of a real
// switch or the lab.
//
//   ingress:  accept → parse → classify → route      depends on the packet alone: may run ahead, on any burst
//   forward:  select path → rewrite → admit → [egress queue]   depends on time and queues: in order, at the packet's
//                                                              own time
//   egress:   schedule → mark                        what may leave a port at `now`
//
// Requests to the switch itself (responder.h) are turned into their answers in `ingress`, and queued in `forward`.
//
// Pause frames that arrive pass `ingress` and take effect in `forward`; those we send come out of `egress` first.
// `attend` is for what happens because time passes: pauses that end, pauses that must be repeated.
//
// With `PipelineSettings::lanes` the links are InfiniBand, and all three go by local route headers and credits
// (pipeline_infiniband.cc); only the lab has such links.
//
// A Pipeline belongs to one lcore. Ports that another lcore owns are reached through `Handover`.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dataplane/egress_scheduler.h"
#include "dataplane/lanes.h"
#include "dataplane/pipeline_settings.h"
#include "dataplane/plain_roce.h"
#include "dataplane/shared_buffer.h"
#include "dataplane/tables.h"
#include "flowctl/ecn.h"
#include "flowctl/pfc.h"
#include "flowctl/pfc_sender.h"
#include "flowctl/pfc_watchdog.h"
#include "lb/path_selector.h"
#include "lb/resequencer.h"
#include "net/ip_address.h"
#include "net/packet.h"
#include "telemetry/counters.h"
#include "telemetry/int_probe.h"

namespace heddle::dataplane {

// Where packets go whose egress port another lcore owns.
class Handover {
 public:
  virtual ~Handover() = default;
  // Takes packets (out_port and class are set), in order, or refuses some: those come to the front of `packets`.
  // Returns how many it refused.
  virtual unsigned offer(Packet** packets, unsigned count) = 0;
};

class Pipeline {
 public:
  // `states`, `dropped` and `handover` (null if all ports are ours) outlive the pipeline. Frames that are dropped go to
  // `dropped` after their reason was counted.
  Pipeline(const PipelineSettings& settings, const PortStates& states, PacketSink& dropped, Handover* handover);

  // Where its own pause frames come from; without, it sends none.
  void use_source(PacketSource* source) { source_ = source; }

  // Path probes are known from now on: they are stamped as they leave, take the member that their hash names whatever
  // the group's scheduler, and those addressed to this switch are turned round or given to `receiver`.
  struct ProbeSettings {
    net::IpAddress address;  // of this switch
    uint32_t node_id = 0;    // in the metadata
    uint8_t return_dscp = 48;
    telemetry::ProbeReceiver* receiver = nullptr;
  };
  void use_probes(const ProbeSettings& settings);
  // A probe of our own, written but for its MAC addresses, leaves over that member.
  void send_probe(Packet* packet, const lb::NextHop& next, Time now);
  // Probes of others that ended here and were sent back.
  uint64_t turned_round() const { return turned_round_.get(); }
  // Wire bytes of probes, anybody's, that have left by the port.
  uint64_t probe_bytes(PortId out) const { return has_probes_ ? probe_bytes_[out].get() : 0; }

  // Tables for everything that follows; the caller keeps them alive until the next call and one burst more.
  void use_tables(const ForwardingTables* tables);

  // Time-independent stages on `count` ≤ kBurst frames that arrived at `in`. Compacts the survivors to the front and
  // returns how many.
  unsigned ingress(PortId in, Packet** packets, unsigned count, Time now);

  // Path choice and admission of survivors of `ingress`, in order; `count` ≤ kBurst.
  void forward(Packet* const* packets, unsigned count, Time now);
  // The two halves for one packet, for a runner that brings the chosen port up to date in between; only without buffer,
  // early drops and PFC (`is_simple`). False: dropped.
  bool choose(Packet* packet, Time now);
  bool admit(Packet* packet, Time now);
  // `egress` for one packet, likewise, which is not looked at; nothing if none may start.
  Queued egress_one(PortId out, Time now) {
    const Queued sent = egress_[out].schedule_one(now);
    if (!sent) return {};
    counters_.ports[out].tx_packets.add(1);
    counters_.ports[out].tx_bytes.add(sent.frame_bytes());
    return sent;
  }
  bool is_simple() const { return !careful_ && !has_pfc_ && !has_probes_ && lanes_ == nullptr; }
  // Asks for the cache lines that `choose`, and then `admit`, will read of this packet's group and port.
  void prefetch_group(const Packet* packet) const { rte_prefetch0(tables_->group_for(meta_of(packet).route)); }
  void prefetch_members(const Packet* packet) const;
  // Asks for what it keeps by port, a few bytes each: worth it where the pipeline has been left alone for long.
  void prefetch_port_tables() const;
  void prefetch_queue(const Packet* packet) const {
    const PacketMeta& meta = meta_of(packet);
    egress_[meta.out_port].prefetch(meta.traffic_class);
  }

  // Puts a packet that another lcore has routed into this pipeline's egress queue.
  void accept_handover(Packet* packet, Time now);

  // Takes up to `room` frames that may start on port `out`'s wire at `now`, ready to send. Counts them as
  // sent; frames the device refuses come back through `count_unsent`.
  unsigned egress(PortId out, Packet** packets, unsigned room, Time now);
  void count_unsent(PortId out, Packet* const* packets, unsigned count, DropReason reason);

  // --- what happens because time passes
  // Whether something does, and when it is next due; both meant for the ports we own.
  bool needs_attention(Time now) const { return attention_ && !before(now, attention_at_); }
  bool has_attention() const { return attention_; }
  Time next_attention() const { return attention_at_; }
  // Ends pauses whose time is over, has pause frames repeated, sends on what was held for its order too long, and looks
  // after queues that are paused.
  void attend(Time now);
  // Hears what other lcores have done with the buffer; once per round where it is shared.
  void settle_buffer(Time now);
  // Whether there are ports for `take_awakened`.
  bool has_awakened() const { return !awakened_.empty(); }
  // Calls `each(port)` for every port that has become able to send since the last call: its pause ended, or it has a
  // pause frame to send.
  template <typename Each>
  void take_awakened(const Each& each) {
    for (const PortId port : awakened_) {
      is_awakened_[port] = false;
      each(port);
    }
    awakened_.clear();
  }
  // Whether the port has anything that may leave once the wire is free.
  bool has_work(PortId out, Time now) const {
    return !egress_[out].idle() || (has_pfc_ && controls_[out].sender.is_due(now)) ||
           (lanes_ != nullptr && (lanes_->port(out).credits.due() != 0 || !lanes_->port(out).management.empty()));
  }
  // The rate of a port's link, which pause quanta are measured in, from now on.
  void set_link_rate(PortId port, Rate link);

  EgressScheduler& port(PortId id) { return egress_[id]; }
  const EgressScheduler& port(PortId id) const { return egress_[id]; }
  size_t port_count() const { return egress_.size(); }
  const telemetry::SwitchCounters& counters() const { return counters_; }
  bool is_buffered() const { return buffered_; }
  SharedBuffer& buffer() { return buffer_; }
  const SharedBuffer& buffer() const { return buffer_; }
  // Null where links are not InfiniBand.
  const Lanes* lanes() const { return lanes_.get(); }
  // The port's link has come up anew.
  void restart_link(PortId port, Time now);
  // Classes (bit = class) above XOFF whose receive queues nobody must poll: what fills up there has the NIC pause the
  // peer.
  uint8_t closed(PortId port) const { return controls_[port].closed; }
  // InfiniBand: after ports went down or came up, or tables changed. Neighbours hear what cannot be reached from here
  // any more, or can again (dataplane/reach.h).
  void review_reach();
  // Whether notices are to be sent again, after an interval that the owner keeps.
  bool repeats_notices() const { return lanes_ != nullptr && lanes_->reach().has_repeats(); }
  // Sends them again. Only if `repeats_notices`.
  void repeat_notices();
  // What the port's peer has told it to hold back.
  const flowctl::PauseState& pauses(PortId port) const { return controls_[port].pauses; }
  // What the PFC watchdog found, in order; the first kMaxIncidents. For the thread that runs the pipeline: others read
  // the counters.
  struct Incident {
    Time at = 0;
    PortId port = 0;
    uint8_t traffic_class = 0;
    flowctl::WatchdogEvent event = flowctl::WatchdogEvent::kNone;
  };
  static constexpr size_t kMaxIncidents = 256;
  const std::vector<Incident>& incidents() const { return incidents_; }
  // Whether choices by quality look at what ports have sent, too.
  bool goes_by_past() const { return selector_.quality().has_past(); }
  const lb::FlowletCounters& flowlets() const { return selector_.counters(); }
  // Null where no port puts packets in order.
  const lb::Resequencer* resequencer() const { return resequencer_.get(); }
  // Packets that are held for their order.
  uint32_t held_packets() const { return resequencer_ == nullptr ? 0 : resequencer_->held_packets(); }
  // Packets of VL15 that wait to be sent, at all ports.
  uint32_t management_packets() const;
  // Drops those, with that reason.
  void drop_held(DropReason reason);

  // Drops everything still queued at a port, with that reason, and forgets its pauses.
  void flush(PortId out, DropReason reason, Time now);

 private:
  DropReason examine(PortId in, Packet* packet) const;
  [[gnu::noinline]] bool answer(PortId in, Packet* packet);
  const PlainRoce::Facts* plain_facts_of(const IngressPort& port);
  // Where packets of one route go.
  struct Towards {
    lb::GroupView group;
    lb::GroupStates* state = nullptr;  // null: no such group
  };
  // What the selector asks of ports.
  struct Ports {
    const Pipeline& pipeline;
    Time now;
    bool is_up(PortId port) const { return pipeline.port_is_up_[port].load(std::memory_order_relaxed) != 0; }
    Duration drain_time(PortId port) const;
    Duration drain_time_of_kibibyte(PortId port) const { return pipeline.egress_[port].drain_time_of_kibibyte(); }
  };
  // How a burst is admitted to the egress queues.
  enum class Admission : uint8_t {
    kPlain,    // there is no buffer, nor anything else to ask
    kFits,     // one lossless group whose share has room for all of the burst: charged once, as a whole
    kCareful,  // packet by packet
  };
  Towards towards(RouteId route) {
    Towards to;
    if (const lb::NextHopGroup* group = tables_->group_for(route); group != nullptr) {
      to.group = *group;
      to.state = &group_states_[tables_->index_of(group)];
    }
    return to;
  }
  Admission admission_of(Packet* const* packets, unsigned count);
  template <Admission kAdmission>
  void forward_as(Packet* const* packets, unsigned count, Time now);
  template <Admission kAdmission, bool kHashed>
  unsigned forward_run(Packet* const* packets, unsigned count, const Towards& to, Time now);
  template <Admission kAdmission>
  void admit_as(Packet* packet, PortId out, Time now);
  PortId take_path(Packet* packet, const lb::NextHop& next);
  template <Admission kAdmission>
  void keep_here(Packet* packet, const Towards& to, Time now);
  void charge_burst(const Packet* first);
  DropReason enqueue(Packet* packet, PortId out);
  const lb::NextHop* choose_path(const Towards& to, const Packet* packet, Time now);
  const lb::NextHop* hashed_path(const lb::GroupView& group, const Packet* packet, Time now) const;
  [[gnu::noinline]] bool read_loads(Packet* const* packets, unsigned count, const lb::GroupView& group, Time now);
  static lb::Scheduler scheduler_for(const Packet* packet, const lb::GroupView& group);
  void prepare_choices(Packet* const* packets, unsigned count, Time now);
  DropReason hand_over(Packet* packet, PortId out);
  void send_across();
  DropReason admit_carefully(Packet* packet, PortId out);
  DropReason refusal_of_queue(const Packet* packet, PortId out, uint32_t frame_bytes);
  void resequence(Packet* packet, bool is_charged, Time now);
  void send_on_in_turn(Packet* packet);
  void admit_in_turn(Packet* packet);
  void accept_in_turn(Packet* packet);
  void find_attention_to_held();
  [[gnu::noinline]] DropReason count_refusal(const Packet* packet, DropReason reason);
  [[gnu::noinline]] void mark(Packet* packet, uint64_t queued);
  bool may_mark(PortId out) const;
  unsigned schedule_and_mark(PortId out, Packet** packets, unsigned room, Time now);
  bool is_marked_by_lot(const PacketMeta& meta, uint64_t queued);
  void settle_sent(Packet* const* packets, unsigned count, Time now);

  // --- flow control (pipeline_flow_control.cc)
  void configure_control(PortId port, const PortSettings& settings);
  static bool is_control(const Packet* packet);
  bool keep_control(PortId in, Packet* packet);
  void hide_from_routing(Packet* const* packets, unsigned count) const;
  void receive_control(Packet* packet, Time now);
  unsigned send_control(PortId out, Packet** packets, unsigned room, Time now);
  void follow_buffer(Time now);
  void find_attention(Time now);
  void awaken(PortId port);
  // --- its watchdog (pipeline_watchdog.cc)
  void configure_watchdog();
  void look_after_queues(Time now);
  void follow_watchdog(PortId port, unsigned traffic_class, flowctl::WatchdogEvent event, Time now);
  DropReason early_refusal(PortId out, unsigned traffic_class, uint64_t queued);
  void note_drop_in_storm(const Packet* packet);
  // Classes that a port must hold back: those paused, less those whose pause the watchdog ignores.
  uint8_t held_back(PortId port) const {
    const uint8_t paused = controls_[port].pauses.paused();
    return watches_.empty() ? paused : static_cast<uint8_t>(paused & ~watches_[port].ignoring);
  }
  void drop_queued(PortId out, uint8_t classes, DropReason reason);
  void consume(Packet* packet);

  // --- path probes (pipeline_probes.cc)
  bool may_be_probe(const Packet* packet) const {
    const PacketMeta& meta = meta_of(packet);
    return meta.kind == PacketKind::kTcpUdp && meta.protocol == net::kProtocolUdp &&
           net::load<uint16_t>(frame_of(packet) + meta.l4_offset + 2) == __builtin_bswap16(telemetry::kIntPort);
  }
  [[gnu::noinline]] void hide_own_probes(Packet* const* packets, unsigned count) const;
  bool is_to_us(const Packet* packet) const;
  uint8_t class_of_own(const Packet* packet) const;
  void send_back(Packet* packet, const telemetry::ProbeView& probe, Towards& to);
  [[gnu::noinline]] bool meet_probe(Packet* packet, Towards to, Time now);
  void send_over(Packet* packet, const lb::NextHop& next);
  [[gnu::noinline]] void stamp_probe(Packet* packet, uint64_t left, Time now);
  unsigned schedule_with_probes(PortId out, Packet** packets, unsigned room, Time now);

  // --- InfiniBand links (pipeline_infiniband.cc)
  struct LanePorts {
    const Pipeline& pipeline;
    Time now;
    const Reach* reach;  // null: every neighbour reaches what its tables say
    uint32_t lid;
    bool is_up(PortId port) const {
      return pipeline.port_is_up_[port].load(std::memory_order_relaxed) != 0 &&
             (reach == nullptr || reach->is_usable(port, lid));
    }
    Duration drain_time(PortId port) const;
  };
  unsigned ingress_lanes(PortId in, Packet** packets, unsigned count, Time now);
  void forward_lanes(Packet* const* packets, unsigned count, Time now);
  unsigned egress_lanes(PortId out, Packet** packets, unsigned room, Time now);
  void take_into_lane(Packet* packet);
  unsigned choose_member(const lb::NextHopGroup& group, const Packet* packet, unsigned sl, Time now);
  DropReason send_to_lane(Packet* packet, Time now);
  void release_lane(const Packet* packet);
  void gate(PortId out, unsigned vl, Time now);
  void receive_credits(Packet* packet, Time now);
  bool schedule_lane(PortId out, Packet** packet, Time now);
  [[gnu::noinline]] void mark_fecn(Packet* packet, uint64_t queued);
  bool send_credits(PortId out, Packet** packets, Time now);
  void keep_period(Time now) {
    if (!attention_) start_period(now);
  }
  void start_period(Time now);
  void attend_lanes(Time now);
  // --- VL15 and what it is for (pipeline_management.cc)
  void receive_management(Packet* packet);
  void tell_neighbours();
  void tell(PortId out, const net::ReachNotice& notice);
  Packet* send_management(PortId out, Time now);
  void flush_management(PortId out, DropReason reason);

  [[gnu::noinline]] void drop(PortId charged, Packet* packet, DropReason reason);
  void flush_drops();

  const ForwardingTables* tables_ = nullptr;
  const PortStates& states_;
  const std::atomic<uint8_t>* port_is_up_;
  PacketSink& dropped_;
  Handover* handover_;
  lb::FlowHasher hasher_;
  lb::PathSelector selector_;
  std::vector<IngressPort> ingress_;
  std::vector<std::unique_ptr<const PlainRoce::Facts>> plain_facts_;  // all that differ
  std::vector<PlainRoce> plain_roce_;
  std::vector<uint32_t> max_frame_;        // of ports we own, else 0: one comparison finds both exceptions
  std::vector<uint32_t> max_frame_there_;  // of all ports
  std::vector<EgressScheduler> egress_;
  std::vector<lb::GroupStates> group_states_;
  bool flowlets_in_use_ = false;  // by a group of the tables in force
  bool quality_in_use_ = false;
  telemetry::SwitchCounters counters_;

  // What packets meet on ports with a buffer, marking or PFC.
  struct PortControl {
    std::array<uint64_t, kTrafficClasses> mark_above;  // Kmin of each class: what leaves less behind is not looked at
    PfcSettings settings;
    flowctl::PauseState pauses;  // what we must hold back
    flowctl::PfcSender sender;   // what our peer must hold back
    uint8_t closed = 0;
    std::array<flowctl::Wred, kTrafficClasses> mark;
    std::array<flowctl::Wred, kTrafficClasses> drop;
    Random random{0};  // of marks and early drops at this port's queues
  };
  bool buffered_ = false;
  bool careful_ = false;  // a buffer, marking, early drops or a resequencer somewhere
  std::unique_ptr<lb::Resequencer> resequencer_;
  std::vector<uint8_t> resequence_;  // by port
  bool has_pfc_ = false;
  bool has_addresses_ = false;  // at any port
  bool has_probes_ = false;
  ProbeSettings probes_;
  telemetry::Counter turned_round_;
  std::vector<telemetry::Counter> probe_bytes_;  // by port
  bool attention_ = false;
  Time attention_at_ = 0;
  SharedBuffer buffer_;
  std::vector<PortControl> controls_;
  std::vector<uint8_t> drops_early_;  // by port, bit = class: WRED, or the watchdog's mitigation
  uint8_t has_wred_drops_ = 0;        // bit = class, at any port
  uint64_t burst_charge_ = 0;         // of the burst that fits, less what of it was not admitted
  PacketSource* source_ = nullptr;
  std::unique_ptr<Lanes> lanes_;
  std::vector<PortId> awakened_;
  std::vector<bool> is_awakened_;

  // What the watchdog knows of a port.
  struct PortWatch {
    std::array<flowctl::PfcWatchdog, kTrafficClasses> dogs;
    uint8_t watched = 0;   // classes
    uint8_t dropping = 0;  // classes under mitigation
    uint8_t ignoring = 0;
  };
  std::vector<PortWatch> watches_;  // empty without a watchdog
  std::vector<Incident> incidents_;
  Duration watch_interval_ = 0;
  unsigned stormed_ = 0;  // queues
  bool watching_ = false;
  Time watch_at_ = 0;

  std::array<Packet*, kBurst> dead_{};  // dropped in this burst, given back together
  unsigned dead_count_ = 0;
  std::array<Packet*, kBurst> crossing_{};  // to other lcores' ports in this burst, handed over together
  unsigned crossing_count_ = 0;
};

}  // namespace heddle::dataplane
