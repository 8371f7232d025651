// One worker lcore: polls its ports, runs the pipeline, sends.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rte_rcu_qsbr.h>

#include "dataplane/class_sender.h"
#include "dataplane/clock.h"
#include "dataplane/handover_ring.h"
#include "dataplane/outbox.h"
#include "dataplane/pipeline.h"
#include "telemetry/counters.h"

namespace heddle::dataplane {

class ProbeMailbox;

enum class RunState : uint8_t {
  kRunning,
  kDraining,  // receive no more, send what is queued
  kStopped,   // drop what is left and return
};

// What all workers of a switch look at. Written by the control thread only.
struct SwitchControl {
  std::atomic<RunState> state{RunState::kRunning};
  std::atomic<const ForwardingTables*> tables{nullptr};
  rte_rcu_qsbr* readers = nullptr;  // workers report to it that they let go of old tables
};

// How full a port's queues are, published by the port's lcore now and then for people to read.
struct QueueView {
  telemetry::Counter packets;
  telemetry::Counter bytes;
  telemetry::Counter peak_bytes;   // ever
  telemetry::Counter recent_peak;  // since restart_peaks was last heeded
};

// The same of a priority group in the shared buffer, and of the pauses of its class on its port.
struct GroupView {
  telemetry::Counter reserved;
  telemetry::Counter shared;
  telemetry::Counter headroom;
  telemetry::Counter peak_bytes;   // of all three together, ever
  telemetry::Counter recent_peak;  // since restart_peaks was last heeded
  telemetry::Counter peak_headroom;
  telemetry::Counter threshold;  // XOFF at this moment, above the reserved bytes
  telemetry::Counter xoff;       // 1: its sender is told to pause
  telemetry::Counter paused;     // 1: the peer has paused the class's queue (NIC: its queue takes no more)
  telemetry::Counter paused_ps;  // ever
};

struct OwnedPort {
  PortId id = 0;
  uint16_t ethdev = 0;
  std::optional<ClassQueues> by_class;  // nothing: one queue each way
};

class Worker {
 public:
  struct Settings {
    unsigned index = 0;  // among the workers; its reader number in RCU
    std::vector<OwnedPort> owned;
    bool sleep_when_idle = false;
    std::vector<HandoverRing*> inbox;  // from the other workers
    rte_mempool* pool = nullptr;       // of the pause frames and probes it sends
    // Path probes that end here are turned round, and answers go to the mailbox; null: nothing is known of probes.
    ProbeMailbox* probes = nullptr;
    Pipeline::ProbeSettings probing{};  // its receiver is the mailbox
  };

  Worker(const Settings& settings, const PipelineSettings& pipeline, PortStates& states, Handover* handover,
         SwitchControl& control, const TscClock& clock);

  // The loop; returns when the switch has stopped. Runs on the worker's own lcore.
  void run();

  const Pipeline& pipeline() const { return pipeline_; }
  const QueueView& queue(PortId port, unsigned traffic_class) const {
    return views_[port * kTrafficClasses + traffic_class];
  }
  const GroupView& group(PortId port, unsigned traffic_class) const {
    return groups_[port * kTrafficClasses + traffic_class];
  }
  // Bytes that the groups of this worker's ports hold of the buffer's shared pool.
  uint64_t shared_used() const { return shared_used_.get(); }
  // Recent peaks count anew from the next publication on. Any thread.
  void restart_peaks() { peak_restarts_.fetch_add(1, std::memory_order_relaxed); }
  // TSC ticks spent in rounds that moved packets, and in rounds that found nothing.
  uint64_t busy_ticks() const { return busy_ticks_.get(); }
  uint64_t idle_ticks() const { return idle_ticks_.get(); }
  // Nothing queued, nothing in the inbox, nothing refused by a device.
  bool is_drained() const { return drained_.load(std::memory_order_acquire); }

 private:
  unsigned receive(const OwnedPort& port, Time now);
  unsigned receive_from(const OwnedPort& port, uint16_t queue, Time now);
  unsigned receive_by_class(const OwnedPort& port, Time now);
  unsigned take_inbox(Time now);
  [[gnu::noinline]] unsigned send_probes(Time now);
  unsigned transmit(const OwnedPort& port, Outbox& outbox, Time now);
  unsigned transmit_all(Time now);
  void publish_views(Time now);
  void publish_group(size_t owned, unsigned traffic_class, Time now);
  void publish_loads(Time now);
  bool everything_sent() const;
  void drop_everything();

  // Frees to the mempool packets came from; makes pause frames from one of them.
  class Mempools : public PacketSink, public PacketSource {
   public:
    explicit Mempools(rte_mempool* pool) : pool_(pool) {}
    void take(Packet** packets, unsigned count) override { rte_pktmbuf_free_bulk(packets, count); }
    Packet* make() override { return rte_pktmbuf_alloc(pool_); }

   private:
    rte_mempool* pool_;
  };

  Settings settings_;
  SwitchControl& control_;
  PortStates& states_;
  const TscClock& clock_;
  Mempools mempools_;
  Pipeline pipeline_;
  std::vector<Outbox> outboxes_;                             // by owned port
  std::vector<std::unique_ptr<ClassSender>> class_senders_;  // likewise; null: one queue
  std::vector<QueueView> views_;
  std::vector<GroupView> groups_;
  telemetry::Counter shared_used_;
  std::atomic<unsigned> peak_restarts_{0};
  unsigned peak_restarts_heeded_ = 0;
  telemetry::Counter busy_ticks_;
  telemetry::Counter idle_ticks_;
  std::atomic<bool> drained_{false};
};

}  // namespace heddle::dataplane
