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
  const std::string address(text.substr(0, slash));
  // inet_pton stops at a NUL, which would accept `10.0.0.0<NUL>junk`.
  if (address.find('\0') != std::string::npos) return std::nullopt;
  IpPrefix prefix;
  if (inet_pton(AF_INET, address.c_str(), prefix.address.data()) != 1) {
    prefix.family = IpFamily::kIpv6;
    if (inet_pton(AF_INET6, address.c_str(), prefix.address.data()) != 1) return std::nullopt;
  }
  const auto length = parse_integer(text.substr(slash + 1));
  if (!length || *length > bits_of(prefix.family)) return std::nullopt;
  prefix.length = static_cast<uint8_t>(*length);
  return prefix;
}

std::string print_ipv4(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24U, (address >> 16U) & 0xffU, (address >> 8U) & 0xffU, address & 0xffU);
}

std::string print_prefix(const IpPrefix& prefix) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(prefix.family == IpFamily::kIpv4 ? AF_INET : AF_INET6, prefix.address.data(), text.data(), text.size());
  return fmt::format("{}/{}", text.data(), prefix.length);
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
