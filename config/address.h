// MAC addresses and IP prefixes as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/headers.h"
#include "net/ip_address.h"
#include "net/prefix.h"

namespace heddle::config {

using net::IpFamily;
using net::IpPrefix;

// `02:00:00:00:00:01`, also with `-` between the bytes and in either case.
std::optional<net::Mac> parse_mac(std::string_view text);
std::string print_mac(const net::Mac& mac);

bool is_zero(const net::Mac& mac);
// Group bit set: multicast or broadcast (IEEE 802 8.2), never the address of one station.
bool is_group(const net::Mac& mac);

// `198.51.100.0/24`, `2001:db8::/64`. The length is required. Host bits are kept as written: see without_host_bits.
std::optional<IpPrefix> parse_prefix(std::string_view text);
std::string print_prefix(const IpPrefix& prefix);  // IPv6 in the form of RFC 5952
// `198.51.100.1`, `2001:db8::1`: no length.
std::optional<net::IpAddress> parse_address(std::string_view text);
std::string print_address(const net::IpAddress& address);  // as print_prefix
IpPrefix without_host_bits(IpPrefix prefix);

// 224.0.0.0/4 (RFC 5771) or ff00::/8 (RFC 4291 2.7), or a part of them.
bool is_multicast(const IpPrefix& prefix);

}  // namespace heddle::config
