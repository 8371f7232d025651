#include "telemetry/path_prober.h"

#include <algorithm>
#include <map>

namespace heddle::telemetry {

namespace {

constexpr Duration kMostOutstanding = 4096;

}  // namespace

ProbeAnswer read_answer(std::span<const uint8_t> frame, const ProbeView& probe, Time now) {
  const ProbeBody& body = body_of(frame, probe);
  return {.target = body.target,
          .member = body.member,
          .sequence = body.sequence,
          .returned = body.kind == ProbeKind::kReturned,
          .reading = read_path(frame, probe),
          .at = now};
}

PathProber::PathProber(const ProberSettings& settings)
    : settings_(settings), rates_(settings.rates), random_(settings.seed) {}

Duration PathProber::interval_of(Rate rate, size_t turns) const {
  const Rate of = rate.is_unlimited() ? Rate::gbps(100) : rate;
  const auto wire_bytes = static_cast<uint64_t>(static_cast<int64_t>(frame_bytes()) + settings_.overhead);
  const double by_rate = static_cast<double>(of.time_for(wire_bytes)) / settings_.share;
  return std::max(static_cast<Duration>(by_rate), settings_.least_sweep / turns);
}

// Times that would be over before an answer can be there are no use.
PathDelaySettings PathProber::path_settings(const ProbeTarget& target) const {
  PathDelaySettings paths = settings_.paths;
  paths.wires = paths.wires && target.addresses.size() == 1;
  paths.timeout = std::max(paths.timeout, 2 * sweep_);
  paths.max_age = std::max(paths.max_age, 10 * sweep_);
  const Duration in_time = period_ == 0 ? 0 : paths.timeout / period_ + 2;
  paths.outstanding = static_cast<unsigned>(std::clamp<Duration>(in_time, paths.outstanding, kMostOutstanding));
  return paths;
}

void PathProber::find_sweep() {
  sweep_ = 0;
  for (const Slot& slot : slots_) sweep_ = std::max(sweep_, slot.interval * slot.turns.size());
}

void PathProber::retarget(std::vector<ProbeTarget> targets, Time now) {
  std::map<PortId, Slot> by_port;
  for (uint32_t t = 0; t < targets.size(); ++t) {
    for (size_t m = 0; m < targets[t].members.size(); ++m) {
      by_port[targets[t].members[m].port].turns.push_back({t, static_cast<uint8_t>(m)});
    }
  }
  slots_.clear();
  period_ = 0;
  for (auto& [port, slot] : by_port) {
    slot.port = port;
    slot.interval = interval_of(rate_of(port), slot.turns.size());
    const Rate first = port < settings_.rates.size() ? settings_.rates[port] : Rate();
    period_ = std::max(period_, interval_of(first, slot.turns.size()) * slot.turns.size());
    // Neither the ports of one switch nor the switches begin together.
    slot.position = random_.below(static_cast<uint32_t>(slot.turns.size()));
    slot.next = now + static_cast<Duration>(random_.uniform() * static_cast<double>(slot.interval));
    slots_.push_back(std::move(slot));
  }
  find_sweep();
  std::vector<PathDelay> paths;
  paths.reserve(targets.size());
  for (const ProbeTarget& target : targets) paths.push_back(paths_of(target, targets_, paths_));
  targets_ = std::move(targets);
  paths_ = std::move(paths);
  next_address_.assign(targets_.size(), 0);
  since_ = now;
  next_update_ =
      slots_.empty() ? kNever : now + period_ + static_cast<Duration>(random_.uniform() * static_cast<double>(period_));
  find_next();
}

PathDelay PathProber::paths_of(const ProbeTarget& target, const std::vector<ProbeTarget>& old_targets,
                               const std::vector<PathDelay>& old_paths) const {
  std::vector<uint32_t> shares;
  for (const ProbeTarget::Member& member : target.members) shares.push_back(member.share);
  PathDelay paths(path_settings(target), shares);
  for (size_t t = 0; t < old_targets.size(); ++t) {
    const std::vector<ProbeTarget::Member>& old = old_targets[t].members;
    if (old_targets[t].label != target.label) continue;
    for (unsigned m = 0; m < target.members.size(); ++m) {
      const auto at = std::find_if(old.begin(), old.end(), [&](const ProbeTarget::Member& member) {
        return member.port == target.members[m].port && member.identity == target.members[m].identity;
      });
      if (at != old.end()) paths.adopt(m, old_paths[t], static_cast<unsigned>(at - old.begin()));
    }
  }
  return paths;
}

void PathProber::set_rate(PortId port, Rate rate) {
  if (port >= rates_.size()) rates_.resize(port + size_t{1});
  rates_[port] = rate;
  for (Slot& slot : slots_) {
    if (slot.port == port) slot.interval = interval_of(rate, slot.turns.size());
  }
  find_sweep();
  for (PathDelay& paths : paths_) paths.raise_times(2 * sweep_, 10 * sweep_);
}

void PathProber::find_next() {
  next_due_ = next_update_;
  for (const Slot& slot : slots_) {
    if (next_due_ == kNever || before(slot.next, next_due_)) next_due_ = slot.next;
  }
}

ProbeFields PathProber::make(const Due& due, Time now) {
  const ProbeTarget& target = targets_[due.target];
  size_t& turn = next_address_[due.target];
  ProbeFields fields{.source = settings_.address,
                     .destination = target.addresses[turn],
                     .source_port = static_cast<uint16_t>(0xc000U | random_.below(0x4000)),
                     .dscp = settings_.dscp,
                     .hops = settings_.hops,
                     .target = static_cast<uint16_t>(due.target),
                     .member = due.member,
                     .sent = now};
  turn = turn + 1 == target.addresses.size() ? 0 : turn + 1;
  fields.sequence = paths_[due.target].send(due.member, now);
  counters_.sent++;
  counters_.bytes += static_cast<uint64_t>(static_cast<int64_t>(frame_bytes()) + settings_.overhead);
  return fields;
}

bool PathProber::write(std::span<uint8_t> frame, const Due& due, Time now) {
  return frame.size() >= frame_bytes() && write_probe(frame, make(due, now));
}

void PathProber::receive(const ProbeAnswer& answer) {
  const PathReading& reading = answer.reading;
  const bool known = answer.target < targets_.size() && answer.member < targets_[answer.target].members.size() &&
                     answer.returned && !before(reading.sent + kNanosecond, since_);
  if (!known || !reading.complete || reading.hops == 0) {
    counters_.refused++;
    return;
  }
  counters_.returned++;
  paths_[answer.target].receive(answer.member, answer.sequence, reading, answer.at);
}

void PathProber::note_change(size_t target, Time now) {
  counters_.updates++;
  if (!settings_.keep_trace || trace_.size() == kMostTrace) return;
  trace_.push_back({now, targets_[target].label, paths_[target].shares()});
}

}  // namespace heddle::telemetry
