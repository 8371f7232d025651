// Sends any bytes through the packet path, parse to rewrite, as a frame that ends where its heap block ends.
//
//   packet-fuzz -max_total_time=60 CORPUS tests/fuzz/corpus/packet_fuzz
//
// The last five bytes of an input say how the frame arrives (see Arrival); the rest is the frame. Whatever comes in, it
// is one named drop that leaves the frame untouched, or one frame out: the one that a router must send, or an
// answer to who asked the switch itself. The checksum
// may be repaired first, or hardly an IPv4 header would ever get past it.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/support/test_switch.h"

namespace {

using namespace heddle;           // NOLINT(google-build-using-namespace)
using namespace heddle::support;  // NOLINT(google-build-using-namespace)

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

constexpr uint32_t kOwn = ip4(10, 1, 0, 1);
constexpr Address6 kOwn6 = ip6(1, 1);

struct Arrival {
  bool repair_checksum;    // bit 0 of the first byte
  bool stripped;           // bit 1: a tag was taken out of the frame
  bool split;              // bit 2: over two segments
  unsigned device;         // bits 3–5: which of the switches below
  uint16_t tci;            // second and third byte
  uint16_t first_segment;  // fourth and fifth byte

  explicit Arrival(std::span<const uint8_t, 5> bytes)
      : repair_checksum((bytes[0] & 1U) != 0),
        stripped((bytes[0] & 2U) != 0),
        split((bytes[0] & 4U) != 0),
        device((bytes[0] >> 3U) & 7U),
        tci(static_cast<uint16_t>(get16(bytes, 1))),
        first_segment(static_cast<uint16_t>(get16(bytes, 3))) {}
};

// Eight switches: with and without a MAC and addresses of their own, every trust, hashes of every field and of the
// usual ones. Every destination leads to a group of two next hops, one untagged, one on a VLAN.
std::unique_ptr<TestSwitch> make_switch(unsigned which) {
  SwitchPlan plan;
  dataplane::IngressPort& ingress = plan.ports[kInPort].ingress;
  ingress.any_mac = (which & 1U) != 0;
  if (!ingress.any_mac) ingress.addresses = {net::IpAddress(kOwn), net::IpAddress(net::IpFamily::kIpv6, kOwn6)};
  ingress.trust = static_cast<dataplane::Trust>(which % 3);
  if ((which & 4U) != 0) plan.hash.fields = {0xff, 0xff, 0xff};
  for (auto& port : plan.ports) port.max_frame = 9000;
  auto device = std::make_unique<TestSwitch>(plan);
  device->prefixes().add4(0, 0, 5);
  device->prefixes().add6({}, 0, 5);
  return device;
}

TestSwitch& device_of(const Arrival& arrival) {
  static std::array<std::unique_ptr<TestSwitch>, 8> devices;
  auto& device = devices[arrival.device];
  if (device == nullptr) device = make_switch(arrival.device);
  device->sent.clear();
  device->sink.taken.clear();
  return *device;
}

void repair_checksum(Bytes& frame) {
  size_t at = 12;
  while (at + 2 <= frame.size() && (get16(frame, at) == net::kTypeVlan || get16(frame, at) == net::kTypeServiceVlan)) {
    at += 4;
  }
  at += 2;
  if (at + 20 > frame.size()) return;
  const size_t header_bytes = (frame[at] & 15U) * size_t{4};
  if (header_bytes < 20 || at + header_bytes > frame.size()) return;
  frame[at + 10] = frame[at + 11] = 0;
  const uint16_t checksum = internet_checksum(std::span(frame).subspan(at, header_bytes));
  frame[at + 10] = static_cast<uint8_t>(checksum >> 8U);
  frame[at + 11] = static_cast<uint8_t>(checksum);
}

// What was asked is said in the frame itself, which goes back: as long as it was, but for a tag that comes back, zeros,
// and the option of an advertisement.
void check_answered(const Packet* packet, PortId port, const Bytes& frame) {
  require(port == kInPort, "an answer left by another port");
  const Bytes out = content_of(packet);
  require(packet->pkt_len == out.size(), "wrong length");
  require(out.size() <= frame.size() + sizeof(net::VlanTag) + 8, "an answer longer than asked for");
  require((out[0] & 1U) == 0 || (out[0] == 0x33 && out[5] == 1), "an answer to a group");
  require(std::equal(frame.begin() + 6, frame.begin() + 12, out.begin()) || out[0] == 0x33,
          "an answer to somebody else");
}

void check_forwarded(const Packet* packet, PortId port, const Bytes& frame) {
  const PacketMeta& meta = meta_of(packet);
  require(port == kPlainPort || port == kTaggedPort, "left by a port that no route names");
  require(meta.traffic_class < kTrafficClasses, "traffic class out of range");
  require((meta.kind == PacketKind::kIp) == (meta.l4_offset == 0), "transport offset and kind disagree");
  std::optional<uint16_t> tci;
  if (port == kTaggedPort) tci = static_cast<uint16_t>((meta.traffic_class << 13U) | kOutVlan);
  const Bytes out = content_of(packet);
  require(out == routed(frame, port, tci), "not the frame that a router must send");
  require(packet->pkt_len == out.size(), "wrong length");
  require(meta.l4_offset < out.size(), "transport beyond the frame");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kControl = 5;
  if (size < kControl) return 0;
  Bytes frame(data, data + size - kControl);
  const Arrival arrival(std::span<const uint8_t, kControl>(data + size - kControl, kControl));
  if (arrival.repair_checksum) repair_checksum(frame);
  if (frame.size() > 9000) return 0;

  TestSwitch& device = device_of(arrival);
  const size_t first = arrival.split && !frame.empty() ? 1 + arrival.first_segment % frame.size() : 0;
  const OwnedPacket packet = make_packet(frame, {.first_segment = first});
  if (arrival.stripped) {
    packet->vlan_tci = arrival.tci;
    packet->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
  }
  const uint64_t drops_before = device.all_drops();
  const uint64_t answers_before = device.counters(kInPort).answered.get();
  device.pass(packet.get());
  const uint64_t drops = device.all_drops() - drops_before;
  require(device.sent.size() + drops == 1 && drops == device.sink.taken.size(), "not one packet out or one drop");
  if (device.counters(kInPort).answered.get() != answers_before) {
    require(drops == 0, "an answer was dropped");
    check_answered(packet.get(), device.sent[0].port, frame);
  } else if (drops == 0) {
    check_forwarded(packet.get(), device.sent[0].port, frame);
  } else {
    require(content_of(packet.get()) == frame, "a dropped frame was changed");
  }
  return 0;
}
