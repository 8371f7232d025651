// A topology as `ibnetdiscover` prints a subnet: what ibsim simulates and OpenSM then routes. The reader is
// lab/topology/import.h's, with format ibnetdiscover.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/topology/topology.h"

namespace heddle::lab {

// The GUID of a node: that of the imported subnet, or one made from its NodeId (EUI-64 with the bit for local
// administration set, IBTA 4.1).
uint64_t node_guid(const Topology& topology, NodeId node);
// The number of a node's port in the subnet, from 1 (IBTA; 0 is a switch itself).
uint32_t port_number(const Topology& topology, NodeId node, PortIndex port);
// The identifiers that ibnetdiscover and ibsim give a node: "S-0248000000000010", "H-…".
std::string node_identifier(const Topology& topology, NodeId node);

// The subnet, without links that are down and hosts whose link is down. Rates that InfiniBand does not have are
// written as the nearest one that it has; a comment at the top counts them.
std::string write_ibnetdiscover(const Topology& topology, const std::vector<bool>& link_up);

// Data rate by width and speed as they are written: "4xHDR" is 200G. Rates are those after line coding: 8b/10b up to
// QDR, 64b/66b from FDR10 on (IBTA volume 2, 5 and 6). Nothing if it is none.
std::optional<Rate> infiniband_rate(std::string_view text);
// The nearest rate that InfiniBand has.
std::string infiniband_speed(Rate rate);

}  // namespace heddle::lab
