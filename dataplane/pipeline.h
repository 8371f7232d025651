// The line of stages that a packet passes through in one switch, driven by whoever owns the clock: an lcore of a real
// switch or the lab.
//
//   ingress:  accept → parse → classify → route      depends on the packet alone: may run ahead, on any burst
//   forward:  select path → admit → [egress queue]   depends on time and queues: in order, at the packet's own time
//   egress:   schedule → rewrite                      what may leave a port at `now`
//
// A Pipeline belongs to one lcore. Ports that another lcore owns are reached through `Handover`.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "dataplane/classify.h"
#include "dataplane/egress_scheduler.h"
#include "dataplane/plain_roce.h"
#include "dataplane/tables.h"
#include "lb/path_selector.h"
#include "net/packet.h"
#include "telemetry/counters.h"

namespace heddle::dataplane {

struct PortSettings {
  IngressPort ingress;
  EgressSettings egress;
  uint32_t max_frame = 1518;  // longest frame it can send, without FCS
};

// Where packets go whose egress port another lcore owns.
class Handover {
 public:
  virtual ~Handover() = default;
  // Takes `packet` (out_port and class are set) or refuses it.
  virtual bool offer(Packet* packet) = 0;
};

class Pipeline {
 public:
  struct Settings {
    std::vector<PortSettings> ports;
    std::vector<bool> mine;  // ports this pipeline owns; empty = all
    lb::HashSettings hash;
    uint64_t seed = 1;  // of random choices
    size_t paths = 0;   // size of the path counters
  };

  // `states`, `dropped` and `handover` (null if all ports are ours) outlive the pipeline. Frames that are dropped go to
  // `dropped` after their reason was counted.
  Pipeline(const Settings& settings, const PortStates& states, PacketSink& dropped, Handover* handover);

  // Tables for everything that follows; the caller keeps them alive until the next call and one burst more.
  void use_tables(const ForwardingTables* tables);

  // Time-independent stages on `count` ≤ kBurst frames that arrived at `in`. Compacts the survivors to the front and
  // returns how many.
  unsigned ingress(PortId in, Packet** packets, unsigned count, Time now);

  // Path choice and admission of survivors of `ingress`, in order.
  void forward(Packet* const* packets, unsigned count, Time now);

  // Puts a packet that another lcore has routed into this pipeline's egress queue.
  void accept_handover(Packet* packet);

  // Takes up to `room` frames that may start on port `out`'s wire at `now`, rewritten and ready to send. Counts them as
  // sent; frames the device refuses come back through `count_unsent`.
  unsigned egress(PortId out, Packet** packets, unsigned room, Time now);
  void count_unsent(PortId out, Packet* const* packets, unsigned count, DropReason reason);

  EgressScheduler& port(PortId id) { return egress_[id]; }
  const EgressScheduler& port(PortId id) const { return egress_[id]; }
  size_t port_count() const { return egress_.size(); }
  const telemetry::SwitchCounters& counters() const { return counters_; }

  // Drops everything still queued at a port, with that reason.
  void flush(PortId out, DropReason reason);

 private:
  DropReason examine(PortId in, Packet* packet) const;
  // Where packets of one route go; neighbours in a burst often share it.
  struct Towards {
    RouteId route = ~RouteId{0};  // of no packet
    lb::GroupView group;
    lb::GroupState* state = nullptr;  // null: no such group
  };
  Towards towards(RouteId route);
  const lb::NextHop* choose_path(const Towards& to, uint32_t flow_hash);
  DropReason admit(Packet* packet, PortId out, uint32_t frame_bytes);
  DropReason hand_over(Packet* packet, PortId out, uint32_t frame_bytes);
  [[gnu::noinline]] void drop(PortId charged, Packet* packet, DropReason reason);
  void flush_drops();

  const ForwardingTables* tables_ = nullptr;
  const std::atomic<uint8_t>* port_is_up_;
  PacketSink& dropped_;
  Handover* handover_;
  lb::FlowHasher hasher_;
  lb::PathSelector selector_;
  std::vector<IngressPort> ingress_;
  std::vector<PlainRoce> plain_roce_;
  std::vector<uint32_t> max_frame_;        // of ports we own, else 0: one comparison finds both exceptions
  std::vector<uint32_t> max_frame_there_;  // of all ports
  std::vector<EgressScheduler> egress_;
  std::vector<lb::GroupState> group_states_;
  telemetry::SwitchCounters counters_;
  std::array<Packet*, kBurst> dead_{};  // dropped in this burst, handed over together
  unsigned dead_count_ = 0;
};

}  // namespace heddle::dataplane
