// Path probes on the wire: UDP packets that carry in-band network telemetry (INT-MD of the P4.org INT specification
// v2.1, 2020-11-11). Every switch on the way pushes what it knows about the packet's stay; the far switch turns the
// packet round, and its sender reads the stack.
//
//   Ethernet | IP | UDP to kIntPort | shim | INT-MD header | stack, newest hop first | ProbeBody | padding
//
// A probe is made with room for all the hops it may meet (spec 5.8: Remaining Hop Count), so its length never changes:
// what a hop pushes is taken from the padding. Over IPv4 there is no UDP checksum (RFC 768); over IPv6 there must be
// one (RFC 8200 8.1: INT over UDP is none of the tunnels that RFC 6935 lets go without), which whoever changes the
// packet keeps right (RFC 1624). Everything here checks lengths before it reads or writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "net/headers.h"
#include "net/ip_address.h"
#include "net/rate.h"
#include "net/time.h"

namespace heddle::telemetry {

using Be64 = net::BigEndian<uint64_t>;

// The specification leaves the UDP port to the operator ("INT_TBD").
inline constexpr uint16_t kIntPort = 32'766;

// INT over UDP, spec 5.7.2. With our own UDP port, NPT is 1: a UDP payload follows the stack.
struct IntShim {
  uint8_t type_npt;  // type 4 (1 = INT-MD), next protocol type 2, reserved 2
  uint8_t length;    // of INT-MD header and stack, in 4-byte words
  net::Be16 original_port;
};
static_assert(sizeof(IntShim) == 4 && offsetof(IntShim, length) == 1);

// Spec 5.8.
struct IntMdHeader {
  uint8_t version_flags;  // version 4 (2), D: a copy that the sink discards, E: more hops than room, M: over the MTU
  uint8_t reserved;
  uint8_t hop_words;       // reserved 3, Hop ML 5: words that every hop pushes
  uint8_t remaining_hops;  // that may still push
  net::Be16 instructions;
  net::Be16 domain;  // whose DS instructions these are
  net::Be16 ds_instructions;
  net::Be16 ds_flags;
};
static_assert(sizeof(IntMdHeader) == 12 && offsetof(IntMdHeader, instructions) == 4 &&
              offsetof(IntMdHeader, ds_instructions) == 8);

inline constexpr uint8_t kShimIntMdUdp = 0x14;  // type 1, NPT 1
inline constexpr uint8_t kIntVersion2 = 0x20;
inline constexpr uint8_t kIntDiscard = 0x08;
inline constexpr uint8_t kIntHopsExceeded = 0x04;

// Bits 0–5: node id, level 1 interfaces, hop latency, queue occupancy, ingress and egress timestamp.
inline constexpr uint16_t kIntInstructions = 0xfc00;
inline constexpr uint16_t kIntDomain = 0x6864;             // ours: "hd"
inline constexpr uint16_t kDsEgressRate = 0x8000;          // bit 0 of our domain: the egress link's rate
inline constexpr uint32_t kIntUnavailable = ~uint32_t{0};  // spec 5.8: the reserved value of a field without one

// What one hop pushes: the fields of kIntInstructions in the order of their bits, then those of our domain.
struct IntHop {
  net::Be32 node_id;
  net::Be16 ingress_port;
  net::Be16 egress_port;
  net::Be32 latency_ns;   // from arrival to the start on the egress wire
  uint8_t queue_id;       // the traffic class
  net::Be24 queue_bytes;  // left behind in that queue
  Be64 ingress_ns;        // by this switch's clock
  Be64 egress_ns;
  net::Be32 egress_mbps;  // domain-specific: kIntUnavailable if it has no rate
};
static_assert(sizeof(IntHop) == 36 && offsetof(IntHop, latency_ns) == 8 && offsetof(IntHop, queue_bytes) == 13 &&
              offsetof(IntHop, ingress_ns) == 16 && offsetof(IntHop, egress_mbps) == 32);
inline constexpr uint8_t kIntHopWords = sizeof(IntHop) / 4;
// The shim's length has 8 bits.
inline constexpr unsigned kMaxIntHops = (255 - sizeof(IntMdHeader) / 4) / kIntHopWords;

// The UDP payload behind the stack: the sender's own notes, which come back to it.
enum class ProbeKind : uint8_t { kForward = 1, kReturned = 2 };
struct ProbeBody {
  ProbeKind kind;
  uint8_t member;      // of the group
  net::Be16 target;    // which group, as the sender counts them
  net::Be32 sequence;  // of this member
  Be64 at_ns;  // there: when it was sent, by the sender's clock; back: when it came to the far switch, by its own
};
static_assert(sizeof(ProbeBody) == 16 && offsetof(ProbeBody, sequence) == 4 && offsetof(ProbeBody, at_ns) == 8);

// From the UDP header to the stack.
inline constexpr uint32_t kProbeUdpHeaders = sizeof(net::UdpHeader) + sizeof(IntShim) + sizeof(IntMdHeader);
// Bytes of a probe's frame, without FCS, that has room for `hops`.
constexpr uint32_t probe_frame_bytes(unsigned hops, net::IpFamily family = net::IpFamily::kIpv4) {
  const auto bytes = sizeof(net::EthernetHeader) + net::layout_of(family).header_bytes + kProbeUdpHeaders +
                     hops * sizeof(IntHop) + sizeof(ProbeBody);
  return static_cast<uint32_t>(bytes);
}

struct ProbeFields {
  net::IpAddress source;
  net::IpAddress destination;  // of the same family
  uint16_t source_port = 0;    // what later switches tell paths by
  uint8_t dscp = 0;
  unsigned hops = 1;  // 1–kMaxIntHops
  uint16_t target = 0;
  uint8_t member = 0;
  uint32_t sequence = 0;
  Time sent = 0;
};

// Writes the whole frame but for its MAC addresses; false if it does not fit into `frame`, or makes no sense.
bool write_probe(std::span<uint8_t> frame, const ProbeFields& fields);

// Where the parts of a probe lie; offsets from the frame's start.
struct ProbeView {
  net::IpFamily family = net::IpFamily::kIpv4;
  uint32_t ip = 0;
  uint32_t udp = 0;
  uint32_t stack = 0;
  unsigned hops = 0;  // on the stack
  uint32_t body = 0;
  uint32_t end = 0;  // of the UDP packet
};

// Finds a probe of ours in a frame whose IP header lies at `ip_offset` and says its family; nothing if it is none, or
// not whole. All of `frame` can be read.
std::optional<ProbeView> find_probe(std::span<const uint8_t> frame, uint32_t ip_offset, uint32_t udp_offset);

// Whether the UDP checksum is right; over IPv4, there need be none. For whom the probe is addressed to: a router
// between does not ask.
bool is_intact(std::span<const uint8_t> frame, const ProbeView& probe);

// What a switch knows when the packet leaves.
struct HopRecord {
  uint32_t node_id = 0;
  uint16_t ingress_port = 0;
  uint16_t egress_port = 0;
  uint8_t queue_id = 0;
  uint64_t queue_bytes = 0;
  Time arrival = 0;
  Time departure = 0;
  Rate rate;  // of the egress link
};

// Pushes `hop`, or sets E where there is no room (spec 5.8). The probe was found in this frame.
void push_hop(std::span<uint8_t> frame, const ProbeView& probe, const HopRecord& hop);

// Turns the probe, which arrived at `arrival`, round: back to where it came from, in another class, and no hop pushes
// any more.
void turn_round(std::span<uint8_t> frame, const ProbeView& probe, uint8_t dscp, Time arrival);

inline const ProbeBody& body_of(std::span<const uint8_t> frame, const ProbeView& probe) {
  return *net::header_at<ProbeBody>(frame.data(), probe.body);
}

// What a probe says of its way, its sender's own egress queue included.
struct PathReading {
  Duration delay = 0;   // sum of all hops' latencies, each by its own switch's clock
  Duration beyond = 0;  // the same without the first hop
  Time sent = 0;        // by the sender's clock, as its own hop says
  // From there to the far switch, by the clocks of the two ends. What lies between switches is in it, and the
  // difference of the clocks: only how it differs between paths to the same far switch means anything. Wraps.
  Duration transit = 0;
  Rate bottleneck;  // the lowest of the egress links; unlimited if none has a rate
  unsigned hops = 0;
  bool complete = true;  // no hop lacked room
};
PathReading read_path(std::span<const uint8_t> frame, const ProbeView& probe);

// Who is given the probes that are addressed to a switch.
class ProbeReceiver {
 public:
  virtual ~ProbeReceiver() = default;
  // A probe of the switch's own that has come back.
  virtual void receive_probe(std::span<const uint8_t> frame, const ProbeView& probe, Time now) = 0;
};

}  // namespace heddle::telemetry
