// Stage 1: what kind of packet is this, and where do its headers lie?
#pragma once

#include <cstdint>

#include "net/drop_reason.h"
#include "net/packet.h"

namespace heddle::dataplane {

// Reads the headers of a frame of which `data_len` bytes are at hand and `pkt_len` bytes exist, and fills the parse
// fields of `meta` (l3, l3_offset, l4_offset, kind, protocol, vlan_tci). Every read lies inside `data_len`.
// A VLAN tag the kernel has stripped comes in as `stripped_tci` (af_packet), else 0.
//
// Returns kNone, or why the packet cannot be routed. A broken transport header is no such reason: a router forwards by
// IP, so the packet is kept as plain IP and hashed without its ports.
DropReason parse(const uint8_t* frame, uint32_t data_len, uint32_t pkt_len, uint16_t stripped_tci, PacketMeta& meta);

}  // namespace heddle::dataplane
