// Partitions of an InfiniBand subnet (IBTA 10.9): who may talk to whom. A host port belongs to partitions as a full or
// a limited member; limited members talk to full ones only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/engine/fabric_settings.h"
#include "lab/topology/topology.h"

namespace heddle::lab {

// The P_Key tables of all host ports: the partition in the low 15 bits, full membership in the highest.
class PartitionTables {
 public:
  // Hosts that no partition names are full members of the default one. Throws bad input for hosts that there are not.
  PartitionTables(const std::vector<Partition>& partitions, uint32_t hosts);

  // Ascending.
  const std::vector<uint16_t>& keys_of(HostId host) const { return keys_[host]; }
  // The key that a connection between the two uses: one that lets them talk, else the first of the sender.
  uint16_t key_between(HostId from, HostId to) const;

 private:
  std::vector<std::vector<uint16_t>> keys_;
};

}  // namespace heddle::lab
