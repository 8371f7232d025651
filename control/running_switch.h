// A switch that forwards: DPDK started, ports open, workers polling. What `heddle run` holds and the control socket
// asks.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/link_watch.h"
#include "control/route_table.h"
#include "control/switch_config.h"
#include "dataplane/ethdev_port.h"
#include "dataplane/lcore.h"

namespace heddle::dataplane {
class ProbeMailbox;
}

namespace heddle::control {

class PathProbes;
struct PathDelayStatus;

struct PortStatus {
  std::string name;
  std::string device;
  std::string driver;
  std::vector<net::Mac> macs;
  bool any_mac = false;
  Rate rate;
  bool up = false;
  unsigned worker = 0;
  uint32_t max_frame = 0;
  telemetry::PortCounters counters;  // summed over workers; device and kernel losses are in its drops
};

struct QueueStatus {
  std::string port;
  unsigned traffic_class = 0;
  bool strict = false;
  uint16_t weight = 1;
  uint64_t limit_bytes = 0;
  uint64_t packets = 0;
  uint64_t bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t recent_peak = 0;  // since the last read that restarted it
  flowctl::WredCurve ecn;
  uint64_t ecn_eligible = 0;
  uint64_t ecn_marked = 0;
};

// A priority group of the shared buffer.
struct GroupStatus {
  std::string port;
  unsigned traffic_class = 0;
  bool lossless = false;
  uint64_t reserved_limit = 0;
  uint64_t headroom_limit = 0;
  uint64_t reserved = 0;  // bytes held
  uint64_t shared = 0;
  uint64_t headroom = 0;
  uint64_t threshold = 0;  // of `shared`, at this moment
  bool xoff = false;
  uint64_t peak_bytes = 0;
  uint64_t recent_peak = 0;
  uint64_t peak_headroom = 0;
  uint64_t violations = 0;
};

struct BufferStatus {
  uint64_t bytes = 0;  // 0: no shared buffer
  uint64_t packets = 0;
  int64_t shared_bytes = 0;
  uint64_t shared_used = 0;
  std::vector<GroupStatus> groups;
};

// PFC of one class of a port.
struct PfcStatus {
  std::string port;
  PfcBackend backend = PfcBackend::kNone;
  unsigned traffic_class = 0;
  dataplane::NicPauses pauses;  // frames; with kEthdev as far as the driver counts them
  bool receiving = true;        // false: left in the NIC's queue, so that the NIC pauses the peer
  bool paused = false;          // the egress queue; with kEthdev, its queue in the NIC takes no more
  double paused_us = 0;
  uint64_t rx_global_pause = 0;  // of the port
  uint64_t rx_malformed = 0;
};

// The PFC watchdog of one class of a port.
struct WatchdogStatus {
  std::string port;
  unsigned traffic_class = 0;
  flowctl::WatchdogSettings settings;
  bool stormed = false;
  uint64_t storms = 0;
  uint64_t restores = 0;
  uint64_t dropped = 0;  // packets
};

// What a watchdog did, as the control thread saw it.
struct WatchdogEventStatus {
  std::chrono::system_clock::time_point at;
  std::string port;
  unsigned traffic_class = 0;
  bool storm = false;  // else: its end
};

// Of all groups and workers.
struct FlowletStatus {
  uint64_t flowlets = 0;
  uint64_t reroutes = 0;
  uint64_t collisions = 0;
};

using ResequencerStatus = lb::ResequencerTotals;

struct WorkerStatus {
  unsigned cpu = 0;
  uint64_t busy_ticks = 0;
  uint64_t idle_ticks = 0;
};

class RunningSwitch {
 public:
  using Notice = std::function<void(const std::string& line)>;

  // Starts everything or throws Error with nothing left running. `notice` gets the start-up remarks and link changes, a
  // line each; it may be called from other threads. One per process: DPDK cannot be started twice.
  RunningSwitch(const SwitchConfig& config, Notice notice);
  // Stops at once, dropping what is queued, if `stop` was not called.
  ~RunningSwitch();
  RunningSwitch(const RunningSwitch&) = delete;
  RunningSwitch& operator=(const RunningSwitch&) = delete;

  // Receives no more, sends what is queued for at most `patience` of real time, then stops the workers. What could not
  // be sent is counted as `shutdown`. The status functions go on working.
  void stop(std::chrono::milliseconds patience);

  // Housekeeping of the control thread: to be called about every 100 ms.
  void tick();

  const SwitchConfig& config() const { return config_; }
  RouteTable& routes() { return *routes_; }
  std::vector<PortStatus> port_status() const;
  std::vector<QueueStatus> queue_status() const;
  BufferStatus buffer_status() const;
  std::vector<PfcStatus> pfc_status() const;
  std::vector<WatchdogStatus> watchdog_status() const;
  // The last kWatchdogEvents, oldest first. Any thread.
  static constexpr size_t kWatchdogEvents = 64;
  std::vector<WatchdogEventStatus> watchdog_events() const;
  // Peaks count anew from now on: what they were since the last time has been read.
  void restart_peaks();
  std::vector<WorkerStatus> worker_status() const;
  FlowletStatus flowlet_status() const;
  ResequencerStatus resequencer_status() const;
  // Nothing without path probes.
  std::optional<PathDelayStatus> path_delay_status() const;
  // Packets received so far by all ports.
  uint64_t received() const;

  // A next hop as the packet path wants it: the source MAC is the port's own.
  lb::NextHop next_hop(const NextHopConfig& member) const;

 private:
  void open_ports();
  void make_pool();
  void make_mailboxes();
  void make_workers();
  void launch_workers();
  void start_probes();
  void install_routes();
  std::vector<dataplane::PortSettings> port_settings() const;
  dataplane::EgressSettings egress_settings(size_t port) const;
  void check_flow_control();
  std::vector<Rate> port_rates() const;
  dataplane::PfcSettings pfc_settings(size_t port) const;
  telemetry::FlowControlCounters flow_counters(size_t port) const;
  void notice_storms();
  void add_device_losses(size_t port, telemetry::PortCounters& counters) const;

  SwitchConfig config_;
  Notice notice_;
  std::vector<unsigned> cpus_;
  std::vector<dataplane::EthdevPort> devices_;
  rte_mempool* pool_ = nullptr;
  dataplane::SwitchControl control_;
  std::vector<std::byte> readers_memory_;
  std::unique_ptr<dataplane::PortStates> states_;
  std::unique_ptr<RouteTable> routes_;
  std::unique_ptr<dataplane::TscClock> clock_;
  std::vector<std::unique_ptr<dataplane::HandoverRing>> rings_;
  std::vector<std::unique_ptr<dataplane::HandoverOut>> handovers_;
  std::vector<std::unique_ptr<dataplane::BufferLedger>> ledgers_;
  std::vector<std::unique_ptr<dataplane::ProbeMailbox>> mailboxes_;  // by worker; none without path probes
  std::vector<std::unique_ptr<dataplane::Worker>> workers_;
  std::unique_ptr<PathProbes> probes_;
  Time probes_began_ = 0;
  std::unique_ptr<class KernelLosses> kernel_losses_;
  std::unique_ptr<LinkWatch> links_;
  std::vector<WatchdogStatus> watchdogs_noticed_;  // as `tick` last saw them
  mutable std::mutex watchdog_mutex_;
  std::deque<WatchdogEventStatus> watchdog_events_;
  bool running_ = false;
};

}  // namespace heddle::control
