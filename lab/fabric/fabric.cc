#include "lab/fabric/fabric.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <rte_prefetch.h>
#include <sys/resource.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "lab/engine/huge_pages.h"
#include "lab/fabric/builder.h"
#include "lab/fabric/credits.h"
#include "lab/fabric/deadlock.h"
#include "lab/fabric/failure_costs.h"
#include "lab/fabric/flow_control.h"
#include "lab/fabric/probes.h"
#include "net/error.h"

namespace heddle::lab {

namespace {

using WallClock = std::chrono::steady_clock;

// The loop over windows.
class Run {
 public:
  Run(const Topology& topology, const Workload& workload, const FabricSettings& settings)
      : topology_(topology),
        settings_(settings),
        fabric_(build_fabric(topology, workload, settings)),
        watch_(topology, *fabric_, !fabric_->subnets.empty() || settings.switches.flow_control.pauses()),
        limit_threads_(tbb::global_control::max_allowed_parallelism, threads()),
        arena_(static_cast<int>(threads())),
        limit_(settings.run.until == 0 ? kNever : settings.run.until),
        warm_up_(settings.run.warm_up == 0 ? kNever : settings.run.warm_up),
        probing_(settings.switches.path_delay.enabled) {
    scratch_.resize(threads());
    for (unsigned i = 0; i < threads(); ++i) caches_.push_back(std::make_unique<PacketArena::Cache>(fabric_->packets));
    collapse_heap();
    line_up_nodes();
    make_blocks();
    workload_messages_ = size_of(workload).messages;
  }

  RunResult go();

 private:
  unsigned threads() const { return settings_.run.thread_count(); }
  // So many that threads end a window together.
  static constexpr size_t kBlocksPerThread = 16;
  // Nodes that one thread runs in a window: all of them on one thread, else a part of the nodes.
  struct Block {
    size_t from = 0;
    size_t to = 0;
    std::vector<size_t> due{};    // places of nodes with something to do in the window
    Time next = kNever;           // the earliest of what its nodes will do, and of what they sent
    Time first_sent = kNever;     // arrival of the first packet they sent in the last window
    std::vector<Host*> causes{};  // hosts whose messages have an effect on other hosts
  };

  void line_up_nodes();
  void make_blocks();
  void run_window(const Window& window);
  void run_block(Block& block, Window window, unsigned thread);
  void fetch_node(size_t place) const;
  void pass_triggers();
  Time next_begin() const;
  void stop_probing();
  void begin_steady_state();
  uint64_t payload_received() const;
  bool should_stop(Time now);
  uint64_t messages_done() const;
  uint64_t packet_hops() const;
  RunResult collect(RunResult::End end, Time at);
  void check_books(const RunResult& result) const;

  const Topology& topology_;
  const FabricSettings& settings_;
  std::unique_ptr<Fabric> fabric_;
  DeadlockWatch watch_;
  std::vector<LiveNode*> nodes_;   // in the order in which they run
  std::vector<size_t> place_of_;   // by NodeId, in that order
  std::vector<Time> next_events_;  // by place
  std::vector<NodeId> id_at_;      // by place
  std::vector<Block> blocks_;
  tbb::affinity_partitioner affinity_;  // a block keeps to its thread: its queues are in that core's cache
  tbb::global_control limit_threads_;   // also allows more threads than CPUs, which tests ask for
  tbb::task_arena arena_;
  std::vector<std::unique_ptr<PacketArena::Cache>> caches_;  // by thread
  std::vector<Scratch> scratch_;                             // by thread
  Time limit_;
  unsigned parity_ = 0;
  uint64_t workload_messages_ = 0;
  Time warm_up_;  // kNever once it is over
  uint64_t bytes_at_warm_up_ = 0;
  bool is_steady_ = false;
  bool probing_;  // switches send probes, which would never end by themselves
  WallClock::time_point next_report_ = WallClock::now();
};

RunResult Run::go() {
  const auto began = WallClock::now();
  Time now = *std::min_element(next_events_.begin(), next_events_.end());
  auto end = RunResult::End::kDone;
  Time last = 0;
  while (now != kNever) {
    if (now >= limit_) {
      end = RunResult::End::kTimeLimit;
      last = limit_;
      break;
    }
    if (should_stop(now)) {
      end = RunResult::End::kInterrupted;
      last = now;
      break;
    }
    while (now >= watch_.next()) watch_.look();
    if (watch_.ends_run()) {
      end = RunResult::End::kDeadlock;
      last = watch_.found()->at;
      break;
    }
    if (now >= warm_up_) begin_steady_state();
    const Time until = std::min({limit_, now + fabric_->window, watch_.next(), warm_up_});
    run_window({.begin = now, .end = until, .parity = parity_});
    pass_triggers();
    if (probing_ && messages_done() == workload_messages_) stop_probing();
    for (auto& capture : fabric_->captures) capture->write(until);
    parity_ = 1 - parity_;
    now = next_begin();
  }
  for (auto& capture : fabric_->captures) capture->write(kNever);
  RunResult result = collect(end, last);
  result.wall_seconds = std::chrono::duration<double>(WallClock::now() - began).count();
  check_books(result);
  check_credits(result);
  return result;
}

void Run::line_up_nodes() {
  id_at_ = fabric_->order;
  place_of_.resize(id_at_.size());
  for (const NodeId id : id_at_) {
    place_of_[id] = nodes_.size();
    nodes_.push_back(&fabric_->node(id));
    next_events_.push_back(nodes_.back()->next_event());
  }
}

// As many ports in each: what a node has to do grows with them.
void Run::make_blocks() {
  const size_t count = threads() == 1 ? 1 : threads() * kBlocksPerThread;
  const size_t ports = 2 * topology_.links.size();
  size_t before = 0;
  size_t from = 0;
  for (size_t place = 0; place < nodes_.size(); ++place) {
    before += topology_.ports[id_at_[place]].size();
    if (before * count < ports * (blocks_.size() + 1)) continue;
    blocks_.push_back({from, place + 1});
    from = place + 1;
  }
}

void Run::run_window(const Window& window) {
  if (blocks_.size() == 1) {
    run_block(blocks_.front(), window, 0);
    return;
  }
  arena_.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<size_t>(0, blocks_.size(), 1),
        [&](const tbb::blocked_range<size_t>& range) {
          const auto thread = static_cast<unsigned>(tbb::this_task_arena::current_thread_index());
          for (size_t i = range.begin(); i < range.end(); ++i) run_block(blocks_[i], window, thread);
        },
        affinity_);
  });
}

// The nodes that have something to do; those to come are fetched into the cache meanwhile. Every second window goes
// through them backwards: it begins with those whose memory the window before has left in the cache.
void Run::run_block(Block& block, Window window, unsigned thread) {
  window.packets = caches_[thread].get();
  window.scratch = &scratch_[thread];
  Time first_sent = kNever;
  window.first_sent = &first_sent;
  block.due.clear();
  block.causes.clear();
  block.next = kNever;
  for (size_t node = block.from; node < block.to; ++node) {
    if (next_events_[node] < window.end || nodes_[node]->inbox().any(window.parity)) {
      block.due.push_back(node);
    } else {
      block.next = std::min(block.next, next_events_[node]);
    }
  }
  if (window.parity != 0) std::reverse(block.due.begin(), block.due.end());
  const std::vector<size_t>& due = block.due;
  for (size_t i = 0; i < due.size(); ++i) {
    if (i + 5 < due.size()) fetch_node(due[i + 5]);
    if (i + 3 < due.size()) nodes_[due[i + 3]]->fetch_tables();
    if (i + 2 < due.size()) nodes_[due[i + 2]]->fetch_ports(window);
    if (i + 1 < due.size()) nodes_[due[i + 1]]->fetch_packets(window);
    const size_t node = due[i];
    nodes_[node]->run(window);
    next_events_[node] = nodes_[node]->next_event();
    block.next = std::min(block.next, next_events_[node]);
    if (!topology_.is_host(id_at_[node])) continue;
    if (auto* host = static_cast<Host*>(nodes_[node]); !host->outgoing().empty()) block.causes.push_back(host);
  }
  block.first_sent = first_sent;
  block.next = std::min(block.next, first_sent);
}

// Asks for the node itself. It is not looked at, or the run would wait for it: hence no virtual call.
void Run::fetch_node(size_t place) const {
  if (topology_.is_host(id_at_[place])) {
    static_cast<const Host*>(nodes_[place])->fetch();
  } else {
    static_cast<const LabSwitch*>(nodes_[place])->fetch();
  }
}

// Effects on other hosts. They lie at least a window ahead, and hosts keep what is to come in order of time and kind.
void Run::pass_triggers() {
  for (Block& block : blocks_) {
    for (Host* cause : block.causes) {
      for (const RemoteTrigger& trigger : cause->outgoing()) {
        fabric_->hosts[trigger.host]->deliver(trigger);
        Time& next_event = next_events_[place_of_[trigger.host]];
        next_event = std::min(next_event, trigger.at);
        block.next = std::min(block.next, trigger.at);
      }
      cause->outgoing().clear();
    }
  }
}

// The earliest thing that will happen anywhere: windows without work are skipped.
Time Run::next_begin() const {
  Time next = kNever;
  for (const Block& block : blocks_) next = std::min(next, block.next);
  return next;
}

// Nothing is left to measure for. What is on its way still arrives. Nobody may have probed yet at the time from which
// on nobody probes, or the result would depend on the window: no window is longer than the lookahead.
void Run::stop_probing() {
  probing_ = false;
  Time last = 0;
  for (const auto& host : fabric_->hosts) last = std::max(last, host->counters().last_message_sent);
  for (auto& node : fabric_->switches) node->stop_probing(last + topology_.smallest_delay());
  for (size_t i = 0; i < nodes_.size(); ++i) next_events_[i] = nodes_[i]->next_event();
  for (Block& block : blocks_) {
    Time next = block.first_sent;
    for (size_t node = block.from; node < block.to; ++node) next = std::min(next, next_events_[node]);
    block.next = next;
  }
}

void Run::begin_steady_state() {
  warm_up_ = kNever;
  is_steady_ = true;
  bytes_at_warm_up_ = payload_received();
}

uint64_t Run::payload_received() const {
  uint64_t bytes = 0;
  for (const auto& host : fabric_->hosts) bytes += host->counters().payload_received;
  return bytes;
}

bool Run::should_stop(Time now) {
  if (!settings_.on_progress || WallClock::now() < next_report_) return false;
  next_report_ = WallClock::now() + std::chrono::milliseconds(100);
  return !settings_.on_progress({now, messages_done(), workload_messages_, packet_hops()});
}

uint64_t Run::messages_done() const {
  uint64_t done = 0;
  for (const auto& host : fabric_->hosts) done += host->counters().messages_sent;
  return done;
}

uint64_t Run::packet_hops() const {
  uint64_t hops = 0;
  for (const Wire& wire : fabric_->wires) hops += wire.packets();
  return hops;
}

RunResult Run::collect(RunResult::End end, Time at) {
  RunResult result;
  result.end = end;
  for (const auto& host : fabric_->hosts) {
    const HostCounters& counters = host->counters();
    result.packets_sent += counters.packets_sent;
    result.data_packets += counters.data_packets;
    result.packets_received += counters.packets_received;
    result.retransmitted += counters.retransmitted;
    result.retransmitted_bytes += counters.retransmitted_bytes;
    result.timeouts += counters.timeouts;
    result.naks += counters.naks;
    result.duplicates += counters.duplicates;
    result.out_of_order_packets += counters.out_of_order_packets;
    result.out_of_order_degree = std::max(result.out_of_order_degree, counters.out_of_order_degree);
    result.out_of_order_extent = std::max(result.out_of_order_extent, counters.out_of_order_extent);
    result.gaps += counters.gaps;
    result.ce_packets += counters.ce_packets;
    result.cnps += counters.cnps_sent;
    result.cnps_received += counters.cnps_received;
    for (const flowctl::InjectionPoint& point : host->injection_points()) {
      result.throttled_queues += point.peak() != 0 ? 1 : 0;
      result.peak_ccti = std::max(result.peak_ccti, point.peak());
    }
    result.host_pfc_frames += counters.pfc_frames;
  }
  for (const LiveNode* node : nodes_) {
    for (size_t i = 0; i < kDropReasons; ++i) result.drops[i] += node->drops()[i];
  }
  collect_recovery(*fabric_, result);
  for (const auto& node : fabric_->switches) {
    const dataplane::Pipeline& pipeline = node->pipeline();
    for (PortId port = 0; port < pipeline.port_count(); ++port) {
      const telemetry::PortCounters& counters = pipeline.counters().ports[port];
      for (size_t i = 0; i < kDropReasons; ++i) result.drops[i] += counters.drops[i].get();
      for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
        result.peak_queue_bytes = std::max(result.peak_queue_bytes, pipeline.port(port).queue(tc).peak_bytes());
      }
    }
    result.flowlets += pipeline.flowlets().flowlets.get();
    result.reroutes += pipeline.flowlets().reroutes.get();
    result.flowlet_collisions += pipeline.flowlets().collisions.get();
    if (pipeline.resequencer() != nullptr) result.resequencer += pipeline.resequencer()->counters();
    result.packets_in_flight += node->packets_held();
    if (node->prober() != nullptr) collect_probes(topology_, *node, result);
    result.imbalance.insert(result.imbalance.end(), node->imbalance().begin(), node->imbalance().end());
  }
  for (size_t i = 0; i < fabric_->wires.size(); i += 2) {
    const Wire& forth = fabric_->wires[i];
    const Wire& back = fabric_->wires[i + 1];
    result.links.push_back(
        {forth.packets(), forth.wire_bytes(), back.packets(), back.wire_bytes(), forth.busy(), back.busy()});
    result.packets_in_flight += forth.in_flight() + back.in_flight();
  }
  result.packet_hops = packet_hops();
  result.ended_at = at;
  if (end == RunResult::End::kDone) {
    for (const MessageTimes& times : fabric_->board.times()) {
      if (times.sent != kNever) result.ended_at = std::max(result.ended_at, times.sent);
    }
  }
  collect_pauses(*fabric_, result);
  result.messages = fabric_->board.take_times();
  if (is_steady_ && result.ended_at > settings_.run.warm_up) {
    result.steady_time = result.ended_at - settings_.run.warm_up;
    result.steady_bytes = payload_received() - bytes_at_warm_up_;
  }
  collect_flow_control(*fabric_, result);
  collect_credits(*fabric_, result);
  // What links say to each other is no packet of a host's: pause frames, flow-control packets, notices.
  result.packet_hops -= std::min(result.packet_hops, result.control_frames + result.healing.notices_sent);
  result.deadlock = watch_.found();
  for (const auto& host : fabric_->hosts) {
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) result.host_pause_time += host->paused_time(tc, result.ended_at);
  }
  result.threads = threads();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return result;
}

// Every packet that a host sent, and every pause frame of a switch, has ended somewhere.
void Run::check_books(const RunResult& result) const {
  uint64_t dropped = 0;
  for (const uint64_t n : result.drops) dropped += n;
  const uint64_t made = result.packets_sent + result.control_frames + result.probes.sent + result.healing.notices_sent;
  const uint64_t ended =
      result.packets_received + result.control_frames_ended + result.probes.ended + result.healing.notices_received;
  if (ended + dropped + result.packets_in_flight != made) {
    throw_failed("packets unaccounted for: {} sent, {} received, {} dropped, {} in flight; this is a bug in heddle",
                 made, ended, dropped, result.packets_in_flight);
  }
}

}  // namespace

RunResult run_fabric(const Topology& topology, const Workload& workload, const FabricSettings& settings) {
  return Run(topology, workload, settings).go();
}

}  // namespace heddle::lab
