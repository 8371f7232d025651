// The PFC watchdog of one egress queue (port, priority): finds that a peer's pause frames have stopped it for good, and
// that they no longer do, in the terms of SONiC.
//
// It is looked at every now and then with what the queue and its pause state say, and measures over the time that has
// really passed between two looks: polls come late on a busy machine. What it judges by, received pause time, is
// counted on whether or not a mitigation makes the queue ignore it, so that a mitigation can end. An XON frame ends a
// pause, in a storm as anywhere else.
#pragma once

#include <cstdint>
#include <string_view>

#include "net/time.h"

namespace heddle::flowctl {

// What is done with the queue while it is stormed.
enum class WatchdogAction : uint8_t {
  kDrop,     // what it holds and what comes is dropped, so that no ingress port waits for it
  kForward,  // it sends in spite of the pause
  kAlert     // nothing, it is only reported
};

struct WatchdogSettings {
  Duration detect = 200 * kMillisecond;   // on real ports 100 ms–5 s
  Duration restore = 200 * kMillisecond;  // on real ports 100 ms–60 s
  WatchdogAction action = WatchdogAction::kDrop;

  // How often to look: the measured time exceeds the configured one by one such interval at most.
  constexpr Duration poll_interval() const { return (detect < restore ? detect : restore) / 8; }
  bool operator==(const WatchdogSettings&) const = default;
};

inline constexpr Duration kMinWatchdogDetect = 100 * kMillisecond;
inline constexpr Duration kMaxWatchdogDetect = 5 * kSecond;
inline constexpr Duration kMinWatchdogRestore = 100 * kMillisecond;
inline constexpr Duration kMaxWatchdogRestore = 60 * kSecond;

// The queue at one moment.
struct WatchdogSample {
  uint64_t queued_bytes = 0;
  // Which packet is next, by where it lies and when it came: as long as that is the same, none has left.
  const void* head = nullptr;
  Time head_arrival = 0;
  Duration paused_time = 0;  // ever, by received frames: PauseState::paused_time
};

enum class WatchdogEvent : uint8_t { kNone, kStormed, kRestored };
std::string_view name_of(WatchdogAction action);

class PfcWatchdog {
 public:
  PfcWatchdog() = default;
  explicit PfcWatchdog(const WatchdogSettings& settings) : settings_(settings) {}

  // What has happened since the last look. Times never go back.
  WatchdogEvent look(const WatchdogSample& sample, Time now);

  bool is_stormed() const { return stormed_; }
  // The queue's pause is to be ignored, or its packets dropped.
  bool ignores_pause() const { return stormed_ && settings_.action == WatchdogAction::kForward; }
  bool drops() const { return stormed_ && settings_.action == WatchdogAction::kDrop; }

  uint64_t storms() const { return storms_; }
  uint64_t restorations() const { return restorations_; }
  // When the running storm was found; meaningful while stormed.
  Time stormed_at() const { return stormed_at_; }

 private:
  bool looks_stuck(const WatchdogSample& sample, Duration measured) const;
  bool looks_free(const WatchdogSample& sample, Duration measured) const;

  WatchdogSettings settings_;
  WatchdogSample last_;
  Time last_at_ = 0;
  Time since_ = 0;  // since when every look has spoken for a change of state
  bool watching_ = false;
  bool stormed_ = false;
  Time stormed_at_ = 0;
  uint64_t storms_ = 0;
  uint64_t restorations_ = 0;
};

}  // namespace heddle::flowctl
