// What buffer, classes, pauses and the watchdog of a good configuration mean.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control/switch_config.h"

namespace heddle::control {
namespace {

SwitchConfig load(const std::string& yaml) { return load_switch_config_text(yaml, "leaf.yaml"); }

TEST(SwitchConfigFlow, EveryKey) {
  const SwitchConfig config = load(R"(
switch: {workers: 2, idle: sleep}
ports:
  - {name: a, device: net_null0, rate: 100G, mtu: 4200, pfc_quanta: 1000, pfc_reaction: 10us, watchdog: {detect: 1s, restore: 60s, action: alert}}
  - {name: b, device: net_null1, rate: 10G, pfc: none, queues: {3: {lossless: false, alpha: 4}, 5: {ecn: {kmin: 1, kmax: 2}}}}
  - {name: c, device: net_null2, rate: 10G}
  - {name: d, device: net_null3, rate: 10G, watchdog: none}
watchdog: {action: forward}
buffer: {size: 16MB, packets: 20000}
classes:
  queues:
    0: {shared: 1MB, wred: {kmin: 10kB, kmax: 20kB, pmax: 50%}}
    3: {lossless: true, reserved: 4kB, alpha: 0.5, xon_offset: 5kB, ecn: {kmin: 400kB, kmax: 1600kB, pmax: 20%}}
    4: {lossless: true, headroom: 1, force: true}
)");
  const PortConfig& a = config.ports[0];
  const PortConfig& b = config.ports[1];
  EXPECT_EQ(config.buffer.packets, 20'000U);
  EXPECT_EQ(config.buffer_packets, 20'000U) << "mbufs for all that the buffer may hold";
  EXPECT_EQ(a.pfc, PfcBackend::kFrames) << "by default, where a class is lossless";
  EXPECT_EQ(b.pfc, PfcBackend::kNone);
  EXPECT_EQ(lossless_classes(a), 0x18);
  EXPECT_EQ(lossless_classes(b), 0x10);
  EXPECT_EQ(a.pfc_reaction, 10 * kMicrosecond);
  EXPECT_EQ(b.pfc_reaction, kMillisecond) << "asleep, 500 us at each end";
  const flowctl::WatchdogSettings of_all{.action = flowctl::WatchdogAction::kForward};
  EXPECT_EQ(a.watchdog, (flowctl::WatchdogSettings{kSecond, 60 * kSecond, flowctl::WatchdogAction::kAlert}));
  EXPECT_FALSE(b.watchdog.has_value()) << "nobody can pause it";
  EXPECT_EQ(config.ports[2].watchdog, of_all);
  EXPECT_FALSE(config.ports[3].watchdog.has_value());
  EXPECT_EQ(a.queues[3].ecn.max_bytes, 1'600'000U);
  EXPECT_EQ(b.queues[3].ecn.max_bytes, 1'600'000U) << "what the port does not say is the class's";
  EXPECT_EQ(b.queues[5].ecn.max_bytes, 2U);
  EXPECT_FALSE(a.queues[5].ecn.is_on());
  EXPECT_EQ(config.queue_limit(a, 0), dataplane::EgressQueue::kUnlimited) << "the buffer limits it";

  const std::vector<Rate> rates{Rate::gbps(100), Rate::gbps(10), Rate::gbps(10), Rate::gbps(10)};
  // A burst of 32 and two more frames, 84 bytes of the pause, and 10 us at 100G are 125,000 bytes: 269,448, in KiB.
  static_assert(34 * (4222 + 24) + 84 + 125'000 == 269'448);
  EXPECT_EQ(needed_headroom(a, rates[0]), 264U * 1024);
  const dataplane::BufferSettings settings = buffer_settings(config, rates);
  EXPECT_EQ(settings.groups[0][3].headroom, needed_headroom(a, rates[0]));
  EXPECT_EQ(settings.groups[0][4].headroom, 1U) << "forced";
  EXPECT_EQ(settings.groups[0][3].shared.alpha_256ths, 128U);
  EXPECT_EQ(settings.groups[0][4].shared.alpha_256ths, 32U) << "1/8 by default";
  EXPECT_FALSE(settings.groups[1][3].lossless);
  EXPECT_EQ(settings.queues[1][3].shared.alpha_256ths, 1024U);
  EXPECT_EQ(settings.queues[0][0].shared.bytes, 1'000'000U);
  EXPECT_EQ(settings.kept_aside, 2U * 32 * 4222) << "two workers, a burst each of the longest frames";
  const uint64_t taken = 4 * 4000 + needed_headroom(a, rates[0]) + 4 * 1 + 2 * 32 * 4222 +
                         needed_headroom(config.ports[2], rates[2]) + needed_headroom(config.ports[3], rates[3]);
  EXPECT_EQ(settings.shared_bytes(), static_cast<int64_t>(16'000'000 - taken));

  const nlohmann::ordered_json json = to_json(config);
  EXPECT_EQ(to_json(load(json.dump(2))).dump(2), json.dump(2)) << "printed, it is a configuration again";
}

TEST(SwitchConfigFlow, AQueueThatIsLosslessOnOnePortDropsNothingThere) {
  const SwitchConfig config = load(R"(
ports:
  - {name: a, device: net_null0, rate: 10G, queues: {3: {lossless: true}}}
  - {name: b, device: net_null1, rate: 10G}
buffer: {size: 16MB}
classes:
  queues:
    3: {limit: 100kB, wred: {kmin: 10kB, kmax: 20kB, pmax: 50%}, ecn: {kmin: 1kB, kmax: 2kB}}
)");
  const PortConfig& a = config.ports[0];
  EXPECT_TRUE(a.queues[3].lossless);
  EXPECT_FALSE(a.queues[3].wred.is_on());
  EXPECT_EQ(config.queue_limit(a, 3), dataplane::EgressQueue::kUnlimited);
  EXPECT_EQ(a.queues[3].ecn.max_bytes, 2000U) << "marks do not drop";
  const PortConfig& b = config.ports[1];
  EXPECT_TRUE(b.queues[3].wred.is_on());
  EXPECT_EQ(config.queue_limit(b, 3), 100'000U);
  const nlohmann::ordered_json json = to_json(config);
  EXPECT_EQ(to_json(load(json.dump(2))).dump(2), json.dump(2)) << "printed, it is a configuration again";
}

TEST(SwitchConfigFlow, PfcByTheNic) {
  const SwitchConfig config = load(R"(
ports:
  - {name: a, device: net_null0, mtu: 4200, trust: pcp, pfc: ethdev}
  - {name: b, device: net_null1, rate: 10G}
watchdog: {}
buffer: {size: 16MB}
classes: {queues: {3: {lossless: true}}}
)");
  const PortConfig& a = config.ports[0];
  EXPECT_EQ(a.pfc, PfcBackend::kEthdev);
  EXPECT_FALSE(a.watchdog.has_value()) << "it would see no pause";
  EXPECT_TRUE(config.ports[1].watchdog.has_value());
  // The burst that crosses XOFF, in KiB, at any rate: the rest stays in the NIC.
  static_assert(32 * 4222 == 135'104);
  EXPECT_EQ(needed_headroom(a, Rate::unlimited()), 132U * 1024);
  EXPECT_EQ(needed_headroom(a, Rate::gbps(400)), 132U * 1024);
  const dataplane::BufferSettings settings = buffer_settings(config, {Rate::unlimited(), Rate::gbps(10)});
  EXPECT_EQ(settings.groups[0][3].headroom, 132U * 1024);
  const nlohmann::ordered_json json = to_json(config);
  EXPECT_EQ(to_json(load(json.dump(2))).dump(2), json.dump(2));
}

}  // namespace
}  // namespace heddle::control
