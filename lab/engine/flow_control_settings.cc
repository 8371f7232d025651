#include "lab/engine/flow_control_settings.h"

#include <bit>
#include <string_view>

#include "net/error.h"

namespace heddle::lab {

uint64_t needed_headroom(Rate rate, Duration delay, uint32_t frame, int overhead, unsigned classes) {
  const uint64_t full = static_cast<uint64_t>(int64_t{frame} + overhead);
  const uint64_t pause = static_cast<uint64_t>(int64_t{flowctl::kPfcFrameBytes} + overhead);
  return 3 * full + classes * pause + rate.bytes_in(2 * delay) + 1;  // + 1: bytes_in rounds down
}

namespace {

// What headroom leaves of a class's own bytes. Too little of it would hold up every burst.
dataplane::Threshold xoff_within(uint64_t bytes, uint64_t headroom, std::string_view name) {
  constexpr uint64_t kLeast = 10'000;
  if (bytes >= headroom + kLeast) return dataplane::Threshold::fixed(bytes - headroom);
  throw_bad_input("fabric.port_buffer: found {} bytes for {}; accepted: {} and more, its headroom and {} bytes", bytes,
                  name, headroom + kLeast, kLeast);
}

}  // namespace

void add_flow_control(const FlowControlSettings& from, const std::vector<FlowControlPort>& ports, std::string_view name,
                      dataplane::PipelineSettings& to) {
  for (size_t i = 0; i < ports.size(); ++i) {
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (((from.ecn_classes >> tc) & 1U) != 0) to.ports[i].egress.classes[tc].mark = from.ecn;
    }
  }
  if (!from.is_limited()) return;
  const auto lossless_classes = static_cast<unsigned>(std::popcount(from.lossless));
  to.buffer.bytes = from.port_buffer == 0 ? from.buffer : from.port_buffer * ports.size() * (lossless_classes + 1);
  for (size_t i = 0; i < ports.size(); ++i) {
    const FlowControlPort& port = ports[i];
    auto& groups = to.buffer.groups.emplace_back();
    auto& queues = to.buffer.queues.emplace_back();
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (((from.lossless >> tc) & 1U) == 0) {
        queues[tc].shared = from.lossy;
        continue;
      }
      const uint64_t headroom = from.headroom.value_or(
          needed_headroom(port.peer_rate, port.delay, port.frame, port.overhead, lossless_classes));
      groups[tc] = {.lossless = true,
                    .reserved = 0,
                    .shared = from.port_buffer == 0 ? from.xoff : xoff_within(from.port_buffer, headroom, name),
                    .xon_offset = from.xon_offset,
                    .headroom = headroom};
    }
    if (from.pfc) {
      to.ports[i].pfc = {.classes = from.lossless,
                         .quanta = from.quanta,
                         .link = port.rate,
                         .source = port.mac,
                         .watchdog = from.watchdog};
    }
  }
  if (to.buffer.shared_bytes() > 0) return;
  throw_bad_input("fabric.buffer: found {} bytes for {}; accepted: more than {}, the headroom of {} ports", from.buffer,
                  name, static_cast<int64_t>(from.buffer) - to.buffer.shared_bytes(), ports.size());
}

}  // namespace heddle::lab
