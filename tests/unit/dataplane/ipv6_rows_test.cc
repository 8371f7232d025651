// Packet in, packet out: IPv6, its extension headers and what they carry.
#include <gtest/gtest.h>

#include "tests/support/rows.h"

namespace heddle::support {
namespace {

constexpr PacketKind kIp = PacketKind::kIp;
constexpr PacketKind kTcpUdp = PacketKind::kTcpUdp;
constexpr uint8_t kUdp = net::kProtocolUdp;
constexpr uint8_t kOptions = net::kProtocolDestinationOptions;
constexpr size_t kToIp = 14;
constexpr size_t kToPayload = kToIp + 40;

Bytes roce_datagram() { return udp({}, roce({}, pattern(64))); }

// RoCE behind one extension header of type `header`.
Bytes behind(uint8_t header, uint8_t extra = 0) {
  return frame6({.next_header = header}, extension(kUdp, extra, roce_datagram()));
}

// RoCE behind `count` headers of destination options.
Bytes behind_chain(unsigned count) {
  Bytes packet = roce_datagram();
  for (unsigned i = 0; i < count; ++i) packet = extension(i == 0 ? kUdp : kOptions, 0, packet);
  return frame6({.next_header = count == 0 ? kUdp : kOptions}, packet);
}

// RFC 4302: length in words of four bytes, less two.
Bytes authentication(uint8_t words_less_two, const Bytes& rest) {
  Bytes out((words_less_two + 2U) * 4U, 0xaa);
  out[0] = kUdp;
  out[1] = words_less_two;
  put(out, rest);
  return out;
}

Address6 low(uint8_t last) {
  Address6 address{};
  address[15] = last;
  return address;
}
Address6 starting(uint8_t first, uint8_t second) { return {first, second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}; }

void jumbo(SwitchPlan& plan) {
  for (auto& port : plan.ports) port.max_frame = 9000;
}

const Row kForwarded[] = {
    {"RoCE SEND Only of 64 bytes", [] { return roce6(); }, forwarded()},
    {"RoCE BTH and ICRC alone", [] { return roce6({}, {}, 0); }, forwarded()},
    {"RoCE data at path MTU 4096", [] { return roce6({}, {.opcode = 0x01}, 4096); }, forwarded(), jumbo},
    {"CNP goes to class 6",
     [] { return roce6({.traffic_class = 48U << 2U}, {.opcode = 0x81}, 16); },
     {.traffic_class = 6}},
    {"traffic class and flow label are kept",
     [] { return roce6({.traffic_class = (26U << 2U) | 3U, .flow_label = 0xabcde}); }, forwarded()},
    {"flow label does not reach into the traffic class",
     [] { return roce6({.traffic_class = 0, .flow_label = 0xfffff}); },
     {.traffic_class = 0}},
    {"UDP to another port", [] { return frame6({}, udp({.destination_port = 53}, pattern(64))); }, forwarded(kTcpUdp)},
    {"TCP", [] { return frame6({.next_header = 6}, tcp(33'000, 443, pattern(100))); }, forwarded(kTcpUdp)},
    {"ICMPv6 has no ports", [] { return frame6({.next_header = 58}, pattern(64)); }, forwarded(kIp)},
    {"no next header", [] { return frame6({.next_header = 59}, {}); }, forwarded(kIp)},
    {"empty packet: payload length 0, next header UDP", [] { return frame6({}, {}); }, forwarded(kIp)},
    {"UDP 4791 with a TVer other than 0", [] { return frame6({}, udp({}, roce({.flags = 0x02}, pattern(32)))); },
     forwarded(kTcpUdp)},
    {"UDP 4791 too short for BTH and ICRC", [] { return frame6({}, udp({}, Bytes(15))); }, forwarded(kTcpUdp)},
    {"hop limit 2 leaves with 1", [] { return roce6({.hop_limit = 2}); }, forwarded()},
    {"hop limit 255", [] { return roce6({.hop_limit = 255}); }, forwarded()},
    {"source site-local, which is global to a router (RFC 4291 2.5.7)",
     [] { return roce6({.source = starting(0xfe, 0xc0)}); }, forwarded()},
    {"source at the end of site-local", [] { return roce6({.source = starting(0xfe, 0xff)}); }, forwarded()},
    {"source below link-local", [] { return roce6({.source = starting(0xfe, 0x7f)}); }, forwarded()},
    // each extension header
    {"hop-by-hop options in front of RoCE", [] { return behind(net::kProtocolHopByHop); }, forwarded()},
    {"routing header in front of RoCE", [] { return behind(net::kProtocolRouting); }, forwarded()},
    {"destination options in front of RoCE", [] { return behind(kOptions); }, forwarded()},
    {"mobility header in front of RoCE", [] { return behind(net::kProtocolMobility); }, forwarded()},
    {"authentication header of 24 bytes in front of RoCE",
     [] { return frame6({.next_header = net::kProtocolAuthentication}, authentication(4, roce_datagram())); },
     forwarded()},
    {"smallest authentication header",
     [] { return frame6({.next_header = net::kProtocolAuthentication}, authentication(1, roce_datagram())); },
     forwarded()},
    {"destination options in front of TCP",
     [] { return frame6({.next_header = kOptions}, extension(6, 0, tcp(1, 2, {}))); }, forwarded(kTcpUdp)},
    {"encrypted payload is opaque", [] { return frame6({.next_header = 50}, pattern(64)); }, forwarded(kIp)},
    {"encrypted payload behind destination options",
     [] { return frame6({.next_header = kOptions}, extension(50, 0, pattern(64))); }, forwarded(kIp)},
    {"an unknown extension header ends the search",
     [] { return frame6({.next_header = 253}, extension(kUdp, 0, roce_datagram())); }, forwarded(kIp)},
    {"longest extension header: 2048 bytes", [] { return behind(kOptions, 255); }, forwarded(), jumbo},
    {"hop-by-hop, routing and destination options in a row",
     [] {
       return frame6({.next_header = net::kProtocolHopByHop},
                     extension(net::kProtocolRouting, 1, extension(kOptions, 2, extension(kUdp, 0, roce_datagram()))));
     },
     forwarded()},
    {"chain of 7 headers: RoCE is found", [] { return behind_chain(7); }, forwarded()},
    {"chain of 8 headers: the search stops, plain IP", [] { return behind_chain(8); }, forwarded(kIp)},
    {"chain of 9 headers: plain IP", [] { return behind_chain(9); }, forwarded(kIp)},
    {"chain of 40 headers: plain IP", [] { return behind_chain(40); }, forwarded(kIp)},
    {"extension header longer than the packet",
     [] {
       return frame6({.next_header = kOptions}, Bytes{kUdp, 200, 1, 4, 0, 0, 0, 0});
     },
     forwarded(kIp)},
    {"extension header one byte longer than the packet",
     [] {
       return frame6({.next_header = kOptions}, Bytes{kUdp, 0, 1, 4, 0, 0, 0});
     },
     forwarded(kIp)},
    {"extension header at the very end", [] { return frame6({.next_header = kOptions}, {}); }, forwarded(kIp)},
    {"extension header that lies in the padding",
     [] {
       return join({frame6({.next_header = kOptions}, {}), Bytes(46)});
     },
     forwarded(kIp)},
    {"extension headers end where UDP should begin",
     [] { return frame6({.next_header = kOptions}, extension(kUdp, 0, {})); }, forwarded(kIp)},
    // fragments
    {"first fragment: ports at hand but not read",
     [] { return frame6({.next_header = 44}, fragment_header(kUdp, 0x0001, udp({.length = 4000}, pattern(96)))); },
     forwarded(kIp)},
    {"middle fragment",
     [] { return frame6({.next_header = 44}, fragment_header(kUdp, (64U << 3U) | 1U, pattern(96))); }, forwarded(kIp)},
    {"last fragment", [] { return frame6({.next_header = 44}, fragment_header(kUdp, 128U << 3U, pattern(40))); },
     forwarded(kIp)},
    {"atomic fragment (RFC 6946)",
     [] { return frame6({.next_header = 44}, fragment_header(kUdp, 0, roce_datagram())); }, forwarded(kIp)},
    {"fragment behind destination options",
     [] { return frame6({.next_header = kOptions}, extension(44, 0, fragment_header(kUdp, 1, pattern(64)))); },
     forwarded(kIp)},
    {"fragment header cut short",
     [] {
       return frame6({.next_header = 44}, Bytes{kUdp, 0, 0, 1});
     },
     forwarded(kIp)},
    // lengths that disagree
    {"payload length below the frame: the rest is padding and kept",
     [] {
       return join({roce6(), pattern(30)});
     },
     forwarded()},
    {"payload length ends in the UDP header", [] { return frame6({.payload_length = 7}, roce_datagram()); },
     forwarded(kIp)},
    {"payload length ends in the TCP header",
     [] { return frame6({.payload_length = 19, .next_header = 6}, tcp(1, 2, pattern(20))); }, forwarded(kIp)},
    {"UDP length beyond the packet", [] { return frame6({}, udp({.length = 200}, pattern(64))); }, forwarded(kIp)},
    {"UDP length 0 (a jumbogram's)", [] { return frame6({}, udp({.length = 0}, pattern(64))); }, forwarded(kIp)},
    // buffer segments
    {"payload in the second segment", [] { return roce6(); }, forwarded(), nullptr, {}, kToPayload + 20},
    {"BTH split: the ports still count", [] { return roce6(); }, forwarded(kTcpUdp), nullptr, {}, kToPayload + 19},
    {"UDP header split: plain IP", [] { return roce6(); }, forwarded(kIp), nullptr, {}, kToPayload + 7},
    {"extension header split: plain IP", [] { return behind(kOptions); }, forwarded(kIp), nullptr, {}, kToPayload + 7},
    {"extension header in the second segment: plain IP",
     [] { return behind(kOptions); },
     forwarded(kIp),
     nullptr,
     {},
     kToPayload},
};

const Row kDropped[] = {
    {"frame ends in the IPv6 header", [] { return ethernet({.type = net::kTypeIpv6}, Bytes(39, 0x60)); },
     dropped(DropReason::kTooShort)},
    {"Ethernet header alone", [] { return ethernet({.type = net::kTypeIpv6}, {}); }, dropped(DropReason::kTooShort)},
    {"IPv6 header split over segments",
     [] { return roce6(); },
     dropped(DropReason::kHeaderSplit),
     nullptr,
     {},
     kToIp + 39},
    {"version 4 under the ether type of IPv6", [] { return frame6({.version = 4}, roce_datagram()); },
     dropped(DropReason::kIpv6Version)},
    {"version 0", [] { return frame6({.version = 0}, roce_datagram()); }, dropped(DropReason::kIpv6Version)},
    {"version 7", [] { return frame6({.version = 7}, roce_datagram()); }, dropped(DropReason::kIpv6Version)},
    {"payload length one byte beyond the frame", [] { return frame6({.payload_length = 65}, pattern(64)); },
     dropped(DropReason::kIpv6PayloadLength)},
    {"payload length 65535", [] { return frame6({.payload_length = 65'535}, pattern(64)); },
     dropped(DropReason::kIpv6PayloadLength)},
    {"jumbogram",
     [] {
       return frame6({.payload_length = 0, .next_header = 0}, Bytes{kUdp, 0, 0xc2, 4, 0, 1, 0, 0});
     },
     dropped(DropReason::kIpv6PayloadLength)},
    {"hop limit 1", [] { return roce6({.hop_limit = 1}); }, dropped(DropReason::kTtlExpired)},
    {"hop limit 0", [] { return roce6({.hop_limit = 0}); }, dropped(DropReason::kTtlExpired)},
    {"destination all nodes of the link", [] { return roce6({.destination = starting(0xff, 0x02)}); },
     dropped(DropReason::kMulticast)},
    {"destination multicast of global scope", [] { return roce6({.destination = starting(0xff, 0x0e)}); },
     dropped(DropReason::kMulticast)},
    {"source multicast", [] { return roce6({.source = starting(0xff, 0x02)}); }, dropped(DropReason::kMartian)},
    {"source unspecified", [] { return roce6({.source = low(0)}); }, dropped(DropReason::kMartian)},
    {"source loopback", [] { return roce6({.source = low(1)}); }, dropped(DropReason::kMartian)},
    {"source link-local", [] { return roce6({.source = starting(0xfe, 0x80)}); }, dropped(DropReason::kMartian)},
    {"source at the end of link-local", [] { return roce6({.source = starting(0xfe, 0xbf)}); },
     dropped(DropReason::kMartian)},
    {"destination unspecified", [] { return roce6({.destination = low(0)}); }, dropped(DropReason::kMartian)},
    {"destination loopback", [] { return roce6({.destination = low(1)}); }, dropped(DropReason::kMartian)},
    {"destination link-local", [] { return roce6({.destination = starting(0xfe, 0x80)}); },
     dropped(DropReason::kMartian)},
    {"no route", [] { return roce6({.destination = ip6(0x77, 1)}); }, dropped(DropReason::kNoRoute)},
    {"destination site-local is routable, to nowhere", [] { return roce6({.destination = starting(0xfe, 0xc0)}); },
     dropped(DropReason::kNoRoute)},
    {"destination at the end of link-local", [] { return roce6({.destination = starting(0xfe, 0xbf)}); },
     dropped(DropReason::kMartian)},
    {"destination two after loopback is routable, to nowhere", [] { return roce6({.destination = low(2)}); },
     dropped(DropReason::kNoRoute)},
    {"next hop group without members", [] { return roce6({.destination = ip6(4, 1)}); },
     dropped(DropReason::kNoLiveNextHop)},
    {"every next hop down", [] { return roce6({.destination = ip6(5, 1)}); }, dropped(DropReason::kNoLiveNextHop)},
};

INSTANTIATE_TEST_SUITE_P(Ipv6, Rows, testing::ValuesIn(kForwarded), row_name);
INSTANTIATE_TEST_SUITE_P(Ipv6Dropped, Rows, testing::ValuesIn(kDropped), row_name);

}  // namespace
}  // namespace heddle::support
