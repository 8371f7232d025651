// Flows as AI clusters have them: sequential addresses and queue pairs, few ports, little entropy.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "net/packet.h"
#include "tests/support/frames.h"

namespace heddle::support {

// One packet of a flow as the path selection sees it: a frame and what parse found in it.
struct Flow {
  Bytes frame;
  PacketMeta meta;
};

// The UDP source port that Linux gives a queue pair without a flow label (include/rdma/ib_verbs.h,
// rdma_calc_flow_label and rdma_flow_label_to_udp_sport): the product of both QP numbers, folded to 20 bits, then
// to 14.
constexpr uint16_t linux_source_port(uint32_t local_qp, uint32_t remote_qp) {
  uint64_t label = uint64_t{local_qp} * remote_qp;
  label ^= label >> 20U;
  label ^= label >> 40U;
  label &= 0xfffffU;
  return static_cast<uint16_t>(0xc000U | ((label & 0x3fffU) ^ (label >> 14U)));
}

inline Flow flow4(PacketKind kind, const Ipv4& ip, const Bytes& transport) {
  Flow flow{ethernet({}, ipv4(ip, transport)), {}};
  flow.meta.l3 = L3::kIpv4;
  flow.meta.l3_offset = 14;
  flow.meta.l4_offset = kind == PacketKind::kIp ? 0 : 34;
  flow.meta.kind = kind;
  flow.meta.protocol = ip.protocol;
  return flow;
}

inline Flow flow6(PacketKind kind, const Ipv6& ip, const Bytes& transport) {
  Flow flow{ethernet({.type = net::kTypeIpv6}, ipv6(ip, transport)), {}};
  flow.meta.l3 = L3::kIpv6;
  flow.meta.l3_offset = 14;
  flow.meta.l4_offset = kind == PacketKind::kIp ? 0 : 54;
  flow.meta.kind = kind;
  flow.meta.protocol = ip.next_header;
  return flow;
}

struct RoceTuple {
  uint16_t source_host;
  uint16_t destination_host;
  uint16_t source_port;
  uint32_t dest_qp;
};

inline Flow roce_flow(L3 l3, const RoceTuple& tuple) {
  const Bytes transport = udp({.source_port = tuple.source_port}, roce({.dest_qp = tuple.dest_qp}, {}));
  if (l3 == L3::kIpv4) {
    return flow4(
        PacketKind::kRoce,
        {.source = ip4(10, 1, 0, 1) + tuple.source_host, .destination = ip4(10, 2, 0, 1) + tuple.destination_host},
        transport);
  }
  return flow6(PacketKind::kRoce,
               {.source = ip6(1, static_cast<uint16_t>(1 + tuple.source_host)),
                .destination = ip6(2, static_cast<uint16_t>(1 + tuple.destination_host))},
               transport);
}

// A named set of distinct flows.
struct FlowSet {
  std::string_view description;
  std::vector<Flow> flows;
};

// `count` flows of each kind of traffic that a hash meets in a cluster. A power of two ≤ 16,384 is a good count.
std::vector<FlowSet> realistic_flow_sets(unsigned count);

// ---------------------------------------------------------------------------------------------------------------------

inline std::vector<FlowSet> realistic_flow_sets(unsigned count) {
  std::vector<FlowSet> sets;
  const auto add = [&](std::string_view description, auto make) {
    FlowSet set{description, {}};
    for (unsigned i = 0; i < count; ++i) set.flows.push_back(make(i));
    sets.push_back(std::move(set));
  };
  constexpr uint32_t kFirstQp = 0x11;  // the first one rdma_rxe hands out; mlx5 starts elsewhere and counts up as well
  for (const L3 l3 : {L3::kIpv4, L3::kIpv6}) {
    const bool v4 = l3 == L3::kIpv4;
    add(v4 ? "RoCE, 128 hosts in a ring, Linux source ports"
           : "RoCE over IPv6, 128 hosts in a ring, Linux source ports",
        [=](unsigned i) {
          const auto host = static_cast<uint16_t>(i % 128);
          const uint32_t qp = kFirstQp + i / 128;
          return roce_flow(l3, {host, static_cast<uint16_t>((host + 1) % 128), linux_source_port(qp, qp), qp});
        });
    add(v4 ? "RoCE, two hosts, sequential QPs, Linux source ports" : "RoCE over IPv6, two hosts, sequential QPs",
        [=](unsigned i) {
          const uint32_t qp = kFirstQp + i;
          return roce_flow(l3, {0, 1, linux_source_port(qp, qp), qp});
        });
    add(v4 ? "RoCE, two hosts, all QPs share one source port" : "RoCE over IPv6, all QPs share one source port",
        [=](unsigned i) {
          return roce_flow(l3, {0, 1, 0xc000, kFirstQp + i});
        });
    add(v4 ? "RoCE, one QP number, sequential source ports" : "RoCE over IPv6, one QP number, sequential source ports",
        [=](unsigned i) {
          return roce_flow(l3, {0, 1, static_cast<uint16_t>(0xc000 + i), kFirstQp});
        });
    add(v4 ? "RoCE, all pairs of 128 hosts, one QP each" : "RoCE over IPv6, all pairs of 128 hosts, one QP each",
        [=](unsigned i) {
          return roce_flow(l3, {static_cast<uint16_t>(i % 128), static_cast<uint16_t>(i / 128), 0xc121, kFirstQp});
        });
  }
  add("TCP, one client and server, sequential ephemeral ports", [](unsigned i) {
    return flow4(PacketKind::kTcpUdp, {.protocol = 6}, tcp(static_cast<uint16_t>(32'768 + i), 443, {}));
  });
  add("addresses only (fragments), sequential sources", [](unsigned i) {
    return flow4(PacketKind::kIp, {.fragment = 0x2000, .source = ip4(10, 1, 0, 1) + i}, pattern(8));
  });
  add("addresses only, sequential /24 networks", [](unsigned i) {
    return flow4(PacketKind::kIp, {.fragment = 0x2000, .destination = ip4(10, 64, 0, 1) + (i << 8U)}, pattern(8));
  });
  add("IPv6 addresses only, sequential /48 networks",
      [](unsigned i) { return flow6(PacketKind::kIp, {.destination = ip6(static_cast<uint16_t>(i), 1)}, pattern(8)); });
  return sets;
}

}  // namespace heddle::support
