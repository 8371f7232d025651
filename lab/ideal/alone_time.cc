#include "lab/ideal/alone_time.h"

#include <algorithm>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>

#include "lab/host/infiniband.h"

namespace heddle::lab {
namespace {

constexpr size_t kGrain = 1024;  // messages that a task takes at once

using Range = tbb::blocked_range<size_t>;

}  // namespace

AloneTimes::AloneTimes(const Topology& topology, const LinkStates& states, const HostSettings& hosts)
    : topology_(topology), states_(states), hosts_(hosts), paths_(topology, states) {}

uint64_t AloneTimes::packets(const Message& message) const {
  // One part of the message per queue pair, the first ones a byte longer where it does not divide.
  const uint64_t parts = std::min<uint64_t>(hosts_.qps_per_connection, message.bytes);
  const uint64_t shorter = message.bytes / parts;
  const uint64_t longer_parts = message.bytes % parts;
  const auto packets_of = [&](uint64_t bytes) { return (bytes + hosts_.mtu - 1) / hosts_.mtu; };
  return longer_parts * packets_of(shorter + 1) + (parts - longer_parts) * packets_of(shorter);
}

// Packets in a row of store-and-forward hops, each sending them in order: the last one is through after the longest way
// through the grid of (packet, hop) that never goes back. All but the last packet are full, so that the way goes along
// the full ones to some hop, waits for all of them at the slowest hop until there, and goes on with the last.
Duration AloneTimes::completion(const Message& message) const {
  const std::vector<LinkId> path = paths_.path(message.src, message.dst);
  if (path.empty()) return 0;
  // The parts of several queue pairs count as one row of full packets and a last one.
  const uint64_t full = std::min<uint64_t>(hosts_.mtu, message.bytes) + data_overhead(hosts_.link_layer);
  const uint64_t all = message.bytes + packets(message) * data_overhead(hosts_.link_layer);
  const uint64_t count = (all + full - 1) / full;
  const uint64_t last = all - (count - 1) * full;

  Duration after_last = 0;  // the longest way until now that has gone over to the last packet
  Duration along_full = 0;  // one full packet over all hops until now
  Duration slowest = 0;     // a full packet's time on the slowest hop until now
  Duration propagation = 0;
  NodeId node = message.src;
  for (const LinkId id : path) {
    const Link& link = topology_.links[id];
    const Rate rate = states_.rate(id, link.a == node);
    const auto overhead = static_cast<uint64_t>(link.overhead);
    const Duration last_time = rate.time_for(last + overhead);
    const Duration full_time = rate.time_for(full + overhead);
    slowest = std::max(slowest, full_time);
    along_full += full_time;
    const Duration waited = count == 1 ? 0 : along_full + (count - 2) * slowest;
    after_last = std::max(after_last, waited) + last_time;
    propagation += link.delay;
    node = topology_.other_end(id, node);
  }
  return after_last + propagation + paths_.one_way(message.dst, message.src, ack_frame(hosts_.link_layer));
}

std::vector<Duration> AloneTimes::of(const Workload& workload) const {
  std::vector<Duration> times(workload.messages.size());
  tbb::parallel_for(Range(0, times.size(), kGrain), [&](const Range& range) {
    for (size_t m = range.begin(); m != range.end(); ++m) {
      if (!workload.messages[m].is_barrier()) times[m] = completion(workload.messages[m]);
    }
  });
  return times;
}

uint64_t AloneTimes::expected_hops(const Workload& workload) const {
  return tbb::parallel_reduce(
      Range(0, workload.messages.size(), kGrain), uint64_t{0},
      [&](const Range& range, uint64_t sum) {
        for (size_t m = range.begin(); m != range.end(); ++m) {
          const Message& message = workload.messages[m];
          if (message.is_barrier()) continue;
          const uint64_t data = packets(message);
          sum += hops(message) * (data + (data + hosts_.ack_every - 1) / hosts_.ack_every);
        }
        return sum;
      },
      [](uint64_t a, uint64_t b) { return a + b; });
}

}  // namespace heddle::lab
