// When a port must send PFC frames, and which: XOFF as soon as a class is to be paused, again before its quanta run out
// (802.1Q 36.1.3.3), XON as soon as it may go on.
#pragma once

#include "flowctl/pfc.h"

namespace heddle::flowctl {

class PfcSender {
 public:
  // `quanta` ≥ 2 are asked for each time; `link` is the rate of the link, not unlimited.
  void configure(uint16_t quanta, Rate link) {
    quanta_ = quanta;
    set_link(link);
  }
  void set_link(Rate link) { refresh_after_ = pause_time(quanta_, link) / 2; }

  // Classes (bit = class) that the peer must hold back from now on; all others may go.
  void want(uint8_t paused) { wanted_ = paused; }

  // Whether a frame must go out now, before everything else.
  bool is_due(Time now) const { return wanted_ != told_ || (told_ != 0 && !before(now, refresh_at_)); }

  // What that frame says; it is counted as sent at `now`.
  PfcRequest take(Time now) {
    PfcRequest request = PfcRequest::pause(wanted_, quanta_);
    request.classes |= told_;  // those that are no longer wanted resume, their quanta are 0
    told_ = wanted_;
    refresh_at_ = now + refresh_after_;
    return request;
  }

  // Classes that the peer has been told to hold back, and when it must hear it again (only meaningful if there are
  // any).
  uint8_t told() const { return told_; }
  Time refresh_at() const { return refresh_at_; }

  // The link went down: the peer has forgotten, and hears it anew once the link is up.
  void forget() { told_ = 0; }

 private:
  uint8_t wanted_ = 0;
  uint8_t told_ = 0;
  uint16_t quanta_ = kMaxQuanta;
  Duration refresh_after_ = 0;
  Time refresh_at_ = 0;
};

}  // namespace heddle::flowctl
