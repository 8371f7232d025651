// A packet on its way through heddle: DPDK's mbuf, and one cache line of typed metadata behind it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rte_mbuf.h>

#include "net/headers.h"
#include "net/time.h"

namespace heddle {

// Headers (and in a real switch the payload) lie in the mbuf's data; `data_len` bounds every read, `pkt_len` is the
// frame's length without FCS. In the lab the payload exists only as that length.
using Packet = rte_mbuf;

using PortId = uint16_t;  // index of a port within its switch or host
inline constexpr PortId kNoPort = 0xffff;

inline constexpr unsigned kTrafficClasses = 8;
inline constexpr unsigned kBurst = 32;  // packets handled together

// The Ethernet header that a next hop is sent to with.
struct EthernetRewrite {
  net::Mac destination{};
  net::Mac source{};
  uint16_t vlan_id = 0;  // 0 = untagged
  uint16_t reserved = 0;
};
static_assert(sizeof(EthernetRewrite) == 16);

enum class L3 : uint8_t { kNone, kIpv4, kIpv6 };

// Which hash profile a packet falls under (the order matters: lb::FlowHasher indexes by it).
enum class PacketKind : uint8_t {
  kIp,      // addresses and protocol only: fragments, unknown or unreadable transports
  kTcpUdp,  // ports are readable
  kRoce,    // UDP 4791 with a BTH
};

// What the headers of a packet say: filled by the parse and classify stages (16 bytes, so that one store can do it).
struct alignas(16) HeaderFacts {
  uint16_t l3_offset = 0;  // of the IP header
  uint16_t l4_offset = 0;  // of the transport header; 0 if not readable
  uint16_t vlan_tci = 0;   // of the outer tag as it arrived; 0 = untagged
  L3 l3 = L3::kNone;
  PacketKind kind = PacketKind::kIp;
  uint8_t protocol = 0;       // IPv4 protocol or last IPv6 next header
  uint8_t traffic_class = 0;  // 0–7; 15 = VL15, as it leaves
  PortId in_port = kNoPort;
  PortId out_port = kNoPort;  // set by path selection
  uint8_t arrival_lane = 0;   // InfiniBand: the virtual lane it came by, whose buffer holds it until it leaves
  bool is_charged = false;    // of a packet that is held for its order: another lcore has let it into the buffer

  friend bool operator==(const HeaderFacts&, const HeaderFacts&) = default;
};
static_assert(sizeof(HeaderFacts) == 16);

struct alignas(64) PacketMeta : HeaderFacts {
  Time arrival = 0;        // when the last bit arrived, or when the burst was polled
  uint32_t flow_hash = 0;  // of the fields that lb::HashSettings names
  uint32_t route = 0;      // set by the route stage
  uint64_t owner = 0;      // free for whoever made the packet: the lab's hosts, a generator
};
static_assert(sizeof(PacketMeta) == 64);

// Private area that every pool of packets must reserve between the mbuf and its data.
inline constexpr uint16_t kPrivateBytes = sizeof(PacketMeta);

inline PacketMeta& meta_of(Packet* packet) { return *reinterpret_cast<PacketMeta*>(packet + 1); }
inline const PacketMeta& meta_of(const Packet* packet) { return *reinterpret_cast<const PacketMeta*>(packet + 1); }

inline uint8_t* frame_of(Packet* packet) { return rte_pktmbuf_mtod(packet, uint8_t*); }
inline const uint8_t* frame_of(const Packet* packet) { return rte_pktmbuf_mtod(packet, const uint8_t*); }

// Who takes packets back that are not sent on: a mempool, or the lab with its books.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  virtual void take(Packet** packets, unsigned count) = 0;
};

// Where packets come from that a switch makes itself: its pause frames.
class PacketSource {
 public:
  virtual ~PacketSource() = default;
  // An empty packet with room for a small frame, or null if there is none now.
  virtual Packet* make() = 0;
};

}  // namespace heddle
