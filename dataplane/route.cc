#include "dataplane/route.h"

namespace heddle::dataplane {

void route(const RouteLookup& lookup, Packet* const* packets, unsigned count) {
  uint32_t destinations[kBurst];
  RouteId routes[kBurst];
  unsigned six = 0;
  for (unsigned i = 0; i < count; ++i) {
    const PacketMeta& meta = meta_of(packets[i]);
    six += meta.l3 == L3::kIpv6 ? 1U : 0U;
    // Also read for IPv6 packets, where it is harmless: the 40-byte header is at hand, and the result is overwritten.
    destinations[i] = __builtin_bswap32(net::load<uint32_t>(frame_of(packets[i]) + meta.l3_offset + 16));
  }
  if (six < count) lookup.lookup4(destinations, routes, count);
  if (six != 0) {
    Ipv6Address destinations6[kBurst];
    RouteId routes6[kBurst];
    unsigned at[kBurst];
    unsigned n = 0;
    for (unsigned i = 0; i < count; ++i) {
      const PacketMeta& meta = meta_of(packets[i]);
      if (meta.l3 != L3::kIpv6) continue;
      at[n] = i;
      std::memcpy(destinations6[n++].data(), frame_of(packets[i]) + meta.l3_offset + 24, 16);
    }
    lookup.lookup6(destinations6, routes6, n);
    for (unsigned i = 0; i < n; ++i) routes[at[i]] = routes6[i];
  }
  for (unsigned i = 0; i < count; ++i) meta_of(packets[i]).route = routes[i];
}

}  // namespace heddle::dataplane
