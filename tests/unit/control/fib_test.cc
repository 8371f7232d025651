// rte_fib behind our interface, against longest prefix match written down as it is defined.
#include "dataplane/fib.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "config/address.h"
#include "net/random.h"
#include "tests/support/eal.h"

namespace heddle::dataplane {
namespace {

using net::IpFamily;
using net::IpPrefix;

// A prefix whose bits lie in a small part of the address space, so that prefixes nest.
IpPrefix random_prefix(Random& random, IpFamily family) {
  IpPrefix prefix;
  prefix.family = family;
  const bool four = family == IpFamily::kIpv4;
  for (size_t i = 0; i < (four ? 4U : 16U); ++i) prefix.address[i] = static_cast<uint8_t>(random.next());
  prefix.address[0] = four ? static_cast<uint8_t>(10 + random.below(4)) : uint8_t{0x20};
  if (!four) prefix.address[1] = static_cast<uint8_t>(random.below(2));
  prefix.length = static_cast<uint8_t>(four ? 12 + random.below(21) : 24 + random.below(41));
  return config::without_host_bits(prefix);
}

class Reference {
 public:
  void add(const IpPrefix& prefix, RouteId route) { routes_[prefix] = route; }
  void remove(const IpPrefix& prefix) { routes_.erase(prefix); }
  const std::map<IpPrefix, RouteId>& routes() const { return routes_; }

  RouteId lookup(IpFamily family, const Ipv6Address& address) const {
    for (int length = family == IpFamily::kIpv4 ? 32 : 128; length >= 0; --length) {
      IpPrefix prefix{family, address, static_cast<uint8_t>(length)};
      const auto found = routes_.find(config::without_host_bits(prefix));
      if (found != routes_.end()) return found->second;
    }
    return kNoRoute;
  }

 private:
  std::map<IpPrefix, RouteId> routes_;
};

void expect_same(const Fib& fib, const Reference& reference, IpFamily family, Random& random, int lookups) {
  std::vector<IpPrefix> prefixes;
  for (const auto& [prefix, route] : reference.routes()) prefixes.push_back(prefix);
  for (int done = 0; done < lookups; done += static_cast<int>(kBurst)) {
    Ipv6Address addresses[kBurst];
    uint32_t four[kBurst];
    RouteId found[kBurst];
    for (unsigned i = 0; i < kBurst; ++i) {
      // Half of them inside a known prefix, half anywhere.
      IpPrefix target = random_prefix(random, family);
      if (i % 2 == 0 && !prefixes.empty()) {
        target.address = prefixes[random.below(static_cast<uint32_t>(prefixes.size()))].address;
        target.address[family == IpFamily::kIpv4 ? 3 : 8] ^= static_cast<uint8_t>(random.below(2));
      }
      addresses[i] = target.address;
      four[i] = __builtin_bswap32(net::load<uint32_t>(addresses[i].data()));
    }
    if (family == IpFamily::kIpv4) {
      fib.lookup4(four, found, kBurst);
    } else {
      fib.lookup6(addresses, found, kBurst);
    }
    for (unsigned i = 0; i < kBurst; ++i) {
      const IpPrefix shown{family, addresses[i], static_cast<uint8_t>(family == IpFamily::kIpv4 ? 32 : 128)};
      ASSERT_EQ(found[i], reference.lookup(family, addresses[i])) << config::print_prefix(shown);
    }
  }
}

TEST(Fib, MatchesTheLongestPrefixThroughAdditionsReplacementsAndRemovals) {
  support::need_eal();
  for (const IpFamily family : {IpFamily::kIpv4, IpFamily::kIpv6}) {
    Fib fib("random", 8192);
    Reference reference;
    Random random(7);
    for (int round = 0; round < 6; ++round) {
      for (int i = 0; i < 400; ++i) {
        const IpPrefix prefix = random_prefix(random, family);
        const RouteId route = random.below(1000);
        fib.add(prefix, route);
        reference.add(prefix, route);
      }
      std::vector<IpPrefix> known;
      for (const auto& [prefix, route] : reference.routes()) known.push_back(prefix);
      for (size_t i = 0; i < known.size(); i += 3) {
        EXPECT_TRUE(fib.remove(known[i]));
        reference.remove(known[i]);
      }
      expect_same(fib, reference, family, random, 640);
    }
    EXPECT_FALSE(fib.remove(random_prefix(random, family)));
  }
}

TEST(Fib, HoldsAHundredThousandPrefixesOfEachFamily) {
  support::need_eal();
  Fib fib("large", 100'000);
  Random random(11);
  for (const IpFamily family : {IpFamily::kIpv4, IpFamily::kIpv6}) {
    std::map<IpPrefix, RouteId> routes;
    while (routes.size() < 100'000) {
      IpPrefix prefix;
      prefix.family = family;
      const uint64_t bits = random.next();
      for (size_t i = 0; i < 4; ++i) prefix.address[i] = static_cast<uint8_t>(bits >> (8 * i));
      // IPv4 as on the Internet, mostly /24; IPv6 /32.
      prefix.length = family == IpFamily::kIpv4 ? (bits >> 40U) % 16 == 0 ? 26 : 24 : 32;
      prefix = config::without_host_bits(prefix);
      if (routes.try_emplace(prefix, static_cast<RouteId>(routes.size() % 4000)).second) {
        fib.add(prefix, routes[prefix]);
      }
    }
    // Every prefix finds itself or one that is longer.
    for (const auto& [prefix, route] : routes) {
      RouteId found = kNoRoute;
      if (family == IpFamily::kIpv4) {
        const uint32_t address = __builtin_bswap32(net::load<uint32_t>(prefix.address.data()));
        fib.lookup4(&address, &found, 1);
        IpPrefix longer = prefix;
        longer.length = 26;
        const auto inside = routes.find(longer);
        ASSERT_EQ(found, inside == routes.end() ? route : inside->second) << config::print_prefix(prefix);
      } else {
        fib.lookup6(&prefix.address, &found, 1);
        ASSERT_EQ(found, route) << config::print_prefix(prefix);
      }
    }
  }
}

}  // namespace
}  // namespace heddle::dataplane
