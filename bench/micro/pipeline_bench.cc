// The whole pipeline for one packet, ingress to egress, in bursts of 32 warm packets. The route lookup is a constant:
// the FIB, whose cost is the cache's, and the port drivers are left to bench/forwarding.
#include <algorithm>
#include <array>
#include <string>

#include <benchmark/benchmark.h>

#include "bench/micro/per_item.h"
#include "dataplane/pipeline.h"
#include "tests/support/frames.h"
#include "tests/support/packets.h"

namespace heddle::bench {
namespace {

using support::Bytes;

class OneRoute final : public dataplane::RouteLookup {
 public:
  void lookup4(const uint32_t* /*destinations*/, dataplane::RouteId* routes, unsigned count) const override {
    std::fill_n(routes, count, 0);
  }
  void lookup6(const dataplane::Ipv6Address* /*destinations*/, dataplane::RouteId* routes,
               unsigned count) const override {
    std::fill_n(routes, count, 0);
  }
};

// A switch with one next-hop group whose members all send back to the switch itself, so that a burst can go round.
class Loop {
 public:
  Loop(const lb::Scheduler& scheduler, unsigned members, Rate rate, bool lossless)
      : states_(1 + members),
        pipeline_(settings_of(members, rate, lossless), states_, sink_, nullptr),
        members_(members) {
    tables_.lookup = &lookup_;
    tables_.groups.resize(1);
    tables_.groups[0].scheduler = scheduler;
    tables_.note_schedulers();
    for (unsigned i = 0; i < members; ++i) {
      tables_.groups[0].members.push_back({.rewrite = {.destination = support::kRouterMac, .source = support::kHostMac},
                                           .port = static_cast<PortId>(1 + i),
                                           .counter = i});
    }
    pipeline_.use_tables(&tables_);
    for (PortId port = 0; port <= members; ++port) pipeline_.port(port).reserve(1024);
  }

  // The burst goes in at port 0 and out where it was sent; how many came out.
  unsigned pass(std::array<Packet*, kBurst> burst, Time now) {
    pipeline_.forward(burst.data(), pipeline_.ingress(0, burst.data(), kBurst, now), now);
    unsigned sent = 0;
    for (PortId port = 1; port <= members_; ++port) sent += pipeline_.egress(port, burst.data(), kBurst, now);
    return sent;
  }

 private:
  static dataplane::PipelineSettings settings_of(unsigned members, Rate rate, bool lossless) {
    dataplane::PipelineSettings settings;
    settings.ports.resize(1 + members);
    settings.ports[0].ingress.macs = {support::kRouterMac};
    for (dataplane::PortSettings& port : settings.ports) {
      port.egress.rate = rate;
      port.egress.catch_up = kMillisecond;  // a round's time
    }
    settings.paths = members;
    if (lossless) add_flow_control(settings);
    return settings;
  }
  // A shared buffer with a lossless class, marking and PFC: what every packet is charged for it.
  static void add_flow_control(dataplane::PipelineSettings& settings) {
    settings.buffer.bytes = 32'000'000;
    settings.buffer.packets = 16'384;
    for (dataplane::PortSettings& port : settings.ports) {
      auto& groups = settings.buffer.groups.emplace_back();
      groups[3] = {.lossless = true, .shared = dataplane::Threshold::dynamic(0.125), .headroom = 500'000};
      settings.buffer.queues.emplace_back();
      port.egress.classes[3].mark = {.min_bytes = 400'000, .max_bytes = 1'600'000, .max_probability = 0.2};
      port.pfc = {.classes = 1U << 3U, .link = Rate::gbps(100)};
    }
  }

  OneRoute lookup_;
  dataplane::ForwardingTables tables_;
  dataplane::PortStates states_;
  support::RecordingSink sink_;
  dataplane::Pipeline pipeline_;
  unsigned members_;
};

Bytes frame_of_flow(L3 l3, uint32_t flow) {
  const Bytes datagram = support::udp({.source_port = static_cast<uint16_t>(0xc000 + flow)},
                                      support::roce({.dest_qp = 0x11 + flow}, support::pattern(16)));
  if (l3 == L3::kIpv4) return support::ethernet({}, support::ipv4({.tos = (26U << 2U) | 2U, .ttl = 255}, datagram));
  return support::ethernet({.type = net::kTypeIpv6}, support::ipv6({.hop_limit = 255}, datagram));
}

void forward(benchmark::State& state, L3 l3, lb::Scheduler scheduler, unsigned members, Rate rate,
             bool lossless = false) {
  Loop loop(scheduler, members, rate, lossless);
  std::vector<support::OwnedPacket> packets;
  std::vector<Bytes> frames;
  std::array<Packet*, kBurst> burst{};
  for (uint32_t i = 0; i < kBurst; ++i) {
    frames.push_back(frame_of_flow(l3, i));
    packets.push_back(support::make_packet(frames.back(), {.headroom = 128}));
    burst[i] = packets.back().get();
  }
  // Before the TTL runs out, all frames are made anew: 250 rounds later, hence without weight.
  const auto renew = [&] {
    for (uint32_t i = 0; i < kBurst; ++i) std::copy(frames[i].begin(), frames[i].end(), frame_of(burst[i]));
  };
  Time now = 0;
  unsigned rounds = 0;
  uint64_t sent = 0;
  PerItem per_packet(state);
  for (auto _ : state) {
    if (++rounds == 250) {
      renew();
      rounds = 0;
    }
    sent += loop.pass(burst, now += kMillisecond);
  }
  per_packet.report(kBurst);
  if (sent != static_cast<uint64_t>(state.iterations()) * kBurst) {
    state.SkipWithError("packets were lost: this is no measure of forwarding");
  }
}

constexpr lb::Scheduler kEcmp = *lb::scheduler_named("ecmp");
constexpr lb::Scheduler kRps = *lb::scheduler_named("rps");
constexpr lb::Scheduler kAdaptive = *lb::scheduler_named("adaptive");
constexpr lb::Scheduler kRoundRobin = *lb::scheduler_named("round-robin");

BENCHMARK_CAPTURE(forward, Pipeline_ipv4_one_next_hop, L3::kIpv4, kEcmp, 1, Rate::unlimited());
BENCHMARK_CAPTURE(forward, Pipeline_ipv4_ecmp_2, L3::kIpv4, kEcmp, 2, Rate::unlimited());
BENCHMARK_CAPTURE(forward, Pipeline_ipv4_ecmp_2_lossless, L3::kIpv4, kEcmp, 2, Rate::unlimited(), true);
BENCHMARK_CAPTURE(forward, Pipeline_ipv4_ecmp_8, L3::kIpv4, kEcmp, 8, Rate::unlimited());
BENCHMARK_CAPTURE(forward, Pipeline_ipv4_rps_2, L3::kIpv4, kRps, 2, Rate::unlimited());
BENCHMARK_CAPTURE(forward, Pipeline_ipv4_round_robin_2, L3::kIpv4, kRoundRobin, 2, Rate::unlimited());
BENCHMARK_CAPTURE(forward, Pipeline_ipv4_adaptive_8, L3::kIpv4, kAdaptive, 8, Rate::unlimited());
BENCHMARK_CAPTURE(forward, Pipeline_ipv4_ecmp_2_at_100G, L3::kIpv4, kEcmp, 2, Rate::gbps(100));
BENCHMARK_CAPTURE(forward, Pipeline_ipv6_ecmp_2, L3::kIpv6, kEcmp, 2, Rate::unlimited());

}  // namespace
}  // namespace heddle::bench
