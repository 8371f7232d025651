#include "lab/host/partitions.h"

#include <algorithm>

#include "net/error.h"
#include "net/infiniband.h"

namespace heddle::lab {

PartitionTables::PartitionTables(const std::vector<Partition>& partitions, uint32_t hosts) : keys_(hosts) {
  for (const Partition& partition : partitions) {
    const auto add = [&](const std::vector<HostId>& members, uint16_t membership) {
      for (const HostId host : members) {
        if (host >= hosts) {
          throw_bad_input("fabric.partitions: found host {} in {}; accepted: 0–{}", host, partition.name, hosts - 1);
        }
        keys_[host].push_back(static_cast<uint16_t>(partition.key | membership));
      }
    };
    add(partition.full, net::kFullMember);
    add(partition.limited, 0);
  }
  for (std::vector<uint16_t>& keys : keys_) {
    if (keys.empty()) keys.push_back(net::kDefaultPartition);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
}

uint16_t PartitionTables::key_between(HostId from, HostId to) const {
  for (const uint16_t ours : keys_[from]) {
    for (const uint16_t theirs : keys_[to]) {
      if (net::may_talk(ours, theirs)) return ours;
    }
  }
  return keys_[from].front();
}

}  // namespace heddle::lab
