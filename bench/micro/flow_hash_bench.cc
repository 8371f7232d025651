// One flow hash, of each kind of packet, over 32 flows in turn.
#include <benchmark/benchmark.h>

#include "bench/micro/per_item.h"
#include "lb/flow_hash.h"
#include "tests/support/flows.h"

namespace heddle::bench {
namespace {

using support::Flow;

std::vector<Flow> flows_of(L3 l3, PacketKind kind) {
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < kBurst; ++i) {
    flows.push_back(support::roce_flow(l3, {0, 1, static_cast<uint16_t>(0xc000 + i), 0x11 + i}));
    flows.back().meta.kind = kind;
  }
  return flows;
}

void hash_all(benchmark::State& state, L3 l3, PacketKind kind, uint16_t fields) {
  const std::vector<Flow> flows = flows_of(l3, kind);
  lb::HashSettings settings;
  if (fields != 0) settings.fields = {fields, fields, fields};
  const lb::FlowHasher hasher(settings);
  PerItem per_hash(state);
  for (auto _ : state) {
    for (const Flow& flow : flows) benchmark::DoNotOptimize(hasher.hash(flow.frame.data(), flow.meta));
  }
  per_hash.report(kBurst);
}

BENCHMARK_CAPTURE(hash_all, FlowHash_roce_ipv4, L3::kIpv4, PacketKind::kRoce, 0);
BENCHMARK_CAPTURE(hash_all, FlowHash_roce_ipv6, L3::kIpv6, PacketKind::kRoce, 0);
BENCHMARK_CAPTURE(hash_all, FlowHash_tcp_udp_ipv4, L3::kIpv4, PacketKind::kTcpUdp, 0);
BENCHMARK_CAPTURE(hash_all, FlowHash_addresses_ipv4, L3::kIpv4, PacketKind::kIp, 0);
BENCHMARK_CAPTURE(hash_all, FlowHash_roce_ipv4_every_field, L3::kIpv4, PacketKind::kRoce, 0xff);

}  // namespace
}  // namespace heddle::bench
