#include "telemetry/int_probe.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"

namespace heddle::telemetry {

namespace {

using net::header_at;

constexpr uint32_t kIp = sizeof(net::EthernetHeader);
constexpr uint32_t kUdp = kIp + sizeof(net::Ipv4Header);
constexpr uint8_t kProbeTtl = 64;
constexpr uint8_t kHopWordsMask = 0x1f;

void set_checksum(net::Ipv4Header& ip) {
  ip.checksum = 0;
  ip.checksum = __builtin_bswap16(static_cast<uint16_t>(~net::ipv4_header_sum(&ip, sizeof ip)));
}

uint32_t megabits_of(Rate rate) {
  if (rate.is_unlimited()) return kIntUnavailable;
  return static_cast<uint32_t>(std::clamp<uint64_t>(rate.bits_per_second() / 1'000'000, 1, kIntUnavailable - 1));
}

uint32_t nanoseconds_of(Duration duration) {
  return static_cast<uint32_t>(std::min<uint64_t>(duration / kNanosecond, kIntUnavailable - 1));
}

}  // namespace

bool write_probe(std::span<uint8_t> frame, const ProbeFields& fields) {
  if (fields.hops == 0 || fields.hops > kMaxIntHops) return false;
  const uint32_t bytes = probe_frame_bytes(fields.hops);
  if (frame.size() < bytes) return false;
  std::memset(frame.data(), 0, bytes);
  header_at<net::EthernetHeader>(frame.data(), 0)->ether_type = net::kTypeIpv4;

  auto* ip = header_at<net::Ipv4Header>(frame.data(), kIp);
  ip->version_ihl = 0x45;
  ip->tos = static_cast<uint8_t>(fields.dscp << 2U);
  ip->total_length = static_cast<uint16_t>(bytes - kIp);
  ip->ttl = kProbeTtl;
  ip->protocol = net::kProtocolUdp;
  ip->source = fields.source;
  ip->destination = fields.destination;
  set_checksum(*ip);

  auto* udp = header_at<net::UdpHeader>(frame.data(), kUdp);
  udp->source_port = fields.source_port;
  udp->destination_port = kIntPort;
  udp->length = static_cast<uint16_t>(bytes - kUdp);
  udp->checksum = 0;  // none (RFC 768): every hop changes the payload

  auto* shim = header_at<IntShim>(frame.data(), kUdp + sizeof(net::UdpHeader));
  shim->type_npt = kShimIntMdUdp;
  shim->length = sizeof(IntMdHeader) / 4;
  shim->original_port = kIntPort;
  auto* md = header_at<IntMdHeader>(frame.data(), kUdp + sizeof(net::UdpHeader) + sizeof(IntShim));
  md->version_flags = kIntVersion2 | kIntDiscard;
  md->hop_words = kIntHopWords;
  md->remaining_hops = static_cast<uint8_t>(fields.hops);
  md->instructions = kIntInstructions;
  md->domain = kIntDomain;
  md->ds_instructions = kDsEgressRate;

  auto* body = header_at<ProbeBody>(frame.data(), kProbeHeaders);
  body->kind = ProbeKind::kForward;
  body->member = fields.member;
  body->target = fields.target;
  body->sequence = fields.sequence;
  body->at_ns = fields.sent / kNanosecond;
  return true;
}

std::optional<ProbeView> find_probe(std::span<const uint8_t> frame, uint32_t ip_offset, uint32_t udp_offset) {
  constexpr size_t kToStack = sizeof(net::UdpHeader) + sizeof(IntShim) + sizeof(IntMdHeader);
  ProbeView view{.ip = ip_offset, .udp = udp_offset};
  if (ip_offset + sizeof(net::Ipv4Header) > udp_offset || udp_offset + kToStack > frame.size()) return std::nullopt;
  const auto* udp = header_at<net::UdpHeader>(frame.data(), udp_offset);
  if (udp->destination_port != kIntPort) return std::nullopt;
  const size_t end = size_t{udp_offset} + udp->length;
  if (end > frame.size()) return std::nullopt;

  const auto* shim = header_at<IntShim>(frame.data(), udp_offset + sizeof(net::UdpHeader));
  const auto* md = header_at<IntMdHeader>(frame.data(), udp_offset + sizeof(net::UdpHeader) + sizeof(IntShim));
  const bool ours = shim->type_npt == kShimIntMdUdp && (md->version_flags & 0xf0U) == kIntVersion2 &&
                    (md->hop_words & kHopWordsMask) == kIntHopWords && md->instructions == kIntInstructions &&
                    md->domain == kIntDomain && md->ds_instructions == kDsEgressRate;
  if (!ours) return std::nullopt;
  const size_t int_bytes = size_t{shim->length} * 4;
  if (int_bytes < sizeof(IntMdHeader) || (int_bytes - sizeof(IntMdHeader)) % sizeof(IntHop) != 0) return std::nullopt;
  view.stack = udp_offset + static_cast<uint32_t>(kToStack);
  view.hops = static_cast<unsigned>((int_bytes - sizeof(IntMdHeader)) / sizeof(IntHop));
  view.body = view.stack + view.hops * static_cast<uint32_t>(sizeof(IntHop));
  view.end = static_cast<uint32_t>(end);
  if (size_t{view.body} + sizeof(ProbeBody) > end) return std::nullopt;
  const ProbeKind kind = header_at<ProbeBody>(frame.data(), view.body)->kind;
  if (kind != ProbeKind::kForward && kind != ProbeKind::kReturned) return std::nullopt;
  return view;
}

void push_hop(std::span<uint8_t> frame, const ProbeView& probe, const HopRecord& hop) {
  auto* shim = header_at<IntShim>(frame.data(), probe.udp + sizeof(net::UdpHeader));
  auto* md = header_at<IntMdHeader>(frame.data(), probe.stack - sizeof(IntMdHeader));
  const size_t moved = probe.body + sizeof(ProbeBody) - probe.stack;
  const bool has_room = md->remaining_hops != 0 && shim->length <= 255 - kIntHopWords &&
                        probe.stack + moved + sizeof(IntHop) <= probe.end;
  if (!has_room) {
    md->version_flags |= kIntHopsExceeded;
    return;
  }
  std::memmove(frame.data() + probe.stack + sizeof(IntHop), frame.data() + probe.stack, moved);
  IntHop record{};
  record.node_id = hop.node_id;
  record.ingress_port = hop.ingress_port;
  record.egress_port = hop.egress_port;
  record.latency_ns = nanoseconds_of(elapsed(hop.departure, hop.arrival));
  record.queue_id = hop.queue_id;
  record.queue_bytes = static_cast<uint32_t>(std::min<uint64_t>(hop.queue_bytes, 0xffffff));
  record.ingress_ns = hop.arrival / kNanosecond;
  record.egress_ns = hop.departure / kNanosecond;
  record.egress_mbps = megabits_of(hop.rate);
  std::memcpy(frame.data() + probe.stack, &record, sizeof record);
  shim->length = static_cast<uint8_t>(shim->length + kIntHopWords);
  md->remaining_hops = static_cast<uint8_t>(md->remaining_hops - 1);
}

void turn_round(std::span<uint8_t> frame, const ProbeView& probe, uint8_t dscp, Time arrival) {
  auto* ip = header_at<net::Ipv4Header>(frame.data(), probe.ip);
  const uint32_t back_to = ip->source;
  ip->source = static_cast<uint32_t>(ip->destination);
  ip->destination = back_to;
  ip->tos = static_cast<uint8_t>(dscp << 2U);
  ip->ttl = kProbeTtl;
  set_checksum(*ip);
  auto* body = header_at<ProbeBody>(frame.data(), probe.body);
  body->kind = ProbeKind::kReturned;
  body->at_ns = arrival / kNanosecond;
}

PathReading read_path(std::span<const uint8_t> frame, const ProbeView& probe) {
  PathReading reading{.hops = probe.hops};
  const auto* md = header_at<IntMdHeader>(frame.data(), probe.stack - sizeof(IntMdHeader));
  reading.complete = (md->version_flags & kIntHopsExceeded) == 0;
  uint32_t slowest = kIntUnavailable;
  for (unsigned i = 0; i < probe.hops; ++i) {  // the newest first
    const auto* hop = header_at<IntHop>(frame.data(), probe.stack + i * sizeof(IntHop));
    const uint32_t latency = hop->latency_ns;
    const Duration stay = latency == kIntUnavailable ? 0 : Duration{latency} * kNanosecond;
    reading.delay += stay;
    if (i + 1 != probe.hops) reading.beyond += stay;
    const uint32_t megabits = hop->egress_mbps;
    if (megabits != 0) slowest = std::min(slowest, megabits);
  }
  if (probe.hops != 0) {
    const uint64_t sent_ns = header_at<IntHop>(frame.data(), probe.body - sizeof(IntHop))->ingress_ns;
    reading.sent = sent_ns * kNanosecond;
    reading.transit = (body_of(frame, probe).at_ns - sent_ns) * kNanosecond;
  }
  if (slowest != kIntUnavailable) reading.bottleneck = Rate(uint64_t{slowest} * 1'000'000);
  return reading;
}

}  // namespace heddle::telemetry
