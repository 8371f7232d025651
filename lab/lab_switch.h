// A switch of the lab: the pipeline of dataplane/ under the virtual clock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/pipeline.h"
#include "lab/fabric_settings.h"
#include "lab/live_node.h"
#include "lab/run_result.h"
#include "lab/wire.h"

namespace heddle::lab {

class LabSwitch : public LiveNode {
 public:
  struct Port {
    Wire* out = nullptr;
    Wire* in = nullptr;
    Duration delay = 0;
    bool uplink = false;
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
  };

  LabSwitch(NodeId id, const dataplane::Pipeline::Settings& pipeline, std::vector<Port> ports,
            std::vector<TableVersion> versions, std::vector<PortEvent> events, Duration sample_interval);

  void run(const Window& window) override;
  void approach() const override;
  void prepare() const override;
  Time next_event() const override;
  uint64_t packets_held() const override;
  const DropCounts& drops() const override { return drops_; }

  const dataplane::Pipeline& pipeline() const { return pipeline_; }
  const std::vector<ImbalanceSample>& imbalance() const { return imbalance_; }

 private:
  // Where the pipeline's dropped packets go: back to the arena of the thread that runs the window.
  class Sink : public PacketSink {
   public:
    void take(Packet** packets, unsigned count) override {
      for (unsigned i = 0; i < count; ++i) cache->put(packets[i]);
      taken += count;
    }
    PacketArena::Cache* cache = nullptr;
    uint64_t taken = 0;
  };

  struct Arrival {
    uint64_t order;  // time since the window began, port
    Packet* packet;
  };

  void collect(const Window& window);
  void prefetch_front(PortId port) const;
  void take_in(PortId port, const Window& window, unsigned count);
  void advance(Time until, const Window& window);
  void depart(PortId port, Time now, const Window& window);
  void apply_events(Time now);
  void schedule_departure(PortId port, Time now);
  Time next_timer() const;
  void sample(Time now);

  NodeId id_;
  dataplane::PortStates states_;
  Sink sink_;
  dataplane::Pipeline pipeline_;
  std::vector<Port> ports_;
  std::vector<TableVersion> versions_;
  std::vector<PortEvent> events_;
  size_t next_version_ = 1;
  size_t next_port_event_ = 0;

  std::vector<Time> departures_;   // by port: when it next sends; kNever if it has nothing to send
  Time next_departure_ = kNever;   // the earliest of them
  Time next_arrival_ = kNever;     // of packets seen on the wires, beyond the window
  Time first_sent_ = kNever;       // arrival of the first packet sent in the window
  std::vector<Arrival> arrivals_;  // of the window, in order
  std::array<Packet*, kBurst> burst_{};
  std::array<Time, kBurst> burst_times_{};

  Duration sample_interval_;
  Time next_sample_;
  std::vector<PortId> uplinks_;
  std::vector<uint64_t> uplink_bytes_;  // in the interval, by position in uplinks_
  std::vector<uint16_t> uplink_of_port_;
  std::vector<ImbalanceSample> imbalance_;
  DropCounts drops_{};  // on its outgoing links; the pipeline counts its own
};

}  // namespace heddle::lab
