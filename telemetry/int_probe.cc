#include "telemetry/int_probe.h"

#include <algorithm>
#include <cstring>

#include "net/checksum.h"

namespace heddle::telemetry {

namespace {

using net::header_at;
using net::IpFamily;

constexpr uint32_t kIp = sizeof(net::EthernetHeader);
constexpr uint8_t kProbeTtl = 64;
constexpr uint8_t kHopWordsMask = 0x1f;

void set_checksum(net::Ipv4Header& ip) {
  ip.checksum = 0;
  ip.checksum = __builtin_bswap16(static_cast<uint16_t>(~net::ipv4_header_sum(&ip, sizeof ip)));
}

// A header of that family with these, all else zero, in front of `payload` bytes. The flow label (RFC 6437) tells paths
// apart as the source port does, for switches that hash no further than the IP header (RFC 6438).
void write_ip(uint8_t* at, const ProbeFields& fields, uint32_t payload) {
  const net::IpLayout layout = net::layout_of(fields.source.family);
  if (fields.source.family == IpFamily::kIpv4) {
    auto* ip = header_at<net::Ipv4Header>(at, 0);
    ip->version_ihl = 0x45;
    ip->total_length = static_cast<uint16_t>(layout.header_bytes + payload);
    ip->protocol = net::kProtocolUdp;
  } else {
    auto* ip = header_at<net::Ipv6Header>(at, 0);
    ip->version_class_label = 6U << 28U | fields.source_port;
    ip->payload_length = static_cast<uint16_t>(payload);
    ip->next_header = net::kProtocolUdp;
  }
  std::memcpy(at + layout.source, fields.source.bytes.data(), layout.address_bytes);
  std::memcpy(at + layout.destination, fields.destination.bytes.data(), layout.address_bytes);
}

// The header sets out anew, in the class of that DSCP.
void set_out(uint8_t* at, IpFamily family, uint8_t dscp) {
  if (family == IpFamily::kIpv4) {
    auto* ip = header_at<net::Ipv4Header>(at, 0);
    ip->tos = static_cast<uint8_t>(dscp << 2U);
    ip->ttl = kProbeTtl;
    set_checksum(*ip);
  } else {
    auto* ip = header_at<net::Ipv6Header>(at, 0);
    const uint32_t others = ip->version_class_label & 0xf00fffffU;
    ip->version_class_label = others | uint32_t{dscp} << 22U;
    ip->hop_limit = kProbeTtl;
  }
}

uint16_t udp_sum_of(std::span<const uint8_t> frame, const ProbeView& probe) {
  const net::IpLayout layout = net::layout_of(probe.family);
  return net::udp_sum(frame.data() + probe.ip + layout.source, size_t{2} * layout.address_bytes,
                      frame.data() + probe.udp, static_cast<uint16_t>(probe.end - probe.udp));
}

// A checksum that is worked out as 0 is sent as 0xffff: 0 is none (RFC 768, RFC 8200 8.1).
void put_udp_checksum(std::span<uint8_t> frame, const ProbeView& probe, uint16_t checksum) {
  if (checksum == 0) checksum = 0xffff;
  std::memcpy(frame.data() + probe.udp + offsetof(net::UdpHeader, checksum), &checksum, sizeof checksum);
}

// Makes a change between two offsets, both even from the UDP header on. A checksum that is there stays as right as it
// was (RFC 1624 equation 3, whose words may as well be sums of words).
template <typename Change>
void change_between(std::span<uint8_t> frame, const ProbeView& probe, uint32_t first, uint32_t end,
                    const Change& change) {
  const auto checksum = net::load<uint16_t>(frame.data() + probe.udp + offsetof(net::UdpHeader, checksum));
  if (checksum == 0) return change();
  const uint16_t before = net::ones_sum(frame.data() + first, end - first);
  change();
  const uint16_t after = net::ones_sum(frame.data() + first, end - first);
  put_udp_checksum(frame, probe, net::update_checksum(checksum, before, after));
}

uint32_t megabits_of(Rate rate) {
  if (rate.is_unlimited()) return kIntUnavailable;
  return static_cast<uint32_t>(std::clamp<uint64_t>(rate.bits_per_second() / 1'000'000, 1, kIntUnavailable - 1));
}

uint32_t nanoseconds_of(Duration duration) {
  return static_cast<uint32_t>(std::min<uint64_t>(duration / kNanosecond, kIntUnavailable - 1));
}

IntHop record_of(const HopRecord& hop) {
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
  return record;
}

}  // namespace

bool write_probe(std::span<uint8_t> frame, const ProbeFields& fields) {
  const IpFamily family = fields.source.family;
  if (fields.hops == 0 || fields.hops > kMaxIntHops || fields.destination.family != family) return false;
  const uint32_t bytes = probe_frame_bytes(fields.hops, family);
  if (frame.size() < bytes) return false;
  std::memset(frame.data(), 0, bytes);
  const net::IpLayout layout = net::layout_of(family);
  const uint32_t at_udp = kIp + layout.header_bytes;
  header_at<net::EthernetHeader>(frame.data(), 0)->ether_type = layout.ether_type;
  write_ip(frame.data() + kIp, fields, bytes - at_udp);
  set_out(frame.data() + kIp, family, fields.dscp);

  auto* udp = header_at<net::UdpHeader>(frame.data(), at_udp);
  udp->source_port = fields.source_port;
  udp->destination_port = kIntPort;
  udp->length = static_cast<uint16_t>(bytes - at_udp);

  auto* shim = header_at<IntShim>(frame.data(), at_udp + sizeof(net::UdpHeader));
  shim->type_npt = kShimIntMdUdp;
  shim->length = sizeof(IntMdHeader) / 4;
  shim->original_port = kIntPort;
  auto* md = header_at<IntMdHeader>(frame.data(), at_udp + sizeof(net::UdpHeader) + sizeof(IntShim));
  md->version_flags = kIntVersion2 | kIntDiscard;
  md->hop_words = kIntHopWords;
  md->remaining_hops = static_cast<uint8_t>(fields.hops);
  md->instructions = kIntInstructions;
  md->domain = kIntDomain;
  md->ds_instructions = kDsEgressRate;

  auto* body = header_at<ProbeBody>(frame.data(), at_udp + kProbeUdpHeaders);
  body->kind = ProbeKind::kForward;
  body->member = fields.member;
  body->target = fields.target;
  body->sequence = fields.sequence;
  body->at_ns = fields.sent / kNanosecond;
  if (family == IpFamily::kIpv6) {
    const ProbeView whole{.family = family, .ip = kIp, .udp = at_udp, .end = bytes};
    put_udp_checksum(frame, whole, static_cast<uint16_t>(~udp_sum_of(frame, whole)));
  }
  return true;
}

std::optional<ProbeView> find_probe(std::span<const uint8_t> frame, uint32_t ip_offset, uint32_t udp_offset) {
  if (ip_offset >= frame.size()) return std::nullopt;
  const unsigned version = frame[ip_offset] >> 4U;
  if (version != 4 && version != 6) return std::nullopt;
  ProbeView view{.family = version == 4 ? IpFamily::kIpv4 : IpFamily::kIpv6, .ip = ip_offset, .udp = udp_offset};
  if (ip_offset + net::layout_of(view.family).header_bytes > udp_offset) return std::nullopt;
  if (size_t{udp_offset} + kProbeUdpHeaders > frame.size()) return std::nullopt;
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
  view.stack = udp_offset + kProbeUdpHeaders;
  view.hops = static_cast<unsigned>((int_bytes - sizeof(IntMdHeader)) / sizeof(IntHop));
  view.body = view.stack + view.hops * static_cast<uint32_t>(sizeof(IntHop));
  view.end = static_cast<uint32_t>(end);
  if (size_t{view.body} + sizeof(ProbeBody) > end) return std::nullopt;
  const ProbeKind kind = header_at<ProbeBody>(frame.data(), view.body)->kind;
  if (kind != ProbeKind::kForward && kind != ProbeKind::kReturned) return std::nullopt;
  return view;
}

bool is_intact(std::span<const uint8_t> frame, const ProbeView& probe) {
  const auto* udp = header_at<net::UdpHeader>(frame.data(), probe.udp);
  if (udp->checksum == 0) return probe.family == IpFamily::kIpv4;
  return udp_sum_of(frame, probe) == 0xffff;
}

void push_hop(std::span<uint8_t> frame, const ProbeView& probe, const HopRecord& hop) {
  auto* shim = header_at<IntShim>(frame.data(), probe.udp + sizeof(net::UdpHeader));
  auto* md = header_at<IntMdHeader>(frame.data(), probe.stack - sizeof(IntMdHeader));
  const uint32_t at_shim = probe.udp + sizeof(net::UdpHeader);
  const uint32_t end_before = probe.body + sizeof(ProbeBody);
  const uint32_t end_after = end_before + sizeof(IntHop);
  const bool has_room = md->remaining_hops != 0 && shim->length <= 255 - kIntHopWords && end_after <= probe.end;
  if (!has_room) {
    change_between(frame, probe, at_shim, probe.stack, [&] { md->version_flags |= kIntHopsExceeded; });
    return;
  }
  const IntHop record = record_of(hop);
  change_between(frame, probe, at_shim, end_after, [&] {
    uint8_t* stack = frame.data() + probe.stack;
    std::memmove(stack + sizeof record, stack, end_before - probe.stack);
    std::memcpy(stack, &record, sizeof record);
    shim->length = static_cast<uint8_t>(shim->length + kIntHopWords);
    md->remaining_hops = static_cast<uint8_t>(md->remaining_hops - 1);
  });
}

void turn_round(std::span<uint8_t> frame, const ProbeView& probe, uint8_t dscp, Time arrival) {
  const net::IpLayout layout = net::layout_of(probe.family);
  uint8_t* ip = frame.data() + probe.ip;
  std::swap_ranges(ip + layout.source, ip + layout.source + layout.address_bytes, ip + layout.destination);
  set_out(ip, probe.family, dscp);
  change_between(frame, probe, probe.body, probe.body + sizeof(ProbeBody), [&] {
    auto* body = header_at<ProbeBody>(frame.data(), probe.body);
    body->kind = ProbeKind::kReturned;
    body->at_ns = arrival / kNanosecond;
  });
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
