// PathProber: everything has its turn, no link is asked for more than its part, and answers find their target.
#include "telemetry/path_prober.h"

#include <map>
#include <utility>

#include <gtest/gtest.h>

namespace heddle::telemetry {
namespace {

using Due = PathProber::Due;

ProberSettings settings_of(unsigned ports) {
  ProberSettings settings;
  settings.address = 0x0a800001;
  settings.rates.assign(ports, Rate::gbps(100));
  return settings;
}

std::vector<ProbeTarget> targets_over(unsigned ports, unsigned count) {
  std::vector<ProbeTarget> targets;
  for (unsigned t = 0; t < count; ++t) {
    ProbeTarget target{.label = 100 + t, .addresses = {0x0a800100 + t, 0x0a800200 + t}, .members = {}};
    for (unsigned p = 0; p < ports; ++p) target.members.push_back({static_cast<PortId>(p), 1});
    targets.push_back(target);
  }
  return targets;
}

// Probes from `begin` to `end`, each answered at once after `each` has seen it.
template <typename Each>
void run(PathProber& prober, Time end, const Each& each) {
  while (prober.next_due() < end) {
    const Time now = prober.next_due();
    prober.attend(
        now,
        [&](const Due& due) {
          std::vector<uint8_t> frame(prober.frame_bytes());
          ASSERT_TRUE(prober.write(frame, due, now));
          push_hop(frame, *find_probe(frame, 14, 34), {.arrival = now, .departure = now, .rate = Rate::gbps(100)});
          each(due, frame, now);
        },
        [](size_t) {});
  }
}

void answer(PathProber& prober, std::vector<uint8_t>& frame, Time now) {
  turn_round(frame, *find_probe(frame, 14, 34), 48, now);
  prober.receive_probe(frame, *find_probe(frame, 14, 34), now);
}

TEST(PathProber, ASweepReachesEveryMemberTowardsEveryTargetOnce) {
  PathProber prober(settings_of(4));
  prober.retarget(targets_over(4, 10), 0);
  std::map<std::pair<uint32_t, unsigned>, unsigned> seen;
  run(prober, prober.sweep(), [&](const Due& due, auto&, Time) { seen[{due.target, due.member}]++; });
  EXPECT_EQ(seen.size(), 40U);
  for (const auto& [which, times] : seen) EXPECT_EQ(times, 1U);
}

TEST(PathProber, KeepsToItsPartOfEveryLink) {
  ProberSettings settings = settings_of(2);
  settings.rates[1] = Rate::gbps(10);
  PathProber prober(settings);
  prober.retarget(targets_over(2, 3), 0);
  std::array<uint64_t, 2> bytes{};
  const Time end = 100 * kMillisecond;
  run(prober, end, [&](const Due& due, const auto& frame, Time) { bytes[due.port] += frame.size() + 24; });
  for (unsigned port = 0; port < 2; ++port) {
    const double could = static_cast<double>(settings.rates[port].bits_per_second()) * to_seconds(end) / 8;
    EXPECT_LE(static_cast<double>(bytes[port]), settings.share * could * 1.001) << port;
    EXPECT_GE(static_cast<double>(bytes[port]), settings.share * could * 0.98) << port;
  }
  EXPECT_EQ(prober.counters().bytes, bytes[0] + bytes[1]);
}

TEST(PathProber, ProbesTheLeavesOfATargetByTurnsOverManySourcePorts) {
  PathProber prober(settings_of(2));
  prober.retarget(targets_over(2, 1), 0);
  std::map<uint32_t, unsigned> destinations;
  std::map<uint16_t, unsigned> source_ports;
  run(prober, 100 * prober.sweep(), [&](const Due&, const auto& frame, Time) {
    destinations[net::header_at<net::Ipv4Header>(frame.data(), 14)->destination]++;
    source_ports[net::header_at<net::UdpHeader>(frame.data(), 34)->source_port]++;
  });
  ASSERT_EQ(destinations.size(), 2U);
  EXPECT_EQ(destinations.begin()->second, destinations.rbegin()->second);
  EXPECT_GT(source_ports.size(), 150U);
  EXPECT_GE(source_ports.begin()->first, 0xc000U);
}

// Its probes are 20 bytes longer, and have their turn so much later.
TEST(PathProber, ProbesOverIpv6) {
  const auto address = [](uint8_t last) {
    return net::IpAddress(net::IpFamily::kIpv6, {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last});
  };
  PathProber of_ipv4(settings_of(2));
  of_ipv4.retarget(targets_over(2, 3), 0);
  ProberSettings settings = settings_of(2);
  settings.address = address(1);
  PathProber prober(settings);
  std::vector<ProbeTarget> targets = targets_over(2, 3);
  for (ProbeTarget& target : targets) target.addresses = {address(2), address(3)};
  prober.retarget(targets, 0);
  EXPECT_EQ(prober.frame_bytes(), of_ipv4.frame_bytes() + 20);
  EXPECT_GT(prober.sweep(), of_ipv4.sweep());
  std::map<uint8_t, unsigned> destinations;
  while (prober.next_due() < 6 * prober.sweep()) {
    const Time now = prober.next_due();
    const auto send = [&](const Due& due) {
      std::vector<uint8_t> frame(prober.frame_bytes());
      ASSERT_TRUE(prober.write(frame, due, now));
      push_hop(frame, *find_probe(frame, 14, 54), {.arrival = now, .departure = now, .rate = Rate::gbps(10)});
      destinations[frame[53]]++;
      turn_round(frame, *find_probe(frame, 14, 54), 48, now);
      prober.receive_probe(frame, *find_probe(frame, 14, 54), now);
    };
    prober.attend(now, send, [](size_t) {});
  }
  ASSERT_EQ(destinations.size(), 2U);
  EXPECT_EQ(destinations[2], destinations[3]);
  EXPECT_EQ(prober.counters().returned, prober.counters().sent);
  EXPECT_EQ(prober.paths(2).member(1).capacity, 10'000);
}

TEST(PathProber, AnswersFindTheirMember) {
  PathProber prober(settings_of(3));
  prober.retarget(targets_over(3, 2), 0);
  run(prober, 3 * prober.sweep(), [&](const Due& due, std::vector<uint8_t>& frame, Time now) {
    if (due.target == 1 && due.member == 2) answer(prober, frame, now);
  });
  for (size_t t = 0; t < 2; ++t) {
    for (unsigned m = 0; m < 3; ++m) EXPECT_EQ(prober.paths(t).member(m).measured, t == 1 && m == 2);
  }
  EXPECT_EQ(prober.paths(1).member(2).capacity, 100'000);
}

TEST(PathProber, RefusesWhatItDidNotSend) {
  PathProber prober(settings_of(2));
  prober.retarget(targets_over(2, 2), kMillisecond);
  const auto receive = [&](const ProbeFields& fields, bool hop, bool returned) {
    std::vector<uint8_t> frame(probe_frame_bytes(2));
    ProbeFields with = fields;
    with.hops = 2;
    ASSERT_TRUE(write_probe(frame, with));
    if (hop) push_hop(frame, *find_probe(frame, 14, 34), {});
    if (returned) turn_round(frame, *find_probe(frame, 14, 34), 48, 2 * kMillisecond);
    prober.receive_probe(frame, *find_probe(frame, 14, 34), 2 * kMillisecond);
  };
  receive({.target = 2, .sent = 2 * kMillisecond}, true, true);               // no such target
  receive({.target = 1, .member = 2, .sent = 2 * kMillisecond}, true, true);  // no such member
  receive({.target = 1, .sent = 2 * kMillisecond}, false, true);              // no hop on its stack
  receive({.target = 1, .sent = 2 * kMillisecond}, true, false);              // not turned round
  receive({.target = 1, .sent = 0}, true, true);                              // of targets there were before
  EXPECT_EQ(prober.counters().refused, 5U);
  EXPECT_EQ(prober.counters().returned, 0U);
}

TEST(PathProber, NewTablesKeepWhatIsKnown) {
  PathProber prober(settings_of(3));
  prober.retarget(targets_over(3, 2), 0);
  const auto reply = [&](const Due&, std::vector<uint8_t>& frame, Time now) { answer(prober, frame, now); };
  const Time change = 3 * prober.sweep();
  run(prober, change, reply);
  std::vector<ProbeTarget> fewer = targets_over(3, 2);
  fewer.erase(fewer.begin());                            // label 101 alone
  fewer[0].members.erase(fewer[0].members.begin() + 1);  // over ports 0 and 2
  fewer[0].members.push_back({7, 1});                    // and a new one
  prober.retarget(fewer, change);
  ASSERT_EQ(prober.size(), 1U);
  EXPECT_TRUE(prober.paths(0).member(0).measured);
  EXPECT_TRUE(prober.paths(0).member(1).measured);
  EXPECT_FALSE(prober.paths(0).member(2).measured);
}

TEST(PathProber, ALinkAtAnotherRateMakesTheSweepLongerAndUpdatesNoRarer) {
  PathProber prober(settings_of(3));
  prober.retarget(targets_over(3, 2), 0);
  const Duration sweep = prober.sweep();
  EXPECT_EQ(prober.period(), sweep);
  prober.set_rate(1, Rate::gbps(10));
  EXPECT_NEAR(static_cast<double>(prober.sweep()), 10.0 * static_cast<double>(sweep),
              1e-3 * static_cast<double>(sweep));
  EXPECT_EQ(prober.period(), sweep);
  prober.retarget(targets_over(3, 2), kMillisecond);
  EXPECT_GT(prober.sweep(), 9 * sweep) << "new tables do not make the link faster";
  prober.set_rate(1, Rate::gbps(100));
  EXPECT_EQ(prober.sweep(), sweep);
}

// Two members may leave by one port, to different neighbours.
TEST(PathProber, MembersOfOnePortKeepWhatIsTheirs) {
  PathProber prober(settings_of(1));
  const ProbeTarget target{
      .label = 1, .addresses = {0x0a800100}, .members = {{.port = 0, .identity = 7}, {.port = 0, .identity = 8}}};
  prober.retarget({target}, 0);
  run(prober, 4 * prober.sweep(), [&](const Due& due, std::vector<uint8_t>& frame, Time now) {
    if (due.member == 1) answer(prober, frame, now);
  });
  ProbeTarget turned = target;
  std::swap(turned.members[0], turned.members[1]);
  prober.retarget({turned}, kSecond);
  EXPECT_TRUE(prober.paths(0).member(0).measured);
  EXPECT_FALSE(prober.paths(0).member(1).measured);
}

TEST(PathProber, WithoutTargetsHasNothingToDo) {
  PathProber prober(settings_of(2));
  EXPECT_EQ(prober.next_due(), PathProber::kNever);
  prober.retarget({}, kMillisecond);
  EXPECT_EQ(prober.next_due(), PathProber::kNever);
}

}  // namespace
}  // namespace heddle::telemetry
