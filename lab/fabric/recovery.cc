#include "lab/fabric/recovery.h"

#include <algorithm>
#include <array>

namespace heddle::lab {

namespace {

constexpr double kBack = 0.9;

// The links as one event after another leaves them.
class Links {
 public:
  explicit Links(const Topology& topology) : states_(topology) {
    for (const Link& link : topology.links) loss_.push_back({link.loss, link.loss});
  }

  // Whether the event takes capacity or packets away that there were until then.
  bool takes_away(const LinkEvent& event) const {
    if (!states_.is_up(event.link)) return false;
    switch (event.kind) {
      case LinkEvent::Kind::kDown:
        return true;
      case LinkEvent::Kind::kUp:
        return false;
      case LinkEvent::Kind::kRate:
        return in_any_direction(event, [&](bool from_a) {
          return event.rate.bits_per_second() < states_.rate(event.link, from_a).bits_per_second();
        });
      case LinkEvent::Kind::kLoss:
        return in_any_direction(event, [&](bool from_a) { return event.loss > loss_[event.link][from_a ? 0 : 1]; });
    }
    return false;
  }

  void apply(const LinkEvent& event) {
    states_.apply(event);
    if (event.kind != LinkEvent::Kind::kLoss) return;
    if (event.direction != LinkDirection::kBToA) loss_[event.link][0] = event.loss;
    if (event.direction != LinkDirection::kAToB) loss_[event.link][1] = event.loss;
  }

 private:
  template <typename Condition>
  static bool in_any_direction(const LinkEvent& event, const Condition& condition) {
    return (event.direction != LinkDirection::kBToA && condition(true)) ||
           (event.direction != LinkDirection::kAToB && condition(false));
  }

  LinkStates states_;
  std::vector<std::array<double, 2>> loss_;  // from end a, from end b
};

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
  Links links(topology);
  const auto failure = std::find_if(events.begin(), events.end(), [&](const LinkEvent& event) {
    const bool found = event.at != 0 && links.takes_away(event);
    links.apply(event);
    return found;
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
