// rte_vect.h forgets that its functions are C, and most of DPDK's headers include it: first of all, therefore.
extern "C" {
#include <rte_vect.h>
}

#include <cstring>

#include <arpa/inet.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_ip.h>
#include <rte_memory.h>

#include "dataplane/fib.h"
#include "net/error.h"

namespace heddle::dataplane {

namespace {

// Entries are 2 bytes while 15 bits suffice for the second-level (tbl8) index, 4 bytes beyond: half the cache
// footprint.
constexpr uint32_t kMaxSmallTbl8 = 32'767;
// A tbl8 covers 8 more bits of one longer prefix: IPv4 beyond /24 needs one each at worst; IPv6 needs about two per
// prefix in tables as they are found (neighbours share the upper levels).
uint32_t tbl8_of_ipv4(uint32_t max_routes) { return std::max(max_routes, 256U); }
uint32_t tbl8_of_ipv6(uint32_t max_routes) { return std::max(2 * max_routes, 256U); }

bool is_ipv6(const net::IpPrefix& prefix) { return prefix.family == net::IpFamily::kIpv6; }

std::string text_of(const net::IpPrefix& prefix) {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(is_ipv6(prefix) ? AF_INET6 : AF_INET, prefix.address.data(), text, sizeof text);
  return fmt::format("{}/{}", text, prefix.length);
}

// While it lives, DPDK may choose 512-bit code where the CPU has it: a FIB looks up 16 addresses at a time then. DPDK's
// default of 256 bits is made for CPUs that lower their clock for wide multiplication; this is a gather. A limit given
// on the EAL's command line stays.
class WideVectors {
 public:
  WideVectors() { rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512); }
  ~WideVectors() { rte_vect_set_max_simd_bitwidth(before_); }
  WideVectors(const WideVectors&) = delete;
  WideVectors& operator=(const WideVectors&) = delete;

 private:
  uint16_t before_ = rte_vect_get_max_simd_bitwidth();
};

uint32_t host_order(const net::IpPrefix& prefix) {
  return __builtin_bswap32(net::load<uint32_t>(prefix.address.data()));
}

}  // namespace

Fib::Fib(const std::string& name, uint32_t max_routes) {
  const WideVectors wide;
  rte_fib_conf four{};
  four.type = RTE_FIB_DIR24_8;
  four.default_nh = kNoRoute;
  four.max_routes = static_cast<int>(max_routes);
  four.dir24_8.num_tbl8 = tbl8_of_ipv4(max_routes);
  four.dir24_8.nh_sz = four.dir24_8.num_tbl8 <= kMaxSmallTbl8 ? RTE_FIB_DIR24_8_2B : RTE_FIB_DIR24_8_4B;
  four_ = rte_fib_create((name + "-4").c_str(), static_cast<int>(SOCKET_ID_ANY), &four);
  if (four_ == nullptr) throw_failed("cannot create the IPv4 route table: {}", rte_strerror(rte_errno));

  rte_fib6_conf six{};
  six.type = RTE_FIB6_TRIE;
  six.default_nh = kNoRoute;
  six.max_routes = static_cast<int>(max_routes);
  six.trie.num_tbl8 = tbl8_of_ipv6(max_routes);
  six.trie.nh_sz = six.trie.num_tbl8 <= kMaxSmallTbl8 ? RTE_FIB6_TRIE_2B : RTE_FIB6_TRIE_4B;
  six_ = rte_fib6_create((name + "-6").c_str(), static_cast<int>(SOCKET_ID_ANY), &six);
  if (six_ == nullptr) {
    rte_fib_free(four_);
    throw_failed("cannot create the IPv6 route table: {}", rte_strerror(rte_errno));
  }
}

Fib::~Fib() {
  rte_fib_free(four_);
  rte_fib6_free(six_);
}

void Fib::add(const net::IpPrefix& prefix, RouteId route) {
  const int result = is_ipv6(prefix) ? rte_fib6_add(six_, prefix.address.data(), prefix.length, route)
                                     : rte_fib_add(four_, host_order(prefix), prefix.length, route);
  if (result != 0) throw_failed("cannot add route {}: {}", text_of(prefix), rte_strerror(-result));
}

bool Fib::remove(const net::IpPrefix& prefix) {
  return (is_ipv6(prefix) ? rte_fib6_delete(six_, prefix.address.data(), prefix.length)
                          : rte_fib_delete(four_, host_order(prefix), prefix.length)) == 0;
}

// The API takes its input as non-const but only reads it.
void Fib::lookup4(const uint32_t* destinations, RouteId* routes, unsigned count) const {
  rte_fib_lookup_bulk(four_, const_cast<uint32_t*>(destinations), routes, static_cast<int>(count));
}

void Fib::lookup6(const Ipv6Address* destinations, RouteId* routes, unsigned count) const {
  uint8_t addresses[kBurst][RTE_FIB6_IPV6_ADDR_SIZE];
  std::memcpy(addresses, destinations, count * sizeof(Ipv6Address));
  rte_fib6_lookup_bulk(six_, addresses, routes, static_cast<int>(count));
}

uint64_t Fib::memory_bytes(uint32_t max_routes) {
  const auto table = [](uint64_t tbl8) {
    const uint64_t entry = tbl8 <= kMaxSmallTbl8 ? 2 : 4;
    return (entry << 24U) + tbl8 * 256 * entry + tbl8 * 8;
  };
  // The RIB behind each FIB keeps up to two nodes per route, each in a mempool element of about 192 bytes.
  const uint64_t rib = 2 * uint64_t{max_routes} * 192;
  return table(tbl8_of_ipv4(max_routes)) + table(tbl8_of_ipv6(max_routes)) + 2 * rib + (4U << 20U);
}

}  // namespace heddle::dataplane
