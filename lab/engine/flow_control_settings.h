// Buffers, lossless classes, PFC and ECN of the fabric's switches: what a scenario says, and what it means for a port.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/pipeline.h"
#include "flowctl/ecn.h"
#include "flowctl/pfc_watchdog.h"
#include "net/rate.h"
#include "net/time.h"

namespace heddle::lab {

struct FlowControlSettings {
  uint64_t buffer = 0;  // bytes of each switch; 0 = unlimited, and then nothing is paused
  // In its place: bytes of every port for each lossless class, headroom included, and as much for all lossy classes
  // together. What headroom leaves is XOFF.
  uint64_t port_buffer = 0;
  uint8_t lossless = 0;  // bit = traffic class
  // Of a lossless class's priority group at each port:
  dataplane::Threshold xoff = dataplane::Threshold::dynamic(0.125);  // HPCC's
  uint64_t xon_offset = 3000;
  std::optional<uint64_t> headroom;                   // nothing: what the link needs
  bool pfc = true;                                    // false: lossless classes are only counted as such
  uint16_t quanta = 0xffff;                           // asked for each time
  std::optional<flowctl::WatchdogSettings> watchdog;  // of every queue that may be paused
  // Of an egress queue of a lossy class:
  dataplane::Threshold lossy = dataplane::Threshold::dynamic(1);
  flowctl::WredCurve ecn;
  uint8_t ecn_classes = 1U << 3U;

  bool is_limited() const { return buffer != 0 || port_buffer != 0; }
  bool pauses() const { return is_limited() && lossless != 0 && pfc; }
};

// What still arrives at a port after XOFF: the frame that crosses it, the one that the peer has begun, what the peer
// sends while a frame of ours holds up the pause (one full frame, the pauses of `classes` classes) and while pause and
// data are under way. `rate` is the peer's. `frame` and `overhead` in bytes.
uint64_t needed_headroom(Rate rate, Duration delay, uint32_t frame, int overhead, unsigned classes);

// One port of a switch.
struct FlowControlPort {
  Rate rate;
  Rate peer_rate;  // at which it is sent to
  Duration delay = 0;
  uint32_t frame = 0;  // the longest that passes
  int overhead = 0;
  net::Mac mac{};
};

// Adds all that `from` says to the settings of a switch whose ports are described. Throws bad input, with the sum, if
// reservations exceed the buffer; `name` is the switch's.
void add_flow_control(const FlowControlSettings& from, const std::vector<FlowControlPort>& ports, std::string_view name,
                      dataplane::PipelineSettings& to);

}  // namespace heddle::lab
