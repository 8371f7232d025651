// Parsing one frame, by what it holds.
#include <benchmark/benchmark.h>

#include "bench/micro/per_item.h"
#include "dataplane/parse.h"
#include "tests/support/frames.h"

namespace heddle::bench {
namespace {

using support::Bytes;

Bytes roce_datagram() { return support::udp({}, support::roce({}, support::pattern(1024))); }
Bytes roce4() { return support::ethernet({}, support::ipv4({}, roce_datagram())); }
Bytes options4() { return support::ethernet({}, support::ipv4({.options = Bytes(8, 1)}, roce_datagram())); }
Bytes tcp4() { return support::ethernet({}, support::ipv4({.protocol = 6}, support::tcp(1, 2, Bytes(100)))); }
Bytes roce6() { return support::ethernet({.type = net::kTypeIpv6}, support::ipv6({}, roce_datagram())); }
Bytes extensions6() {
  return support::ethernet({.type = net::kTypeIpv6},
                           support::ipv6({.next_header = net::kProtocolDestinationOptions},
                                         support::extension(net::kProtocolUdp, 0, roce_datagram())));
}
Bytes tagged4() {
  return support::ethernet({.type = net::kTypeVlan},
                           support::vlan_tag(10, net::kTypeIpv4, support::ipv4({}, roce_datagram())));
}

void parse_all(benchmark::State& state, Bytes (*make)()) {
  const std::vector<Bytes> frames(kBurst, make());
  const auto bytes = static_cast<uint32_t>(frames[0].size());
  std::vector<PacketMeta> metas(kBurst);
  PerItem per_frame(state);
  for (auto _ : state) {
    for (unsigned i = 0; i < kBurst; ++i) {
      benchmark::DoNotOptimize(dataplane::parse(frames[i].data(), bytes, bytes, 0, metas[i]));
    }
    benchmark::ClobberMemory();
  }
  per_frame.report(kBurst);
}

BENCHMARK_CAPTURE(parse_all, Parse_roce_ipv4, roce4);
BENCHMARK_CAPTURE(parse_all, Parse_roce_ipv4_options, options4);
BENCHMARK_CAPTURE(parse_all, Parse_tcp_ipv4, tcp4);
BENCHMARK_CAPTURE(parse_all, Parse_roce_ipv4_vlan, tagged4);
BENCHMARK_CAPTURE(parse_all, Parse_roce_ipv6, roce6);
BENCHMARK_CAPTURE(parse_all, Parse_roce_ipv6_extension, extensions6);

}  // namespace
}  // namespace heddle::bench
