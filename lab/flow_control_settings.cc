#include "lab/flow_control_settings.h"

#include <bit>
#include <string_view>

#include "net/error.h"

namespace heddle::lab {

uint64_t needed_headroom(Rate rate, Duration delay, uint32_t frame, int overhead, unsigned classes) {
  const uint64_t full = static_cast<uint64_t>(int64_t{frame} + overhead);
  const uint64_t pause = static_cast<uint64_t>(int64_t{flowctl::kPfcFrameBytes} + overhead);
  return 3 * full + classes * pause + rate.bytes_in(2 * delay) + 1;  // + 1: bytes_in rounds down
}

void add_flow_control(const FlowControlSettings& from, const std::vector<FlowControlPort>& ports, std::string_view name,
                      dataplane::Pipeline::Settings& to) {
  for (size_t i = 0; i < ports.size(); ++i) {
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (((from.ecn_classes >> tc) & 1U) != 0) to.ports[i].egress.classes[tc].mark = from.ecn;
    }
  }
  if (from.buffer == 0) return;
  to.buffer.bytes = from.buffer;
  const auto lossless_classes = static_cast<unsigned>(std::popcount(from.lossless));
  for (size_t i = 0; i < ports.size(); ++i) {
    const FlowControlPort& port = ports[i];
    auto& groups = to.buffer.groups.emplace_back();
    auto& queues = to.buffer.queues.emplace_back();
    for (unsigned tc = 0; tc < kTrafficClasses; ++tc) {
      if (((from.lossless >> tc) & 1U) == 0) {
        queues[tc].shared = from.lossy;
        continue;
      }
      groups[tc] = {.lossless = true,
                    .reserved = 0,
                    .shared = from.xoff,
                    .xon_offset = from.xon_offset,
                    .headroom = from.headroom.value_or(
                        needed_headroom(port.rate, port.delay, port.frame, port.overhead, lossless_classes))};
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
