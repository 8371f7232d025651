// How much memory a run takes, before it takes it. docs/lab.md gives the same sums in words.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "lab/fabric/builder.h"
#include "lab/fabric/fabric.h"
#include "lab/topology/routing.h"

namespace heddle::lab {

namespace {

// What a port of a switch holds beside its packets: queues and scheduler, ingress settings, counters, its two wires.
constexpr uint64_t kPortBytes = sizeof(dataplane::EgressScheduler) + sizeof(dataplane::IngressPort) +
                                sizeof(telemetry::PortCounters) + sizeof(LabSwitch::Port) + 2 * sizeof(Wire) + 512;

// What a static rate or congestion control adds to a queue pair.
uint64_t paced_bytes(const HostSettings& hosts) {
  constexpr uint64_t kPaced = sizeof(Rate) + 2 * sizeof(Time) + 2 * sizeof(uint64_t);
  if (hosts.dcqcn) return kPaced + sizeof(flowctl::ReactionPoint) + sizeof(flowctl::NotificationPoint);
  if (hosts.ccti) return kPaced + sizeof(flowctl::InjectionPoint);
  return hosts.static_rate_of_path || !hosts.static_rate.is_unlimited() || hosts.burst_bytes > hosts.mtu ? kPaced : 0;
}

uint64_t connections_of(const Workload& workload, Connections connections) {
  if (connections == Connections::kPerMessage) return size_of(workload).messages;
  std::unordered_set<uint64_t> pairs;
  for (const Message& message : workload.messages) {
    if (!message.is_barrier()) pairs.insert(uint64_t{message.src} << 32U | message.dst);
  }
  return pairs.size();
}

// The most packets that can stand in queues before the hosts that they go to, if everybody sends at once: who is sent
// to by n hosts that send to nobody else receives one packet in n meanwhile.
uint64_t packets_before_receivers(const Workload& workload, uint64_t mtu) {
  std::unordered_set<uint64_t> pairs;
  std::vector<uint32_t> receivers_of(workload.host_count);
  std::vector<uint64_t> packets_to(workload.host_count);
  std::vector<double> senders_to(workload.host_count);
  const auto each_pair = [&](const auto& visit) {
    pairs.clear();
    for (const Message& message : workload.messages) {
      if (message.is_barrier()) continue;
      if (pairs.insert(uint64_t{message.src} << 32U | message.dst).second) visit(message.src, message.dst);
    }
  };
  each_pair([&](HostId src, HostId) { ++receivers_of[src]; });
  each_pair([&](HostId src, HostId dst) { senders_to[dst] += 1.0 / receivers_of[src]; });
  for (const Message& message : workload.messages) {
    if (!message.is_barrier()) packets_to[message.dst] += (message.bytes + mtu - 1) / mtu;
  }
  double standing = 0;
  for (HostId host = 0; host < workload.host_count; ++host) {
    if (senders_to[host] > 1) standing += static_cast<double>(packets_to[host]) * (1 - 1 / senders_to[host]);
  }
  return static_cast<uint64_t>(standing);
}

// The most packets that can be under way: all that hosts have been allowed to send and nobody has received yet. With
// unlimited queues and no window those are the queues before the receivers, and what the fabric holds: a tenth of
// line-rate traffic is the most that open-loop permutations were seen to have in queues, so half of it is a safe bound.
uint64_t packets_under_way(const Topology& topology, const Workload& workload, const FabricSettings& settings) {
  const uint64_t mtu = settings.hosts.mtu;
  uint64_t all = 0;
  for (const Message& message : workload.messages) all += (message.bytes + mtu - 1) / mtu;
  uint64_t bound = std::max(all / 2, packets_before_receivers(workload, mtu));
  if (settings.hosts.window_bytes != 0) {
    const uint64_t per_queue = std::max<uint64_t>(1, settings.hosts.window_bytes / mtu);
    bound = std::min(
        bound, connections_of(workload, settings.hosts.connections) * settings.hosts.qps_per_connection * per_queue);
  }
  if (settings.switches.queue_limit != dataplane::EgressQueue::kUnlimited) {
    bound = std::min(bound, 2 * topology.links.size() * (settings.switches.queue_limit / mtu + 1));
  }
  return bound + 64 * topology.links.size();  // on the wires
}

}  // namespace

uint64_t estimate_memory(const Topology& topology, const Workload& workload, const FabricSettings& settings) {
  uint64_t ports = 0;
  for (NodeId node = topology.host_count; node < topology.nodes.size(); ++node) ports += topology.ports[node].size();
  uint64_t table_versions = 1;
  for (const LinkEvent& event : settings.events) {
    if (event.kind == LinkEvent::Kind::kDown || event.kind == LinkEvent::Kind::kUp) ++table_versions;
  }
  const uint64_t queue_pairs = connections_of(workload, settings.hosts.connections) * settings.hosts.qps_per_connection;
  return size_of(workload).memory_bytes + workload.messages.size() * (sizeof(MessageTimes) + 32) +
         table_versions * routes_bytes(topology) + ports * kPortBytes + topology.switch_count() * sizeof(LabSwitch) +
         topology.host_count * (sizeof(Host) + 2 * sizeof(Wire)) +
         queue_pairs * (sizeof(SendQueue) + sizeof(ReceiveQueue) + 160 + paced_bytes(settings.hosts)) +
         packets_under_way(topology, workload, settings) *
             PacketArena::packet_bytes(header_room_for(topology, settings));
}

}  // namespace heddle::lab
