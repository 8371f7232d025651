// Any sequence of packets through the resequencer.
//
//   resequencer-fuzz -max_total_time=60 -max_len=4096
//
// Five bytes are a packet: queue pair and kind, PSN relative to the flow's last one, and the time since the packet
// before. Every packet must leave once, none may be held longer than the hold time, and the books must be empty at the
// end.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "lb/resequencer.h"
#include "tests/support/resequencing.h"

namespace {

using heddle::Duration;
using heddle::Packet;
using heddle::Time;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

constexpr uint8_t kOpcodes[] = {0x06, 0x07, 0x08, 0x0a, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x27, 0x64, 0x81};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr Duration kHold = 10 * heddle::kMicrosecond;
  heddle::lb::Resequencer resequencer(
      {.hold_time = kHold, .max_flow_bytes = 100'000, .max_bytes = 200'000, .max_packets = 60, .max_flows = 4});
  heddle::support::PacketMill mill;
  std::map<const Packet*, Time> held;
  std::map<uint32_t, uint32_t> last;
  size_t left = 0;
  Time now = heddle::kMillisecond;
  const auto leave = [&](Packet* packet) {
    const auto at = held.find(packet);
    require(at != held.end(), "released twice, or never received");
    require(now - at->second <= kHold, "held too long");
    held.erase(at);
    ++left;
  };
  size_t sent = 0;
  for (; size >= 5; data += 5, size -= 5) {
    const Duration step = data[4] * heddle::kNanosecond * 20;
    // Time passes as a switch lets it pass: it wakes when it has asked for it.
    const Time until = now + step;
    while (resequencer.holds_any() && !heddle::before(until, resequencer.next_expiry())) {
      now = heddle::later_of(now, resequencer.next_expiry());
      resequencer.expire(now, leave);
      require(!resequencer.holds_any() || heddle::before(now, resequencer.next_expiry()), "wakes for ever");
    }
    now = until;
    const uint32_t qp = data[0] & 0x0fU;
    const auto jump = static_cast<int16_t>(data[1] | data[2] << 8U);
    uint32_t& psn = last.try_emplace(qp, 0xfffff0U).first->second;
    psn = (psn + static_cast<uint32_t>(data[3] & 0x80U ? int{jump} : jump % 40)) & 0xffffffU;
    Packet* packet = mill.make({.qp = qp, .psn = psn, .opcode = kOpcodes[data[3] % std::size(kOpcodes)]});
    held.emplace(packet, now);
    ++sent;
    resequencer.receive(packet, now, leave);
    require(resequencer.held_packets() == held.size(), "the count of held packets is wrong");
    require(resequencer.held_packets() <= 60 && resequencer.held_bytes() <= 200'000, "beyond its bounds");
  }
  resequencer.flush(leave);
  require(left == sent && held.empty() && resequencer.held_bytes() == 0, "not all have left");
  return 0;
}
