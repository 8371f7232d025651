#include "lab/engine/pause_log.h"

#include <algorithm>
#include <iterator>

#include "net/random.h"

namespace heddle::lab {

size_t PauseLog::KeyHash::operator()(const Key& key) const {
  const uint64_t place = uint64_t{key.message} << 24U | uint64_t{key.port} << 8U | key.traffic_class;
  return mix64(place ^ mix64(key.origin));
}

void PauseLog::close(PortIndex port, unsigned traffic_class, Time now) {
  Queue& of = queue(port, traffic_class);
  of.past.push_back(
      {port, static_cast<uint8_t>(traffic_class), of.open_since, std::max(of.open_since, now), of.open_origin});
  of.open_origin = PauseOrigin();
}

// From the first pause that was not over when the packet came.
void PauseLog::add_wait(PortIndex port, unsigned traffic_class, MessageId message, Time since, Time now) {
  const std::vector<PauseInterval>& past = queue(port, traffic_class).past;
  auto pause = past.end();
  while (pause != past.begin() && std::prev(pause)->until > since) --pause;
  for (; pause != past.end(); ++pause) add_overlap(*pause, message, since, now);
}

void PauseLog::add_overlap(const PauseInterval& pause, MessageId message, Time since, Time now) {
  Wait& wait = waits_[{message, pause.port, pause.traffic_class, pause.origin.mark()}];
  const Time from = std::max({pause.from, since, wait.until});
  const Time until = std::min(pause.until, now);
  if (from >= until) return;
  wait.held += until - from;
  wait.until = until;
}

std::vector<PauseInterval> PauseLog::intervals() const {
  std::vector<PauseInterval> all;
  for (const Queue& of : queues_) {
    std::copy_if(of.past.begin(), of.past.end(), std::back_inserter(all),
                 [](const PauseInterval& pause) { return pause.from != pause.until; });
  }
  return all;
}

std::vector<HeldMessage> PauseLog::held() const {
  std::vector<HeldMessage> all;
  all.reserve(waits_.size());
  for (const auto& [key, wait] : waits_) {
    if (wait.held != 0) all.push_back({key.message, PauseOrigin(key.origin), wait.held});
  }
  return all;
}

}  // namespace heddle::lab
