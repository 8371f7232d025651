#include "control/running_switch.h"

#include <algorithm>
#include <thread>

#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "control/kernel_losses.h"
#include "control/memory_budget.h"
#include "control/path_probes.h"
#include "dataplane/eal.h"
#include "net/error.h"

namespace heddle::control {

using dataplane::LinkSource;

namespace {

std::optional<LinkSource> link_source_of(LinkStateSource configured) {
  switch (configured) {
    case LinkStateSource::kEthdev:
      return LinkSource::kEthdev;
    case LinkStateSource::kNetlink:
      return LinkSource::kNetlink;
    case LinkStateSource::kAlwaysUp:
      return LinkSource::kAlwaysUp;
    case LinkStateSource::kAuto:
      break;
  }
  return std::nullopt;
}

// Workers take the last CPUs: the first is where the kernel and the control thread are busiest.
std::vector<unsigned> choose_cpus(const SwitchConfig& config) {
  if (!config.worker_cpus.empty()) return config.worker_cpus;
  const std::vector<unsigned> allowed = dataplane::allowed_cpus();
  std::vector<unsigned> cpus;
  for (unsigned i = 0; i < config.workers; ++i) cpus.push_back(allowed[allowed.size() - 1 - i % allowed.size()]);
  return cpus;
}

int run_worker(void* worker) {
  static_cast<dataplane::Worker*>(worker)->run();
  return 0;
}

}  // namespace

RunningSwitch::RunningSwitch(const SwitchConfig& config, Notice notice)
    : config_(config), notice_(std::move(notice)), cpus_(choose_cpus(config)) {
  const MemoryBudget plan = plan_memory(config_, guess_demand(config_));
  bool pci = false;
  for (const PortConfig& port : config_.ports) pci = pci || port.driver == "pci";
  dataplane::start_eal({.name = config_.name,
                        .hugepages = config_.memory == MemoryMode::kHugepages,
                        .memory_bytes = plan.total_bytes(),
                        .cpus = cpus_,
                        .pci = pci});
  open_ports();
  check_flow_control();
  make_pool();
  for (dataplane::EthdevPort& device : devices_) device.start(pool_);

  states_ = std::make_unique<dataplane::PortStates>(devices_.size());
  readers_memory_.resize(rte_rcu_qsbr_get_memsize(config_.workers) + RTE_CACHE_LINE_SIZE);
  void* at = readers_memory_.data();
  size_t room = readers_memory_.size();
  control_.readers =
      static_cast<rte_rcu_qsbr*>(std::align(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(config_.workers), at, room));
  rte_rcu_qsbr_init(control_.readers, config_.workers);
  routes_ = std::make_unique<RouteTable>(control_, config_.max_routes, states_->dead_port());
  install_routes();
  // Whatever can fail comes before the launch: what a constructor leaves by an exception, its destructor does not stop.
  make_workers();
  kernel_losses_ = std::make_unique<KernelLosses>(devices_);
  std::vector<LinkWatch::Watched> watched;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const dataplane::DeviceFacts& facts = devices_[i].facts();
    watched.push_back({static_cast<PortId>(i), facts.link_source, facts.netdev, &devices_[i]});
  }
  links_ = std::make_unique<LinkWatch>(std::move(watched), *states_, [this](PortId port, bool up) {
    notice_(fmt::format("port {}: link {}", config_.ports[port].name, up ? "up" : "down"));
  });
  start_probes();
  launch_workers();
}

RunningSwitch::~RunningSwitch() {
  stop(std::chrono::milliseconds(0));
  probes_.reset();
  links_.reset();
  workers_.clear();
  devices_.clear();
  routes_.reset();
}

void RunningSwitch::open_ports() {
  devices_.reserve(config_.ports.size());
  for (const PortConfig& port : config_.ports) {
    devices_.emplace_back(dataplane::DeviceSettings{.name = port.name,
                                                    .devargs = port.device,
                                                    .mtu = port.mtu,
                                                    .rx_ring = port.rx_ring,
                                                    .tx_ring = port.tx_ring,
                                                    .netdev = port.netdev,
                                                    .link_source = link_source_of(port.link_state)});
    for (const std::string& cannot : devices_.back().facts().cannot) {
      notice_(fmt::format("port {} ({}): {}", port.name, devices_.back().facts().driver, cannot));
    }
  }
}

void RunningSwitch::make_pool() {
  std::vector<PortDemand> demand;
  for (const dataplane::EthdevPort& device : devices_) {
    const dataplane::DeviceFacts& facts = device.facts();
    demand.push_back({.ring_packets = facts.ring_packets,
                      .resident_packets = facts.resident_packets,
                      .buffer_bytes = facts.buffer_bytes});
  }
  const MemoryBudget budget = plan_memory(config_, demand);
  pool_ = rte_pktmbuf_pool_create("packets", budget.packets, kMempoolCache, kPrivateBytes,
                                  static_cast<uint16_t>(budget.buffer_bytes), static_cast<int>(SOCKET_ID_ANY));
  if (pool_ == nullptr) {
    throw_failed("cannot make {} packet buffers of {} bytes ({} MiB): {}; lower buffer_packets or the ports' rings{}",
                 budget.packets, budget.buffer_bytes, budget.pool_bytes >> 20U, rte_strerror(rte_errno),
                 config_.memory == MemoryMode::kHugepages ? ", or reserve more hugepages" : "");
  }
}

void RunningSwitch::make_workers() {
  const unsigned n = config_.workers;
  make_mailboxes();
  clock_ = std::make_unique<dataplane::TscClock>();
  rings_.resize(static_cast<size_t>(n) * n);
  const auto ring = [&](unsigned from, unsigned to) -> std::unique_ptr<dataplane::HandoverRing>& {
    return rings_[static_cast<size_t>(from) * n + to];
  };
  for (unsigned from = 0; from < n; ++from) {
    for (unsigned to = 0; to < n; ++to) {
      if (from != to) ring(from, to) = std::make_unique<dataplane::HandoverRing>(handover_packets(config_));
    }
  }
  std::vector<unsigned> owner;
  for (const PortConfig& port : config_.ports) owner.push_back(port.worker);

  dataplane::PipelineSettings pipeline;
  pipeline.ports = port_settings();
  pipeline.hash = config_.hash;
  pipeline.ars = config_.ars;
  pipeline.flowlets_resident = true;
  pipeline.resequencer = config_.resequencer;
  pipeline.paths = RouteTable::kMaxPathCounters;
  pipeline.buffer = buffer_settings(config_, port_rates());
  if (n > 1 && config_.buffer.on) {
    for (unsigned w = 0; w < n; ++w) {
      ledgers_.push_back(std::make_unique<dataplane::BufferLedger>(config_.ports.size()));
      pipeline.ledgers.push_back(ledgers_.back().get());
    }
  }
  for (unsigned w = 0; w < n; ++w) {
    dataplane::Worker::Settings settings;
    settings.index = w;
    settings.sleep_when_idle = config_.idle == IdleMode::kSleep;
    settings.pool = pool_;
    if (!mailboxes_.empty()) {
      settings.probes = mailboxes_[w].get();
      settings.probing = {.address = config_.path_delay.address, .node_id = config_.path_delay.address.low_bits()};
    }
    std::vector<dataplane::HandoverRing*> outbound;
    for (unsigned other = 0; other < n; ++other) {
      outbound.push_back(ring(w, other).get());
      if (other != w) settings.inbox.push_back(ring(other, w).get());
    }
    pipeline.seed = mix64(config_.seed + w);
    pipeline.self = w;
    pipeline.mine.assign(owner.size(), false);
    for (size_t port = 0; port < owner.size(); ++port) {
      if (owner[port] != w) continue;
      pipeline.mine[port] = true;
      const dataplane::DeviceFacts& facts = devices_[port].facts();
      settings.owned.push_back({static_cast<PortId>(port), facts.id, facts.by_class});
    }
    handovers_.push_back(std::make_unique<dataplane::HandoverOut>(owner, outbound));
    workers_.push_back(
        std::make_unique<dataplane::Worker>(settings, pipeline, *states_, handovers_.back().get(), control_, *clock_));
  }
  routes_->set_path_reader([this](uint32_t counter) {
    telemetry::PathCounters sum;
    for (const auto& worker : workers_) {
      const telemetry::PathCounters& of = worker->pipeline().counters().paths[counter];
      sum.packets.add(of.packets.get());
      sum.bytes.add(of.bytes.get());
    }
    return sum;
  });
}

void RunningSwitch::launch_workers() {
  const std::vector<unsigned> lcores = dataplane::worker_lcores();
  for (size_t w = 0; w < workers_.size(); ++w) rte_eal_remote_launch(&run_worker, workers_[w].get(), lcores[w]);
  running_ = true;
}

std::vector<dataplane::PortSettings> RunningSwitch::port_settings() const {
  std::vector<dataplane::PortSettings> all;
  for (size_t i = 0; i < config_.ports.size(); ++i) {
    const PortConfig& port = config_.ports[i];
    dataplane::PortSettings settings;
    dataplane::IngressPort& ingress = settings.ingress;
    ingress.macs = port.macs;
    if (ingress.macs.empty()) ingress.macs.push_back(devices_[i].facts().mac);
    for (const VlanConfig& vlan : port.vlans) {
      ingress.vlans.set(vlan.id);
      for (const net::Mac& mac : vlan.macs) ingress.vlan_macs.push_back({vlan.id, mac});
    }
    ingress.any_mac = port.any_mac;
    ingress.addresses = port.addresses;
    ingress.untagged = port.untagged;
    ingress.trust = port.trust;
    ingress.default_class = port.default_class;
    ingress.class_of_dscp = config_.class_of_dscp;
    ingress.class_of_pcp = config_.class_of_pcp;
    settings.egress = egress_settings(i);
    settings.pfc = pfc_settings(i);
    settings.resequence = port.resequence;
    settings.max_frame = std::min(devices_[i].facts().max_frame, port.sent_frame_bytes());
    all.push_back(settings);
  }
  return all;
}

dataplane::EgressSettings RunningSwitch::egress_settings(size_t port) const {
  const PortConfig& config = config_.ports[port];
  dataplane::EgressSettings settings;
  settings.rate = config.rate.value_or(devices_[port].facts().rate);
  // A worker comes round to a port every few microseconds; asleep, every 50 and what the kernel's timer adds.
  settings.catch_up = config_.idle == IdleMode::kSleep ? 500 * kMicrosecond : 20 * kMicrosecond;
  uint64_t largest = 0;
  for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
    const QueueConfig& queue = config.queues[tc];
    settings.classes[tc] = {queue.strict, queue.weight, config_.queue_limit(config, tc), queue.ecn, queue.wred};
    largest = std::max(largest, settings.classes[tc].limit_bytes);
  }
  if (config_.buffer.on) largest = config_.buffer.bytes;  // any queue may hold nearly all of it
  constexpr uint64_t kSmallestFrame = 60;
  settings.limit_packets = static_cast<uint32_t>(
      std::clamp<uint64_t>(largest / kSmallestFrame, kBurst, std::max(config_.buffer_packets, kBurst)));
  return settings;
}

lb::NextHop RunningSwitch::next_hop(const NextHopConfig& member) const {
  const PortConfig& port = config_.ports[member.port];
  lb::NextHop hop;
  hop.port = member.port;
  hop.weight = member.weight;
  hop.alternate = member.alternate;
  hop.rewrite.destination = member.mac;
  hop.rewrite.vlan_id = member.vlan;
  hop.rewrite.source = port.macs.empty() ? devices_[member.port].facts().mac : port.macs.front();
  for (const VlanConfig& vlan : port.vlans) {
    if (vlan.id == member.vlan && !vlan.macs.empty()) hop.rewrite.source = vlan.macs.front();
  }
  return hop;
}

void RunningSwitch::install_routes() {
  RouteTable::Batch batch;
  for (const GroupConfig& group : config_.groups) {
    Group made;
    made.name = group.name;
    made.in_place = group.in_place;
    made.members.scheduler = group.scheduler;
    if (!group.overrides.empty()) {
      made.members.overrides = std::make_shared<const lb::SchedulerOverrides>(group.overrides);
    }
    for (const NextHopConfig& member : group.members) made.members.members.push_back(next_hop(member));
    batch.set_group(std::move(made));
  }
  for (const RouteConfig& route : config_.routes) batch.set_route(route.prefix, config_.groups[route.group].name);
  routes_->apply(batch);
}

void RunningSwitch::tick() {
  kernel_losses_->sample(devices_);
  notice_storms();
}

void RunningSwitch::stop(std::chrono::milliseconds patience) {
  if (!running_) return;
  if (probes_ != nullptr) probes_->stop();
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + patience;
  control_.state.store(dataplane::RunState::kDraining);
  const auto drained = [this] {
    return std::all_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->is_drained(); });
  };
  // Two looks in a row: a packet may be between one worker's ring and another's queue during the first.
  for (int quiet = 0; quiet < 2 && Clock::now() < deadline;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    quiet = drained() ? quiet + 1 : 0;
  }
  control_.state.store(dataplane::RunState::kStopped);
  rte_eal_mp_wait_lcore();
  running_ = false;
  kernel_losses_->sample(devices_);
}

std::vector<PortStatus> RunningSwitch::port_status() const {
  std::vector<PortStatus> all;
  const auto settings = port_settings();
  for (size_t i = 0; i < config_.ports.size(); ++i) {
    PortStatus status;
    status.name = config_.ports[i].name;
    status.device = config_.ports[i].device;
    status.driver = devices_[i].facts().driver;
    status.macs = settings[i].ingress.macs;
    for (const auto& of : settings[i].ingress.vlan_macs) status.macs.push_back(of.mac);
    status.any_mac = config_.ports[i].any_mac;
    status.rate = settings[i].egress.rate;
    status.up = states_->is_up(static_cast<PortId>(i));
    status.worker = config_.ports[i].worker;
    status.max_frame = settings[i].max_frame;
    for (const auto& worker : workers_) status.counters += worker->pipeline().counters().ports[i];
    add_device_losses(i, status.counters);
    all.push_back(std::move(status));
  }
  return all;
}

void RunningSwitch::add_device_losses(size_t port, telemetry::PortCounters& counters) const {
  const auto device = devices_[port].device_counters();
  counters.drop(DropReason::kRxMissed).add(device.rx_missed);
  counters.drop(DropReason::kRxError).add(device.rx_errors);
  counters.drop(DropReason::kRxNoBuffer).add(device.rx_no_buffer);
  counters.drop(DropReason::kKernelRing).add(kernel_losses_->lost(port));
}

std::vector<QueueStatus> RunningSwitch::queue_status() const {
  std::vector<QueueStatus> all;
  for (size_t i = 0; i < config_.ports.size(); ++i) {
    const dataplane::Worker& worker = *workers_[config_.ports[i].worker];
    const telemetry::FlowControlCounters counters = flow_counters(i);
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      const dataplane::QueueView& view = worker.queue(static_cast<PortId>(i), tc);
      const QueueConfig& queue = config_.ports[i].queues[tc];
      all.push_back({config_.ports[i].name, tc, queue.strict, queue.weight, config_.queue_limit(config_.ports[i], tc),
                     view.packets.get(), view.bytes.get(), view.peak_bytes.get(), view.recent_peak.get(), queue.ecn,
                     counters.ecn_eligible[tc].get(), counters.ecn_marked[tc].get()});
    }
  }
  return all;
}

FlowletStatus RunningSwitch::flowlet_status() const {
  FlowletStatus sum;
  for (const auto& worker : workers_) {
    const lb::FlowletCounters& of = worker->pipeline().flowlets();
    sum.flowlets += of.flowlets.get();
    sum.reroutes += of.reroutes.get();
    sum.collisions += of.collisions.get();
  }
  return sum;
}

ResequencerStatus RunningSwitch::resequencer_status() const {
  ResequencerStatus sum;
  for (const auto& worker : workers_) {
    if (worker->pipeline().resequencer() != nullptr) sum += worker->pipeline().resequencer()->counters();
  }
  return sum;
}

std::vector<WorkerStatus> RunningSwitch::worker_status() const {
  std::vector<WorkerStatus> all;
  for (size_t w = 0; w < workers_.size(); ++w) {
    all.push_back({cpus_[w], workers_[w]->busy_ticks(), workers_[w]->idle_ticks()});
  }
  return all;
}

uint64_t RunningSwitch::received() const {
  uint64_t sum = 0;
  for (const auto& worker : workers_) {
    for (const telemetry::PortCounters& port : worker->pipeline().counters().ports) sum += port.rx_packets.get();
  }
  return sum;
}

}  // namespace heddle::control
