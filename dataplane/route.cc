#include "dataplane/route.h"

#include <cstring>

namespace heddle::dataplane {

namespace {

// Fills in `routes` where the packet is IPv6.
void route_ipv6(const RouteLookup& lookup, Packet* const* packets, RouteId* routes, unsigned count) {
  Ipv6Address destinations[kBurst]{};
  RouteId found[kBurst];
  unsigned at[kBurst];
  unsigned n = 0;
  for (unsigned i = 0; i < count; ++i) {
    const PacketMeta& meta = meta_of(packets[i]);
    if (meta.l3 != L3::kIpv6) continue;
    at[n] = i;
    std::memcpy(destinations[n++].data(), frame_of(packets[i]) + meta.l3_offset + 24, sizeof(Ipv6Address));
  }
  lookup.lookup6(destinations, found, n);
  for (unsigned i = 0; i < n; ++i) routes[at[i]] = found[i];
}

}  // namespace

void route(const RouteLookup& lookup, const Destinations& to, Packet* const* packets, unsigned count) {
  RouteId routes[kBurst];
  if (to.ipv6 < count) lookup.lookup4(to.ipv4, routes, count);
  if (to.ipv6 != 0) route_ipv6(lookup, packets, routes, count);
  for (unsigned i = 0; i < count; ++i) meta_of(packets[i]).route = static_cast<uint32_t>(routes[i]);
}

}  // namespace heddle::dataplane
