#include "flowctl/headroom.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "net/error.h"

namespace heddle::flowctl {

namespace {

constexpr uint64_t kKibibyte = 1024;
constexpr uint64_t kPfcWireBytes = 84;  // 64 with FCS, preamble 8, gap 12
constexpr uint64_t kQuantumBytes = 64;

struct Response {
  uint64_t gbps;
  uint32_t quanta;
};
constexpr std::array<Response, 8> kResponses{
    {{10, 67}, {25, 80}, {40, 118}, {50, 147}, {100, 394}, {200, 453}, {400, 905}, {800, 905}}};

uint64_t round_up(uint64_t bytes) { return (bytes + kKibibyte - 1) / kKibibyte * kKibibyte; }

// A byte that has begun counts.
uint64_t bytes_in(Rate rate, Duration time) {
  return static_cast<uint64_t>(static_cast<double>(time) * static_cast<double>(rate.bits_per_second()) / 8e12 + 0.999);
}

std::string microseconds(Duration time) { return fmt::format("{:.4g} us", to_microseconds(time)); }
std::string gigabits(Rate rate) { return fmt::format("{:g}G", rate.gbps()); }

}  // namespace

uint32_t peer_response_quanta(Rate rate) {
  for (const Response& response : kResponses) {
    if (rate.bits_per_second() <= response.gbps * 1'000'000'000) return response.quanta;
  }
  return kResponses.back().quanta;
}

Headroom required_headroom(const HeadroomInput& in) {
  Headroom headroom;
  const std::string rate = gigabits(in.rate);
  const auto frame = static_cast<uint64_t>(int64_t{in.frame_bytes} + in.overhead);
  const auto add = [&](std::string what, std::string how, uint64_t bytes) {
    if (bytes != 0) headroom.steps.push_back({std::move(what), std::move(how), bytes});
  };
  const Duration cable = 2 * cable_delay(in.cable_metres);
  const uint64_t quanta = peer_response_quanta(in.rate);
  const uint64_t response_bytes = in.peer_reaction ? bytes_in(in.rate, *in.peer_reaction) : quanta * kQuantumBytes;
  const Duration response = in.peer_reaction.value_or(in.rate.time_for(response_bytes));

  add("switch's reaction", fmt::format("poll interval {} × {}", microseconds(in.reaction), rate),
      bytes_in(in.rate, in.reaction));
  add("burst in hand", fmt::format("{} frames × {} bytes", in.burst, frame), in.burst * frame);
  add("frames with the device", fmt::format("{} frames × {} bytes", in.tx_ring, frame), in.tx_ring * frame);
  add("frame of ours on the wire",
      fmt::format("the PFC frame waits for it: {} + {} bytes", in.frame_bytes, in.overhead), frame);
  add("PFC frame", "64 + 20 bytes", kPfcWireBytes);
  add("cable, there and back",
      fmt::format("2 × {:g} m ÷ 1.98e8 m/s = {} × {}", in.cable_metres, microseconds(cable), rate),
      bytes_in(in.rate, cable));
  add("peer's response",
      in.peer_reaction ? fmt::format("{} × {}", microseconds(*in.peer_reaction), rate)
                       : fmt::format("{} quanta × 64 bytes (802.1Qbb)", quanta),
      response_bytes);
  add("frame of the peer's on the wire",
      fmt::format("it is sent to its end: {} + {} bytes", in.frame_bytes, in.overhead), frame);
  for (const HeadroomStep& step : headroom.steps) headroom.bytes += step.bytes;
  headroom.bytes = round_up(headroom.bytes);
  headroom.reaction = in.reaction + in.rate.long_time_for(in.tx_ring * frame) + cable + response;
  return headroom;
}

Tuning tune(const TuningInput& in) {
  Tuning tuning;
  tuning.headroom = required_headroom(in.port);
  const uint64_t groups = uint64_t{in.ports} * in.lossless_classes;
  const auto line = [&](std::string what, std::string how, uint64_t bytes) {
    tuning.arithmetic.push_back({std::move(what), std::move(how), bytes});
  };

  tuning.reserved = round_up(2 * uint64_t{in.port.frame_bytes});
  tuning.kept_aside = in.workers > 1 ? uint64_t{in.workers} * in.port.burst * in.port.frame_bytes : 0;
  const uint64_t taken = groups * (tuning.headroom.bytes + tuning.reserved) + tuning.kept_aside;
  line("headroom, all groups",
       fmt::format("{} ports × {} classes × {}", in.ports, in.lossless_classes, tuning.headroom.bytes),
       groups * tuning.headroom.bytes);
  line("reserved, all groups", fmt::format("{} groups × 2 frames, {} bytes", groups, tuning.reserved),
       groups * tuning.reserved);
  if (tuning.kept_aside != 0) {
    line("kept aside", fmt::format("{} workers × {} frames × {} bytes", in.workers, in.port.burst, in.port.frame_bytes),
         tuning.kept_aside);
  }
  // A shared pool below one frame a group makes every group live from its headroom.
  const uint64_t least = groups * in.port.frame_bytes;
  if (in.buffer_bytes < taken + least) {
    throw_bad_input(
        "found a buffer of {} bytes; accepted: at least {}: {} lossless groups × ({} headroom + {} reserved + {} "
        "shared)"
        " + {} kept aside",
        in.buffer_bytes, taken + least, groups, tuning.headroom.bytes, tuning.reserved, in.port.frame_bytes,
        tuning.kept_aside);
  }
  tuning.shared = in.buffer_bytes - taken;
  line("shared pool", fmt::format("{} − {}", in.buffer_bytes, taken), tuning.shared);

  // With n groups at their threshold T: T = α × (S − n × T), so T = α × S ÷ (1 + n × α).
  tuning.alpha = 0.125;
  const auto xoff = [&](uint64_t n) {
    return static_cast<uint64_t>(tuning.alpha * static_cast<double>(tuning.shared) /
                                 (1 + static_cast<double>(n) * tuning.alpha));
  };
  tuning.xoff_alone = xoff(1);
  tuning.xoff_all = xoff(groups);
  line("XOFF, one group congested", fmt::format("α {:g} × {} ÷ (1 + α)", tuning.alpha, tuning.shared),
       tuning.xoff_alone);
  line("XOFF, all groups congested", fmt::format("α {:g} × {} ÷ (1 + {} α)", tuning.alpha, tuning.shared, groups),
       tuning.xoff_all);
  tuning.xon_offset = std::min(2 * uint64_t{in.port.frame_bytes}, tuning.xoff_all / 2);
  line("XON, below XOFF by", "2 frames, at most half of the lowest XOFF", tuning.xon_offset);

  // HPCC's authors: Kmin 4 kB and Kmax 16 kB per Gbit/s. Marking has to begin before a single sender is paused.
  const auto by_rate = static_cast<uint64_t>(in.port.rate.gbps() * 16'000);
  tuning.kmax = std::min(by_rate, tuning.xoff_alone);
  tuning.kmin = tuning.kmax / 4;
  tuning.pmax = 0.2;
  line("ECN Kmax", fmt::format("16 kB per Gbit/s = {}, at most XOFF of one group", by_rate), tuning.kmax);
  line("ECN Kmin", "a quarter of Kmax; Pmax 20 %", tuning.kmin);
  return tuning;
}

}  // namespace heddle::flowctl
