// PathProbes with workers that are played by the test: what comes back decides about the tables, while they are in use.
#include "control/path_probes.h"

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "config/address.h"
#include "tests/support/eal.h"

namespace heddle::control {
namespace {

constexpr unsigned kMembers = 3;

// The two switches, in one family.
struct Ends {
  const char* name;
  const char* own;
  const char* far;
  uint32_t udp;  // offset of the UDP header
};

SwitchConfig config_of(const Ends& ends) {
  const std::string path_delay = fmt::format(
      "path_delay: {{address: \"{}\", timeout: 20ms, targets: [{{group: up, address: \"{}\", name: far}}]}}", ends.own,
      ends.far);
  return load_switch_config_text(R"(
switch: {workers: 2}
ports:
  - {name: a, device: net_null0, rate: 10G, worker: 0}
  - {name: b, device: net_null1, rate: 10G, worker: 1}
  - {name: c, device: net_null2, rate: 10G, worker: 1}
groups:
  - {name: up, scheduler: wcmp, members: [{port: a, mac: "02:00:00:00:00:01"}, {port: b, mac: "02:00:00:00:00:02"}, {port: c, mac: "02:00:00:00:00:03"}]}
routes:
  - {prefix: 10.0.0.0/8, via: up}
)" + path_delay,
                                 "leaf.yaml");
}

class PathProbesTest : public testing::TestWithParam<Ends> {
 protected:
  PathProbesTest() {
    support::need_eal();
    clock_ = std::make_unique<dataplane::TscClock>();
    states = std::make_unique<dataplane::PortStates>(kMembers);
    routes = std::make_unique<RouteTable>(control_, 64, states->dead_port());
    Group up;
    up.name = "up";
    up.members.scheduler = *lb::scheduler_named("wcmp");
    for (const NextHopConfig& member : config.groups[0].members) {
      lb::NextHop hop;
      hop.port = member.port;
      hop.rewrite.destination = member.mac;
      up.members.members.push_back(hop);
    }
    RouteTable::Batch batch;
    batch.set_group(std::move(up));
    batch.set_route(*config::parse_prefix("10.0.0.0/8"), "up");
    routes->apply(batch);
    std::vector<dataplane::ProbeMailbox*> mailboxes;
    for (unsigned w = 0; w < config.workers; ++w) {
      mailboxes_.push_back(std::make_unique<dataplane::ProbeMailbox>());
      mailboxes.push_back(mailboxes_.back().get());
    }
    probes = std::make_unique<PathProbes>(config, PathProbes::Surroundings{.routes = *routes,
                                                                           .states = *states,
                                                                           .clock = *clock_,
                                                                           .mailboxes = mailboxes,
                                                                           .rates = std::vector(3, Rate::gbps(10)),
                                                                           .notice = [this](const std::string& line) {
                                                                             const std::scoped_lock lock(mutex_);
                                                                             notices_.push_back(line);
                                                                           }});
  }

  // Plays workers and far switch, whose clock is elsewhere, until `done`; false if that takes too long.
  bool play(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      for (auto& mailbox : mailboxes_) {
        dataplane::ProbeOrder order;
        while (mailbox->next(order)) answer(*mailbox, order);
      }
      std::this_thread::yield();
    }
    return true;
  }

  void answer(dataplane::ProbeMailbox& mailbox, dataplane::ProbeOrder& order) {
    const PortId port = order.over.port;
    ordered_by_[port] = &mailbox;
    if (dark[port]) return;
    const Time now = clock_->now();
    order.fields.sent = now;
    std::vector<uint8_t> frame(telemetry::probe_frame_bytes(order.fields.hops, order.fields.source.family));
    ASSERT_TRUE(telemetry::write_probe(frame, order.fields));
    EXPECT_EQ(order.fields.source, *config::parse_address(GetParam().own));
    EXPECT_EQ(order.fields.destination, *config::parse_address(GetParam().far));
    const auto find = [&] { return *telemetry::find_probe(frame, 14, GetParam().udp); };
    telemetry::push_hop(frame, find(), {.arrival = now, .departure = now, .rate = Rate::gbps(10)});
    telemetry::turn_round(frame, find(), 48, now + kSecond + wires[port]);
    mailboxes_.front()->receive_probe(frame, find(), now);  // whichever worker it comes back to
  }

  // The group as the route table has it: a copy, since the tables themselves are for workers.
  lb::NextHopGroup in_force() const { return routes->groups().at(0).members; }
  lb::NextHop hop(unsigned m) const {
    lb::NextHop hop;
    hop.port = config.groups[0].members[m].port;
    hop.rewrite.destination = config.groups[0].members[m].mac;
    return hop;
  }
  void remove_member(unsigned m) {
    RouteTable::Batch batch;
    batch.remove_member("up", hop(m));
    routes->apply(batch);
  }
  void add_member(unsigned m) {
    RouteTable::Batch batch;
    batch.add_member("up", hop(m));
    routes->apply(batch);
  }
  const telemetry::PathDelay::Member& path(unsigned m) {
    status_ = probes->status();
    return status_.targets.at(0).members.at(m).path;
  }
  std::vector<std::string> notices() {
    const std::scoped_lock lock(mutex_);
    return notices_;
  }

  const SwitchConfig config = config_of(GetParam());
  std::unique_ptr<dataplane::PortStates> states;
  std::unique_ptr<RouteTable> routes;
  std::array<bool, kMembers> dark{};
  std::array<Duration, kMembers> wires{};
  std::array<dataplane::ProbeMailbox*, kMembers> ordered_by_{};
  std::vector<std::unique_ptr<dataplane::ProbeMailbox>> mailboxes_;
  std::unique_ptr<PathProbes> probes;

 private:
  dataplane::SwitchControl control_;
  std::unique_ptr<dataplane::TscClock> clock_;
  PathDelayStatus status_;
  std::mutex mutex_;
  std::vector<std::string> notices_;
};

INSTANTIATE_TEST_SUITE_P(Families, PathProbesTest,
                         testing::Values(Ends{"ipv4", "10.255.0.1", "10.255.0.2", 34},
                                         Ends{"ipv6", "2001:db8:ff::1", "2001:db8:ff::2", 54}),
                         [](const auto& row) { return row.param.name; });

TEST_P(PathProbesTest, EveryProbeIsTheWorkersThatOwnsThePort) {
  ASSERT_TRUE(play([&] { return probes->status().counters.returned > 20; }));
  EXPECT_EQ(ordered_by_[0], mailboxes_[0].get());
  EXPECT_EQ(ordered_by_[1], mailboxes_[1].get());
  EXPECT_EQ(ordered_by_[2], mailboxes_[1].get());
  EXPECT_TRUE(in_force().measured);
  const PathDelayStatus status = probes->status();
  EXPECT_EQ(status.address, *config::parse_address(GetParam().own));
  EXPECT_EQ(status.targets.at(0).name, "far");
  EXPECT_GE(status.sweep, kMillisecond) << "no member more often";
  EXPECT_EQ(status.counters.refused, 0U);
}

TEST_P(PathProbesTest, SharesFollowWhatIsBetweenTheSwitches) {
  wires[1] = kSecond / 10;
  ASSERT_TRUE(play([&] { return probes->status().targets.at(0).members.at(1).share < 0.1; }));
  EXPECT_GT(path(1).wire, 50 * kMillisecond);
  ASSERT_TRUE(play([&] { return in_force().table->counts().at(1) < 500; }));
  EXPECT_FALSE(in_force().members[1].bad) << "slow";
  wires[1] = 0;
  EXPECT_TRUE(play([&] { return in_force().table->counts().at(1) > 1200; }));
}

TEST_P(PathProbesTest, ADarkMemberIsShutAndOpenedAgain) {
  ASSERT_TRUE(play([&] { return probes->status().counters.returned > 20; }));
  dark[2] = true;
  ASSERT_TRUE(play([&] { return in_force().members[2].bad; }));
  dark[2] = false;
  ASSERT_TRUE(play([&] { return !in_force().members[2].bad; }));
  ASSERT_TRUE(play([&] { return notices().size() >= 2; }));
  EXPECT_EQ(notices()[0], "path to far over port c: probes are lost, it is avoided");
  EXPECT_EQ(notices()[1], "path to far over port c: probes come back, it is used again");
}

TEST_P(PathProbesTest, MembersThatComeAndGoAreFollowed) {
  ASSERT_TRUE(play([&] { return probes->status().counters.returned > 20; }));
  remove_member(1);
  ASSERT_TRUE(play([&] { return probes->status().targets.at(0).members.size() == 2; }));
  EXPECT_TRUE(path(0).measured && path(1).measured) << "what is known stays";
  EXPECT_TRUE(play([&] { return in_force().table->counts().size() == 2 && in_force().table->counts()[0] == 2048; }));
}

// Nobody probes a group of one, so that nothing would ever open its member again.
TEST_P(PathProbesTest, TheLastMemberIsNotShut) {
  ASSERT_TRUE(play([&] { return probes->status().counters.returned > 20; }));
  dark[2] = true;
  ASSERT_TRUE(play([&] { return in_force().members[2].bad; }));
  remove_member(0);
  ASSERT_TRUE(play([&] { return probes->status().targets.at(0).members.size() == 2; }));
  remove_member(1);
  ASSERT_TRUE(play([&] { return probes->status().targets.empty(); }));
  EXPECT_EQ(in_force().size(), 1U);
  EXPECT_FALSE(in_force().members[0].bad);
  EXPECT_FALSE(in_force().measured);
}

TEST_P(PathProbesTest, WhatWasKnownOfAGroupThatShrankMeanwhileIsPutAgain) {
  dark[0] = true;
  remove_member(2);
  const auto is_settled = [&] { return in_force().members[0].bad && in_force().members[1].share == 4096; };
  ASSERT_TRUE(play(is_settled)) << "no share moves any more";
  remove_member(1);  // and back, while the prober sleeps
  add_member(1);
  EXPECT_TRUE(play([&] { return in_force().measured && is_settled(); }));
}

TEST_P(PathProbesTest, APortWithoutItsLinkIsNotProbed) {
  states->set(0, false);
  ASSERT_TRUE(play([&] { return path(1).returned > 20; }));
  const uint64_t sent = path(0).sent;
  ASSERT_TRUE(play([&] { return path(1).returned > 40; }));
  EXPECT_EQ(path(0).sent, sent);
  EXPECT_FALSE(path(0).bad);
}

}  // namespace
}  // namespace heddle::control
