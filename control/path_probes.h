// Path probes of a running switch: a thread that says when a worker sends which probe, learns from the answers, and
// puts the shares that follow into the route table. Workers send, stamp and read probes and nothing else: what is known
// of paths belongs to this thread alone, so that no packet waits for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/route_table.h"
#include "control/switch_config.h"
#include "dataplane/clock.h"
#include "dataplane/probe_mailbox.h"
#include "dataplane/tables.h"
#include "telemetry/path_prober.h"

namespace heddle::control {

// What is known of one member of a probed group.
struct PathMemberStatus {
  lb::NextHop hop;
  telemetry::PathDelay::Member path;
  double share = 0;             // 0–1
  std::optional<Duration> age;  // of the last answer; nothing: none yet
};

struct PathTargetStatus {
  std::string name;
  std::string group;
  std::vector<net::IpAddress> addresses;
  std::vector<PathMemberStatus> members;
};

// What probes, anybody's, have taken of a port since the start.
struct ProbeCost {
  std::string port;
  uint64_t bytes = 0;  // on the wire
  double share = 0;    // of the link, 0–1
};

struct PathDelayStatus {
  net::IpAddress address;
  Duration sweep = 0;
  Duration period = 0;  // between updates of shares
  telemetry::PathProber::Counters counters;
  uint64_t overflowed = 0;    // answers and probes that a full mailbox refused
  uint64_t turned_round = 0;  // probes of others
  std::vector<ProbeCost> costs;
  std::vector<PathTargetStatus> targets;
};

class PathProbes {
 public:
  // What it works with; all outlive it.
  struct Surroundings {
    RouteTable& routes;
    const dataplane::PortStates& states;
    const dataplane::TscClock& clock;
    std::vector<dataplane::ProbeMailbox*> mailboxes;  // by worker
    std::vector<Rate> rates;                          // of the ports
    std::function<void(const std::string&)> notice;   // gets a line when a path goes bad or good; from its thread
  };

  PathProbes(const SwitchConfig& config, Surroundings surroundings);
  ~PathProbes() { stop(); }
  PathProbes(const PathProbes&) = delete;
  PathProbes& operator=(const PathProbes&) = delete;

  // No more probes.
  void stop();
  // What it knows; costs and what was turned round are the workers' to tell. Any thread.
  PathDelayStatus status() const;

 private:
  struct Target {
    const PathTargetConfig* config = nullptr;
    lb::NextHopGroup group;  // its members as the route table has them
    std::vector<bool> bad;   // as was last noticed
  };

  void run();
  void take_answers();
  void follow_groups(Time now);
  void attend(Time now);
  void order(const telemetry::PathProber::Due& due, Time now);
  void put(const std::vector<size_t>& changed);
  void notice_bad(Target& target);

  const SwitchConfig& config_;
  Surroundings with_;
  mutable std::mutex mutex_;  // of everything below
  std::condition_variable wake_;
  bool stopping_ = false;
  telemetry::PathProber prober_;
  std::vector<Target> targets_;  // as the prober counts them
  uint64_t generation_ = 0;      // of the route table, when the groups were read
  uint64_t refused_orders_ = 0;
  std::thread thread_;
};

}  // namespace heddle::control
