// Any bytes as a path probe.
//
//   int-probe-fuzz -max_total_time=60 -max_len=512
//
// The first two bytes are where the IP and UDP headers are said to lie; the rest is the frame, in a buffer of exactly
// its size. What is found must lie inside the frame, and must still be found after a hop has been pushed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "telemetry/int_probe.h"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heddle::telemetry;  // NOLINT(google-build-using-namespace)
  if (size < 2) return 0;
  const uint32_t ip = data[0] % 32U;
  const uint32_t udp = ip + data[1] % 64U;
  const size_t bytes = size - 2;
  const auto exact = std::make_unique<uint8_t[]>(bytes);
  std::copy_n(data + 2, bytes, exact.get());
  const std::span<uint8_t> frame(exact.get(), bytes);
  const auto probe = find_probe(frame, ip, udp);
  if (!probe) return 0;
  require(probe->end <= bytes && probe->body + sizeof(ProbeBody) <= probe->end, "outside the frame");
  const PathReading before = read_path(frame, *probe);
  const bool intact = is_intact(frame, *probe);
  push_hop(frame, *probe, {.node_id = 1, .arrival = 0, .departure = heddle::kMicrosecond});
  const auto after = find_probe(frame, ip, udp);
  require(after.has_value(), "lost by pushing a hop");
  require(after->hops == before.hops || after->hops == before.hops + 1, "more than one hop pushed");
  turn_round(frame, *after, 48, heddle::kMillisecond);
  const auto turned = find_probe(frame, ip, udp);
  require(turned.has_value(), "lost by turning round");
  require(is_intact(frame, *turned) == intact, "another checksum than before");
  return 0;
}
