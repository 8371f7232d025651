#include "lab/engine/pause_log.h"

#include <algorithm>

#include "net/random.h"

namespace heddle::lab {

size_t PauseLog::KeyHash::operator()(const Key& key) const {
  return mix64(uint64_t{key.message} << 24U | uint64_t{key.port} << 8U | key.traffic_class);
}

void PauseLog::note_class(PortIndex port, unsigned tc, bool paused, PauseOrigin origin, Time now) {
  const bool was = ((paused_[port] >> tc) & 1U) != 0;
  Queue& of = queue(port, tc);
  if (was == paused && (!was || of.open_origin == origin)) return;
  if (was) {
    close(of, now);
    latest_[port] = now;
  }
  if (was != paused) paused_[port] ^= static_cast<uint8_t>(1U << tc);
  if (!paused) return;
  of.open_since = now;
  of.open_origin = origin;
}

void PauseLog::close(Queue& of, Time now) const {
  if (now <= of.open_since) return;  // it took no time
  const uint64_t number = of.forgotten + of.past.size();
  if (number == 0 || of.last_origin != of.open_origin) of.last_run = number;
  of.past.push_back({of.open_since, now, of.open_origin, of.total, of.last_run});
  of.last_origin = of.open_origin;
  of.total += now - of.open_since;
  of.last_until = now;
  if (!keeps_all_ && of.next_unneeded == kNotYet) of.next_unneeded = 0;  // whoever leaves next looks
  of.open_origin = PauseOrigin();
}

// Packets of a few messages follow each other in a queue.
PauseLog::Wait& PauseLog::wait_of(Queue& of, const Key& key) {
  Recent& recent = of.recent[key.message % of.recent.size()];
  if (recent.wait == nullptr || recent.message != key.message) recent = {key.message, &waits_[key]};
  return *recent.wait;
}

void PauseLog::Wait::add(PauseOrigin origin, Duration time) {
  const auto of = std::find_if(held.begin(), held.end(), [origin](const auto& known) { return known.first == origin; });
  if (of != held.end()) {
    of->second += time;
  } else {
    held.emplace_back(origin, time);
  }
}

// Backwards from the last pause, a run of pauses of one origin at a time, to the first that was not over when the
// packet came or, if packets of the message have left since, when the last of them did.
void PauseLog::add_wait(Queue& of, const Key& key, Time since, Time now) {
  Wait& wait = wait_of(of, key);
  const Time begin = std::max(since, wait.until);
  wait.until = now;
  for (size_t end = of.past.size(); end > of.unneeded && of.past[end - 1].until > begin;) {
    const Past& last = of.past[end - 1];
    size_t first = last.run > of.forgotten ? static_cast<size_t>(last.run - of.forgotten) : 0;
    if (of.past[first].until <= begin) {
      const auto seen = std::partition_point(of.past.begin() + static_cast<std::ptrdiff_t>(first),
                                             of.past.begin() + static_cast<std::ptrdiff_t>(end),
                                             [begin](const Past& pause) { return pause.until <= begin; });
      first = static_cast<size_t>(seen - of.past.begin());
    }
    const Past& earliest = of.past[first];
    const Duration all = last.before + last.length() - earliest.before;
    wait.add(last.origin, all - (begin > earliest.from ? begin - earliest.from : 0));
    end = first;
  }
}

// The last one stays: `origin_since` asks for it.
void PauseLog::drop_unneeded(Queue& of, Time since) {
  while (of.unneeded + 1 < of.past.size() && of.past[of.unneeded].until <= since) ++of.unneeded;
  const Time next = of.past[of.unneeded].until;
  of.next_unneeded = next > since ? next : kNotYet;
  if (of.unneeded < 64 || of.unneeded < of.past.size() / 2) return;
  of.past.erase(of.past.begin(), of.past.begin() + static_cast<std::ptrdiff_t>(of.unneeded));
  of.forgotten += of.unneeded;
  of.unneeded = 0;
}

std::vector<PauseInterval> PauseLog::intervals() const {
  std::vector<PauseInterval> all;
  for (size_t i = 0; i < queues_.size(); ++i) {
    for (const Past& pause : queues_[i].past) {
      all.push_back({static_cast<PortIndex>(i / kTrafficClasses), static_cast<uint8_t>(i % kTrafficClasses), pause.from,
                     pause.until, pause.origin});
    }
  }
  return all;
}

std::vector<HeldMessage> PauseLog::held() const {
  std::vector<HeldMessage> all;
  all.reserve(waits_.size());
  for (const auto& [key, wait] : waits_) {
    for (const auto& [origin, time] : wait.held) all.push_back({key.message, origin, time});
  }
  return all;
}

}  // namespace heddle::lab
