#include "control/path_probes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "dataplane/measured_group.h"
#include "net/random.h"

namespace heddle::control {

namespace {

// Workers that share a CPU with others answer late: more would be out at a time than tells anything.
constexpr Duration kLeastSweep = kMillisecond;
// How long an answer, or a change of the groups, may lie about.
constexpr Duration kLongestSleep = 10 * kMillisecond;
constexpr Duration kShortestSleep = 100 * kMicrosecond;
// Below the switch, probes share tail drops with the data: a queue that is full loses several in a row, a path through
// which nothing gets loses all.
constexpr unsigned kBadAfter = 10;
constexpr unsigned kLossShift = 4;
constexpr unsigned kOvertaken = 3;

telemetry::ProberSettings settings_of(const SwitchConfig& config, const std::vector<Rate>& rates) {
  const PathDelayConfig& probes = config.path_delay;
  telemetry::ProberSettings settings;
  settings.address = probes.address;
  settings.dscp = probes.dscp;
  settings.hops = probes.hops;
  settings.share = probes.rate / telemetry::kProbesOnALink;
  settings.seed = mix64(config.seed ^ probes.address.low_bits());
  settings.rates = rates;
  settings.least_sweep = kLeastSweep;
  settings.paths.base = probes.base;
  settings.paths.timeout = probes.timeout;
  settings.paths.bad_after = kBadAfter;
  settings.paths.loss_shift = kLossShift;
  settings.paths.overtaken = kOvertaken;
  // Kernels, NICs and what lies between have queues that no switch stamps.
  settings.paths.wires = true;
  return settings;
}

// Same members, in the same order, with the same weights; and with what was put: one that went and came back meanwhile
// has lost it.
bool same_members(const lb::NextHopGroup& a, const lb::NextHopGroup& b) {
  if (a.measured != b.measured) return false;
  return std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
                    [](const lb::NextHop& one, const lb::NextHop& other) {
                      return lb::identity_of(one) == lb::identity_of(other) && one.weight == other.weight &&
                             one.share == other.share && one.bad == other.bad;
                    });
}

}  // namespace

PathProbes::PathProbes(const SwitchConfig& config, Surroundings surroundings)
    : config_(config), with_(std::move(surroundings)), prober_(settings_of(config, with_.rates)) {
  follow_groups(with_.clock.now());  // so that who asks at once sees every target
  thread_ = std::thread([this] { run(); });
}

void PathProbes::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PathProbes::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Time now = with_.clock.now();
    take_answers();
    follow_groups(now);
    attend(now);
    Duration sleep = kLongestSleep;
    if (const Time due = prober_.next_due(); due != telemetry::PathProber::kNever) {
      sleep = before(now, due) ? std::min(sleep, elapsed(due, now)) : kShortestSleep;
    }
    wake_.wait_for(lock, std::chrono::nanoseconds(std::max(sleep, kShortestSleep) / kNanosecond));
  }
}

void PathProbes::take_answers() {
  telemetry::ProbeAnswer answer;
  for (dataplane::ProbeMailbox* mailbox : with_.mailboxes) {
    while (mailbox->take(answer)) prober_.receive(answer);
  }
}

// Members come and go while the switch runs. Where any has, all targets begin anew with what is known of members that
// are still there.
void PathProbes::follow_groups(Time now) {
  const uint64_t generation = with_.routes.generation();
  if (generation == generation_) return;
  generation_ = generation;
  const std::vector<Group> groups = with_.routes.groups();
  std::vector<Target> targets;
  for (const PathTargetConfig& target : config_.path_delay.targets) {
    const std::string& name = config_.groups[target.group].name;
    const auto at = std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.name == name; });
    if (at == groups.end() || at->members.size() < 2) continue;
    targets.push_back({.config = &target, .group = {}, .bad = {}});
    targets.back().group.members = at->members.members;
    targets.back().group.measured = at->members.measured;
    targets.back().bad.resize(at->members.members.size());
  }
  const bool same = std::equal(
      targets.begin(), targets.end(), targets_.begin(), targets_.end(),
      [](const Target& a, const Target& b) { return a.config == b.config && same_members(a.group, b.group); });
  if (same) return;
  targets_ = std::move(targets);
  std::vector<telemetry::ProbeTarget> probed;
  std::vector<size_t> all;
  for (const Target& target : targets_) {
    all.push_back(all.size());
    probed.push_back(dataplane::probe_target(target.group, target.config->group, target.config->addresses));
  }
  prober_.retarget(std::move(probed), now);
  put(all);
}

void PathProbes::attend(Time now) {
  if (prober_.next_due() == telemetry::PathProber::kNever || before(now, prober_.next_due())) return;
  std::vector<size_t> changed;
  prober_.attend(
      now, [&](const telemetry::PathProber::Due& due) { order(due, now); },
      [&](size_t target) { changed.push_back(target); });
  if (!changed.empty()) put(changed);
}

// What would be lost because its port is down is nobody's path: the link's state says so already.
void PathProbes::order(const telemetry::PathProber::Due& due, Time now) {
  if (!with_.states.is_up(due.port)) return;
  const lb::NextHop& over = targets_[due.target].group.members[due.member];
  dataplane::ProbeMailbox& mailbox = *with_.mailboxes[config_.ports[due.port].worker];
  if (!mailbox.order({prober_.make(due, now), over})) ++refused_orders_;
}

void PathProbes::put(const std::vector<size_t>& changed) {
  std::vector<RouteTable::Measured> measured;
  measured.reserve(changed.size());
  for (const size_t i : changed) {
    Target& target = targets_[i];
    dataplane::measure(target.group, prober_.paths(i));
    measured.push_back({config_.groups[target.config->group].name, &target.group});
    notice_bad(target);
  }
  with_.routes.measure(measured);
}

void PathProbes::notice_bad(Target& target) {
  for (size_t m = 0; m < target.group.members.size(); ++m) {
    const lb::NextHop& member = target.group.members[m];
    if (target.bad[m] == member.bad) continue;
    target.bad[m] = member.bad;
    with_.notice(fmt::format("path to {} over port {}: {}", target.config->name, config_.ports[member.port].name,
                             member.bad ? "probes are lost, it is avoided" : "probes come back, it is used again"));
  }
}

PathDelayStatus PathProbes::status() const {
  const std::scoped_lock lock(mutex_);
  PathDelayStatus status;
  status.address = prober_.address();
  status.sweep = prober_.sweep();
  status.period = prober_.period();
  status.counters = prober_.counters();
  status.overflowed = refused_orders_;
  const Time now = with_.clock.now();
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    const telemetry::PathDelay& paths = prober_.paths(i);
    PathTargetStatus of{.name = target.config->name,
                        .group = config_.groups[target.config->group].name,
                        .addresses = target.config->addresses,
                        .members = {}};
    for (unsigned m = 0; m < paths.size(); ++m) {
      const telemetry::PathDelay::Member& path = paths.member(m);
      of.members.push_back(
          {.hop = target.group.members[m],
           .path = path,
           .share = static_cast<double>(paths.shares()[m]) / telemetry::kShareSlots,
           .age = path.returned == 0 ? std::nullopt : std::optional<Duration>(elapsed(now, path.heard))});
    }
    status.targets.push_back(std::move(of));
  }
  return status;
}

}  // namespace heddle::control
