// A switch of the lab: the pipeline of dataplane/ under the virtual clock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rte_prefetch.h>

#include "dataplane/pipeline.h"
#include "lab/engine/departure_times.h"
#include "lab/engine/fabric_settings.h"
#include "lab/engine/live_node.h"
#include "lab/engine/pause_log.h"
#include "lab/engine/run_result.h"
#include "lab/engine/time_order.h"
#include "lab/engine/wire.h"
#include "lab/fabric/switch_prober.h"
#include "net/prefetch.h"

namespace heddle::lab {

class LabSwitch : public LiveNode {
 public:
  struct Port {
    Wire* out = nullptr;
    Wire* in = nullptr;
    Duration delay = 0;
    bool is_uplink = false;
    uint16_t uplink = 0;        // its position among the uplinks; set by the switch
    uint8_t traffic_class = 0;  // of the last packet queued: whose queue to fetch
  };
  // Something that happens to one of its links; the port's rate from then on.
  struct PortEvent {
    Time at = 0;
    PortIndex port = 0;
    bool up = true;
    Rate rate;
  };
  // Tables that are in force from a time on.
  struct TableVersion {
    Time from = 0;
    std::unique_ptr<dataplane::ForwardingTables> tables;
    std::vector<ProbedGroup> probed{};
  };

  struct Settings {
    dataplane::PipelineSettings pipeline;
    Duration sample_interval = 0;  // of uplink loads
    // Whether all ports send in the order of time. Needed where a decision depends on more than the chosen port's
    // queue; elsewhere the result is the same, and ports are brought up to date one by one, when they matter.
    bool in_time_order = false;
    bool log_pauses = false;       // what pauses and missing credit hold back
    bool keeps_all_pauses = true;  // PauseLog
    Duration notice_interval = 0;  // after which what neighbours were told on VL15 is told again (dataplane/reach.h)
  };

  LabSwitch(NodeId id, const Settings& settings, std::vector<Port> ports, std::vector<TableVersion> versions,
            std::vector<PortEvent> events, std::unique_ptr<SwitchProber> prober = nullptr);

  // Asks for the switch itself, all of it: which of its lines the window needs, it would have to be looked at to know.
  void fetch() const { prefetch_for_later(this, this + 1); }
  void run(const Window& window) override;
  void fetch_tables() const override;
  void fetch_ports(const Window& window) const override;
  void fetch_packets(const Window& window) const override;
  Time next_event() const override;
  uint64_t packets_held() const override;
  const DropCounts& drops() const override { return drops_; }

  NodeId id() const { return id_; }
  const dataplane::Pipeline& pipeline() const { return pipeline_; }
  const std::vector<ImbalanceSample>& imbalance() const { return imbalance_; }
  // Null where nothing can be paused, nor wait for credit.
  const PauseLog* pauses() const { return pause_log_.get(); }
  // When the run has ended at `now`: pauses that go on, and what still waits for them, are noted up to then.
  void close_pauses(Time now);
  // Null where paths are not probed.
  const SwitchProber* prober() const { return prober_.get(); }
  // No more probes from that time on, which lies ahead.
  void stop_probing(Time at) { probe_until_ = at; }

 private:
  // Where the pipeline's dropped packets go and its pause frames come from: the arena of the thread that runs the
  // window.
  class Sink : public PacketSink, public PacketSource {
   public:
    Packet* make() override {
      Packet* packet = cache->take();
      packet->data_off = 0;
      packet->ol_flags = 0;
      return packet;
    }
    void take(Packet** packets, unsigned count) override {
      for (unsigned i = 0; i < count; ++i) cache->put(packets[i]);
      taken += count;
    }
    PacketArena::Cache* cache = nullptr;
    uint64_t taken = 0;
  };

  void collect(const Window& window);
  void receive(PortId port, bool sent, const Window& window);
  void prefetch_departing(PortId port) const;
  void prefetch_place(const Packet& packet, unsigned parity) const;
  void forward_in_time_order(const Window& window);
  void forward_port_by_port(const Window& window);
  size_t choose_paths(size_t from, const Window& window);
  // What has arrived at a port, up to a burst.
  struct Arrived {
    std::array<Packet*, kBurst> packets;
    std::array<Time, kBurst> at;
    unsigned count = 0;
  };
  void take_in(PortId port, const Arrived& arrived, const Window& window);
  void bring_up_to_date(PortId port, Time until, const Window& window);
  void send_in_time_order(Time until, const Window& window);
  // Timers before `until`, each after what left before it.
  void run_timers(Time until, const Window& window) {
    if (timer_ < until) [[unlikely]]
      expire_timers(until, window);
  }
  void expire_timers(Time until, const Window& window);
  void depart(PortId port, Time now, const Window& window);
  void put_on_wire(PortId port, dataplane::Queued sent, Time now, const Window& window);
  void apply_events(Time now);
  void send_probes(Time now, const Window& window);
  // Something may have been told at `now`, or be still to be told again.
  void plan_repeats(Time now) {
    if (notice_interval_ == 0 || repeat_at_ != kNever || !pipeline_.repeats_notices()) return;
    repeat_at_ = now + notice_interval_;
    timer_ = std::min(timer_, repeat_at_);
  }
  void repeat_notices(Time now);
  Time next_probe() const {
    const Time due = prober_ == nullptr ? kNever : prober_->prober().next_due();
    return due < probe_until_ ? due : kNever;
  }
  void schedule_departure(PortId port, Time now) {
    if (departures_.at(port) != kNever) return;
    departures_.set(port, std::max(now, pipeline_.port(port).wire_free_at()));
    busy_.add(port);
  }
  // Ports that a pause has let go, or that have a pause frame to send.
  void wake_ports(Time now) {
    if (pipeline_.has_awakened()) [[unlikely]]
      wake_awakened(now);
  }
  void wake_awakened(Time now);
  void stop(PortId port);
  void note_drop(PortId in, Time now);
  Time next_timer() const;
  Time next_attention() const { return pipeline_.has_attention() ? pipeline_.next_attention() : kNever; }
  // Whether anything leaves, or happens to pauses, before `until`; where ports send in the order of time.
  bool has_to_send(Time until) const { return departures_.first_time() < until || next_attention() < until; }

  // --- what holds packets back (lab_switch_pauses.cc); only with a log
  void start_log(bool keeps_all);
  void hear_origin(const Packet* packet);
  // The packet stands in an egress queue now.
  void note_queued(const Packet* packet, Time now) {
    if (lanes_ == nullptr) return;
    const PacketMeta& meta = meta_of(packet);
    waiting(meta.in_port, meta.arrival_lane, meta.out_port) += packet->pkt_len;
    note_stalls(meta.out_port, now);
  }
  void note_departure(PortId port, Packet* packet, Time now);
  void note_pauses(PortId port, Time now);
  // Of the port's lanes: most of the time nothing has changed.
  void note_stalls(PortId port, Time now) {
    const uint8_t stalled = lanes_->port(port).stalled;
    if (stalled != pause_log_->paused(port)) pause_log_->note_each(port, stalled, heard_at(port), now);
  }
  // Asks for what packets that come by a port with lanes will read.
  void prefetch_lanes(PortId port) const {
    lanes_->prefetch(port);
    if (pause_log_ != nullptr) rte_prefetch0(waiting_at(port, 0));
  }
  PauseOrigin* heard_at(PortId port) { return &heard_[port * size_t{kTrafficClasses}]; }
  void note_flush(PortId port, Time now);
  PauseOrigin origin_named_by(const Packet* pause_frame) const;
  PauseOrigin origin_behind(PortId in, unsigned vl) const;
  PauseOrigin origin_at(PortId out, unsigned traffic_class) const;
  uint32_t& waiting(PortId in, unsigned vl, PortId out) {
    return waiting_[(in * lane_count_ + vl) * port_count() + out];
  }
  const uint32_t* waiting_at(PortId in, unsigned vl) const { return &waiting_[(in * lane_count_ + vl) * port_count()]; }
  // By what is at hand whenever packets come or go.
  size_t port_count() const { return departures_.ports(); }

  void sample(Time now);

  NodeId id_;
  dataplane::PortStates states_;
  Sink sink_;
  dataplane::Pipeline pipeline_;
  std::unique_ptr<SwitchProber> prober_;
  Time probe_until_ = kNever;
  std::vector<Port> ports_;
  std::vector<TableVersion> versions_;
  std::vector<PortEvent> events_;
  size_t next_version_ = 1;
  size_t next_port_event_ = 0;
  Duration notice_interval_;
  Time repeat_at_ = kNever;  // notices

  bool in_time_order_;
  PortSet flying_;              // ports with packets that have been collected and not arrived
  PortSet busy_;                // ports with something to send
  DepartureTimes departures_;   // of the busy ports
  Time next_arrival_ = kNever;  // of packets seen on the wires, beyond the window
  Time timer_ = kNever;         // the next event, version, repetition or sample

  Duration sample_interval_;
  Time next_sample_;
  std::vector<PortId> uplinks_;
  std::vector<uint64_t> uplink_bytes_;  // in the interval, by position in uplinks_
  std::vector<ImbalanceSample> imbalance_;
  std::unique_ptr<PauseLog> pause_log_;
  std::vector<PauseOrigin> heard_;  // by port and class: of the last pause frame (all alike), or flow-control packet
  std::vector<uint32_t> waiting_;   // bytes that came by a port and lane and wait at a port; only of lanes
  const dataplane::Lanes* lanes_ = nullptr;  // of InfiniBand links
  size_t lane_count_ = 0;
  std::vector<uint64_t> unrouted_;  // by port: packets that found no way, as last seen
  DropCounts drops_{};              // on its outgoing links; the pipeline counts its own
};

}  // namespace heddle::lab
