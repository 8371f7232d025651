// Fabrics that were described for other simulators, so that their experiments can be repeated here.
//
// htsim     csg-htsim's and UEC htsim's fat-tree description (`.topo`): Nodes, Tiers, Podsize, then per tier
//           Downlink_speed_Gbps, Radix_Down, Radix_Up, Downlink_Latency_ns, Switch_Latency_ns, Oversubscribed, Bundle.
// hpcc      HPCC's: `nodes switches links`, the switches' ids, then `src dst rate delay error` per link, text after
//           the last link being commentary. Rates and delays as ns-3 writes them (`100Gbps`, `1000ns`, `0.001ms`; a
//           bare delay is in seconds); error is the probability that a frame is lost.
// conweave  the same format.
// simai     the same with the header `nodes gpus_per_server nvswitches switches links gpu_type`; NVSwitches come first
//           among the switches.
// ibnetdiscover  what ibnetdiscover (infiniband-diags) prints of a subnet and ibsim reads: a block per node, `Switch`
// or
//           `Ca` with its number of ports, its id and its description, then a line per port with the node and port at
//           the other end and the width and speed of the link (`4xHDR`). Every linked port of a channel adapter is a
//           host. Delays are not in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lab/topology/topology.h"

namespace heddle::lab {

enum class TopologyFormat : uint8_t { kHtsim, kHpcc, kConweave, kSimai, kIbnetdiscover };

// "htsim", "hpcc", "conweave", "simai" or "ibnetdiscover". Throws Error (bad input) for anything else.
TopologyFormat topology_format(std::string_view name);

struct ImportSettings {
  // Bytes a frame occupies on a link beyond its own; the files do not say. The ns-3 based simulators count none.
  int overhead = kEthernetOverhead;
  // Of ibnetdiscover files: the delay of all links, and the rate of those whose speed is not given.
  Duration delay = kMicrosecond;
  Rate rate = Rate::gbps(100);
};

// Reads a file and returns a validated topology of kind "file", with notes on what was left out. Hosts keep their
// order; switches of the ns-3 formats are called switch<id in the file>. Where the switches of a htsim file have a
// latency, each of their links takes half of it, so that every path is as long as it was there. Throws Error (bad
// input), with file and line where one is to blame.
Topology import_topology(const std::string& path, TopologyFormat format, const ImportSettings& settings = {});

// The same from text in memory; `file` is the name used in errors.
Topology parse_topology(std::string_view text, std::string_view file, TopologyFormat format,
                        const ImportSettings& settings = {});

// One per format family; they leave `kind` and validation to parse_topology.
Topology parse_htsim_topology(std::string_view text, std::string_view file, const ImportSettings& settings);
Topology parse_ns3_topology(std::string_view text, std::string_view file, bool simai_header,
                            const ImportSettings& settings);
Topology parse_ibnetdiscover_topology(std::string_view text, std::string_view file, const ImportSettings& settings);

}  // namespace heddle::lab
