#include "lab/ideal/fabric_load.h"

#include <algorithm>
#include <cmath>

#include "net/error.h"

namespace heddle::lab {

uint64_t wire_bytes(uint64_t bytes, const FabricCapacity& fabric) {
  const uint64_t packets = (bytes + fabric.payload_per_packet - 1) / fabric.payload_per_packet;
  return bytes + packets * static_cast<uint64_t>(int64_t{fabric.header_bytes_per_packet} + fabric.overhead);
}

FabricLoad::FabricLoad(const Workload& workload, const FabricCapacity& fabric)
    : workload_(workload),
      fabric_(fabric),
      hosts_(workload.host_count),
      leaves_(static_cast<uint32_t>(fabric.leaf_up_bps.size())),
      pods_(static_cast<uint32_t>(fabric.pod_up_bps.size())) {
  check();
  for (int direction = 0; direction < 2; ++direction) {
    for (const Rate rate : fabric.host_rate) add(static_cast<double>(rate.bits_per_second()));
  }
  for (const auto* up_or_down :
       {&fabric.leaf_up_bps, &fabric.leaf_down_bps, &fabric.pod_up_bps, &fabric.pod_down_bps}) {
    for (const double bps : *up_or_down) add(bps);
  }
  uses_.resize(ps_per_byte_.size());
  smallest_packet_ = fabric.payload_per_packet;
  for (const Message& m : workload.messages) {
    if (!m.is_barrier()) smallest_packet_ = std::min(smallest_packet_, smallest_packet(m));
  }
}

const Ways& FabricLoad::ways_of(const Message& m) const {
  if (!fabric_.leaf_of_host.empty() && same(fabric_.leaf_of_host, m) && fabric_.in_leaf.host.full != 0) {
    return fabric_.in_leaf;
  }
  if (!fabric_.pod_of_host.empty() && same(fabric_.pod_of_host, m) && fabric_.in_pod.host.full != 0) {
    return fabric_.in_pod;
  }
  return fabric_.across;
}

// A message is cut into parts as even as can be (MessageBoard), and each part into full packets and a last one.
uint64_t FabricLoad::smallest_packet(const Message& m) const {
  const uint64_t parts = std::min<uint64_t>(fabric_.parts_per_message, m.bytes);
  const uint64_t shorter = last_packet(m.bytes / parts);
  return m.bytes % parts == 0 ? shorter : std::min(shorter, last_packet(m.bytes / parts + 1));
}

// What leaves the source last is the last packet of some part.
double FabricLoad::way_after_sending(const Message& m) const { return time_of(ways_of(m).host, smallest_packet(m)); }

// What reaches the destination's link first is a full packet, or the last one of a part whose full packets, which go
// before it, have taken their time on the source's link.
double FabricLoad::way_before_receiving(const Message& m) const {
  const Way& way = ways_of(m).host;
  const double full_time = static_cast<double>(wire_bytes(fabric_.payload_per_packet, fabric_)) * ps_per_byte_[m.src];
  const auto first_of = [&](uint64_t bytes) {
    const uint64_t full_packets = (bytes - 1) / fabric_.payload_per_packet;
    const double last = static_cast<double>(full_packets) * full_time + time_of(way, last_packet(bytes));
    return full_packets == 0 ? last : std::min(last, static_cast<double>(way.full));
  };
  const uint64_t parts = std::min<uint64_t>(fabric_.parts_per_message, m.bytes);
  const double shorter = first_of(m.bytes / parts);
  return m.bytes % parts == 0 ? shorter : std::min(shorter, first_of(m.bytes / parts + 1));
}

double FabricLoad::time_alone(const Message& m) const {
  const auto bytes = static_cast<double>(wire_bytes(m.bytes, fabric_));
  return std::max(bytes * ps_per_byte_[m.src] + way_after_sending(m),
                  bytes * ps_per_byte_[hosts_ + m.dst] + way_before_receiving(m));
}

FabricLoad::Finish FabricLoad::finish(std::vector<MessageId>& set, const std::vector<double>& released) {
  std::sort(set.begin(), set.end(),
            [&](MessageId a, MessageId b) { return released[a] != released[b] ? released[a] < released[b] : a < b; });
  set.erase(std::unique(set.begin(), set.end()), set.end());
  active_.clear();
  for (const MessageId id : set) {
    const Message& m = workload_.messages[id];
    use(m.src, m, way_after_sending(m), released[id]);
    use(hosts_ + m.dst, m, way_before_receiving(m), released[id]);
    // The first packet before a leaf (pod) and the last one behind it may be two messages': any is counted as smallest.
    const uint32_t first_leaf = 2 * hosts_;
    if (leaves_ != 0 && !same(fabric_.leaf_of_host, m)) {
      const double way = time_of(ways_of(m).leaf, smallest_packet_);
      use(first_leaf + fabric_.leaf_of_host[m.src], m, way, released[id]);
      use(first_leaf + leaves_ + fabric_.leaf_of_host[m.dst], m, way, released[id]);
    }
    const uint32_t first_pod = first_leaf + 2 * leaves_;
    if (pods_ != 0 && !same(fabric_.pod_of_host, m)) {
      const double way = time_of(ways_of(m).pod, smallest_packet_);
      use(first_pod + fabric_.pod_of_host[m.src], m, way, released[id]);
      use(first_pod + pods_ + fabric_.pod_of_host[m.dst], m, way, released[id]);
    }
  }
  Finish latest;
  double busy = 0;
  double shortest_way = std::numeric_limits<double>::max();
  for (const uint32_t resource : active_) {
    Use& used = uses_[resource];
    used.active = false;
    const double at = used.busy + used.shortest_way;
    if (at > latest.at) latest = {at, resource};
    busy = std::max(busy, used.busy);
    shortest_way = std::min(shortest_way, used.shortest_way);
  }
  if (!active_.empty()) latest.soonest = busy + shortest_way;
  return latest;
}

void FabricLoad::use(uint32_t resource, const Message& m, double way, double released) {
  Use& used = uses_[resource];
  if (!used.active) {
    used = {0, way, true};
    active_.push_back(resource);
  }
  const double time = static_cast<double>(wire_bytes(m.bytes, fabric_)) * ps_per_byte_[resource];
  used.busy = std::max(used.busy, released) + time;
  used.shortest_way = std::min(used.shortest_way, way);
}

std::string FabricLoad::name(uint32_t resource) const {
  const struct {
    const char* what;
    uint32_t count;
    const char* direction;
  } kinds[] = {{"host", hosts_, "sending"},    {"host", hosts_, "receiving"}, {"leaf", leaves_, "upwards"},
               {"leaf", leaves_, "downwards"}, {"pod", pods_, "upwards"},     {"pod", pods_, "downwards"}};
  for (const auto& kind : kinds) {
    if (resource < kind.count) return fmt::format("{} {} {}", kind.what, resource, kind.direction);
    resource -= kind.count;
  }
  return "nothing";
}

void FabricLoad::add(double bps) {
  constexpr double kPicosecondBitsPerByte = 8e12;
  ps_per_byte_.push_back(bps > 0 && std::isfinite(bps) ? kPicosecondBitsPerByte / bps : 0);
}

void FabricLoad::check() const {
  if (fabric_.host_rate.size() != hosts_ || fabric_.payload_per_packet == 0 || fabric_.parts_per_message == 0) {
    throw_failed("lower bound: {} host rates for {} hosts, {} bytes a packet, {} parts a message",
                 fabric_.host_rate.size(), hosts_, fabric_.payload_per_packet, fabric_.parts_per_message);
  }
  const auto check_groups = [&](const char* what, const std::vector<uint32_t>& group_of_host,
                                const std::vector<double>& up, const std::vector<double>& down) {
    const bool hosts_fit = group_of_host.size() == hosts_ || (group_of_host.empty() && up.empty());
    const bool groups_fit = up.empty() || std::all_of(group_of_host.begin(), group_of_host.end(),
                                                      [&](uint32_t group) { return group < up.size(); });
    if (!hosts_fit || !groups_fit || up.size() != down.size()) {
      throw_failed("lower bound: the {} do not fit {} hosts", what, hosts_);
    }
  };
  check_groups("leaves", fabric_.leaf_of_host, fabric_.leaf_up_bps, fabric_.leaf_down_bps);
  check_groups("pods", fabric_.pod_of_host, fabric_.pod_up_bps, fabric_.pod_down_bps);
}

}  // namespace heddle::lab
