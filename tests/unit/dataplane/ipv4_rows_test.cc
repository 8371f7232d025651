// Packet in, packet out: IPv4 and what it carries.
#include <gtest/gtest.h>

#include "tests/support/rows.h"

namespace heddle::support {
namespace {

constexpr PacketKind kIp = PacketKind::kIp;
constexpr PacketKind kTcpUdp = PacketKind::kTcpUdp;
constexpr size_t kToIp = 14;
constexpr size_t kToUdp = kToIp + 20;
constexpr size_t kToBth = kToUdp + 8;

// A UDP payload of this many bytes to port 4791, and nothing that says RoCE but the port.
Bytes roce_port_payload(size_t bytes) { return udp({}, Bytes(bytes)); }

// The header that makes roce4()'s right checksum this one: found by trying identifications.
Ipv4 with_checksum(uint16_t checksum) {
  Ipv4 header;
  const Bytes payload(roce4().size() - kToUdp);
  for (unsigned id = 0; id <= 0xffff; ++id) {
    header.id = static_cast<uint16_t>(id);
    if (get16(ipv4(header, payload), 10) == checksum) return header;
  }
  throw std::logic_error("no such header");
}

Ipv4 from(uint32_t source) { return {.source = source}; }
Ipv4 to(uint32_t destination) { return {.destination = destination}; }

void jumbo(SwitchPlan& plan) {
  for (auto& port : plan.ports) port.max_frame = 9000;
}

const Row kForwarded[] = {
    {"RoCE SEND Only of 64 bytes", [] { return roce4(); }, forwarded()},
    {"RoCE BTH and ICRC alone", [] { return roce4({}, {}, 0); }, forwarded()},
    {"RoCE data at path MTU 1024", [] { return roce4({}, {.opcode = 0x01}, 1024); }, forwarded()},
    {"RoCE data at path MTU 4096 with a RETH", [] { return roce4({}, {.opcode = 0x06}, 4096 + 16); }, forwarded(),
     jumbo},
    {"RoCE with solicited event, MigReq and pad count set", [] { return roce4({}, {.flags = 0xf0}); }, forwarded()},
    {"RoCE FECN and BECN marks are kept", [] { return roce4({}, {.congestion = 0xc0}); }, forwarded()},
    {"CNP: opcode 0x81, BECN, DSCP 48 goes to class 6",
     [] { return roce4({.tos = 48U << 2U}, {.opcode = 0x81, .congestion = 0x40}, 16); },
     {.traffic_class = 6}},
    {"RoCE to the largest QP number", [] { return roce4({}, {.dest_qp = 0xffffff, .psn = 0xffffff}); }, forwarded()},
    {"congestion experienced is kept in the TOS byte", [] { return roce4({.tos = (26U << 2U) | 3U}); }, forwarded()},
    {"UDP to another port", [] { return frame4({}, udp({.destination_port = 4790}, pattern(64))); },
     forwarded(kTcpUdp)},
    {"UDP from port 4791 to another is no RoCE",
     [] { return frame4({}, udp({.source_port = 4791, .destination_port = 53}, pattern(64))); }, forwarded(kTcpUdp)},
    {"TCP", [] { return frame4({.protocol = 6}, tcp(33'000, 443, pattern(100))); }, forwarded(kTcpUdp)},
    {"ICMP has no ports", [] { return frame4({.protocol = 1}, pattern(64)); }, forwarded(kIp)},
    {"protocol 255", [] { return frame4({.protocol = 255}, pattern(64)); }, forwarded(kIp)},
    {"empty packet: header alone, protocol UDP", [] { return frame4({}, {}); }, forwarded(kIp)},
    // UDP 4791 that is no RoCE
    {"UDP 4791 with a TVer other than 0", [] { return frame4({}, udp({}, roce({.flags = 0x01}, pattern(32)))); },
     forwarded(kTcpUdp)},
    {"UDP 4791 with TVer 15", [] { return frame4({}, udp({}, roce({.flags = 0x0f}, pattern(32)))); },
     forwarded(kTcpUdp)},
    {"UDP 4791 with nothing in it", [] { return frame4({}, roce_port_payload(0)); }, forwarded(kTcpUdp)},
    {"UDP 4791 a byte short of a BTH", [] { return frame4({}, roce_port_payload(11)); }, forwarded(kTcpUdp)},
    {"UDP 4791 with a BTH but a byte short of an ICRC", [] { return frame4({}, roce_port_payload(15)); },
     forwarded(kTcpUdp)},
    // options
    {"one word of options in front of RoCE", [] { return roce4({.options = Bytes(4, 1)}); }, forwarded()},
    {"forty bytes of options in front of RoCE", [] { return roce4({.options = Bytes(40, 1)}); }, forwarded()},
    {"router alert option",
     [] {
       return roce4({.options = {0x94, 4, 0, 0}});
     },
     forwarded()},
    {"options that lie about their own length are not our business",
     [] {
       return roce4({.options = {0x07, 255, 0, 0}});
     },
     forwarded()},
    {"options in front of TCP", [] { return frame4({.protocol = 6, .options = Bytes(8, 1)}, tcp(1, 2, {})); },
     forwarded(kTcpUdp)},
    // fragments are hashed by addresses only
    {"first fragment: ports at hand but not read",
     [] { return frame4({.fragment = 0x2000}, udp({.length = 4000}, pattern(96))); }, forwarded(kIp)},
    {"middle fragment", [] { return frame4({.fragment = 0x2000 | 64}, pattern(96)); }, forwarded(kIp)},
    {"last fragment", [] { return frame4({.fragment = 128}, pattern(40)); }, forwarded(kIp)},
    {"last fragment at the largest offset", [] { return frame4({.fragment = 0x1fff}, pattern(7)); }, forwarded(kIp)},
    {"a fragment that looks like RoCE", [] { return frame4({.fragment = 0x0001}, udp({}, roce({}, pattern(32)))); },
     forwarded(kIp)},
    {"don't fragment cleared is no fragment", [] { return roce4({.fragment = 0}); }, forwarded()},
    {"the reserved flag is no fragment", [] { return roce4({.fragment = 0x8000}); }, forwarded()},
    // TTL and checksum
    {"TTL 2 leaves with 1", [] { return roce4({.ttl = 2}); }, forwarded()},
    {"TTL 255", [] { return roce4({.ttl = 255}); }, forwarded()},
    {"checksum 0x0000 arrives", [] { return roce4(with_checksum(0x0000)); }, forwarded()},
    {"checksum 0xfffe arrives", [] { return roce4(with_checksum(0xfffe)); }, forwarded()},
    {"checksum 0xff00: the update carries around", [] { return roce4(with_checksum(0xff00)); }, forwarded()},
    {"checksum 0xfeff becomes 0x0000 or 0xffff by one TTL", [] { return roce4(with_checksum(0xfeff)); }, forwarded()},
    {"checksum 0x00ff", [] { return roce4(with_checksum(0x00ff)); }, forwarded()},
    {"checksum 0xffff instead of 0x0000 is right too (RFC 1071)",
     [] {
       Ipv4 header = with_checksum(0x0000);
       header.checksum = 0xffff;
       return roce4(header);
     },
     forwarded()},
    // lengths that disagree
    {"UDP length beyond the IP packet", [] { return frame4({}, udp({.length = 200}, pattern(64))); }, forwarded(kIp)},
    {"UDP length one byte beyond", [] { return frame4({}, udp({.length = 8 + 64 + 1}, pattern(64))); }, forwarded(kIp)},
    {"UDP length 0", [] { return frame4({}, udp({.length = 0}, pattern(64))); }, forwarded(kIp)},
    {"UDP length 7, below its own header", [] { return frame4({}, udp({.length = 7}, pattern(64))); }, forwarded(kIp)},
    {"UDP length below the IP payload",
     [] { return frame4({}, udp({.destination_port = 53, .length = 40}, pattern(64))); }, forwarded(kTcpUdp)},
    {"UDP header cut short by the IP length", [] { return frame4({.total_length = 27}, udp({}, pattern(64))); },
     forwarded(kIp)},
    {"TCP header cut short by the IP length",
     [] { return frame4({.total_length = 39, .protocol = 6}, tcp(1, 2, pattern(20))); }, forwarded(kIp)},
    {"total length below the frame: the rest is padding and kept",
     [] {
       return join({frame4({}, udp({.destination_port = 53}, pattern(2))), Bytes(16)});
     },
     forwarded(kTcpUdp)},
    {"padding that is not zero is kept as well",
     [] {
       return join({roce4(), pattern(30)});
     },
     forwarded()},
    {"UDP length that reaches into the padding",
     [] {
       return join({frame4({}, udp({.length = 8 + 10}, pattern(2))), pattern(16)});
     },
     forwarded(kIp)},
    // sources at the edge of what is allowed
    {"source 1.0.0.0", [] { return roce4(from(ip4(1, 0, 0, 0))); }, forwarded()},
    {"source 126.255.255.255", [] { return roce4(from(ip4(126, 255, 255, 255))); }, forwarded()},
    {"source 128.0.0.1", [] { return roce4(from(ip4(128, 0, 0, 1))); }, forwarded()},
    {"source 223.255.255.254", [] { return roce4(from(ip4(223, 255, 255, 254))); }, forwarded()},
    // buffer segments
    {"payload in the second segment", [] { return roce4(); }, forwarded(), nullptr, {}, kToBth + 12},
    {"BTH split: the ports still count", [] { return roce4(); }, forwarded(kTcpUdp), nullptr, {}, kToBth + 11},
    {"UDP header split: plain IP", [] { return roce4(); }, forwarded(kIp), nullptr, {}, kToUdp + 7},
    {"TCP header split: plain IP",
     [] { return frame4({.protocol = 6}, tcp(1, 2, {})); },
     forwarded(kIp),
     nullptr,
     {},
     kToUdp + 19},
    {"IP header alone in the first segment", [] { return roce4(); }, forwarded(kIp), nullptr, {}, kToUdp},
};

const Row kDropped[] = {
    {"frame without a byte", [] { return Bytes{}; }, dropped(DropReason::kTooShort)},
    {"frame of one byte", [] { return Bytes(1); }, dropped(DropReason::kTooShort)},
    {"frame ends in the Ethernet header", [] { return Bytes(kRouterMac.begin(), kRouterMac.end()); },
     dropped(DropReason::kTooShort)},
    {"Ethernet header alone", [] { return ethernet({}, {}); }, dropped(DropReason::kTooShort)},
    {"frame ends in the IP header", [] { return ethernet({}, Bytes(19, 0x45)); }, dropped(DropReason::kTooShort)},
    {"IP header split over segments",
     [] { return roce4(); },
     dropped(DropReason::kHeaderSplit),
     nullptr,
     {},
     kToIp + 19},
    {"IP header all in the second segment",
     [] { return roce4(); },
     dropped(DropReason::kHeaderSplit),
     nullptr,
     {},
     kToIp},
    {"options in the second segment",
     [] { return roce4({.options = Bytes(8, 1)}); },
     dropped(DropReason::kHeaderSplit),
     nullptr,
     {},
     kToIp + 27},
    {"version 0", [] { return frame4({.version = 0}, pattern(64)); }, dropped(DropReason::kIpv4Version)},
    {"version 5", [] { return frame4({.version = 5}, pattern(64)); }, dropped(DropReason::kIpv4Version)},
    {"version 6 under the ether type of IPv4", [] { return frame4({.version = 6}, pattern(64)); },
     dropped(DropReason::kIpv4Version)},
    {"IHL 0", [] { return frame4({.ihl = 0}, pattern(64)); }, dropped(DropReason::kIpv4HeaderLength)},
    {"IHL 4", [] { return frame4({.ihl = 4}, pattern(64)); }, dropped(DropReason::kIpv4HeaderLength)},
    {"IHL beyond the frame", [] { return frame4({.ihl = 15}, pattern(39)); }, dropped(DropReason::kIpv4HeaderLength)},
    {"IHL beyond the total length", [] { return frame4({.ihl = 15, .total_length = 59}, pattern(64)); },
     dropped(DropReason::kIpv4TotalLength)},
    {"total length 0", [] { return frame4({.total_length = 0}, pattern(64)); }, dropped(DropReason::kIpv4TotalLength)},
    {"total length 19", [] { return frame4({.total_length = 19}, pattern(64)); },
     dropped(DropReason::kIpv4TotalLength)},
    {"total length ends within the options",
     [] { return frame4({.total_length = 27, .options = Bytes(8, 1)}, pattern(64)); },
     dropped(DropReason::kIpv4TotalLength)},
    {"total length one byte beyond the frame", [] { return frame4({.total_length = 85}, pattern(64)); },
     dropped(DropReason::kIpv4TotalLength)},
    {"total length 65535", [] { return frame4({.total_length = 65'535}, pattern(64)); },
     dropped(DropReason::kIpv4TotalLength)},
    {"checksum off by one", [] { return frame4({.checksum = 0x1234}, pattern(64)); },
     dropped(DropReason::kIpv4Checksum)},
    {"checksum 0 where it is not 0", [] { return frame4({.checksum = 0}, pattern(64)); },
     dropped(DropReason::kIpv4Checksum)},
    {"checksum that leaves the options out",
     [] {
       const uint16_t without = static_cast<uint16_t>(get16(ipv4({.ihl = 7, .total_length = 92}, {}), 10));
       return frame4({.checksum = without, .options = {0x94, 4, 0, 0, 1, 1, 1, 0}}, pattern(64));
     },
     dropped(DropReason::kIpv4Checksum)},
    {"TTL 1", [] { return roce4({.ttl = 1}); }, dropped(DropReason::kTtlExpired)},
    {"TTL 0", [] { return roce4({.ttl = 0}); }, dropped(DropReason::kTtlExpired)},
    {"source 0.0.0.0", [] { return roce4(from(0)); }, dropped(DropReason::kMartian)},
    {"source on network 0", [] { return roce4(from(ip4(0, 1, 2, 3))); }, dropped(DropReason::kMartian)},
    {"source 127.0.0.1", [] { return roce4(from(ip4(127, 0, 0, 1))); }, dropped(DropReason::kMartian)},
    {"source multicast", [] { return roce4(from(ip4(224, 0, 0, 1))); }, dropped(DropReason::kMartian)},
    {"source of class E", [] { return roce4(from(ip4(240, 0, 0, 1))); }, dropped(DropReason::kMartian)},
    {"source broadcast", [] { return roce4(from(~0U)); }, dropped(DropReason::kMartian)},
    {"destination 0.0.0.0", [] { return roce4(to(0)); }, dropped(DropReason::kMartian)},
    {"destination 127.0.0.1", [] { return roce4(to(ip4(127, 0, 0, 1))); }, dropped(DropReason::kMartian)},
    {"destination all OSPF routers", [] { return roce4(to(ip4(224, 0, 0, 5))); }, dropped(DropReason::kMulticast)},
    {"destination 239.255.255.255", [] { return roce4(to(ip4(239, 255, 255, 255))); }, dropped(DropReason::kMulticast)},
    {"destination broadcast", [] { return roce4(to(~0U)); }, dropped(DropReason::kMulticast)},
};

INSTANTIATE_TEST_SUITE_P(Ipv4, Rows, testing::ValuesIn(kForwarded), row_name);
INSTANTIATE_TEST_SUITE_P(Ipv4Dropped, Rows, testing::ValuesIn(kDropped), row_name);

}  // namespace
}  // namespace heddle::support
