#include "lab/fabric/recovery.h"

#include <algorithm>

namespace heddle::lab {

namespace {

constexpr double kBack = 0.9;

bool takes_away(const Topology& topology, const LinkEvent& event) {
  switch (event.kind) {
    case LinkEvent::Kind::kDown:
      return true;
    case LinkEvent::Kind::kUp:
      return false;
    case LinkEvent::Kind::kRate:
      return event.rate.bits_per_second() < topology.links[event.link].rate.bits_per_second();
    case LinkEvent::Kind::kLoss:
      return event.loss > topology.links[event.link].loss;
  }
  return false;
}

uint64_t lost_by_failures(const RunResult& result) {
  uint64_t lost = 0;
  for (const DropReason reason : {DropReason::kLinkDown, DropReason::kLinkLoss, DropReason::kBitError,
                                  DropReason::kPortDown, DropReason::kNoRoute, DropReason::kNoLiveNextHop}) {
    lost += result.drops[static_cast<size_t>(reason)];
  }
  return lost;
}

// Until then as much was to be sent as at the failure, or more.
Time end_of_load(const RunResult& result, Time failure) {
  Time end = result.ended_at;
  for (const MessageTimes& times : result.messages) {
    if (times.released != kNever && times.released <= failure && times.received > failure) {
      end = std::min(end, times.received);
    }
  }
  return end;
}

// Goodput around the failure, in intervals.
void judge_goodput(const RunResult& result, Duration interval, Recovery& recovery) {
  const auto gbps = [&](double bytes) { return bytes * 8e3 / static_cast<double>(interval); };
  const size_t hit = recovery.at / interval;                    // the interval that it fell into
  const size_t first = hit > 10 ? hit - 10 : hit == 0 ? 0 : 1;  // not that of the start, where nothing has arrived yet
  if (first >= hit) return;
  double before = 0;
  for (size_t i = first; i < hit; ++i) before += static_cast<double>(i < result.goodput.size() ? result.goodput[i] : 0);
  before /= static_cast<double>(hit - first);
  if (before == 0) return;
  recovery.before_gbps = gbps(before);
  const size_t end = end_of_load(result, recovery.at) / interval;  // the first that is not whole
  bool was_less = false;
  for (size_t i = hit + 1; i < end; ++i) {
    const auto bytes = static_cast<double>(i < result.goodput.size() ? result.goodput[i] : 0);
    recovery.least_gbps = std::min(recovery.least_gbps.value_or(gbps(bytes)), gbps(bytes));
    const bool less = bytes < kBack * before;
    if (less) recovery.recovered.reset();
    if (!less && was_less) recovery.recovered = (i + 1) * interval - recovery.at;
    if (!less && !was_less && !recovery.recovered) recovery.recovered = 0;
    was_less = less;
  }
}

}  // namespace

std::optional<Recovery> recovery_of(const Topology& topology, const std::vector<LinkEvent>& events,
                                    const RunResult& result, Duration interval) {
  const auto failure = std::find_if(events.begin(), events.end(), [&](const LinkEvent& event) {
    return event.at != 0 && takes_away(topology, event);
  });
  if (failure == events.end() || failure->at >= result.ended_at) return std::nullopt;
  Recovery recovery;
  recovery.at = failure->at;
  recovery.link = failure->link;
  recovery.lost = lost_by_failures(result);
  if (result.last_loss != kNever && result.last_loss > recovery.at) recovery.losing = result.last_loss - recovery.at;
  if (result.last_repair != kNever && result.last_repair > recovery.at) {
    recovery.repaired = result.last_repair - recovery.at;
  }
  judge_goodput(result, interval, recovery);
  return recovery;
}

}  // namespace heddle::lab
