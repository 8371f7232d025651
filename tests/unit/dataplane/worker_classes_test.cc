// A worker between two ports whose NICs do PFC, the devices' lists in place of their queues: what the peer of one port
// pauses fills the switch, then stays in the receive queue of the other, and nothing is lost or held up beside it.
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "dataplane/lcore.h"
#include "tests/support/eal.h"
#include "tests/support/lossless_switch.h"
#include "tests/support/queue_device.h"
#include "tests/support/rows.h"

namespace heddle::support {
namespace {

using dataplane::ForwardingTables;
using dataplane::Worker;

constexpr uint16_t kInDevice = RTE_MAX_ETHPORTS - 1;
constexpr uint16_t kOutDevice = RTE_MAX_ETHPORTS - 2;
constexpr unsigned out_queue(unsigned traffic_class) { return 7 - traffic_class; }

// Class 3 is lossless, by PCP; all of 10.2/16 leaves by the second port.
dataplane::PipelineSettings settings() {
  const SwitchPlan plan = lossless_plan();
  dataplane::PipelineSettings settings;
  settings.ports.assign(plan.ports.begin(), plan.ports.begin() + 2);
  for (dataplane::PortSettings& port : settings.ports) {
    port.pfc = {.by_nic = kRoceBit};
    port.egress.rate = Rate::unlimited();
    port.egress.limit_packets = 4096;
    port.ingress.trust = dataplane::Trust::kPcp;
    port.ingress.vlans.set(10);
  }
  settings.buffer = plan.buffer;
  settings.buffer.groups.resize(2);
  settings.buffer.queues.resize(2);
  for (auto& port : settings.buffer.groups) port[kRoceClass].headroom = 32 * 1000;  // the burst in hand
  settings.paths = 1;
  return settings;
}

class Workers : public testing::Test {
 protected:
  Workers() : states(2) {
    need_eal();
    const lb::NextHop hop{.rewrite = {.destination = neighbour_mac(1), .source = port_mac(1)}, .port = 1, .counter = 0};
    tables.groups = {{{hop}, {}}};
    prefixes.add4(ip4(10, 2, 0, 0), 16, 0);
    tables.lookup = &prefixes;
    control.tables.store(&tables);
    readers.resize(rte_rcu_qsbr_get_memsize(1) + RTE_CACHE_LINE_SIZE);
    void* at = readers.data();
    size_t room = readers.size();
    control.readers =
        static_cast<rte_rcu_qsbr*>(std::align(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(1), at, room));
    rte_rcu_qsbr_init(control.readers, 1);
    clock = std::make_unique<dataplane::TscClock>();
    Worker::Settings of;
    of.owned = {{0, kInDevice, QueueDevice::queues(kRoceBit)}, {1, kOutDevice, QueueDevice::queues(kRoceBit)}};
    worker = std::make_unique<Worker>(of, settings(), states, nullptr, control, *clock);
  }

  void arrive(unsigned pcp, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      packets.push_back(make_packet(tagged(static_cast<uint16_t>((pcp << 13U) | 10U), roce4({}, {}, 900))));
      in.arrive(pcp, packets.back().get());
    }
  }
  template <typename Condition>
  static bool wait_for(const Condition& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  QueueDevice in{kInDevice};
  QueueDevice out{kOutDevice};
  PrefixTable prefixes;
  ForwardingTables tables;
  dataplane::SwitchControl control;
  std::vector<std::byte> readers;
  dataplane::PortStates states;
  std::unique_ptr<dataplane::TscClock> clock;
  std::unique_ptr<Worker> worker;
  std::vector<OwnedPacket> packets;
};

TEST_F(Workers, APauseGoesBackThroughTheSwitchAndNothingIsLost) {
  constexpr unsigned kLossless = 300;
  constexpr unsigned kLossy = 200;
  out.set_room(out_queue(kRoceClass), 10);  // then its peer has paused it
  arrive(kRoceClass, kLossless);
  arrive(0, kLossy);
  std::thread thread([this] { worker->run(); });

  EXPECT_TRUE(wait_for([&] { return out.sent(out_queue(0)).size() == kLossy; })) << "class 0 is not held up";
  // The receive queue of class 3 is left alone while the others are polled on.
  EXPECT_TRUE(wait_for([&] {
    const uint64_t before = in.polls(kRoceClass);
    const uint64_t others = in.polls(0);
    return wait_for([&] { return in.polls(0) >= others + 1000; }) && in.polls(kRoceClass) == before;
  }));
  EXPECT_EQ(out.sent(out_queue(kRoceClass)).size(), 10U);
  EXPECT_GT(in.waiting(kRoceClass), kLossless - 10 - 20 - 32 - 32) << "XOFF is at 20 kB, and then one burst more";
  EXPECT_TRUE(wait_for([&] { return worker->group(1, kRoceClass).paused.get() == 1; }));
  EXPECT_TRUE(wait_for([&] { return worker->group(0, kRoceClass).xoff.get() == 1; }));

  out.set_room(out_queue(kRoceClass), SIZE_MAX);
  EXPECT_TRUE(wait_for([&] { return out.sent(out_queue(kRoceClass)).size() == kLossless; }));
  EXPECT_EQ(in.waiting(kRoceClass), 0U);
  control.state.store(dataplane::RunState::kStopped);
  thread.join();
  EXPECT_EQ(worker->group(1, kRoceClass).paused.get(), 0U);
  EXPECT_GT(worker->group(1, kRoceClass).paused_ps.get(), 0U);
  EXPECT_EQ(worker->group(0, kRoceClass).xoff.get(), 0U);

  const std::vector<Packet*> sent = out.sent(out_queue(kRoceClass));
  ASSERT_EQ(sent.size(), kLossless);
  for (unsigned i = 0; i < kLossless; ++i) ASSERT_EQ(sent[i], packets[i].get()) << "in order";
  for (const telemetry::PortCounters& port : worker->pipeline().counters().ports) {
    for (const auto& drop : port.drops) EXPECT_EQ(drop.get(), 0U);
  }
  EXPECT_EQ(worker->pipeline().buffer().occupancy(0, kRoceClass).bytes(), 0U);
}

}  // namespace
}  // namespace heddle::support
