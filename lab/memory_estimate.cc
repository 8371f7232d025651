// How much memory a run takes, before it takes it. docs/lab.md gives the same sums in words.
#include <algorithm>
#include <unordered_set>

#include "lab/fabric.h"
#include "lab/fabric_builder.h"
#include "lab/routing.h"

namespace heddle::lab {

namespace {

// What a port of a switch holds beside its packets: queues and scheduler, ingress settings, counters, its two wires.
constexpr uint64_t kPortBytes = sizeof(dataplane::EgressScheduler) + sizeof(dataplane::IngressPort) +
                                sizeof(telemetry::PortCounters) + sizeof(LabSwitch::Port) + 2 * sizeof(Wire) + 512;

// What congestion control adds to a queue pair.
constexpr uint64_t kPacedBytes = sizeof(flowctl::ReactionPoint) + sizeof(Time) + sizeof(flowctl::NotificationPoint);

uint64_t connections_of(const Workload& workload, Connections connections) {
  if (connections == Connections::kPerMessage) return size_of(workload).messages;
  std::unordered_set<uint64_t> pairs;
  for (const Message& message : workload.messages) {
    if (!message.is_barrier()) pairs.insert(uint64_t{message.src} << 32U | message.dst);
  }
  return pairs.size();
}

// The most packets that can be under way: all that hosts have been allowed to send and nobody has received yet. With
// unlimited queues and no window that may be every packet of the messages of the busiest moment; a tenth of line-rate
// traffic standing in queues is the most that open-loop permutations were seen to hold, so half of it is a safe bound.
uint64_t packets_under_way(const Topology& topology, const Workload& workload, const FabricSettings& settings) {
  const uint64_t mtu = settings.hosts.mtu;
  uint64_t all = 0;
  for (const Message& message : workload.messages) all += (message.bytes + mtu - 1) / mtu;
  uint64_t bound = all / 2;
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
         queue_pairs * (sizeof(SendQueue) + sizeof(ReceiveQueue) + 160 + (settings.hosts.dcqcn ? kPacedBytes : 0)) +
         packets_under_way(topology, workload, settings) * PacketArena::kPacketBytes;
}

}  // namespace heddle::lab
