#include "config/address.h"

#include <algorithm>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "config/units.h"

namespace heddle::config {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

unsigned bits_of(IpFamily family) { return family == IpFamily::kIpv4 ? 32 : 128; }

}  // namespace

std::optional<net::Mac> parse_mac(std::string_view text) {
  constexpr size_t length = 17;  // six pairs and five separators
  if (text.size() != length || (text[2] != ':' && text[2] != '-')) return std::nullopt;
  net::Mac mac{};
  for (size_t i = 0; i < mac.size(); ++i) {
    const int high = hex_value(text[3 * i]);
    const int low = hex_value(text[3 * i + 1]);
    if (high < 0 || low < 0 || (i < 5 && text[3 * i + 2] != text[2])) return std::nullopt;
    mac[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return mac;
}

std::string print_mac(const net::Mac& mac) { return fmt::format("{:02x}", fmt::join(mac, ":")); }

bool is_zero(const net::Mac& mac) {
  return std::all_of(mac.begin(), mac.end(), [](uint8_t byte) { return byte == 0; });
}

bool is_group(const net::Mac& mac) { return (mac[0] & 1U) != 0; }

std::optional<IpPrefix> parse_prefix(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = parse_address(text.substr(0, slash));
  const auto length = parse_integer(text.substr(slash + 1));
  if (!address || !length || *length > bits_of(address->family)) return std::nullopt;
  return IpPrefix{.family = address->family, .address = address->bytes, .length = static_cast<uint8_t>(*length)};
}

std::optional<net::IpAddress> parse_address(std::string_view text) {
  // inet_pton stops at a NUL, which would accept `10.0.0.0<NUL>junk`.
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string whole(text);
  net::IpAddress address;
  if (inet_pton(AF_INET, whole.c_str(), address.bytes.data()) == 1) return address;
  address.family = IpFamily::kIpv6;
  if (inet_pton(AF_INET6, whole.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

std::string print_address(const net::IpAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(address.family == IpFamily::kIpv4 ? AF_INET : AF_INET6, address.bytes.data(), text.data(), text.size());
  return text.data();
}

std::string print_prefix(const IpPrefix& prefix) {
  return fmt::format("{}/{}", print_address({prefix.family, prefix.address}), prefix.length);
}

IpPrefix without_host_bits(IpPrefix prefix) {
  for (unsigned i = 0; i < prefix.address.size(); ++i) {
    const unsigned kept = std::clamp(static_cast<int>(prefix.length) - static_cast<int>(8 * i), 0, 8);
    prefix.address[i] &= static_cast<uint8_t>(0xff00U >> kept);
  }
  return prefix;
}

bool is_multicast(const IpPrefix& prefix) {
  if (prefix.family == IpFamily::kIpv4) return prefix.length >= 4 && (prefix.address[0] & 0xf0U) == 0xe0U;
  return prefix.length >= 8 && prefix.address[0] == 0xff;
}

}  // namespace heddle::config
