// What a set of messages costs the links it shares, as if the fabric did nothing but carry them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lab/workload/workload.h"
#include "net/rate.h"

namespace heddle::lab {

// How long a packet is on its way at least, without its time on one link: by payload.
struct Way {
  Duration full = 0;    // with payload_per_packet bytes
  double per_byte = 0;  // picoseconds less for each byte less
};
// Propagation and the store-and-forward of one packet per link. What is left out is the time on the link against whose
// capacity a message is measured, as the message's own time there holds it: on the slower of the two hosts' links, on
// those out of the source's leaf or into the destination's, or the same of pods.
struct Ways {
  Way host;
  Way leaf;
  Way pod;
};

// What the lower bound needs to know of a fabric. Capacities are bits per second of links that are up; infinity or 0 =
// no limit. An empty leaf_of_host (pod_of_host) means that all hosts share one.
struct FabricCapacity {
  std::vector<Rate> host_rate;  // by host
  std::vector<uint32_t> leaf_of_host;
  std::vector<double> leaf_up_bps;    // by leaf: out of it, towards the spines
  std::vector<double> leaf_down_bps;  // into it
  std::vector<uint32_t> pod_of_host;
  std::vector<double> pod_up_bps;
  std::vector<double> pod_down_bps;

  // From a host to another through an empty fabric. Within a leaf or pod it may be shorter; 0 = the same.
  Ways across;
  Ways in_leaf;
  Ways in_pod;
  Duration ack_one_way = 0;    // the shortest for an ACK, on all links
  Duration trigger_delay = 0;  // cause and effect on different hosts

  uint32_t payload_per_packet = 4096;     // at least 1
  uint32_t parts_per_message = 1;         // queue pairs that share a message; at least 1
  uint32_t header_bytes_per_packet = 58;  // Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4
  int overhead = 24;                      // per packet on the link beside the frame: kEthernetOverhead
};

// Bytes that a message occupies on a link.
uint64_t wire_bytes(uint64_t bytes, const FabricCapacity& fabric);

// Links and bundles of links that messages share, numbered: hosts sending, hosts receiving, leaves up, leaves down,
// pods up, pods down. Times are picoseconds in doubles: exact to the picosecond up to 9,000 s. Keeps references.
class FabricLoad {
 public:
  // Throws `failed` if the capacities do not fit the workload's hosts: the caller's mistake.
  FabricLoad(const Workload& workload, const FabricCapacity& fabric);

  // How long a message takes alone until its last byte is received.
  double time_alone(const Message& m) const;

  struct Finish {
    double at = 0;
    uint32_t resource = std::numeric_limits<uint32_t>::max();  // the one that says so
    double soonest = 0;  // no sooner can all of it be carried and its shortest way be over
  };
  // When all of `set` can be received if released[m] is the earliest release of message m: per resource, messages one
  // after another in that order. Sorts `set` and removes duplicates; no barriers may be in it.
  Finish finish(std::vector<MessageId>& set, const std::vector<double>& released);

  // "host 3 receiving", "leaf 0 upwards", …
  std::string name(uint32_t resource) const;

 private:
  struct Use {
    double busy = 0;
    double shortest_way = 0;
    bool active = false;
  };

  void check() const;
  void add(double bps);
  const Ways& ways_of(const Message& m) const;
  double time_of(const Way& way, uint64_t payload) const {
    return static_cast<double>(way.full) - static_cast<double>(fabric_.payload_per_packet - payload) * way.per_byte;
  }
  uint64_t last_packet(uint64_t bytes) const { return (bytes - 1) % fabric_.payload_per_packet + 1; }
  uint64_t smallest_packet(const Message& m) const;
  double way_after_sending(const Message& m) const;
  double way_before_receiving(const Message& m) const;
  void use(uint32_t resource, const Message& m, double way, double released);
  static bool same(const std::vector<uint32_t>& group_of_host, const Message& m) {
    return group_of_host.empty() || group_of_host[m.src] == group_of_host[m.dst];
  }

  const Workload& workload_;
  const FabricCapacity& fabric_;
  uint32_t hosts_ = 0;
  uint32_t leaves_ = 0;
  uint32_t pods_ = 0;
  uint64_t smallest_packet_ = 0;     // of all messages
  std::vector<double> ps_per_byte_;  // by resource; 0 = no limit
  std::vector<Use> uses_;            // by resource, scratch of `finish`
  std::vector<uint32_t> active_;     // resources the set uses
};

}  // namespace heddle::lab
