// A switch with one lossless class behind the TestSwitch's ports, and what is needed to keep it busy.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/test_switch.h"

namespace heddle::support {

inline constexpr unsigned kRoceClass = 3;
inline constexpr uint8_t kRoceBit = 1U << kRoceClass;
inline const Rate kRate = Rate::gbps(100);
inline constexpr Duration kQuantum = 5120;  // 512 bits at 100G, in picoseconds

class FrameSource final : public PacketSource {
 public:
  Packet* make() override {
    if (empty) return nullptr;
    made.push_back(make_packet(Bytes(60)));
    return made.back().get();
  }
  std::vector<OwnedPacket> made;
  bool empty = false;
};

// RoCE data (class 3) is lossless: 20 kB, then XOFF and 10 kB of headroom. Everything else is lossy.
inline SwitchPlan lossless_plan() {
  SwitchPlan plan;
  plan.buffer.bytes = 1'000'000;
  plan.buffer.groups.resize(plan.ports.size());
  plan.buffer.queues.resize(plan.ports.size());
  for (auto& port : plan.buffer.groups) {
    port[kRoceClass] = {
        .lossless = true, .shared = dataplane::Threshold::fixed(20'000), .xon_offset = 5000, .headroom = 10'000};
  }
  for (PortId port = 0; port < plan.ports.size(); ++port) {
    plan.ports[port].egress.rate = kRate;
    plan.ports[port].pfc = {.classes = kRoceBit, .quanta = 1000, .link = kRate, .source = port_mac(port)};
  }
  return plan;
}

// One switch and all that is needed to keep it busy.
class Lossless {
 public:
  explicit Lossless(const SwitchPlan& of = lossless_plan()) : device(of) { device.pipeline().use_source(&source); }

  // A RoCE frame of 1,000 bytes in, at `now`.
  void arrive(Time now, uint8_t tos = 26U << 2U, uint8_t subnet = 2) {
    const Bytes frame =
        ethernet({}, ipv4({.tos = tos, .destination = ip4(10, subnet, 0, 9)}, udp({}, roce({}, pattern(1000 - 58)))));
    packets.push_back(make_packet(frame));
    put_in(kInPort, packets.back().get(), now);
  }
  void hear(PortId port, const Bytes& frame, Time now) {
    packets.push_back(make_packet(frame));
    put_in(port, packets.back().get(), now);
  }
  // The next frame of a port, if one may leave.
  Packet* next(PortId port, Time now) {
    Packet* packet = nullptr;
    return device.pipeline().egress(port, &packet, 1, now) == 1 ? packet : nullptr;
  }
  const telemetry::FlowControlCounters& counters(PortId port) const { return pipeline().counters().flow_control[port]; }
  const dataplane::Pipeline& pipeline() const { return const_cast<TestSwitch&>(device).pipeline(); }
  uint64_t held() const { return pipeline().buffer().occupancy(kInPort, kRoceClass).bytes(); }

  TestSwitch device;
  FrameSource source;
  std::vector<OwnedPacket> packets;

 private:
  void put_in(PortId port, Packet* packet, Time now) {
    const unsigned kept = device.pipeline().ingress(port, &packet, 1, now);
    device.pipeline().forward(&packet, kept, now);
  }
};

inline Bytes pfc_frame(const flowctl::PfcRequest& request) {
  Bytes frame(flowctl::kPfcFrameBytes);
  flowctl::write_pfc(frame.data(), net::Mac{}, request);  // a source address of zeros, as some send it
  return frame;
}

inline flowctl::PfcRequest heard(const Packet* packet) {
  flowctl::PfcRequest request;
  EXPECT_EQ(flowctl::parse_mac_control(frame_of(packet), packet->pkt_len, request), flowctl::MacControl::kPfc);
  return request;
}

}  // namespace heddle::support
