// Packet in, packet out: routes, next hops, and what an egress port refuses.
#include <gtest/gtest.h>

#include "tests/support/rows.h"

namespace heddle::support {
namespace {

Ipv4 to(unsigned b) { return {.destination = ip4(10, b, 0, 9)}; }

constexpr size_t kFrame = 14 + 20 + 8 + 12 + 64 + 4;  // roce4() untagged

void longest(SwitchPlan& plan, uint32_t plain, uint32_t tagged_frame) {
  plan.ports[kPlainPort].max_frame = plain;
  plan.ports[kTaggedPort].max_frame = tagged_frame;
}
void exact(SwitchPlan& plan) { longest(plan, kFrame, kFrame + 4); }
void a_byte_less(SwitchPlan& plan) { longest(plan, kFrame - 1, kFrame + 3); }

void queue_bytes(SwitchPlan& plan, uint64_t limit) {
  for (auto& port : plan.ports) port.egress.classes[3].limit_bytes = limit;
}
void room_for_one(SwitchPlan& plan) { queue_bytes(plan, kFrame); }
void room_for_a_byte_less(SwitchPlan& plan) { queue_bytes(plan, kFrame - 1); }
void no_slot(SwitchPlan& plan) {
  for (auto& port : plan.ports) port.egress.limit_packets = 0;
}

const Row kRows[] = {
    {"no route", [] { return roce4({.destination = ip4(192, 0, 2, 1)}); }, dropped(DropReason::kNoRoute)},
    {"route beside ours", [] { return roce4(to(8)); }, dropped(DropReason::kNoRoute)},
    {"first address of a prefix", [] { return roce4({.destination = ip4(10, 2, 0, 0)}); }, forwarded()},
    {"last address of a prefix", [] { return roce4({.destination = ip4(10, 2, 255, 255)}); }, forwarded()},
    {"next hop group without members", [] { return roce4(to(4)); }, dropped(DropReason::kNoLiveNextHop)},
    {"every next hop down", [] { return roce4(to(5)); }, dropped(DropReason::kNoLiveNextHop)},
    {"one next hop down: the other takes all", [] { return roce4(to(6)); }, forwarded()},
    {"one next hop down: the other takes all, fragment",
     [] { return frame4({.fragment = 9, .destination = ip4(10, 6, 0, 1)}, pattern(64)); }, forwarded(PacketKind::kIp)},
    {"longest frame the port can send", [] { return roce4(); }, forwarded(), exact},
    {"a byte longer than the port can send", [] { return roce4(); }, dropped(DropReason::kFrameTooLong, kPlainPort),
     a_byte_less},
    {"longest frame, tag included",
     [] { return roce4(to(3)); },
     {.port = kTaggedPort, .tci = static_cast<uint16_t>(0x6000U | kOutVlan)},
     exact},
    {"the tag makes it too long", [] { return roce4(to(3)); }, dropped(DropReason::kFrameTooLong, kTaggedPort),
     a_byte_less},
    {"without its old tag it fits", [] { return tagged(10, roce4()); }, forwarded(), exact},
    {"queue with room for exactly this frame", [] { return roce4(); }, forwarded(), room_for_one},
    {"queue a byte too small", [] { return roce4(); }, dropped(DropReason::kQueueFull, kPlainPort),
     room_for_a_byte_less},
    {"another class's limit does not matter",
     [] { return roce4({.tos = 0}); },
     {.traffic_class = 0},
     room_for_a_byte_less},
    {"queue without a slot", [] { return roce4(); }, dropped(DropReason::kQueueFull, kPlainPort), no_slot},
};

INSTANTIATE_TEST_SUITE_P(Paths, Rows, testing::ValuesIn(kRows), row_name);

}  // namespace
}  // namespace heddle::support
